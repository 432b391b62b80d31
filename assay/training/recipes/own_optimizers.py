"""Optimizers that users write as subclasses of `torch.optim.Optimizer`: their `step` becomes part of the program.

What `step` keeps per parameter becomes slots of the optimizer list: its tensors, and its numbers that change (f32 []).
How they begin is found by trial: a step from nothing must do what a step from that beginning does. Inside `step` the
rates of groups are tensors, f32 [], and all else that groups say are constants.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from assay.engine.compiler.hidden.lines import short, where
from assay.engine.compiler.hidden.state import Watch
from assay.protocol.errors import AssayError, UserError
from assay.training.optimizer import TwoLists
from assay.training.recipes.trial import alike

Kept = dict[str, Any]
"""What an optimizer keeps of one parameter, by its own names."""

_LISTED: Final = "_foreach_"
"""How names of operations on lists begin, of which a program has none."""

_FACTORS: Final = ("alpha", "value")
"""Arguments that PyTorch takes as numbers only; a rate that the state holds is a tensor."""


@dataclass(frozen=True, eq=False)
class OwnOptimizer:
    """A user's optimizer as a pure one. positions: of the parameters that it updates, as its groups name them.

    rates: of its groups, over the state's. beginnings: per parameter what is kept before the first step.
    """

    given: torch.optim.Optimizer
    groups: tuple[tuple[int, ...], ...]
    rates: tuple[float, ...]
    beginnings: tuple[Kept, ...]
    slots: tuple[tuple[str, ...], ...]

    def size(self, count: int) -> int:
        """One per kept tensor and changing number."""
        return sum(len(names) for names in self.slots)

    def zero_init(self, parameters: Sequence[Tensor]) -> list[Tensor]:
        """What is kept before the first step."""
        pairs = zip(self.beginnings, self.slots, strict=True)
        return [_tensor(kept[name]).clone() for kept, names in pairs for name in names]

    def update(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], optimizer: Sequence[Tensor], rate: Tensor
    ) -> TwoLists:
        """New parameters and new optimizer list; rate: f32 []. Raises UserError (OwnOptimizerKeeps)."""
        supply = iter(optimizer)
        before = [
            kept | {name: next(supply).clone() for name in names}
            for kept, names in zip(self.beginnings, self.slots, strict=True)
        ]
        rates = [rate if factor == 1.0 else rate * factor for factor in self.rates]
        updated, after = _stepped(self.given, self.groups, rates, parameters, gradients, before)
        for kept, beginning, names in zip(after, self.beginnings, self.slots, strict=True):
            _check_kept(self.given, kept, beginning, names)
        return updated, [_tensor(kept[name]) for kept, names in zip(after, self.slots, strict=True) for name in names]


def own_optimizer(
    given: torch.optim.Optimizer,
    groups: Sequence[Sequence[int]],
    rates: Sequence[float],
    parameters: Sequence[Tensor],
    rate: float,
) -> OwnOptimizer:
    """The pure form of a user's optimizer. groups: positions in `parameters`, by group; rates: over `rate`.

    Raises:
        UserError: OwnOptimizerFails, OwnOptimizerKeeps.
    """
    if given.state:
        raise _keeps(given, "finds what was kept before the first step", "Begin what it keeps in its first step.")
    numbered = tuple(tuple(part) for part in groups)
    with Watch({"optimizer": given}) as watch:
        try:
            trials = [_trial(given, numbered, [rate * r for r in rates], parameters, seed) for seed in (1, 2)]
        finally:
            watch.restore()
    (beginnings, slots), (others, again) = trials
    same = slots == again and all(
        alike(_tensor(a[n]), _tensor(b[n]))
        for a, b, names in zip(beginnings, others, slots, strict=True)
        for n in names
    )
    if not same:
        raise _keeps(given, "begins with what depends on parameters or gradients", "Begin with zeros or a constant.")
    return OwnOptimizer(given, numbered, tuple(rates), tuple(beginnings), tuple(slots))


def _trial(
    given: torch.optim.Optimizer,
    groups: tuple[tuple[int, ...], ...],
    rates: Sequence[float],
    parameters: Sequence[Tensor],
    seed: int,
) -> tuple[list[Kept], list[tuple[str, ...]]]:
    """What is kept before the first step, and the names of what changes or is a tensor."""
    generator = torch.Generator().manual_seed(seed)
    values = [torch.randn(p.shape, generator=generator).to(p.dtype) for p in parameters]
    gradients = [torch.randn(p.shape, generator=generator).to(p.dtype) for p in parameters]
    given_rates = [torch.tensor(r) for r in rates]
    recorded: list[Kept] = [_FirstValues() for _ in parameters]
    try:
        first, after = _stepped(given, groups, given_rates, values, gradients, recorded)
    except AssayError:
        raise
    except Exception as error:
        raise UserError(
            f"{type(given).__name__}.step fails: {type(error).__name__}: {str(error).strip()}{where(error)}",
            code="OwnOptimizerFails",
            remedy="In a step rates are tensors, and so are numbers that it counts: use ** 0.5 instead of math.sqrt,"
            " torch.where instead of if, and no float() of them.",
        ) from error
    firsts = [dict(kept.first) for kept in recorded if isinstance(kept, _FirstValues)]
    zeros = [{n: _zero(v) for n, v in kept.items()} for kept in firsts]
    for beginning in (firsts, zeros):
        slots = [_slots(kept, end) for kept, end in zip(beginning, after, strict=True)]
        begun = [{n: v.clone() if isinstance(v, Tensor) else v for n, v in kept.items()} for kept in beginning]
        second, ends = _stepped(given, groups, given_rates, values, gradients, begun)
        if _all_alike(first, second) and all(
            _all_alike([_tensor(a[n]) for n in names], [_tensor(b[n]) for n in names])
            for a, b, names in zip(after, ends, slots, strict=True)
        ):
            return beginning, slots
    raise _keeps(
        given,
        "does in its first step what no later step does",
        "Begin what it keeps with zeros, and do the same in every step.",
    )


def _zero(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.zeros_like(value)
    return 0 if _counts(value) else value


def _counts(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _slots(kept: Kept, after: Kept) -> tuple[str, ...]:
    """The names of tensors, and of numbers that a step changes."""
    return tuple(n for n, v in kept.items() if isinstance(v, Tensor) or (_counts(v) and after[n] != v))


def _stepped(
    given: torch.optim.Optimizer,
    groups: Sequence[Sequence[int]],
    rates: Sequence[Tensor],
    parameters: Sequence[Tensor],
    gradients: Sequence[Tensor],
    before: Sequence[Kept],
) -> tuple[list[Tensor], list[Kept]]:
    """New values of all parameters and what is kept of each, by the user's own `step` on a twin of its optimizer."""
    with torch.no_grad():
        leaves = [p.detach().clone() for p in parameters]
        for leaf, g in zip(leaves, gradients, strict=True):
            leaf.grad = g.detach().clone()
    kind = type(given)
    twin = object.__new__(kind)
    twin.__dict__.update({name: value for name, value in vars(given).items() if name != "step"})
    said = [{**group, "lr": rate} for group, rate in zip(given.param_groups, rates, strict=True)]
    twin.param_groups = [{**part, "params": [leaves[k] for k in own]} for part, own in zip(said, groups, strict=True)]
    twin.state = defaultdict(dict, dict(zip(leaves, before, strict=True)))
    with torch.no_grad(), _TensorRates():
        _unhooked(kind.step)(twin)
    _check_untouched(given, twin, said, leaves)
    return leaves, [dict(twin.state[leaf]) for leaf in leaves]


def _unhooked(step: Callable[..., object]) -> Callable[..., object]:
    """The user's function inside what `torch.optim.Optimizer` wraps around it for hooks and profilers."""
    while getattr(step, "hooked", False):
        step = step.__wrapped__  # type: ignore[attr-defined]
    return step


def _check_untouched(
    given: torch.optim.Optimizer, twin: torch.optim.Optimizer, said: Sequence[Mapping[str, Any]], leaves: list[Tensor]
) -> None:
    for name, value in vars(twin).items():
        if name not in ("param_groups", "state", "step") and vars(given).get(name, twin) is not value:
            raise _keeps(given, f"changes its attribute {name}", _BY_STATE)
    for group, before in zip(twin.param_groups, said, strict=True):
        changed = [n for n, v in group.items() if n != "params" and before.get(n, group) is not v]
        if changed:
            raise _keeps(given, f"changes {changed[0]} of a parameter group", _BY_STATE)
    if len(twin.state) > len(leaves):
        raise _keeps(given, "keeps something that belongs to no parameter", _BY_STATE)


def _check_kept(given: torch.optim.Optimizer, kept: Kept, beginning: Kept, names: Sequence[str]) -> None:
    for name in sorted(set(kept) ^ set(beginning)):
        raise _keeps(given, f"keeps {name} in some steps only", _BY_STATE)
    for name in sorted(set(kept) - set(names)):
        if kept[name] is not beginning[name] and kept[name] != beginning[name]:
            raise _keeps(given, f"changes {name} in some steps only", _BY_STATE)


class _FirstValues(dict[str, Any]):
    """A parameter's state that remembers what each entry was when it was first set."""

    def __init__(self) -> None:
        super().__init__()
        self.first: Kept = {}

    def __setitem__(self, name: str, value: Any) -> None:
        self.first.setdefault(name, value.detach().clone() if isinstance(value, Tensor) else value)
        super().__setitem__(name, value)

    def setdefault(self, name: str, value: Any = None) -> Any:
        """As a dict's."""
        if name not in self:
            self[name] = value
        return self[name]

    def update(self, *more: Any, **named: Any) -> None:
        """As a dict's."""
        for name, value in dict(*more, **named).items():
            self[name] = value


class _TensorRates(TorchFunctionMode):
    """Lets a rate that is a tensor stand where PyTorch takes numbers: `p.add_(update, alpha=-lr)` and its kin."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call, with a tensor for a factor multiplied in; `.data` is a detached alias, or is written in place."""
        kwargs = dict(kwargs or {})
        if func.__name__.startswith(_LISTED):
            return self._one_by_one(func.__name__.removeprefix(_LISTED), types, args, kwargs)
        if func == torch.Tensor.data.__get__:  # type: ignore[attr-defined]
            return args[0].detach()
        if func == torch.Tensor.data.__set__:  # type: ignore[attr-defined]
            return args[0].copy_(args[1])
        factor = next((kwargs.pop(n) for n in _FACTORS if isinstance(kwargs.get(n), Tensor)), None)
        if factor is None:
            return func(*args, **kwargs)
        name = func.__name__
        root = name.rstrip("_")
        if root in ("add", "sub") and len(args) == 2 and not kwargs:
            return func(args[0], args[1] * factor)
        if root in ("addcmul", "addcdiv") and len(args) == 3 and not kwargs:
            term = args[1] * args[2] if root == "addcmul" else args[1] / args[2]
            add = torch.Tensor.add_ if name.endswith("_") else torch.Tensor.add
            return add(args[0], term * factor)
        raise TypeError(f"{name} takes no rate of a state in this form: write p.add_(update, alpha=-lr)")

    def _one_by_one(self, name: str, types: Any, args: Any, kwargs: dict[str, Any]) -> list[Any] | None:
        """What `torch._foreach_` does of lists, tensor by tensor; what writes in place gives nothing."""
        if len(args) == 4 and name.rstrip("_") in ("addcmul", "addcdiv"):
            args, kwargs = args[:3], kwargs | {"value": args[3]}
        single = getattr(torch.Tensor, name) if isinstance(args[0], list | tuple) else getattr(torch, name)
        count = next(len(a) for a in args if isinstance(a, list | tuple))
        found = [
            self.__torch_function__(
                single,
                types,
                tuple(a[k] if isinstance(a, list | tuple) else a for a in args),
                {n: a[k] if isinstance(a, list | tuple) else a for n, a in kwargs.items()},
            )
            for k in range(count)
        ]
        return None if name.endswith("_") else found


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else torch.tensor(float(value))


def _all_alike(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> bool:
    return all(alike(a, b) for a, b in zip(ours, theirs, strict=True))


_BY_STATE: Final = "Keep what changes in self.state[p], the same entries from the first step on."


def _keeps(given: torch.optim.Optimizer, what: str, remedy: str) -> UserError:
    code = inspect.unwrap(type(given).step).__code__
    at = f"{short(code.co_filename)}:{code.co_firstlineno}"
    return UserError(f"{type(given).__name__}.step ({at}) {what}.", code="OwnOptimizerKeeps", remedy=remedy)
