"""From values to a program: whole slots for outputs, merged dimensions, nodes in a canonical order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from assay.engine.compiler.ir.fusion import OpenMap as FusedMap
from assay.engine.compiler.ir.fusion import fuse
from assay.engine.compiler.ir.strided import merge_axes, regroup
from assay.engine.compiler.ir.value import Axis, Literal, Value, ValueRead, full_axis
from assay.engine.compiler.ir.values import Fill, GraphValues, Tensorlike
from assay.protocol.errors import InvariantError
from assay.protocol.program.nodes import (
    Const,
    Dot,
    Gather,
    Input,
    Map,
    Max,
    Node,
    Operand,
    Output,
    Random,
    Rank,
    RowExp,
    ScatterSum,
    Sum,
)
from assay.protocol.program.program import Program
from assay.protocol.program.views import View
from assay.protocol.program.wellformed import violations
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Digest, DType

Emitted = tuple[Program, dict[int, int]]
"""A program, and the node of each value's number."""


def emit(
    values: GraphValues, inputs: Sequence[int], outputs: Sequence[Sequence[tuple[Tensorlike, tuple[int, ...]]]]
) -> Emitted:
    """The program whose Y is these tensors in these shapes; the first sum(inputs) values are the input slots.

    Raises:
        InvariantError: the result is ill-formed (a defect of lowering).
    """
    fixed: set[int] = set()
    ends = [[slot_value(values, tensor, shape, fixed) for tensor, shape in part] for part in outputs]
    flat = [value for part in ends for value in part]
    live = _live(values, flat, sum(inputs))
    maps = fuse(live, flat)
    nodes: list[Node] = []
    numbers: dict[int, int] = {}
    consts: dict[Digest, bytes] = {}
    slots = [(number, index) for number, size in enumerate(inputs) for index in range(size)]
    for value in live:
        if value.kind == "pointwise" and value.number not in maps:
            continue
        node = _node(value, maps, values, numbers, slots, consts, keep=value.number in fixed)
        numbers[value.number] = len(nodes)
        nodes.append(node)
    for number, part in enumerate(ends):
        for index, value in enumerate(part):
            source = numbers[value.number]
            nodes.append(Output(nodes[source].spec, number, index, source))
    program = Program(tuple(nodes), tuple(inputs), tuple(len(part) for part in ends), consts)
    found = violations(program)
    if found:
        raise InvariantError(f"Capture made an ill-formed program: {'; '.join(map(str, found[:5]))}.")
    return program, numbers


def slot_value(values: GraphValues, tensor: Tensorlike, shape: tuple[int, ...], fixed: set[int]) -> Value:
    """A value with exactly these dims that holds the tensor; the tensor's own value where its dims can be changed.

    fixed: numbers of the values that are output slots already; the result's is added.
    """
    value = _slot_value(values, tensor, shape, fixed)
    fixed.add(value.number)
    return value


def _slot_value(values: GraphValues, tensor: Tensorlike, shape: tuple[int, ...], fixed: set[int]) -> Value:
    if isinstance(tensor, Fill):
        return values.add(
            "pointwise", tensor.dtype, shape, (), (), ("constant", (), (Literal(tensor.dtype, tensor.word),))
        )
    value = tensor.value
    merged = merge_axes(tensor.axes)
    is_whole = (
        tensor.offset == 0
        and value.numel == prod(shape)
        and tensor.is_full
        and (len(merged) == 0 or (len(merged) == 1 and merged[0].stride == 1))
    )
    if is_whole and (value.dims == shape or (value.number not in fixed and _redimension(value, shape))):
        return value
    axes = _onto(tensor.axes, shape)
    if axes is None:
        return _slot_value(values, values.copy(tensor), shape, fixed)
    read = ValueRead(value, axes, tensor.offset, tensor.fill)
    return values.add("pointwise", tensor.dtype, shape, (), (read,), ("copy", (), (0,)))


def _redimension(value: Value, shape: tuple[int, ...]) -> bool:
    """Give a value other dims of the same row-major elements; its readers read linear addresses and do not notice."""
    if value.kind in ("input", "const", "gather", "scatter_sum", "rank", "random"):
        return False
    rank = len(value.dims)
    reads = []
    for read in value.reads:
        axes = _onto(read.axes[:rank], shape)
        if axes is None:
            return False
        reads.append(ValueRead(read.value, (*axes, *read.axes[rank:]), read.offset, read.fill))
    value.dims, value.reads, value.normalized = shape, tuple(reads), frozenset()
    return True


def _onto(axes: Sequence[Axis], shape: Sequence[int]) -> tuple[Axis, ...] | None:
    """One axis per dimension of a shape; None when some dimension needs more."""
    groups = regroup(merge_axes(axes), shape)
    if groups is None or any(len(g) > 1 for g in groups):
        return None
    return tuple(g[0] if g else full_axis(n, 0) for g, n in zip(groups, shape, strict=True))


def _live(values: GraphValues, ends: Sequence[Value], inputs: int) -> list[Value]:
    """The inputs and everything that the ends depend on, in an order in which readers follow what they read."""
    seen = {v.number for v in values.items[:inputs]}
    stack = list(ends)
    while stack:
        value = stack.pop()
        if value.number in seen:
            continue
        seen.add(value.number)
        stack += [read.value for read in value.reads]
        if value.kind == "random":
            stack += [values.items[n] for n in value.attributes[1:]]
    return [v for v in values.items if v.number in seen]


def _node(
    value: Value,
    maps: dict[int, FusedMap],
    values: GraphValues,
    numbers: dict[int, int],
    slots: Sequence[tuple[int, int]],
    consts: dict[Digest, bytes],
    *,
    keep: bool,
) -> Node:
    """The node of one value; `keep` its dims as they are."""
    spec = TensorSpec(value.dtype, value.dims)
    match value.kind:
        case "input":
            return Input(spec, *slots[value.number])
        case "const":
            root = tensor_root(spec, value.attributes[0])
            consts[root] = value.attributes[0]
            return Const(spec, root)
        case "random":
            stream, key, step = value.attributes
            return Random(spec, stream, numbers[key], numbers[step])
        case "pointwise":
            built = maps[value.number].build()
            if built is None:
                raise InvariantError("A fused map cannot be written.")
            written, found = built
            code, used = written.code
            return _map(value, code, [found[k] for k in used], numbers, keep=keep)
    dims, red = value.dims, value.red
    reads: Sequence[ValueRead] = value.reads
    if not keep and value.kind not in ("gather", "rank"):
        first = 1 if value.kind == "scatter_sum" else 0
        dims, reads = _merged(dims, 0, reads, first)
    if value.kind != "rank":
        red, reads = _merged(red, len(dims), reads, 0)
    operands = [_operand(read, numbers) for read in reads]
    spec = TensorSpec(value.dtype, dims)
    match value.kind:
        case "rowexp":
            return RowExp(spec, red, *operands)
        case "max":
            return Max(spec, red, *operands)
        case "sum":
            return Sum(spec, red, *operands)
        case "dot":
            return Dot(spec, red, *value.attributes, *operands)
        case "gather":
            return Gather(spec, *value.attributes, *operands)
        case "rank":
            return Rank(spec, red, *operands)
        case "scatter_sum":
            return ScatterSum(spec, red, *operands)
    raise InvariantError(f"Values of kind {value.kind} have no node.")


def _map(value: Value, code: bytes, reads: Sequence[ValueRead], numbers: dict[int, int], *, keep: bool) -> Map:
    dims = value.dims
    if not keep:
        dims, reads = _merged(dims, 0, reads, 0)
    return Map(TensorSpec(value.dtype, dims), tuple(_operand(r, numbers) for r in reads), code)


def _merged(
    sizes: Sequence[int], start: int, reads: Sequence[ValueRead], first: int
) -> tuple[tuple[int, ...], tuple[ValueRead, ...]]:
    """Dimensions (at `start` of the reads' axes) joined where every read steps evenly; those before `first` stay.

    Reads with fewer axes do not see these dimensions.
    """
    seeing = [r for r in reads if len(r.axes) >= start + len(sizes) and sizes]
    kept: list[int] = []
    columns: list[list[Axis]] = []
    for d, size in enumerate(sizes):
        column = [r.axes[start + d] for r in seeing]
        full = all(a.is_full for a in column)
        if d >= first and size == 1 and full:
            continue
        if (
            d > first
            and len(kept) > first
            and full
            and all(p.is_full and p.stride == a.size * a.stride for p, a in zip(columns[-1], column, strict=True))
        ):
            kept[-1] *= size
            columns[-1] = [full_axis(kept[-1], a.stride) for a in column]
        else:
            kept.append(size)
            columns.append(column)
    merged = []
    for read in reads:
        if not any(read is s for s in seeing):
            merged.append(read)
            continue
        at = next(k for k, s in enumerate(seeing) if s is read)
        middle = tuple(column[at] for column in columns)
        axes = (*read.axes[:start], *middle, *read.axes[start + len(sizes) :])
        merged.append(ValueRead(read.value, axes, read.offset, read.fill))
    return tuple(kept), tuple(merged)


def _operand(read: ValueRead, numbers: dict[int, int]) -> Operand:
    strides, lows, highs = [], [], []
    for a in read.axes:
        lo, hi = max(a.lo, 0), min(a.hi, a.size)
        if lo >= hi:
            lo = hi = 0
        strides.append(a.stride)
        lows.append(lo)
        highs.append(hi)
    view = View(read.offset, tuple(strides), tuple(lows), tuple(highs), _fill(read))
    return Operand(numbers[read.value.number], view)


def _fill(read: ValueRead) -> int:
    """The fill as raw bits of the source; integers are sign-extended to 64 bits."""
    if all(a.is_full for a in read.axes):
        return 0
    if read.value.dtype in (DType.I32, DType.I8):
        return ((read.fill & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000 & 0xFFFFFFFFFFFFFFFF
    return read.fill
