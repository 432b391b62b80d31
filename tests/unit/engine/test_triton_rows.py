"""Groups of common rows by Triton: one kernel for a softmax or a norm, with the bits of stock torch."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.triton import backend
from assay.engine.runtime.triton.row_kernels import RowBlocks, row_blocks, row_kernel
from assay.engine.runtime.triton.rows import LONGEST, MOST_BY_COLUMNS, MOST_MEMBERS, RowGroup, row_groups
from assay.engine.runtime.values.dtypes import canonical
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import ScalarProgram
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

F32, I32, BOOL, U8 = DType.F32, DType.I32, DType.BOOL, DType.U8
Made = Callable[..., Reg]


def scalar(make: Made, *types: DType) -> ScalarProgram:
    s = ScalarBuilder(list(types))
    return s.build(make(s, *(s.operand(k) for k in range(len(types)))))


ADD = scalar(lambda s, a, b: s.add(a, b), F32, F32)
MULTIPLY = scalar(lambda s, a, b: s.mul(a, b), F32, F32)
EXP_OF_DIFFERENCE = scalar(lambda s, a, b: functions.exp(s, s.sub(a, b)), F32, F32)
QUOTIENT = scalar(lambda s, a, b: s.div(a, b), F32, F32)
NEGATIVE = scalar(lambda s, a: s.neg(a), F32)
IS_SMALLER = scalar(lambda s, a, b: s.lt(a, b), F32, F32)


def softmax(b: ProgramBuilder, x: Ref) -> list[Ref]:
    """Probabilities, their exponents by row and by column; x: [rows, columns]."""
    dims, columns = x.dims, x.dims[-1]
    masked = b.map(ADD, [x, b.input(0, 1).unsqueeze(0).expand(*dims)], dims)
    most = b.max(masked, 1)
    e = b.map(EXP_OF_DIFFERENCE, [masked, most.unsqueeze(1).expand(*dims)], dims)
    total = b.sum(e, 1)
    p = b.map(QUOTIENT, [e, total.unsqueeze(1).expand(*dims)], dims)
    assert columns == p.dims[1]
    return [p, b.rowexp(p, 1), b.rowexp(p.permute(1, 0), 1)]


def program_of(dims: tuple[int, int], make: Callable[[ProgramBuilder, Ref], list[Ref]]) -> Program:
    b = ProgramBuilder([[TensorSpec(F32, dims), TensorSpec(F32, dims[1:]), TensorSpec(F32, dims[:1])]])
    return b.build([make(b, b.input(0, 0))])


def inputs_of(dims: tuple[int, int]) -> list[list[Tensor]]:
    """Rows of all kinds: of both signs, of very different sizes, of zeros, negative, with a NaN, with infinities."""
    torch.manual_seed(dims[0] * 7919 + dims[1])
    x = torch.randn(dims) * torch.exp2(torch.randint(-40, 40, (dims[0], 1)).float())
    for row, fill in enumerate((0.0, float("nan"), float("inf"), float("-inf"), -3.0)[: dims[0]]):
        x[row, dims[1] // 2 :] = fill
    return [[x, torch.randn(dims[1]), torch.randn(dims[0])]]


def agree(program: Program, inputs: list[list[Tensor]]) -> bool:
    stock, ours = (Executor(program, variant=v).run(inputs) for v in (KernelVariant.STOCK, KernelVariant.TRITON))
    return state_root(ours) == state_root(stock)


@pytest.mark.parametrize("dims", [(1, 2), (7, 64), (5, 65), (33, 127), (3, LONGEST), (2, LONGEST - 1)], ids=str)
def test_a_softmax_is_one_kernel_with_the_bits_of_stock_torch(dims: tuple[int, int]):
    program = program_of(dims, softmax)
    (group,) = row_groups(program, range(len(program.nodes))).values()
    families = [program.nodes[k].family.name for k in group.is_whole]
    assert families == ["MAP", "MAX", "MAP", "ROWEXP", "SUM", "MAP", "ROWEXP"]
    assert (group.rows, group.columns) == dims
    assert agree(program, inputs_of(dims))


def test_rows_longer_than_a_kernel_holds_are_no_group():
    program = program_of((2, LONGEST + 1), softmax)
    assert row_groups(program, range(len(program.nodes))) == {}
    assert agree(program, inputs_of((2, LONGEST + 1)))


def normed(b: ProgramBuilder, x: Ref) -> list[Ref]:
    """A norm whose short values pass through maps, with operands of every kind: of a column, a row, both, backwards."""
    dims, rows = x.dims, x.dims[0]
    mean = b.map(MULTIPLY, [b.sum(x, 1), b.input(0, 2)], (rows,))
    centred = b.map(ADD, [x, b.map(NEGATIVE, [mean], (rows,)).unsqueeze(1).expand(*dims)], dims)
    square = b.map(MULTIPLY, [centred, centred], dims)
    root = b.map(ADD, [b.sum(square, 1), b.input(0, 2)], (rows,))
    scaled = b.map(QUOTIENT, [centred, root.unsqueeze(1).expand(*dims)], dims)
    weighted = b.map(MULTIPLY, [scaled, b.input(0, 1).unsqueeze(0).expand(*dims)], dims)
    turned = b.map(ADD, [weighted, x.slice(0, rows - 1, -1, -1).slice(1, dims[1] - 1, -1, -1)], dims)
    of_row = b.map(ADD, [turned, b.input(0, 2).unsqueeze(1).expand(*dims)], dims)
    padded = b.map(ADD, [of_row, x.slice(1, 1, dims[1]).pad(1, 0, 1, 0x3F800000)], dims)
    return [padded, b.rowexp(padded, 1), b.max(padded, 1), root, mean]


@pytest.mark.parametrize("dims", [(6, 3), (9, 100), (70, 33)], ids=str)
def test_a_norm_with_operands_of_every_kind_has_the_bits_of_stock_torch(dims: tuple[int, int]):
    program = program_of(dims, normed)
    groups = row_groups(program, range(len(program.nodes)))
    assert max(sum(not whole for whole in g.is_whole.values()) for g in groups.values()) >= 4
    assert agree(program, inputs_of(dims))


def narrowed(b: ProgramBuilder, x: Ref) -> list[Ref]:
    """Members whose memory holds fewer bits than their registers: later ones read what memory would hold."""
    dims = x.dims
    low = b.map(scalar(lambda s, a: s.cast(a, I32), F32), [x], dims, U8)
    again = b.map(scalar(lambda s, a, c: s.add(s.cast(a, F32), c), I32, F32), [low, x], dims)
    most = b.max(again, 1)
    less = b.map(IS_SMALLER, [again, most.unsqueeze(1).expand(*dims)], dims)
    count = b.map(scalar(lambda s, a: s.cast(a, I32), BOOL), [less], dims)
    return [low, most, less, b.max(count, 1)]


def test_members_read_what_memory_would_hold():
    dims = (6, 50)
    program = program_of(dims, narrowed)
    (group,) = row_groups(program, range(len(program.nodes))).values()
    assert len(group.is_whole) == 6
    assert agree(program, [[torch.randn(dims) * 300, torch.randn(50), torch.randn(6)]])


def long_chain(b: ProgramBuilder, x: Ref) -> list[Ref]:
    found = [b.max(x, 1)]
    for _ in range(2 * MOST_MEMBERS):
        x = b.map(ADD, [x, found[-1].unsqueeze(1).expand(*x.dims)], x.dims)
        found.append(b.max(x, 1))
    return [x, *found]


def test_a_group_has_a_limit_of_members_and_the_next_one_begins():
    program = program_of((3, 20), long_chain)
    groups = row_groups(program, range(len(program.nodes)))
    assert len(groups) > 4
    assert max(len(g.is_whole) for g in groups.values()) <= MOST_MEMBERS
    assert agree(program, inputs_of((3, 20)))


def weighed(b: ProgramBuilder, x: Ref) -> list[Ref]:
    """A map of a softmax reads exponents of something else, which the program takes in the middle of it."""
    dims = x.dims
    other = b.map(MULTIPLY, [b.input(0, 1), b.input(0, 1)], dims[1:])
    most = b.max(x, 1)
    e = b.map(EXP_OF_DIFFERENCE, [x, most.unsqueeze(1).expand(*dims)], dims)
    powers = b.rowexp(other.unsqueeze(1), 1)
    scaled = scalar(lambda s, a, n: s.scale2(a, n), F32, I32)
    p = b.map(scaled, [e, powers.unsqueeze(0).expand(*dims)], dims)
    return [p, b.rowexp(p, 1)]


def test_exponents_of_something_else_do_not_end_a_group():
    program = program_of((8, 24), weighed)
    groups = row_groups(program, range(len(program.nodes)))
    families = [[program.nodes[k].family.name for k in g.is_whole] for g in groups.values()]
    assert families == [["MAX", "MAP", "MAP", "ROWEXP"]]
    assert agree(program, inputs_of((8, 24)))


BATCH = 4


def with_columns(b: ProgramBuilder, x: Ref) -> list[Ref]:
    """Probabilities, with their exponents by row, and by column of every batch and of all rows."""
    rows, most = x.dims[0], b.max(x, 1)
    e = b.map(EXP_OF_DIFFERENCE, [x, most.unsqueeze(1).expand(*x.dims)], x.dims)
    p = b.map(QUOTIENT, [e, b.sum(e, 1).unsqueeze(1).expand(*x.dims)], x.dims)
    by_batch = b.rowexp(p.split(0, BATCH, rows // BATCH).permute(0, 2, 1), 1)
    return [p, b.rowexp(p, 1), by_batch, b.rowexp(e.permute(1, 0), 1), b.rowexp(p.permute(1, 0), 1)]


@pytest.mark.parametrize("cut", [None, (2, 8), (1, 4), (8, 8)], ids=str)
def test_exponents_of_columns_are_kept_from_block_to_block(cut: tuple[int, int] | None):
    dims = (32, 24)
    program = program_of(dims, with_columns)
    everything = range(len(program.nodes))
    assert not any(g.by_columns for g in row_groups(program, everything, 33).values())
    (group,) = row_groups(program, everything, 32).values()
    assert len(group.by_columns) == MOST_BY_COLUMNS
    wanted: dict[int, Tensor] = {}

    def keep(k: int, value: Tensor) -> Tensor:
        return wanted.setdefault(k, value)

    Executor(program, variant=KernelVariant.STOCK).run(inputs_of(dims), hook=keep)
    run = row_kernel(program, group, group.members, None if cut is None else RowBlocks(*cut))
    given = [*inputs_of(dims)[0], *[torch.empty(0)] * len(program.nodes)]
    found = dict(zip(group.members, run(given), strict=True))
    roots = [state_root([[canonical(part[k]) for k in group.members]]) for part in (found, wanted)]
    assert roots[0] == roots[1]


def of_some_rows(b: ProgramBuilder, x: Ref) -> list[Ref]:
    """Exponents of columns of the first half of the rows alone."""
    p = b.map(ADD, [x, b.max(x, 1).unsqueeze(1).expand(*x.dims)], x.dims)
    return [p, b.rowexp(p, 1), b.rowexp(p.slice(0, 0, x.dims[0] // 2).permute(1, 0), 1)]


def test_exponents_of_columns_of_some_rows_are_not_those_of_all():
    program = program_of((32, 24), of_some_rows)
    assert not any(g.by_columns for g in row_groups(program, range(len(program.nodes)), 1).values())
    assert agree(program, inputs_of((32, 24)))


@pytest.mark.parametrize(
    ("rows", "together", "wanted"),
    [(98304, 1024, (2, 16)), (1 << 18, 1 << 18, (2, 64)), (8192, 0, (2, 2)), (96, 3, (1, 1)), (1 << 20, 24, (2, 8))],
)
def test_a_program_keeps_to_rows_whose_columns_belong_together(
    rows: int, together: int, wanted: tuple[int, int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(backend, "is_interpreted", lambda: False)
    assert row_blocks(RowGroup(rows * 1024, 1024), together) == RowBlocks(*wanted)


def shifted(b: ProgramBuilder, x: Ref) -> list[Ref]:
    """A map reads the row above: it needs a member whole, so it is none."""
    rows, columns = x.dims
    most = b.max(x, 1)
    e = b.map(EXP_OF_DIFFERENCE, [x, most.unsqueeze(1).expand(rows, columns)], x.dims)
    above = b.map(ADD, [e.slice(0, 1, rows), e.slice(0, 0, rows - 1)], (rows - 1, columns))
    of_other = b.map(ADD, [e, most.slice(0, rows - 1, -1, -1).unsqueeze(1).expand(rows, columns)], x.dims)
    return [above, of_other, b.rowexp(of_other, 1)]


def test_who_reads_another_row_of_a_member_is_none():
    program = program_of((5, 40), shifted)
    first, *_ = row_groups(program, range(len(program.nodes))).values()
    assert [program.nodes[k].family.name for k in first.is_whole] == ["MAX", "MAP"]
    assert agree(program, inputs_of((5, 40)))
