"""The operations of a call, put down to be compared: on real numbers a step does what it does while it is traced.

A trace has no values, and stand-ins for parameters. Code that asks for a value all the same (its text, a number inside
`try`), or for what a tensor is besides its numbers, may go on with an answer that stock PyTorch would not give; then
the two calls part in what they do. What no result depends on, such as the look for padding behind a warning, is no part
of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx.traceback as fx_traceback
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import _disable_current_modes

from assay.engine.compiler.hidden.lines import here
from assay.engine.compiler.modes import DEVICE, QuickMode, device_of
from assay.protocol.errors import UserError

aten = torch.ops.aten

TracedOperation = tuple[Any, ...]
"""An operation and its arguments: of tensors shape and type, of all else type and value."""

Placed = tuple[TracedOperation, str | None]
"""An operation and its line, where a trace keeps lines."""

_READ = 1 << 12
"""Elements of the largest constant whose values are compared."""

_WIDEST = 2**31

_IMMATERIAL = frozenset({aten.clone.default, aten._unsafe_view.default})
"""What computes nothing. So do views; how gradients are taken apart depends on what PyTorch knows of memory."""

_UNCHECKED = frozenset(
    {
        *(aten.empty.memory_format, aten.empty_like.default, aten.empty_strided.default),
        *(aten.new_empty.default, aten.new_empty_strided.default),
    }
)
"""What memory held before is nobody's affair."""

_BIAS = "the addition of a bias"


class _Unseen:
    """What a trace does not know yet: equal to anything."""

    def __eq__(self, _: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class _Put:
    """One operation: its line, where a trace keeps lines, and the memory that it reads and writes, by address."""

    operation: TracedOperation
    line: str | None
    reads: frozenset[int]
    writes: frozenset[int]
    is_in_place: bool
    is_backward: bool


class Operations(QuickMode):
    """While active, puts operations down.

    On real tensors integers are looked at too: int64 is kept in 32 bits, which must hold them.

    Raises (inside the block):
        UserError: IntegersTooWide.
    """

    def __init__(self) -> None:
        super().__init__()
        self._all: list[_Put] = []
        self._kept: dict[int, StorageWeakRef | Tensor] = {}
        """Of each address what keeps it from being another's: a storage's numbers may go, its address may not."""
        self.asked: list[tuple[str, str]] = []
        """Operations that asked for values which a trace has not, and their lines; the call may go on all the same."""
        self.constants: dict[tuple[int, int], str | None] = {}
        """The bytes of the real tensors that operations read, by address, and a line that reads each."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs an operation and puts it down, unless it is a view."""
        if func is DEVICE:
            return device_of(args[0])
        kwargs = kwargs or {}
        named = tuple(sorted(kwargs.items()))
        line = fx_traceback.current_meta.get("stack_trace")
        # Of views too: what a trace makes of a view of a real tensor has memory of its own.
        self.constants.update({_span(t): line for t in _tensors((args, named)) if not isinstance(t, FakeTensor)})
        if not isinstance(func, OpOverload) or func.is_view or torch.Tag.inplace_view in func.tags:
            return func(*args, **kwargs)
        operation = (func, _described(args, func), _described(named, func))
        reads = frozenset(map(self._memory, _tensors((args, named))))
        try:
            result = func(*args, **kwargs)
        except (DataDependentOutputException, DynamicOutputShapeException):
            self.asked.append((str(func), here()))
            raise
        made = list(_tensors(result))
        is_in_place = func._schema.is_mutable
        writes = frozenset(map(self._memory, (*made, *_written(func, args, kwargs))))
        is_backward = torch._C._current_autograd_node() is not None
        self._all.append(_Put(operation, line, reads, writes, is_in_place, is_backward))
        is_traced = any(isinstance(t, FakeTensor) for t in made)
        if not is_traced and func is aten._to_copy.default and args[0].is_floating_point():
            # What a conversion makes of what no int64 holds is PyTorch's own affair, here as there.
            made = [t[args[0].abs() < 2.0**63] for t in made if t.dtype is torch.int64]
        if not is_traced and func not in _UNCHECKED and not any(map(is_wide, _tensors((args, named)))):
            _check_width(made, func)
        return result

    def _memory(self, t: Tensor) -> int:
        """The same as `memory`, and never that of a tensor that lived before: not all of them are seen being made."""
        address = memory(t)
        if address not in self._kept:
            is_strided = t.layout is torch.strided
            self._kept[address] = StorageWeakRef(t.untyped_storage()) if is_strided else t
        return address

    def leading_to(self, results: Iterable[Tensor | None]) -> list[Placed]:
        """The operations of forward passes that these results depend on, in order, and their lines.

        A backward pass follows from the forward one, by ways that PyTorch chooses by what it knows of memory.
        """
        needed = {memory(t) for t in results if t is not None}
        found = []
        for put in reversed(self._all):
            if not put.writes & needed:
                continue
            if not put.is_in_place:
                needed -= put.writes
            needed |= put.reads
            if not put.is_backward and put.operation[0] not in _IMMATERIAL:
                found += [(operation, put.line) for operation in reversed(_plain(put.operation))]
        return found[::-1]


def check_same(traced: Sequence[Placed], real: Sequence[Placed]) -> None:
    """Raises UserError (ValuesDecide) where a trace does something else than the call on real numbers."""
    for k in range(max(len(traced), len(real))):
        if k >= len(traced) or k >= len(real):
            more, side = (real, "left out") if k >= len(traced) else (traced, "added")
            raise _values_decide(f"{_words(more[k][0])} is {side}", more[k][1])
        if traced[k][0] != real[k][0]:
            raise _values_decide(f"{_words(traced[k][0])} in place of {_words(real[k][0])}", traced[k][1])


def _values_decide(how: str, line: str | None) -> UserError:
    return UserError(
        f"Captured, the loss does something else than on real numbers: {how}{f' at {line}' if line else ''}.",
        code="ValuesDecide",
        remedy="What it does hangs on a tensor's values, text, type or identity, perhaps inside `try`: choose by"
        " torch.where, and by nothing that a tensor is besides its numbers.",
    )


def check_asked(seen: Operations) -> None:
    """Raises UserError (ValuesDecide) where a call went on after it had asked for values that a trace has not."""
    if seen.asked:
        func, line = seen.asked[0]
        raise _values_decide(f"it goes on when {func} cannot tell it a tensor's values", line.removeprefix(" at "))


def check_constants(seen: Operations, state: Mapping[str, Tensor]) -> None:
    """Raises UserError (HiddenState) where a trace takes for a constant what shares its memory with the state."""
    for name, t in state.items():
        begin, end = _span(t)
        for line in [at for (first, last), at in seen.constants.items() if begin < last and first < end]:
            raise UserError(
                f"A tensor read{f' at {line}' if line else ''} shares its memory with {name}, which steps change.",
                code="HiddenState",
                remedy=f"Take what it holds from {name} itself, in every step.",
            )


def _tensors(a: Any) -> Iterable[Tensor]:
    if isinstance(a, Tensor):
        yield a
    elif isinstance(a, list | tuple):
        for x in a:
            yield from _tensors(x)


def _written(func: OpOverload, args: Any, kwargs: Any) -> Iterable[Tensor]:
    """The arguments that an operation writes to."""
    for k, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield from _tensors(args[k] if k < len(args) else kwargs.get(argument.name))


def memory(t: Tensor) -> int:
    """The address of a tensor's storage, which its views share."""
    return int(t.untyped_storage()._cdata) if t.layout is torch.strided else id(t)


def _span(t: Tensor) -> tuple[int, int]:
    """The bytes of a tensor's storage, which its views share, and what NumPy sees of it."""
    is_plain = type(t).__torch_dispatch__ is Tensor.__torch_dispatch__  # others have no memory of their own
    if not is_plain or t.layout is not torch.strided or t.device.type != "cpu":
        return 0, 0
    storage = t.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _described(a: Any, func: Any) -> Any:
    if isinstance(a, Tensor):
        sizes = tuple([n if isinstance(n, int) else _Unseen() for n in a.shape])
        return sizes, a.dtype, _values(a) if func is aten.lift_fresh.default else None
    if isinstance(a, list | tuple):
        return tuple([_described(x, func) for x in a])
    if isinstance(a, torch.SymInt | torch.SymFloat | torch.SymBool):
        return _Unseen()  # a size that depends on values is refused by the name of its operation
    return type(a), repr(a) if isinstance(a, float) else a


def _plain(operation: TracedOperation) -> list[TracedOperation]:
    """An operation, that of a linear layer as its product and its bias: which of both it is hangs on strides."""
    func, args, named = operation
    if func is aten.addmm.default and not named:
        (sizes, dtype, _), a, b = args
        return [(aten.mm.default, (a, b), ()), (_BIAS, ((sizes, dtype),), ())]
    if func in (aten.add.Tensor, aten.add_.Tensor) and not named and len(args[1]) == 3 and len(args[1][0]) == 1:
        return [(_BIAS, (args[1][:2],), ())]
    return [operation]


def _values(t: Tensor) -> object:
    """Of a tensor made of Python's numbers, as text."""
    if isinstance(t, FakeTensor) or t.numel() > _READ:
        return _Unseen()
    with _disable_current_modes():
        return repr(t.detach().reshape(-1).tolist())


def is_wide(t: Tensor) -> bool:
    """Whether a tensor of int64 holds what 32 bits do not."""
    if t.dtype != torch.int64 or isinstance(t, FakeTensor) or t.numel() == 0:
        return False
    least, most = (int(x) for x in t.aminmax())
    return least < -_WIDEST or most >= _WIDEST


def _check_width(results: Iterable[Tensor], func: Any) -> None:
    for t in results:
        if is_wide(t):
            raise UserError(
                f"{func} gives integers of more than 32 bits{here()}, up to {int(t.abs().max())}.",
                code="IntegersTooWide",
                remedy="A program keeps int64 in 32 bits: use smaller numbers, or take remainders earlier.",
            )


def _words(operation: TracedOperation) -> str:
    func, args, _ = operation
    plain = [str(value) for kind, *rest in args if isinstance(kind, type) and rest for value in rest]
    return f"{func}(..., {', '.join(plain)})" if plain else str(func)
