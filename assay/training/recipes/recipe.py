"""A recipe: an own module, loss, optimizer and data, and the training step that follows from them.

    def factory():
        module = MyModule()
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
        return Recipe(module, loss, optimizer, data=(inputs, targets), batch_size=32)

`loss(module, *batch)` is ordinary PyTorch and returns a scalar. One step draws a batch from the data in the state,
computes gradients, perhaps clips them, and updates; dropout and `torch.rand` draw from the state too.

Shapes: N entries in the data, B examples in a batch, M micro-batches of b = B / M, W entries in a window; `...` is what
an entry has of its own. Parameters, gradients and buffers have the shapes that the module gives them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.func import functional_call

from assay.engine import ops
from assay.engine.compiler.as_traced import as_traced
from assay.engine.compiler.hidden.guard import Known, refuse_backward
from assay.engine.compiler.hidden.hooks import numbers_kept
from assay.engine.compiler.hidden.lines import definition
from assay.engine.compiler.lowering.registry import SIXTEEN
from assay.engine.compiler.operations import Operations, Placed, check_asked, check_constants, check_same
from assay.engine.compiler.randomness import Randomness
from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.errors import UserError
from assay.training.optimizer import Grouped, Optimizer, ParameterGroup, clip_by_global_norm, clip_by_value
from assay.training.recipes.attached import refuse_attached, refuse_shared_buffers
from assay.training.recipes.form import Loss, Recipe
from assay.training.recipes.outline import mergeable, tied_places
from assay.training.recipes.schedulers import FollowedSchedule
from assay.training.recipes.storage import held, mapped, stored
from assay.training.recipes.torch_optimizers import is_stock, translated
from assay.training.recipes.trial import (
    ParameterWritten,
    alike,
    check_told,
    kept_buffers,
    refuse_reentrant,
    tried,
)
from assay.training.state import SCALAR_NAMES, Scalars, TensorLists
from assay.training.step import BATCH_STREAM

__all__ = ["Recipe", "RecipeStep"]

_LossAndGradients = tuple[Tensor, list[Tensor | None]]


class _Carrier(nn.Module):
    """The module with its loss as one module, so that one stateless call covers whatever the loss calls."""

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.module, self.loss = module, loss

    def forward(self, batch: Sequence[Tensor], wanted: Sequence[Tensor], mode: Randomness) -> _LossAndGradients:
        """The loss, and its gradients (None where it does not reach). Raises UserError (LossFails)."""
        loss = self.loss(self.module, *batch)
        if not isinstance(loss, Tensor) or loss.ndim != 0 or loss.dtype not in (torch.float32, *SIXTEEN):
            found = f"{loss.dtype} {list(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
            raise UserError(
                f"The loss{definition(self.loss)} is {found}.",
                code="LossFails",
                remedy="Return one float32 number, such as a mean.",
            )
        loss = loss.float()
        if not wanted:
            return loss, []
        # Inside the stateless call: layers that are computed again for their gradients must find the same parameters.
        mode.is_closed = True
        try:
            grads = torch.autograd.grad(loss, list(wanted), allow_unused=True)
        finally:
            mode.is_closed = False
        return loss, list(grads)


class RecipeStep:
    """One step of a recipe: (parameters, optimizer, scalars) to the same lists one step later.

    Parameters: all of the module, tied ones once, in `named_parameters` order. Optimizer: the optimizer's list, then
    the buffers that the step changes (running statistics). Scalars: the protocol's, with further data tensors at the
    end. Buffers that no step changes are constants of the program. int64 is kept as i32, bfloat16 and float16 as their
    bits in u16, rounded to once, at the end of a step. What the loss does not reach stays as it is, as in PyTorch
    (`unreached` names it).

    merges_statistics: changed buffers that a run can merge stand behind the parameters in the first list instead
    (`carried` names them).

    Raises:
        UserError: LossFails, when the loss cannot be computed on the recipe's own data or is no f32 scalar;
            HiddenState, HiddenInput, when something besides module, data and step has a say; what `refuse_attached`
            raises.
    """

    def __init__(self, recipe: Recipe, *, merges_statistics: bool = False) -> None:
        refuse_attached(recipe)
        self.recipe = recipe
        named = dict(recipe.module.named_parameters())
        self.names = list(named)
        self._start = [p.detach() for p in named.values()]
        self._first = [p.float() if recipe.wide_parameters and p.dtype in SIXTEEN else p for p in self._start]
        self._carrier = _Carrier(recipe.module, recipe.loss)
        self._tied = tied_places(self._carrier)
        self._types: dict[str, torch.dtype] = {}
        self._operations: list[Placed] = []
        """What loss and gradients do on real numbers, which a trace must do too."""
        self._losses = 0.0, 0.0
        """The first loss, and the same where it is told that it is traced."""
        self._trained = [k for k, p in enumerate(named.values()) if p.requires_grad]
        changed, self.unreached, self.first_loss, self.hidden = self._tried()
        refuse_shared_buffers(recipe.module, changed)
        self.carried = mergeable(recipe.module, changed) if merges_statistics else []
        self.buffers = [*self.carried, *(n for n in changed if n not in self.carried)]
        self._trained = [k for k in self._trained if self.names[k] not in self.unreached]
        self.optimizer: Optimizer
        if isinstance(recipe.optimizer, torch.optim.Optimizer):
            rates = recipe.schedule.peaks if isinstance(recipe.schedule, FollowedSchedule) else None
            self.optimizer, rate = translated(recipe.optimizer, list(named.values()), self.names, self._trained, rates)
        else:
            self.optimizer = Grouped((ParameterGroup(tuple(self._trained), recipe.optimizer),))
            rate = recipe.learning_rate or 0.0
        self._kept = [t.dtype for t in self.optimizer.zero_init(self._first)]
        self._rate = rate if recipe.learning_rate is None else recipe.learning_rate

    @cached_property
    def slot_names(self) -> tuple[list[str], list[str], list[str]]:
        """What each tensor of the state is."""
        own = [f"optimizer.{k}" for k in range(self.optimizer.size(len(self.names)))]
        more = [f"data.{k}" for k in range(1, len(self.recipe.data))]
        return [*self.names, *self.carried], [*own, *self.buffers[len(self.carried) :]], [*SCALAR_NAMES, *more]

    @property
    def output_sizes(self) -> list[int]:
        """Tensors per list."""
        return [len(part) for part in self.slot_names]

    def state(self, *, step: int = 0, key: tuple[int, int] = (0, 0)) -> TensorLists:
        """The state before the first step: the module's own values, zero-initialised moments, all of the data."""
        module = self.recipe.module
        values = {n: b.detach() for n, b in module.named_buffers()}
        # Copies: the user's own training must not write into the state.
        buffers = [stored(values[n]).clone() for n in self.buffers]
        moments, count = [stored(t) for t in self.optimizer.zero_init(self._first)], len(self.carried)
        parameters = [*(stored(p.clone()) for p in self._first), *buffers[:count]]
        return parameters, [*moments, *buffers[count:]], self._scalars(self._rate, step, key)

    def tensors_of(self, state: Sequence[Sequence[Tensor]]) -> tuple[list[Tensor], list[Tensor]]:
        """The parameters, and the buffers that the step changes, of a state, in the element types of the module."""
        count, kept = len(self.names), len(self.buffers) - len(self.carried)
        buffers = [*state[0][count:], *state[1][len(state[1]) - kept :]]
        parameters = [p.to(start.dtype) for p, start in zip(self._held(state[0]), self._start, strict=True)]
        return parameters, [held(b, self._types[n]) for n, b in zip(self.buffers, buffers, strict=True)]

    def _held(self, slots: Sequence[Tensor]) -> list[Tensor]:
        """The parameters as the optimizer moves them."""
        return [held(p, first.dtype) for p, first in zip(slots[: len(self.names)], self._first, strict=True)]

    def mapped(self, casts: Mapping[str, str], tier: str) -> list[str]:
        """Sentences on what has 16 bits; casts: the user's lines that cast, and to which type."""
        kinds = {
            "parameters": [p.dtype for p in self._first],
            "optimizer tensors": self._kept,
            "buffers": list(self._types.values()),
            "data tensors": [t.dtype for t in self.recipe.data],
        }
        return mapped(kinds, casts, tier)

    def _scalars(self, rate: float, step: int = 0, key: tuple[int, int] = (0, 0)) -> list[Tensor]:
        data = [stored(t.detach()) for t in self.recipe.data]
        scalars = Scalars.of(data[0], learning_rate=rate, step=step, key=key, shard_length=data[0].shape[0])
        return [*scalars.to_list(), *data[1:]]

    def batch(self, scalars: Sequence[Tensor]) -> list[Tensor]:
        """The examples of the step that these scalars name, in the element types that the recipe's data had."""
        now, more = Scalars.from_list(scalars[: len(SCALAR_NAMES)]), scalars[len(SCALAR_NAMES) :]
        words_B = ops.random_words(now.key, now.step, BATCH_STREAM, self.recipe.batch_size)
        window = self.recipe.window
        choices = now.shard_length if window is None else now.shard_length - (window - 1)
        rows = now.shard_start + ops.mulhi_u32(words_B, choices)  # [B]
        if window is not None:
            rows = rows[:, None] + torch.arange(window, dtype=torch.int32, device=rows.device)  # [B, W]
        taken = [ops.take(t, rows) for t in (now.data, *more)]  # [N, ...] to [B, ...] or [B, W, ...]
        return [held(t, given.dtype) for t, given in zip(taken, self.recipe.data, strict=True)]

    def loss_of(
        self,
        parameters: Sequence[Tensor],
        buffers: Sequence[Tensor],
        batch: Sequence[Tensor],
        mode: Randomness,
        wanted: Sequence[Tensor] = (),
    ) -> tuple[Tensor, list[Tensor | None], list[Tensor]]:
        """The loss, its gradients for the parameters `wanted`, and the buffers left behind; no argument is changed."""
        names = [f"module.{n}" for n in (*self.names, *self.buffers)]
        copies = [held(b.clone(), self._types[n]) for n, b in zip(self.buffers, buffers, strict=True)]
        given = dict(zip(names, [*parameters, *copies], strict=True))
        with mode:
            loss, grads = self._called(given, batch, wanted, mode)
        return loss, grads, [stored(given[f"module.{n}"].detach()) for n in self.buffers]

    def _called(
        self, given: dict[str, Tensor], batch: Sequence[Tensor], wanted: Sequence[Tensor], mode: Randomness
    ) -> _LossAndGradients:
        """Loss and gradients where the carrier has these tensors; `given` then holds what the call left of them."""
        # torch's own tying takes a module under two names for two, and leaves in it what it was lent.
        lent = given | {alias: given[name] for alias, name in self._tied if name in given}
        is_traced = bool(wanted) and isinstance(batch[0], FakeTensor)
        with Operations() if is_traced else nullcontext() as seen:
            found: _LossAndGradients = functional_call(self._carrier, lent, (batch, wanted, mode), tie_weights=False)
        given.update({name: lent[name] for name in given})
        if seen is not None:
            buffers = [given[f"module.{n}"] for n in self.buffers]
            held_here = {**dict(self.recipe.module.named_parameters()), **dict(self.recipe.module.named_buffers())}
            check_asked(seen)
            check_constants(seen, {n: held_here[n] for n in (*self.names, *self.buffers)})
            check_same(seen.leading_to([found[0], *found[1], *buffers]), self._operations)
            check_told(*self._losses)
        return found

    def gradients(
        self, parameters: Sequence[Tensor], buffers: Sequence[Tensor], batch: Sequence[Tensor], mode: Randomness
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Gradients of the mean loss over micro-batches (zero where there is none), and new buffers."""
        pieces = self.recipe.micro_batches
        size = self.recipe.batch_size // pieces
        parts: list[list[Tensor]] = []
        now = list(buffers)
        for m in range(pieces):
            leaves = [p.detach().requires_grad_(k in self._trained) for k, p in enumerate(parameters)]
            piece = [t[m * size : (m + 1) * size] for t in batch]  # [B, ...] to [b, ...]
            wanted = [leaves[k] for k in self._trained]
            with torch.enable_grad():
                _, grads, now = self.loss_of(leaves, now, piece, mode, wanted)
            parts.append([torch.zeros_like(p) if g is None else g for p, g in zip(wanted, grads, strict=True)])
        if pieces == 1:
            return parts[0], now
        # Gradients stand side by side and are summed exactly: the order of micro-batches leaves no trace.
        return [torch.stack(same).sum(0) / float(pieces) for same in zip(*parts, strict=True)], now  # over M

    def __call__(
        self, parameters: Sequence[Tensor], optimizer: Sequence[Tensor], scalars: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """The state one step later."""
        slots = parameters
        parameters, _ = self.tensors_of((slots, optimizer))
        now = Scalars.from_list(scalars[: len(SCALAR_NAMES)])
        count, merged = len(self.names), len(self.carried)
        own, carried = len(optimizer) - (len(self.buffers) - merged), slots[count:]
        mode = Randomness(now.key, now.step)
        trained, buffers = self.gradients(parameters, [*carried, *optimizer[own:]], self.batch(scalars), mode)
        if self.recipe.clip_value is not None:
            trained = clip_by_value(trained, self.recipe.clip_value)
        if self.recipe.clip_norm is not None:
            trained = clip_by_global_norm(trained, self.recipe.clip_norm)
        rate = now.learning_rate
        if self.recipe.round_warmup is not None:
            rate = rate * self.recipe.round_warmup.factor(now.step, now.round, self.recipe.schedule)
        elif self.recipe.schedule is not None:
            rate = rate * self.recipe.schedule(now.step[0].to(torch.float32))
        parameters = self._held(slots)
        grads = {k: g.to(parameters[k].dtype) for k, g in zip(self._trained, trained, strict=True)}
        gradients = [grads[k] if k in grads else torch.zeros_like(p) for k, p in enumerate(parameters)]
        before = [held(t, dtype) for t, dtype in zip(optimizer[:own], self._kept, strict=True)]
        updated, after = self.optimizer.update(parameters, gradients, before, rate)
        updated = [stored(new, parameters[k].dtype) if k in grads else slots[k] for k, new in enumerate(updated)]
        moments = [stored(t, dtype) for t, dtype in zip(after, self._kept, strict=True)]
        following = [*now.advanced().to_list(), *scalars[len(SCALAR_NAMES) :]]
        return [*updated, *buffers[:merged]], [*moments, *buffers[merged:]], following

    def _tried(self) -> tuple[list[str], list[str], float, Known]:
        """By eager trials: buffers that a step changes, parameters that the loss does not reach, the loss, the rest."""
        named = dict(self.recipe.module.named_buffers())
        size = self.recipe.batch_size // self.recipe.micro_batches
        changed: set[str] = set()
        leaves: list[Tensor] = []
        told: list[float] = []

        def written(factor: float) -> list[str]:
            return [n for n, a, b in zip(self.names, leaves, self._start, strict=False) if not alike(a, b * factor)]

        def run(number: int, factor: float) -> list[Tensor | None]:
            copies = {n: b.detach().clone() for n, b in named.items()}
            versions = {n: b._version for n, b in copies.items()}
            leaves[:] = [(p * factor).requires_grad_(k in self._trained) for k, p in enumerate(self._start)]
            with numbers_kept():
                for k in self._trained:
                    leaves[k].register_post_accumulate_grad_hook(refuse_backward)
            given = {f"module.{n}": t for n, t in (*copies.items(), *zip(self.names, leaves, strict=True))}
            scalars = self._scalars(0.0, number)
            now = Scalars.from_list(scalars[: len(SCALAR_NAMES)])
            mode = Randomness(now.key, now.step)
            with torch.enable_grad(), mode:
                piece = [t[:size] for t in self.batch(scalars)]  # [b, ...]
                wanted = [leaves[k] for k in self._trained]
                loss, grads = self._called(given, piece, wanted, mode)
            replaced = [n for n, leaf in zip(self.names, leaves, strict=True) if given[f"module.{n}"] is not leaf]
            if replaced or written(factor):
                raise ParameterWritten([*replaced, *written(factor)][0])
            if any(g is None for g in grads):
                refuse_reentrant(loss)
            # Not every write is counted by `_version`: batch norm's are not.
            changed.update(
                n
                for n, b in copies.items()
                if given[f"module.{n}"] is not b or b._version != versions[n] or to_bytes(b) != to_bytes(named[n])
            )
            for n, b in copies.items():
                _check_form(n, b, given[f"module.{n}"])
            return [loss, *grads, *(given[f"module.{n}"] for n in named)]

        def record() -> None:
            scalars = self._scalars(0.0)
            now = Scalars.from_list(scalars[: len(SCALAR_NAMES)])
            mode, seen = Randomness(now.key, now.step), Operations()
            wanted = [p for k, p in enumerate(self.recipe.module.parameters()) if k in self._trained]
            with as_traced(), torch.enable_grad(), mode:
                piece = [t[:size] for t in self.batch(scalars)]  # [b, ...]
                with kept_buffers(self.recipe.module):
                    with seen:
                        loss, grads = self._carrier(piece, wanted, mode)
                    now_held = dict(self.recipe.module.named_buffers())
                    buffers = [now_held[n] for n in named if n in changed]
                    self._operations = seen.leading_to([loss, *grads, *buffers])
                    told[:] = [float(loss.detach())]

        trial = tried(self.recipe.own_parts, run, lambda: bool(written(1.0)), record)
        loss, grads = trial.results[0], trial.results[1 : 1 + len(self._trained)]
        assert loss is not None
        self._losses = float(loss.detach()), told[0]
        buffers = [n for n in named if n in changed]
        self._types = {n: named[n].dtype for n in buffers}
        unreached = [self.names[k] for k, g in zip(self._trained, grads, strict=True) if g is None]
        known = trial.hidden
        if self.recipe.schedule is not None or not is_stock(self.recipe.optimizer):
            # The trial calls neither.
            known = replace(known, calls_are_checked=False)
        return buffers, unreached, float(loss.detach()), known


def _check_form(name: str, before: Tensor, after: Tensor) -> None:
    """Raises UserError (BufferReshaped) where a step leaves a buffer in another form, which no slot of a state has."""
    forms = [f"{t.dtype} {list(t.shape)}" for t in (before, after)]
    if forms[0] != forms[1]:
        raise UserError(
            f"Buffer {name} is {forms[0]} before a step, and {forms[1]} after it.",
            code="BufferReshaped",
            remedy="Register it in the shape and element type that every step leaves it in.",
        )
