"""A tape: the operations of one call of a function on fake tensors, one after another, and the steps that they make.

Tracing by `make_fx` takes about half a millisecond per operation and trace. A tape works out what an operation gives,
and how it is written in core operations, once per signature: layers and steps of loops that are alike cost little
after the first. It takes plain operations only: what it cannot take is traced by `make_fx`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.fx.traceback as fx_traceback
from torch import Tensor
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from assay.engine.compiler.modes import DEVICE, QuickMode, device_of
from assay.engine.compiler.steps import Steps
from assay.engine.compiler.tape_parts import ConstantNumber, NotOnTape, Signatures, Taped, TensorNumber
from assay.engine.compiler.tape_writing import TapeWriter

_PLAIN = (bool, int, float, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)


class Tape(QuickMode):
    """While active, operations are put down; inputs are `inputs`, of the fake tensor mode `fakes`.

    Raises (inside the block):
        NotOnTape: an operation that no tape takes. What the operations themselves raise.
    """

    def __init__(self, fakes: FakeTensorMode, inputs: Sequence[FakeTensor], signatures: Signatures) -> None:
        super().__init__()
        self._fakes, self._signatures = fakes, signatures
        self.operations: list[Taped] = []
        self.lines: list[str | None] = []
        self.constants: list[Tensor] = []
        self._fake_values: list[FakeTensor] = []
        """By number; they live as long as the tape, so that no other tensor is taken for one of them."""
        self._layouts: list[Any] = []
        self._numbers: dict[int, TensorNumber] = {}
        self._constant_numbers: dict[int, int] = {}
        self._keys: list[Any] = []
        """The signature of each operation, None where it has none that recurs."""
        self._given = len(inputs)
        self._outputs: list[Any] = []
        for t in inputs:
            self._put(t)

    def close(self, outputs: Sequence[Tensor]) -> None:
        """Name the tensors that the function returned."""
        self._outputs = [self._described(t) for t in outputs]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Puts an operation down and gives its result."""
        if func is DEVICE:
            return device_of(args[0])
        kwargs = kwargs or {}
        if not isinstance(func, OpOverload) or torch.Tag.inplace_view in func.tags:
            raise NotOnTape
        described = self._described(args), tuple((k, self._described(v)) for k, v in kwargs.items())
        tensors: list[Tensor] = []
        key = self._signed((func, *described), tensors)
        for t in tensors:
            if isinstance(t, FakeTensor) and t.constant is not None:
                key = None  # its values may have a say
        written = self._written(func, args, kwargs)
        result = self._computed(func, args, kwargs, key, tensors)
        is_sequence = isinstance(result, list | tuple)
        numbers: list[int | None] = []
        for t in (*result, *written) if is_sequence else (result, *written):
            if t is not None and not isinstance(t, FakeTensor):
                raise NotOnTape
            numbers.append(None if t is None else self._put(t))
        self.operations.append(Taped(func, described, tuple(numbers), is_sequence))
        self.lines.append(fx_traceback.current_meta.get("stack_trace"))
        self._keys.append(key)
        return result

    def _put(self, t: FakeTensor) -> int:
        number = len(self._fake_values)
        self._numbers[id(t)] = TensorNumber(number)
        self._fake_values.append(t)
        self._layouts.append((t.shape, t.stride(), t.storage_offset(), t.dtype))
        return number

    def _described(self, a: Any) -> Any:
        """An argument without its tensors: something to compare, floats by their bits."""
        if isinstance(a, Tensor):
            known = self._numbers.get(id(a))
            if known is not None:
                return known
            if isinstance(a, FakeTensor) or type(a) not in (Tensor, torch.nn.Parameter, torch.nn.Buffer):
                raise NotOnTape
            if id(a) not in self._constant_numbers:
                self._constant_numbers[id(a)] = len(self.constants)
                self.constants.append(a)
            return ConstantNumber(self._constant_numbers[id(a)])
        if isinstance(a, list | tuple):
            return tuple([self._described(x) for x in a])
        if not isinstance(a, _PLAIN):
            raise NotOnTape
        return (type(a), a.hex() if isinstance(a, float) else a)

    def _signed(self, described: Any, tensors: list[Tensor]) -> Any:
        """A description with tensors by their shapes and memory instead of their numbers; `tensors` gets them."""
        if isinstance(described, TensorNumber):
            t = self._fake_values[described.number]
            tensors.append(t)
            same = 0
            while tensors[same] is not t:
                same += 1
            return same, self._layouts[described.number]
        if isinstance(described, ConstantNumber):
            # By identity, not by number: other tapes of the function have other constants.
            constant = self.constants[described.number]
            tensors.append(constant)
            self._signatures.kept.append(constant)
            return ConstantNumber, id(constant)
        return tuple([self._signed(x, tensors) for x in described]) if isinstance(described, tuple) else described

    def _written(self, func: OpOverload, args: Any, kwargs: Any) -> list[FakeTensor]:
        """The tensors that an operation writes. Raises NotOnTape where one is a constant."""
        if not func._schema.is_mutable:
            return []
        found: list[FakeTensor] = []
        for k, argument in enumerate(func._schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            given = args[k] if k < len(args) else kwargs.get(argument.name)
            if given is None:
                continue
            if not isinstance(given, FakeTensor) or argument.name == "out":
                raise NotOnTape
            found.append(given)
        return found

    def _computed(self, func: OpOverload, args: Any, kwargs: Any, key: Any, tensors: list[Tensor]) -> Any:
        known = None if key is None else self._signatures.results.get(key)
        if known is not None:
            return _again(self._fakes, known, tensors)
        with self._fakes:
            result = func(*args, **kwargs)
        if key is not None and all(type(t) is FakeTensor for t in tensors):
            made = _made(result, tensors)
            if made is not None:
                self._signatures.results[key] = made
        return result

    def is_same(self, other: Tape) -> bool:
        """Whether another tape holds the same operations on the same inputs and constants."""
        return (
            self.operations == other.operations
            and self._outputs == other._outputs
            and len(self.constants) == len(other.constants)
            and all(_is_same_constant(a, b) for a, b in zip(self.constants, other.constants, strict=True))
        )

    def steps(self) -> Steps:
        """The tape in core operations."""
        return TapeWriter(self._signatures, self._fake_values, self.constants).written(
            self._given, list(zip(self.operations, self.lines, self._keys, strict=True)), self._outputs
        )


def _is_same_constant(a: Tensor, b: Tensor) -> bool:
    if a is b:
        return True
    is_alike = a.shape == b.shape and a.dtype == b.dtype
    return is_alike and torch.equal(a.detach().reshape(-1).view(torch.uint8), b.detach().reshape(-1).view(torch.uint8))


def _made(result: Any, tensors: Sequence[Tensor]) -> list[Any] | None:
    """How to make a result again from tensors of the same signature; None where that is not simple."""
    parts = result if isinstance(result, list | tuple) else (result,)
    recipe: list[Any] = [type(result) if isinstance(result, list | tuple) else None]
    for t in parts:
        if t is None:
            recipe.append(None)
            continue
        if (
            type(t) is not FakeTensor
            or t.constant is not None
            or t.layout is not torch.strided
            or t.device.type != "cpu"
        ):
            return None
        if t.is_conj() or t.is_neg():
            return None
        same = next((k for k, a in enumerate(tensors) if a is t), None)
        if same is not None:
            recipe.append(same)
            continue
        memory = t.untyped_storage()._cdata
        shared = next((k for k, a in enumerate(tensors) if a.untyped_storage()._cdata == memory), None)
        inside = [a for a in parts if a is not t and a is not None and a.untyped_storage()._cdata == memory]
        if shared is None and inside:
            return None
        recipe.append((tuple(t.shape), t.stride(), t.storage_offset(), t.dtype, shared))
    return recipe


def _again(fakes: FakeTensorMode, recipe: Sequence[Any], tensors: Sequence[Tensor]) -> Any:
    """The result that a recipe makes of these tensors."""
    kind, *parts = recipe
    made: list[Any] = []
    for part in parts:
        if part is None or isinstance(part, int):
            made.append(None if part is None else tensors[part])
            continue
        shape, stride, offset, dtype, shared = part
        with torch._C._DisableTorchDispatch():
            if shared is None:
                plain = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
            else:
                plain = torch.empty((0,), dtype=dtype, device="meta")
                plain.set_(tensors[shared].untyped_storage(), offset, shape, stride)
        made.append(FakeTensor(fakes, plain, torch.device("cpu")))
    return made[0] if kind is None else kind(made)
