"""The intermediate form between PyTorch's graph and a program: values with index spaces, shared when equal.

A `Value` becomes one node, or, for pointwise values, a part of one map. Reshapings are no values: readers hold them as
`Strided`. A tensor whose elements are all one constant is a `Fill` and costs nothing either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from assay.engine.compiler.ir.pointwise import EMIT
from assay.engine.compiler.ir.strided import Strided, common_axes, contiguous, memory_order, merge_axes, whole
from assay.engine.compiler.ir.value import Axis, Literal, Value, ValueRead, full_axis
from assay.protocol.arithmetic.scalar import Op, evaluate
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.errors import InvariantError
from assay.protocol.types import DType

MAX_RANK = 8


@dataclass(frozen=True, slots=True)
class Fill:
    """A tensor of one constant."""

    dtype: DType
    shape: tuple[int, ...]
    word: int


Tensorlike = Strided | Fill


@dataclass
class GraphValues:
    """All values of a graph under construction, in an order in which readers follow what they read."""

    items: list[Value] = field(default_factory=list)
    known: dict[tuple, Value] = field(default_factory=dict)
    source: str = ""

    def add(
        self,
        kind: str,
        dtype: DType,
        dims: Sequence[int],
        red: Sequence[int] = (),
        reads: Sequence[ValueRead] = (),
        attributes: tuple = (),
        *,
        sensitive: bool = False,
        normalized: frozenset[int] = frozenset(),
        layout_hint: bool = False,
    ) -> Value:
        """The value with this definition, an earlier equal one where there is one.

        Raises:
            InvariantError: the rank is above 8.
        """
        if len(dims) + len(red) > MAX_RANK:
            raise InvariantError(f"A value over {len(dims)} + {len(red)} dimensions has no node.", code="RankTooHigh")
        reads = tuple(reads)
        key = (
            kind,
            dtype,
            tuple(dims),
            tuple(red),
            tuple((r.value.number, r.axes, r.offset, r.fill) for r in reads),
            attributes,
        )
        if key not in self.known:
            value = Value(
                len(self.items),
                kind,
                dtype,
                tuple(dims),
                tuple(red),
                reads,
                attributes,
                sensitive,
                normalized,
                layout_hint,
                self.source,
            )
            self.items.append(value)
            self.known[key] = value
        found = self.known[key]
        found.sensitive = found.sensitive or sensitive
        found.normalized = found.normalized or normalized
        found.layout_hint = found.layout_hint or layout_hint
        return found

    def pointwise(
        self, op: str, args: Sequence[Tensorlike | Literal], dtype: DType, parameters: tuple = ()
    ) -> Tensorlike:
        """An elementwise operation on tensors broadcast against each other; constants are folded.

        op: a name in `pointwise.EMIT`. dtype: of the result.
        """
        shape = broadcast_shape([a.shape for a in args if not isinstance(a, Literal)])
        flat = [Literal(a.dtype, a.word) if isinstance(a, Fill) else a for a in args]
        if all(isinstance(a, Literal) for a in flat):
            return Fill(dtype, shape, fold(op, flat, dtype, parameters))  # type: ignore[arg-type]
        expanded = [self.expand(a, shape) for a in flat if isinstance(a, Strided)]
        tensors, spaces = self.aligned([t for t in expanded if isinstance(t, Strided)])
        hinted = max((t for t in tensors if t.value.layout_hint), key=_distinct, default=None)
        axes = tuple(a for group in spaces for a in group)
        order = list(range(len(axes))) if hinted is None else memory_order(hinted.axes)
        reads: list[ValueRead] = []
        slots: list[Literal | int] = []
        supply = iter(tensors)
        for a in flat:
            if isinstance(a, Literal):
                slots.append(a)
                continue
            tensor = next(supply)
            own = tensor.axes
            read = ValueRead(tensor.value, tuple(own[d] for d in order), tensor.offset, tensor.fill)
            if read not in reads:
                reads.append(read)
            slots.append(reads.index(read))
        sensitive = any(t.value.sensitive for t in tensors)
        dims = tuple(axes[d].size for d in order)
        normalized = _common_normalized(reads, dims)
        value = self.add(
            "pointwise",
            dtype,
            dims,
            (),
            reads,
            (op, parameters, tuple(slots)),
            sensitive=sensitive,
            normalized=normalized,
            layout_hint=hinted is not None,
        )
        return regrouped(value, spaces, order)

    def aligned(self, tensors: Sequence[Strided]) -> tuple[list[Strided], list[tuple[Axis, ...]]]:
        """Tensors of one shape with axes of the same sizes, and these axes by dimension; copies what cannot split."""
        tensors = list(tensors)
        rank = len(tensors[0].groups)
        spaces: list[tuple[Axis, ...]] = []
        for d in range(rank):
            common = common_axes([t.groups[d] for t in tensors])
            if common is None:
                copied = [t if _is_plain(t) else self.copy(t) for t in tensors]
                if copied == tensors:
                    raise InvariantError(f"Shapes {[t.groups[d] for t in tensors]} cannot be aligned.")
                return self.aligned(copied)
            for k, group in enumerate(common):
                groups = (*tensors[k].groups[:d], group, *tensors[k].groups[d + 1 :])
                tensors[k] = Strided(tensors[k].value, groups, tensors[k].offset, tensors[k].fill)
            spaces.append(common[0])
        return tensors, spaces

    def copy(self, t: Strided, order: Sequence[int] | None = None) -> Strided:
        """The same elements in memory of their own, row-major; order: the dimensions from the outermost in memory."""
        order = range(len(t.groups)) if order is None else order
        turned = t.permute(order)
        value = self.add(
            "pointwise",
            t.dtype,
            tuple(a.size for a in turned.axes),
            (),
            (ValueRead(t.value, turned.axes, t.offset, t.fill),),
            ("copy", (), (0,)),
            sensitive=t.value.sensitive,
            normalized=_kept_normalized(t.value, turned.axes),
            layout_hint=t.value.layout_hint,
        )
        # Row-major memory merges into one axis per dimension.
        groups = [merge_axes(g) for g in regrouped(value, turned.groups).groups]
        return Strided(value, tuple(groups[order.index(d)] for d in range(len(order))))

    def relaid(self, t: Strided) -> Strided:
        """The same elements in memory of their own, dimensions in the order in which they lie where the value leads."""
        if not t.value.layout_hint:
            return self.copy(t)
        return self.copy(t, memory_order([next((a for a in g if a.size > 1), full_axis(1, 0)) for g in t.groups]))

    def materialize(self, t: Tensorlike) -> Strided:
        """A tensor that a value backs."""
        if isinstance(t, Strided):
            return t
        value = self.add("pointwise", t.dtype, (), (), (), ("constant", (), (Literal(t.dtype, t.word),)))
        expanded = whole(value).expand(t.shape)
        if expanded is None:
            raise InvariantError("A constant cannot be expanded.")
        return expanded

    def expand(self, t: Tensorlike, shape: Sequence[int]) -> Tensorlike:
        """Broadcast to a shape."""
        if isinstance(t, Fill):
            have = broadcast_shape([t.shape, tuple(1 if n == -1 else n for n in shape)])
            return Fill(t.dtype, have, t.word)
        return t.expand(shape) or _sure(self.copy(t).expand(shape))

    def reshape(self, t: Tensorlike, shape: Sequence[int]) -> Tensorlike:
        """The same elements under another shape, copied if no view expresses it."""
        if isinstance(t, Fill):
            return Fill(t.dtype, tuple(shape), t.word)
        return t.reshape(shape) or _sure(self.copy(t).reshape(shape))

    def const(self, dtype: DType, dims: Sequence[int], data: bytes) -> Strided:
        """A tensor that travels with the program."""
        return whole(self.add("const", dtype, tuple(dims), attributes=(data,)))


def regrouped(value: Value, spaces: Sequence[tuple[Axis, ...]], order: Sequence[int] | None = None) -> Strided:
    """A fresh row-major value under groups with these sizes; order: their axes from the outermost in memory."""
    laid = contiguous(value.dims)
    axes = iter(laid if order is None else [laid[order.index(d)] for d in range(len(laid))])
    return Strided(value, tuple(tuple(next(axes) for _ in group) for group in spaces))


def broadcast_shape(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that tensors of these shapes broadcast to."""
    rank = max((len(s) for s in shapes), default=0)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    result = []
    for sizes in zip(*padded, strict=True):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            raise InvariantError(f"Shapes {shapes} do not broadcast.")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def fold(op: str, literals: Sequence[Literal], dtype: DType, parameters: tuple = ()) -> int:
    """The word of an elementwise operation on constants."""
    b = ScalarBuilder(())
    result = EMIT[op](b, [literal(b, x) for x in literals], *parameters)
    program = b.build(b.cast(result, dtype.value_type))
    return evaluate(program.encode(), ())


def literal(b: ScalarBuilder, x: Literal) -> Reg:
    """A constant as a register."""
    match x.dtype:
        case DType.F32:
            return b.f32_bits(x.word)
        case DType.BOOL:
            return b.boolean(bool(x.word))
        case DType.I64:
            return b.i64(x.word)
        case _:
            return b.i32(x.word)


def number(dtype: DType, value: float) -> Literal:
    """A Python number as a constant of this type; f32 is the nearest. Raises InvariantError (NumberTooWide)."""
    b = ScalarBuilder(())
    if dtype is DType.F32:
        code = b.build(b.f32(float(value))).encode()
        return Literal(dtype, evaluate(code, ()) & 0xFFFFFFFF)
    if dtype is DType.I32 and not -(1 << 31) <= value < 1 << 31:
        raise InvariantError(f"{value} has no 32 bits.", code="NumberTooWide")
    return Literal(dtype, int(value))


def _sure(t: Strided | None) -> Strided:
    if t is None:
        raise InvariantError("A row-major copy cannot be reshaped.")
    return t


def _kept_normalized(value: Value, axes: Sequence[Axis]) -> frozenset[int]:
    """Softmax dims of a copy: those that read all of one of the value's; -1, which has no axis, stays."""
    whole_dims = {
        a.stride: a.size for d, a in enumerate(contiguous(value.dims)) if d in value.normalized and a.size > 1
    }
    found = {d for d, a in enumerate(axes) if a.is_full and a.size > 1 and whole_dims.get(a.stride) == a.size}
    return frozenset(found | ({-1} & value.normalized))


def _distinct(t: Strided) -> int:
    """How many elements a tensor has that is not broadcast."""
    return prod(a.size for a in t.axes if a.stride)


def _is_plain(t: Strided) -> bool:
    """Whether the tensor reads all of a value row-major, so that every axis can be merged and split."""
    merged = merge_axes(t.axes)
    return t.is_full and len(merged) <= 1 and t.offset == 0 and all(a.stride == 1 for a in merged)


def _common_normalized(reads: Sequence[ValueRead], dims: tuple[int, ...]) -> frozenset[int]:
    """Softmax dims that survive an elementwise operation: those of an argument read exactly as it is."""
    for r in reads:
        if r.value.normalized and r.value.dims == dims and r.axes == contiguous(dims) and r.offset == 0:
            return r.value.normalized
    return frozenset()


UNARY_MOVES = frozenset({Op.CONST_F32, Op.CONST_I32})
