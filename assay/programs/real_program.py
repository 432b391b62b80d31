"""What a program means: its nodes over real numbers, as float64 has them, without the rounding of their grids.

Integers, comparisons, draws and orders are what they are in the program; every f32 becomes a float64, a product or sum
is one of real numbers, and the exponents that its terms are rounded by have no say.

Shapes: O the dims of out, R those of red; B, M, N, K as in products (both operands', A's, B's, summed).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial

import torch
from torch import Tensor

from assay.engine.runtime.exact import philox
from assay.engine.runtime.exact.exponents import E_NONFINITE, E_ZERO, power_of_two
from assay.engine.runtime.products.dot import groups
from assay.engine.runtime.stock.gather import places
from assay.engine.runtime.stock.reduce import ranks_by_sorting
from assay.engine.runtime.stock.scalar import FUNCTIONS, constant
from assay.engine.runtime.values.dtypes import TORCH, fill_tensor, from_bytes
from assay.engine.runtime.values.views import sub_view
from assay.programs.real_functions import Found, functions_in
from assay.protocol.arithmetic.scalar import CONSTANTS, Op, ScalarProgram, arity_of
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
    reads,
)
from assay.protocol.program.program import Program
from assay.protocol.types import DType

_WRITTEN = 6
"""Digits of a number that somebody wrote."""

_SMALL = 1024
"""The largest denominator of a ratio that is looked for."""

Values = Sequence[Tensor]
ElementChange = Callable[[Tensor], Tensor]


def widened(t: Tensor) -> Tensor:
    """f32 as f64, anything else as it is; a single number, such as a rate, is the decimal that it stands for."""
    if t.dtype is not torch.float32:
        return t
    return decimal(t) if t.ndim == 0 else t.to(torch.float64)


class RealProgram:
    """Runs one well-formed program over real numbers; f32 tensors go in as f32 or f64 and come out as f64."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.kernels = [self._kernel(k, node) for k, node in enumerate(program.nodes)]
        last = {j: k for k, node in enumerate(program.nodes) for j in reads(node)}
        self.dead: dict[int, list[int]] = {}
        for j, k in last.items():
            self.dead.setdefault(k, []).append(j)

    def run(self, inputs: Sequence[Sequence[Tensor]]) -> list[list[Tensor]]:
        """The lists of Y for these lists of X."""
        flat = [widened(t) for part in inputs for t in part]
        values: list[Tensor | None] = [None] * len(self.program.nodes)
        values[: len(flat)] = flat
        ends: list[Tensor] = []
        for k, (node, kernel) in enumerate(zip(self.program.nodes, self.kernels, strict=True)):
            if k >= len(flat):
                values[k] = kernel(values)  # type: ignore[arg-type]
            if isinstance(node, Output):
                ends.append(values[k])  # type: ignore[arg-type]
            for j in self.dead.get(k, ()):
                values[j] = None
        found = iter(ends)
        return [[next(found) for _ in range(size)] for size in self.program.outputs]

    def _kernel(self, k: int, node: Node) -> Callable[[Values], Tensor]:
        match node:
            case Input():
                return lambda values: values[k]
            case Const():
                held = widened(from_bytes(node.spec.dtype, node.spec.dims, self.program.consts[node.root]))
                return lambda _: held
            case Output():
                return lambda values: values[node.node]
            case Map():
                return self._map(node)
            case RowExp():
                return self._row_exponent(node)
            case Max():
                return self._maximum(node)
            case Sum():
                read, e = self._over(node.x, node), self.read(node.exponent, node.spec.dims)
                return lambda values: _not_finite(_sum(read(values), node.red), e(values))
            case ScatterSum():
                return self._scatter_sum(node)
            case Rank():
                return self._rank(node)
            case Dot():
                return self._dot(node)
            case Gather():
                return self._gather(node)
            case Random():
                return lambda values: philox.words(
                    values[node.key], values[node.step], node.stream, node.spec.numel
                ).reshape(node.spec.dims)

    def read(self, operand: Operand, dims: Sequence[int]) -> Callable[[Values], Tensor]:
        """A reader of an operand over dims; what it gives may share the operand's memory."""
        view, dims = operand.view, tuple(dims)
        fill = widened(fill_tensor(self.program.specs[operand.node].dtype, view.fill))
        first = tuple(max(lo, 0) for lo in view.lo)
        last = tuple(min(hi, n) for hi, n in zip(view.hi, dims, strict=True))
        if any(a >= b for a, b in zip(first, last, strict=True)):
            return lambda _: fill.expand(dims)
        sizes = tuple(b - a for a, b in zip(first, last, strict=True))
        strides = tuple(s if n > 1 else 0 for n, s in zip(sizes, view.strides, strict=True))
        # as_strided takes no negative strides: such a dimension is read forwards from its other end, and turned.
        turned = tuple(d for d, s in enumerate(strides) if s < 0)
        start = view.offset + sum(a * s for a, s in zip(first, view.strides, strict=True))
        start += sum((sizes[d] - 1) * strides[d] for d in turned)
        forwards = tuple(abs(s) for s in strides)
        where = None if sizes == dims else tuple(slice(a, b) for a, b in zip(first, last, strict=True))

        def run(values: Values) -> Tensor:
            t = values[operand.node].contiguous()
            found = t.as_strided(sizes, forwards, t.storage_offset() + start)
            found = found.flip(turned) if turned else found
            if where is None:
                return found
            out = fill.expand(dims).clone(memory_format=torch.contiguous_format)
            out[where] = found
            return out

        return run

    def _over(self, operand: Operand, node: RowExp | Max | Sum | Rank) -> Callable[[Values], Tensor]:
        return self.read(operand, (*node.spec.dims, *node.red))

    def _map(self, node: Map) -> Callable[[Values], Tensor]:
        loaded = [self.read(o, node.spec.dims) for o in node.operands]
        types = [self.program.specs[o.node].dtype for o in node.operands]
        code, out = ScalarProgram.decode(node.code, types), node.spec.dtype
        found = _functions_in(node.code, tuple(types))

        def run(values: Values) -> Tensor:
            registers = [_loaded(read(values), d) for read, d in zip(loaded, types, strict=True)]
            result = evaluate(code, registers, found)
            result = result if out is DType.F32 else result.to(TORCH[out])
            return result.expand(node.spec.dims).contiguous()

        return run

    def _row_exponent(self, node: RowExp) -> Callable[[Values], Tensor]:
        read = self._over(node.x, node)
        axes = _axes(node.red, node.spec.dims)
        return lambda values: _exponent(read(values)).amax(axes) if axes else _exponent(read(values))

    def _maximum(self, node: Max) -> Callable[[Values], Tensor]:
        read, axes = self._over(node.x, node), _axes(node.red, node.spec.dims)

        def run(values: Values) -> Tensor:
            x = read(values)
            x = x if x.is_floating_point() else x.to(torch.int32)
            return x.amax(axes) if axes else x

        return run

    def _scatter_sum(self, node: ScatterSum) -> Callable[[Values], Tensor]:
        dims, red = node.spec.dims, node.red
        over = dims + red
        e = self.read(node.exponent, dims)
        views = node.x.view, node.index.view
        free = all(v.strides[0] == 0 and v.lo[0] <= 0 and v.hi[0] >= dims[0] for v in views)
        if not free or 0 in over:
            x, index = self.read(node.x, over), self.read(node.index, over)
            own = torch.arange(dims[0]).reshape(-1, *(1,) * (len(over) - 1))
            return lambda values: _not_finite(
                _sum(torch.where(index(values).to(torch.int64) == own, x(values), 0.0), red), e(values)
            )
        rows, rest, terms = dims[0], math.prod(dims[1:]), math.prod(red)
        keep = range(1, len(over))
        x, index = (self.read(Operand(o.node, sub_view(o.view, keep)), over[1:]) for o in (node.x, node.index))

        def run(values: Values) -> Tensor:
            at_TI = index(values).to(torch.int64).reshape(rest, terms).t()
            at_TI = torch.where((at_TI >= 0) & (at_TI < rows), at_TI, rows)
            s_NI = torch.zeros(rows + 1, rest, dtype=torch.float64)
            s_NI.scatter_add_(0, at_TI, x(values).reshape(rest, terms).t())
            return _not_finite(s_NI[:rows].reshape(dims), e(values))

        return run

    def _rank(self, node: Rank) -> Callable[[Values], Tensor]:
        dims, read, n = node.spec.dims, self._over(node.x, node), node.spec.dims[-1]
        if ranks_by_sorting(node):

            def by_order(values: Values) -> Tensor:
                row_O = read(values).select(-2, 0) if n else read(values)[..., 0]
                placed_O = row_O.argsort(dim=-1, descending=True, stable=True)
                numbers = torch.arange(n, dtype=torch.int32).expand(dims)
                return torch.empty(dims, dtype=torch.int32).scatter_(-1, placed_O, numbers)

            return by_order
        earlier = torch.arange(node.red[0]) < torch.arange(n)[:, None]

        def run(values: Values) -> Tensor:
            x = read(values).nan_to_num(nan=math.inf, posinf=math.inf, neginf=-math.inf)
            own = x.diagonal(dim1=-2, dim2=-1)[..., None]
            return ((x > own) | ((x == own) & earlier)).sum(-1).to(torch.int32)

        return run

    def _dot(self, node: Dot) -> Callable[[Values], Tensor]:
        run = self.product(node)
        return lambda values: run(values, _same, _same)

    def product(self, node: Dot) -> Callable[[Values, ElementChange, ElementChange], Tensor]:
        """The node's product after a change of either operand's elements."""
        dims, red = node.spec.dims, node.red
        e_a, e_b = (self.read(o, dims) for o in (node.exponent_a, node.exponent_b))
        split = groups(node)
        if split is None or 0 in dims or 0 in red:
            a, b = (self.read(o, dims + red) for o in (node.a, node.b))
            return lambda values, of_a, of_b: _not_finite(
                _sum(of_a(a(values)) * of_b(b(values)), red), e_a(values), e_b(values)
            )
        batch, rows, columns = split
        inner = tuple(range(len(dims), len(dims) + len(red)))

        def side(o: Operand, own: Sequence[int]) -> Callable[[Values], Tensor]:
            keep = (*batch, *own)
            shape = (*(dims[d] for d in keep), *red)
            read = self.read(Operand(o.node, sub_view(o.view, (*keep, *inner))), shape)
            flat = tuple(math.prod(dims[d] for d in part) for part in (batch, own))
            return lambda values: read(values).reshape(*flat, math.prod(red))

        a, b = side(node.a, rows), side(node.b, columns)
        order = (*batch, *rows, *columns)
        back = tuple(order.index(d) for d in range(len(dims)))

        def run(values: Values, of_a: ElementChange, of_b: ElementChange) -> Tensor:
            s_BMN = of_a(a(values)) @ of_b(b(values)).transpose(1, 2)
            s = s_BMN.reshape(tuple(dims[d] for d in order)).permute(back).contiguous()
            return _not_finite(s, e_a(values), e_b(values))

        return run

    def _gather(self, node: Gather) -> Callable[[Values], Tensor]:
        dims, view = node.spec.dims, node.table.view
        index = self.read(node.index, dims)
        base_O, inside_O = places(view.strides[1:], view.lo[1:], view.hi[1:], dims)
        fill = widened(fill_tensor(node.spec.dtype, view.fill))
        missing = math.nan if node.spec.dtype is DType.F32 else 0

        def run(values: Values) -> Tensor:
            at_O, table = index(values).to(torch.int64), values[node.table.node].reshape(-1)
            known_O = (at_O >= 0) & (at_O < node.size)
            read_O = known_O & inside_O & (at_O >= view.lo[0]) & (at_O < view.hi[0])
            place_O = torch.where(read_O, at_O * view.strides[0] + base_O + view.offset, 0)
            found_O = table[place_O] if table.numel() else fill.expand(dims)
            return torch.where(known_O, torch.where(read_O, found_O, fill), missing).to(fill.dtype)

        return run


def _same(x: Tensor) -> Tensor:
    return x


def _axes(red: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(range(len(dims), len(dims) + len(red)))


def _sum(x: Tensor, red: Sequence[int]) -> Tensor:
    axes = tuple(range(x.ndim - len(red), x.ndim))
    return x.sum(axes) if axes else x


def _not_finite(x: Tensor, *exponents: Tensor) -> Tensor:
    """NaN where an exponent says that a row is not finite, as the program has it."""
    for e in exponents:
        x = torch.where(e >= E_NONFINITE, math.nan, x)
    return x


def _exponent(x: Tensor) -> Tensor:
    """E(x) as i32."""
    found = torch.frexp(x.abs())[1].clamp(E_ZERO, E_NONFINITE - 1).to(torch.int32)
    found = torch.where(x == 0, E_ZERO, found)
    return torch.where(x.isfinite(), found, E_NONFINITE)


_STORED = {DType.BOOL: torch.bool, DType.I64: torch.int64}


def _loaded(t: Tensor, dtype: DType) -> Tensor:
    value = dtype.value_type
    return t if value is DType.F32 else t.to(_STORED.get(value, torch.int32))


def decimal(x: Tensor) -> Tensor:
    """The number that was written, f64."""
    return torch.tensor(short(float(x)), dtype=torch.float64)


@lru_cache(maxsize=1 << 12)
def short(x: float) -> float:
    """The number that was written where an f32 now stands: of all decimals that round to it the shortest.

    One of seven digits and more was computed: the ratio of small integers, such as 1/6, that rounds to it, if one does.
    """
    import numpy  # a bare machine, which imports this module and compares nothing, may have none

    narrow = numpy.float32(x)
    text = str(narrow)
    if numpy.isfinite(narrow) and len(text.partition("e")[0].lstrip("-").replace(".", "").strip("0")) > _WRITTEN:
        ratio = Fraction(float(narrow)).limit_denominator(_SMALL)
        if numpy.float32(float(ratio)) == narrow:
            return float(ratio)
    return float(text)


_REAL: dict[int, Callable[[Tensor, Tensor], Tensor]] = {
    Op.F32_SQRT: lambda a, _: a.sqrt(),
    Op.F32_SCALE2: lambda a, n: a * power_of_two(n),
    Op.F32_EXPONENT: lambda a, _: _exponent(a),
    Op.I32_TO_F32: lambda a, _: a.double(),
    Op.I64_TO_F32: lambda a, _: a.double(),
    Op.F32_BITS: lambda a, _: a.float().view(torch.int32),
    Op.BITS_F32: lambda a, _: a.view(torch.float32).double(),
}


@lru_cache(maxsize=1 << 12)
def _functions_in(code: bytes, types: tuple[DType, ...]) -> Mapping[int, Found]:
    return functions_in(ScalarProgram.decode(code, types))


def evaluate(code: ScalarProgram, operands: Sequence[Tensor], functions: Mapping[int, Found]) -> Tensor:
    """The value of a scalar program over real numbers; functions: what it holds of them, by register."""
    registers = list(operands)
    for i in code.instructions:
        op = Op(i.op)
        if len(registers) in functions:
            registers.append(functions[len(registers)].value(registers))
            continue
        if op in CONSTANTS:
            found = constant(op, i.imm)
            registers.append(decimal(found) if op is Op.CONST_F32 else found)
            continue
        a, b, c = (registers[r] if k < arity_of(op) else registers[0] for k, r in enumerate((i.a, i.b, i.c)))
        if op is Op.SELECT:
            registers.append(torch.where(a, b, c))
        else:
            registers.append(_REAL.get(op, FUNCTIONS[op] if op in FUNCTIONS else partial(_unknown, op))(a, b))
    return registers[-1]


def _unknown(op: Op, *_: Tensor) -> Tensor:
    raise InvariantError(f"{op.name} has no meaning over real numbers.")
