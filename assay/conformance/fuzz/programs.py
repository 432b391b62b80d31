"""Random well-formed programs of all families, from a seed: `draw(seed)` gives a program and a hostile state for it.

    case = draw(7)
    values = ReferenceExecutor(case.program).run(case.state)

The same seed and limits give the same case on every machine. Nothing here needs torch or numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Final

from assay.conformance.fuzz.scalars import scalar_program
from assay.conformance.fuzz.values import canonical_elements, hostile_state
from assay.conformance.fuzz.views import operand
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
    Rank,
    RowExp,
    ScatterSum,
    Sum,
)
from assay.protocol.program.nodes import Random as RandomNode
from assay.protocol.program.program import Program
from assay.protocol.program.views import View, Window
from assay.protocol.trees.state import ListBytes as State
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Digest, DType

F32, I32 = DType.F32, DType.I32
PAIR: Final = TensorSpec(I32, (2,))
SIZES: Final = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 64, 65)
TYPES: Final = (F32, F32, F32, F32, I32, I32, DType.I64, DType.BOOL, DType.U8, DType.I8, DType.U16)
STORED_I32: Final = (I32, I32, DType.U8, DType.I8, DType.U16)


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a case may be: computed nodes, elements of a tensor, terms of an element."""

    nodes: int = 10
    elements: int = 256
    terms: int = 48


@dataclass(frozen=True, slots=True)
class FuzzCase:
    """A well-formed program and the bytes of its X, not all of them as a store would write them."""

    seed: int
    program: Program
    state: State


def draw(seed: int, limits: Limits = Limits()) -> FuzzCase:
    """The case of a seed."""
    rng = Random(f"assay-fuzz-{seed}")
    # One case in eight is larger, so that values leave one leaf, one tile and one block of rows.
    if rng.random() < 0.125:
        limits = Limits(limits.nodes, 8 * limits.elements, 8 * limits.terms)
    program = _Drawing(rng, limits).program()
    return FuzzCase(seed, program, hostile_state(rng, program))


class _Drawing:
    """A program under construction."""

    def __init__(self, rng: Random, limits: Limits) -> None:
        self.rng, self.limits = rng, limits
        self.nodes: list[Node] = []
        self.consts: dict[Digest, bytes] = {}

    def program(self) -> Program:
        """Inputs, computed nodes of random families, outputs; half of the programs can be repeated."""
        rng = self.rng
        lists = [rng.choice((0, 1, 1, 2, 3)) for _ in range(rng.randint(1, 3))]
        if not any(lists):
            lists[0] = 1
        for number, size in enumerate(lists):
            for index in range(size):
                self.nodes.append(Input(self._slot_spec(), number, index))
        makers: tuple[Callable[[], Node | None], ...] = (
            *(self._map,) * 4,
            *(self._rowexp, self._max, self._gather, self._rank, self._random, self._const),
            *(self._dot,) * 2,
            *(self._sum, self._scatter_sum) * 2,
        )
        for _ in range(rng.randint(1, self.limits.nodes)):
            made = rng.choice(makers)()
            if made is not None:
                self.nodes.append(made)
        repeats = rng.random() < 0.5
        if repeats:
            self._close(sum(lists))
        ends = self._slots_of_inputs(lists) if repeats else self._any_slots()
        outputs = [
            Output(self.nodes[k].spec, number, index, k) for number, part in enumerate(ends) for index, k in
            enumerate(part)
        ]  # fmt: skip
        return Program((*self.nodes, *outputs), tuple(lists), tuple(len(part) for part in ends), self.consts)

    def _slot_spec(self) -> TensorSpec:
        rng = self.rng
        if rng.random() < 0.15:
            return PAIR
        return TensorSpec(rng.choice(TYPES), self._dims())

    def _close(self, inputs: int) -> None:
        """Maps of the type and dims of some inputs, so that a slot changes from step to step."""
        for k in range(inputs):
            if self.rng.random() < 0.6:
                self.nodes.append(self._map(self.nodes[k].spec))

    def _slots_of_inputs(self, lists: Sequence[int]) -> list[list[int]]:
        """For every slot of X a node of its type and dims: itself, another input, or what is computed."""
        rng, ends, k = self.rng, [], 0
        for size in lists:
            part = []
            for _ in range(size):
                fitting = [j for j, node in enumerate(self.nodes) if node.spec == self.nodes[k].spec]
                part.append(rng.choice((k, fitting[-1], rng.choice(fitting))))
                k += 1
            ends.append(part)
        return ends

    def _any_slots(self) -> list[list[int]]:
        """Every node, or any, inputs, constants and the same one twice among them; at least what is computed last."""
        rng, count = self.rng, len(self.nodes)
        if rng.random() < 0.4:
            return [[k for k in range(count) if not isinstance(self.nodes[k], Const)]]
        ends = [[rng.randrange(count) for _ in range(rng.randint(0, 3))] for _ in range(rng.randint(1, 3))]
        ends[-1] += range(max(count - 2, 0), count)
        return ends

    # --- shapes and operands

    def _dims(self, most: int | None = None) -> tuple[int, ...]:
        """Few dimensions of few elements; now and then an empty one, now and then as many as there may be."""
        rng, room = self.rng, self.limits.elements if most is None else most
        dims = []
        for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 8)) if room > 1 else rng.choice((0, 1))):
            if rng.random() < 0.015:
                dims.append(0)
                continue
            size = rng.choice([s for s in SIZES if s <= max(room, 1)])
            dims.append(size)
            room //= size
        rng.shuffle(dims)
        return tuple(dims)

    def _out(self, x: int) -> tuple[int, ...]:
        """Dims of a result: those of what it reads, or any."""
        return self.nodes[x].spec.dims if self.rng.random() < 0.6 else self._dims()

    def _space(self, x: int, least: int = 0) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Dims and reduced dims of a reduction of x: its own, cut somewhere after a permutation, or any."""
        rng = self.rng
        dims = list(self.nodes[x].spec.dims)
        if rng.random() < 0.65 and len(dims) >= least:
            if rng.random() < 0.4:
                rng.shuffle(dims)
            cut = rng.randint(least, max(len(dims), least))
            return tuple(dims[:cut]), tuple(dims[cut:])
        red = tuple(d for d in self._dims(self.limits.terms) if d or rng.random() < 0.5)
        out = self._dims(max(2 * self.limits.elements // max(prod(red), 8), 1))
        return (out or (rng.choice((1, 2, 5)),) * least), red

    def _node_of(self, *types: DType) -> int | None:
        """A node of one of these types, later ones more often."""
        found = [k for k, node in enumerate(self.nodes) if node.spec.dtype in types]
        return max(self.rng.choice(found), self.rng.choice(found)) if found else None

    def _read(self, k: int | None, dims: Sequence[int]) -> Operand | None:
        return None if k is None else operand(self.rng, k, self.nodes[k].spec, dims)

    def _exponents(self, x: Operand, out: tuple[int, ...], red: tuple[int, ...]) -> Operand | None:
        """Of a row: by rowexp of what is read, as capture writes it, or any integers."""
        if prod(red) >= 1 and self.rng.random() < 0.65:
            self.nodes.append(RowExp(TensorSpec(I32, out), red, x))
            return Operand(len(self.nodes) - 1, Window.whole(out).view)
        return self._read(self._node_of(*STORED_I32), out)

    # --- families

    def _map(self, spec: TensorSpec | None = None) -> Node:
        rng = self.rng
        count = len(self.nodes)
        chosen = [max(rng.randrange(count), rng.randrange(count)) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 5, 8)))]
        if spec is None:
            spec = TensorSpec(rng.choice(TYPES), self._out(chosen[0]) if chosen else self._dims())
        reads = [r for r in (self._read(k, spec.dims) for k in chosen) if r is not None]
        types = [self.nodes[r.node].spec.dtype for r in reads]
        return Map(spec, tuple(reads), scalar_program(rng, types, spec.dtype.value_type).encode())

    def _rowexp(self) -> Node | None:
        k = self._node_of(F32)
        if k is None:
            return None
        out, red = self._space(k)
        x = self._read(k, out + red)
        return RowExp(TensorSpec(I32, out), red, x) if x and prod(red) >= 1 else None

    def _max(self) -> Node | None:
        k = self._node_of(F32, *STORED_I32)
        if k is None:
            return None
        out, red = self._space(k)
        x = self._read(k, out + red)
        return Max(TensorSpec(self.nodes[k].spec.dtype.value_type, out), red, x) if x and prod(red) >= 1 else None

    def _sum(self) -> Node | None:
        k = self._node_of(F32)
        if k is None:
            return None
        out, red = self._space(k)
        x = self._read(k, out + red)
        e = self._exponents(x, out, red) if x else None
        return Sum(TensorSpec(F32, out), red, x, e) if x and e else None

    def _dot(self) -> Node | None:
        rng = self.rng
        i, j = self._node_of(F32), self._node_of(F32)
        if i is None or j is None:
            return None
        if rng.random() < 0.6:
            return self._product(i, j)
        out, red = self._space(i)
        a, b = self._read(i, out + red), self._read(j, out + red)
        if a is None or b is None:
            return None
        e_a, e_b = self._exponents(a, out, red), self._exponents(b, out, red)
        p_a, p_b = self._precisions()
        return Dot(TensorSpec(F32, out), red, p_a, p_b, a, b, e_a, e_b) if e_a and e_b else None

    def _product(self, i: int, j: int) -> Node | None:
        """A matrix product as capture writes it: [batch,] M, N over K, one exponent per row of each operand."""
        rng = self.rng
        m, n, k = (rng.choice(SIZES) for _ in range(3))
        batch = rng.choice(((), (), (), (1,), (2,)))
        rank = len(batch)
        a, b = self._read(i, (*batch, m, k)), self._read(j, (*batch, n, k))
        if a is None or b is None or prod(batch) * m * n > self.limits.elements or k > 8 * self.limits.terms:
            return None
        e_a, e_b = self._exponents(a, (*batch, m), (k,)), self._exponents(b, (*batch, n), (k,))
        if e_a is None or e_b is None:
            return None
        p_a, p_b = self._precisions()
        out = (*batch, m, n)
        a, b, e_a, e_b = (
            _expanded(x, at, size)
            for x, at, size in ((a, rank + 1, n), (b, rank, m), (e_a, rank + 1, n), (e_b, rank, m))
        )
        return Dot(TensorSpec(F32, out), (k,), p_a, p_b, a, b, e_a, e_b)

    def _precisions(self) -> tuple[int, int]:
        rng = self.rng
        return rng.choice(((14, 14), (14, 14), (8, 8), (15, 15), (22, 22), (22, 14), (rng.randint(2, 31), 2),
                           (rng.randint(2, 27), rng.randint(2, 27))))  # fmt: skip

    def _gather(self) -> Node | None:
        rng = self.rng
        table, index = rng.randrange(len(self.nodes)), self._node_of(*STORED_I32)
        if index is None:
            return None
        source = self.nodes[table].spec
        out = self._out(index)
        size = source.dims[0] if source.dims and rng.random() < 0.6 else rng.choice((0, 1, 2, 3, 7, 16))
        if rng.random() < 0.3 and source.dims:
            out = (self._dims(8) + source.dims[1:])[:7]
        if len(out) > 7 or prod(out) > 4 * self.limits.elements:
            return None
        rows, at = self._read(table, (size, *out)), self._read(index, out)
        return Gather(TensorSpec(source.dtype, out), size, rows, at) if rows and at else None

    def _scatter_sum(self) -> Node | None:
        k, index = self._node_of(F32), self._node_of(*STORED_I32)
        if k is None or index is None:
            return None
        out, red = self._space(k, least=1)
        if prod(out) * prod(red) > 16 * self.limits.elements:
            return None
        x, at = self._read(k, out + red), self._read(index, out + red)
        e = self._exponents(x, out, red) if x else None
        return ScatterSum(TensorSpec(F32, out), red, x, at, e) if x and at and e else None

    def _rank(self) -> Node | None:
        k = self._node_of(F32)
        if k is None:
            return None
        dims = self._out(k)
        if not dims or len(dims) > 7:
            return None
        x = self._read(k, dims)
        if x is None:
            return None
        # Over out + red the own coordinate is not read: every element of a row looks at the same candidates.
        return Rank(TensorSpec(I32, dims), dims[-1:], _expanded(x, len(dims) - 1, dims[-1]))

    def _random(self) -> Node | None:
        pairs = [k for k, node in enumerate(self.nodes) if node.spec == PAIR]
        if not pairs:
            return None
        rng = self.rng
        return RandomNode(TensorSpec(I32, self._dims()), rng.getrandbits(32), rng.choice(pairs), rng.choice(pairs))

    def _const(self) -> Node:
        spec = TensorSpec(self.rng.choice(TYPES), self._dims(64))
        data = canonical_elements(self.rng, spec)
        root = tensor_root(spec, data)
        self.consts[root] = data
        return Const(spec, root)


def _expanded(x: Operand, at: int, size: int) -> Operand:
    """The same read over one dimension more, along which nothing changes."""
    v = x.view
    strides, lo, hi = ((*f[:at], new, *f[at:]) for f, new in ((v.strides, 0), (v.lo, 0), (v.hi, size)))
    return Operand(x.node, View(v.offset, strides, lo, hi, v.fill))
