"""The stock-torch executor equals the reference on every bit: hand-written programs and random ones of every family."""

from __future__ import annotations

import random
import struct
from math import prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.engine.dtypes import to_bytes
from assay.engine.executor import Executor
from assay.protocol.builder import ProgramBuilder, Ref
from assay.protocol.errors import InvariantError, UserError
from assay.protocol.nodes import Family
from assay.protocol.program import Program
from assay.protocol.scalar_builder import ScalarBuilder
from assay.protocol.tensors import TensorSpec
from assay.protocol.types import DType
from assay.protocol.words import from_ints
from assay.protocol.words import to_bytes as words_to_bytes
from tests.engine.helpers import differing_nodes, same_lists, tensors_of
from tests.programs import Example, all_examples

F32, I32, U8, BOOL = DType.F32, DType.I32, DType.U8, DType.BOOL

_SPECIAL = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 2.0**-149, -(2.0**-149), 2.0**-126, 3.4e38, 2.0**-113)


@pytest.mark.parametrize("example", all_examples(), ids=lambda e: e.name)
def test_hand_written_programs_agree_with_the_reference(example: Example):
    assert differing_nodes(example.program, tensors_of(example.program, example.state)) == []


class _Draw:
    """Random programs from one seed: every family over random views of random values."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        specs = [
            TensorSpec(F32, self.dims(60)),
            TensorSpec(F32, self.dims(60)),
            TensorSpec(I32, self.dims(20)),
            TensorSpec(U8, self.dims(20)),
            TensorSpec(I32, (2,)),
        ]
        self.state = ([self.data(s) for s in specs],)
        self.b = ProgramBuilder([specs])
        self.refs = [self.b.input(0, k) for k in range(len(specs))]

    def dims(self, limit: int) -> tuple[int, ...]:
        rank = self.rng.randint(0, 3)
        while True:
            found = tuple(self.rng.randint(1, 7) for _ in range(rank))
            if prod(found) <= limit:
                return found

    def data(self, spec: TensorSpec) -> bytes:
        count, rng = spec.numel, self.rng
        if spec.dtype is not F32:
            return words_to_bytes(spec.dtype, from_ints(spec.dtype, [rng.randint(-3, 9) for _ in range(count)]))
        scale = 2.0 ** rng.choice((-140, -120, -100, -30, 0, 0, 0, 30, 100, 120))
        odd = rng.choice((0.0, 0.0, 0.1))
        values = [rng.choice(_SPECIAL) if rng.random() < odd else rng.gauss(0, 1) * scale for _ in range(count)]
        return struct.pack(
            f"<{count}f", *(max(min(v, 3.4e38), -3.4e38) if abs(v) < float("inf") else v for v in values)
        )

    def pick(self, *types: DType) -> Ref:
        return self.rng.choice([r for r in self.refs if r.dtype in types])

    def view(self, ref: Ref, axes: int = 0) -> Ref:
        """A few random reshapings; at least `axes` dimensions come out, of at most 600 elements."""
        rng = self.rng
        for _ in range(rng.randint(0, 4)):
            rank = len(ref.dims)
            move = rng.choice(("permute", "slice", "pad", "unsqueeze", "expand", "split"))
            try:
                ref = self.moved(ref, move, rank)
            except InvariantError:
                continue
        while len(ref.dims) < axes:
            ref = ref.unsqueeze(rng.randint(0, len(ref.dims)))
        return ref

    def moved(self, ref: Ref, move: str, rank: int) -> Ref:
        rng = self.rng
        if move == "unsqueeze" and rank < 4:
            return ref.unsqueeze(rng.randint(0, rank))
        if move == "expand" and rank < 4:
            return ref.unsqueeze(0).expand(rng.randint(1, 3), *ref.dims) if prod(ref.dims) < 100 else ref
        if rank == 0:
            return ref
        d = rng.randrange(rank)
        size = ref.dims[d]
        if move == "permute":
            order = list(range(rank))
            rng.shuffle(order)
            return ref.permute(*order)
        if move == "slice":
            a, b = sorted((rng.randint(0, size), rng.randint(0, size)))
            if a == b:
                return ref
            return (
                ref.slice(d, a, b, rng.randint(1, 2))
                if rng.random() < 0.7
                else ref.slice(d, b - 1, a - 1 if a else -1, -1)
            )
        if move == "pad" and prod(ref.dims) < 100:
            bits = rng.choice((0, 0x80000000, 0x3F800000, 0x7FC00000)) if ref.dtype is F32 else rng.randint(0, 5)
            return ref.pad(d, rng.randint(0, 2), rng.randint(0, 2), bits)
        if move == "split" and size % 2 == 0:
            return ref.split(d, 2, size // 2)
        return ref

    def add_node(self) -> None:
        family = self.rng.choice(
            (
                Family.MAP,
                Family.ROWEXP,
                Family.MAX,
                Family.DOT,
                Family.SUM,
                Family.GATHER,
                Family.SCATTER_SUM,
                Family.RANK,
            )
        )
        made = getattr(self, f"add_{family.name.lower()}")()
        if prod(made.dims) <= 300 and len(made.dims) <= 4:
            self.refs.append(made)

    def add_map(self) -> Ref:
        x = self.view(self.pick(F32, I32, U8))
        b = ScalarBuilder([x.dtype])
        r = b.operand(0)
        result = b.add(b.mul(r, r), b.f32(1.5)) if x.dtype is F32 else b.sub(r, b.i32(3))
        return self.b.map(b.build(result), [x], x.dims)

    def reduced(self, axes: int) -> tuple[Ref, int]:
        x = self.view(self.pick(F32), axes)
        return x, self.rng.randint(0, min(2, len(x.dims)))

    def add_rowexp(self) -> Ref:
        return self.b.rowexp(*self.reduced(0))

    def add_max(self) -> Ref:
        if self.rng.random() < 0.3:
            x = self.view(self.pick(I32))
            return self.b.max(x, self.rng.randint(0, min(2, len(x.dims))))
        return self.b.max(*self.reduced(0))

    def exponent(self, dims: tuple[int, ...]) -> Ref | None:
        """None for the row's own; else a supplied one, right or wrong."""
        if self.rng.random() < 0.6:
            return None
        value = self.rng.choice((-149, -3, 0, 1, 5, 60, 128, 129, 130, -400, 2**31 - 1, -(2**31)))
        return self.b.const(TensorSpec(I32, ()), words_to_bytes(I32, from_ints(I32, [value]))).expand(*dims)

    def add_sum(self) -> Ref:
        x, reduced = self.reduced(0)
        return self.b.sum(x, reduced, self.exponent(x.dims[: len(x.dims) - reduced]))

    def add_dot(self) -> Ref:
        rng = self.rng
        k = rng.randint(1, 2)
        a = self.view(self.pick(F32), k)
        red = a.dims[len(a.dims) - k :]
        if prod(a.dims) > 60:
            a = a.slice(0, 0, 1)
            red = a.dims[len(a.dims) - k :]
        if rng.random() < 0.5:  # the same values against themselves, transposed or not
            b = a
        else:
            source = self.view(self.pick(F32), 1)
            b = source.slice(0, 0, 1) if prod(source.dims) > 20 else source
            for _ in red:
                b = b.unsqueeze(len(b.dims))
            b = b.expand(*b.dims[: len(b.dims) - k], *red)
        rows, columns = a.dims[: len(a.dims) - k], b.dims[: len(b.dims) - k]
        wide, tall = b, a
        for _ in columns:
            tall = tall.unsqueeze(len(rows))
        for _ in rows:
            wide = wide.unsqueeze(0)
        dims = rows + columns
        if len(dims) + k > 8:
            return a if len(a.dims) <= 4 else self.refs[0]
        ea, eb = self.exponent(dims), self.exponent(dims)
        if ea is None:
            ea = self.b.rowexp(a, k)
            for _ in columns:
                ea = ea.unsqueeze(len(rows))
        if eb is None:
            eb = self.b.rowexp(b, k)
        p = rng.choice(((14, 14), (22, 14), (8, 8), (22, 22), (31, 22), (2, 31)))
        if sum(p) - 2 + prod(red).bit_length() > 62:
            p = (22, 22)  # so many terms of more bits are ill-formed
        return self.b.dot(tall, wide, ea, eb, dims, red, *p)

    def add_gather(self) -> Ref:
        table, index = self.view(self.pick(F32, I32, U8), 1), self.view(self.pick(I32, U8))
        rest = table.dims[1:]
        for _ in rest:
            index = index.unsqueeze(len(index.dims))
        lead = index.dims[: len(index.dims) - len(rest)]
        for _ in lead:
            table = table.unsqueeze(1)
        dims = (*lead, *rest)
        return self.b.gather(table, index, dims) if len(dims) < 8 else self.refs[0]

    def add_scatter_sum(self) -> Ref:
        index = self.view(self.pick(I32, U8))
        red = index.dims
        x = self.view(self.pick(F32))
        if prod(x.dims) > 60 or len(x.dims) + 1 + len(red) > 8:
            return self.refs[0]
        own, supplied = self.b.rowexp(x, len(x.dims)), self.exponent(())
        dims = (self.rng.randint(1, 5), *x.dims)
        for _ in red:
            x = x.unsqueeze(len(x.dims))
        return self.b.scatter_sum(x.unsqueeze(0), index, own if supplied is None else supplied, dims, red)

    def add_rank(self) -> Ref:
        x = self.view(self.pick(F32), 1)
        return self.b.rank(x) if len(x.dims) < 7 else self.refs[0]

    def program(self) -> Program:
        for _ in range(self.rng.randint(1, 8)):
            self.add_node()
        self.refs.append(self.b.random(self.rng.getrandbits(32), self.b.input(0, 4), self.b.input(0, 4), self.dims(20)))
        return self.b.build([[r for r in self.refs if r.is_whole]])


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_random_programs_of_every_family_agree_with_the_reference(seed: int):
    draw = _Draw(seed)
    program = draw.program()
    assert differing_nodes(program, tensors_of(program, draw.state)) == []


def test_a_hook_sees_every_node_and_what_it_returns_is_read_afterwards():
    example = all_examples()[0]
    inputs = tensors_of(example.program, example.state)
    seen: list[int] = []
    honest = Executor(example.program).run(inputs)

    def hook(k: int, value: torch.Tensor) -> torch.Tensor:
        seen.append(k)
        return torch.zeros_like(value) if k == 0 else value

    altered = Executor(example.program).run(inputs, hook)
    assert seen == list(range(len(example.program.nodes)))
    zeros = [[torch.zeros_like(t) if (i, j) == (0, 0) else t for j, t in enumerate(p)] for i, p in enumerate(inputs)]
    assert [to_bytes(t) for p in altered for t in p] == [
        to_bytes(t) for p in Executor(example.program).run(zeros) for t in p
    ]
    assert [to_bytes(t) for p in altered for t in p] != [to_bytes(t) for p in honest for t in p]


@pytest.mark.parametrize("example", all_examples(), ids=lambda e: e.name)
def test_a_careful_executor_takes_other_routes_to_the_same_bits(example: Example):
    inputs = tensors_of(example.program, example.state)
    usual, careful = Executor(example.program), Executor(example.program, careful=True)
    assert same_lists(usual.run(inputs), careful.run(inputs))
    assert all(usual.routes[k] != careful.routes[k] for k in usual.routes)


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_careful_executor_agrees_on_random_programs(seed: int):
    draw = _Draw(seed)
    program = draw.program()
    inputs = tensors_of(program, draw.state)
    assert same_lists(Executor(program).run(inputs), Executor(program, careful=True).run(inputs))


def test_inputs_of_another_shape_or_type_are_refused():
    example = all_examples()[0]
    inputs = tensors_of(example.program, example.state)
    executor = Executor(example.program)
    with pytest.raises(UserError, match="takes lists"):
        executor.run([])
    with pytest.raises(UserError, match="not"):
        executor.run([[t.to(torch.float64) for t in part] for part in inputs])


def test_inputs_are_not_changed_by_a_run():
    for example in all_examples():
        inputs = tensors_of(example.program, example.state)
        Executor(example.program).run(inputs)
        assert [[to_bytes(t) for t in part] for part in inputs] == [list(map(bytes, part)) for part in example.state]
