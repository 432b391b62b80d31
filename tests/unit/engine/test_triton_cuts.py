"""Triton's reductions, cut over programs and by columns: blocks as the terms lie, any order, the same bits."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import pytest
import torch

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.triton import arena, backend, reductions
from assay.engine.runtime.triton import nodes as triton_nodes
from assay.engine.runtime.values.dtypes import TORCH
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.nodes import Max, RowExp, Sum
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


@pytest.mark.long
def test_every_reduction_that_is_cut_has_the_bits_of_stock_torch(monkeypatch: pytest.MonkeyPatch):
    """Rows of both signs, of negative numbers alone, of zeros, with NaN, infinities; 301 terms leave a short part."""
    monkeypatch.setattr(reductions, "blocks", lambda elements, terms, columns: (2, 4))
    torch.manual_seed(5)
    x = torch.randn(6, 301) * torch.exp2(torch.randint(-140, 120, (6, 1)))
    x[1], x[2], x[3, 300], x[4, 7] = -x[1].abs(), -0.0, float("nan"), float("-inf")
    n = torch.randint(-(2**31), -1, (6, 301), dtype=torch.int32)
    builder = ProgramBuilder([[TensorSpec(DType.F32, (6, 301)), TensorSpec(DType.I32, (6, 301))]])
    a, i = (builder.input(0, k) for k in range(2))
    e = builder.rowexp(a, 1)
    wide = builder.dot(a.unsqueeze(1), a.unsqueeze(0), e.unsqueeze(1), e.unsqueeze(0), (6, 6), (301,), 24, 24)
    program = builder.build([[e, builder.max(a, 1), builder.max(i, 1), builder.sum(a, 1, e), wide]])
    inputs = [[x, n]]
    stock, ours = (Executor(program, variant=v).run(inputs) for v in (KernelVariant.STOCK, KernelVariant.TRITON))
    assert state_root(ours) == state_root(stock)
    for k in range(2, 7):
        found = triton_nodes.kernel(program, program.nodes[k])
        assert found is not None
        with backend.recorded() as seen:
            found[0]([torch.zeros(s.dims, dtype=TORCH[s.dtype]) for s in program.specs])
        assert len(seen) == 2, program.nodes[k]


@pytest.mark.parametrize(
    ("programs", "count", "parts"),
    [(1, 63, 1), (1, 64, 2), (255, 64, 2), (256, 64, 1), (1, 1 << 20, 256), (100, 1 << 20, 3), (0, 64, 1), (1, 0, 1)],
)
def test_terms_are_cut_where_programs_are_few_and_every_part_has_four_blocks(programs: int, count: int, parts: int):
    assert reductions.cuts(programs, count, 8) == parts


def test_fewer_programs_are_enough_of_rows_than_of_columns():
    assert reductions.cuts(300, 1 << 20, 8) == 1
    assert reductions.cuts(300, 1 << 20, 8, reductions.COLUMN_PROGRAMS) == 2


LYING: dict[str, tuple[tuple[int, ...], int, Callable[[Ref], Ref], bool]] = {
    "rows": ((37, 150), 1, lambda x: x, False),
    "columns": ((301, 150), 1, lambda x: x.permute(1, 0), True),
    "columns of several matrices": ((3, 70, 33), 1, lambda x: x.permute(0, 2, 1), True),
    "columns over all edges": ((90, 131), 1, lambda x: _padded(x.permute(1, 0)), True),
    "columns of some rows": ((90, 131), 1, lambda x: x.slice(0, 7, 88, 3).permute(1, 0), True),
    "every second column": ((61, 140), 1, lambda x: x.slice(1, 0, 140, 2).permute(1, 0), False),
    "rows of several matrices": ((9, 21, 50), 2, lambda x: x.permute(1, 0, 2), False),
    "few columns": ((301, 6), 1, lambda x: x.permute(1, 0), True),
    "one column": ((301, 1), 1, lambda x: x.permute(1, 0), False),
}
"""Dims of a matrix, how many of the last dims of a view of it are reduced, that view, and whether it has columns."""


@pytest.mark.parametrize("lying", LYING)
def test_columns_and_rows_have_the_bits_of_stock_torch_whole_and_cut(lying: str, monkeypatch: pytest.MonkeyPatch):
    """Of both signs, of very different sizes in one sum, with a NaN and an infinity."""
    dims, red, view, has_columns = LYING[lying]
    program = _reduced(dims, red, view)
    found = [n for n in program.nodes if isinstance(n, RowExp | Max | Sum)]
    assert len(found) == 3
    for node in found:
        own = node.spec.dims
        assert reductions.are_columns([node.x.view], own, node.red) is has_columns
    torch.manual_seed(7)
    x = torch.randn(dims) * torch.exp2(torch.randint(-140, 120, dims))
    x.view(-1)[[3, 5]] = torch.tensor([float("nan"), float("-inf")])
    known = state_root(Executor(program, variant=KernelVariant.STOCK).run([[x]]))
    assert state_root(Executor(program, variant=KernelVariant.TRITON).run([[x]])) == known
    monkeypatch.setattr(reductions, "blocks", lambda elements, terms, columns: (64, 16) if columns else (16, 16))
    assert state_root(Executor(program, variant=KernelVariant.TRITON).run([[x]])) == known


def test_a_block_of_columns_is_wide_and_one_of_rows_is_long(monkeypatch: pytest.MonkeyPatch):
    """On a GPU: a warp loads neighbouring addresses, whichever way they lie."""
    monkeypatch.setattr(backend, "is_interpreted", lambda: False)
    assert reductions.blocks(98304, 1024) == (2, 1024)
    assert reductions.blocks(98304, 1024, columns=True) == (128, 16)
    assert reductions.blocks(50257, 8192, columns=True) == (128, 16)
    assert reductions.blocks(6, 301, columns=True) == (8, 256)
    assert reductions.blocks(3072, 3, columns=True) == (128, 4)
    program = _reduced((8192, 3072), 1, lambda x: x.permute(1, 0))
    total = next(n for n in program.nodes if isinstance(n, Sum))
    values = [torch.empty(s.dims, dtype=TORCH[s.dtype], device="meta") for s in program.specs]
    with backend.recorded() as seen, arena.within(arena.Requests()):
        reductions.total(program, total)(values)
    assert [launch.constants for launch in seen] == [{"ROWS": 128, "TERMS": 16}, {"ROWS": 64, "TERMS": 32}]
    assert seen[0].kernel is not seen[1].kernel


def _padded(x: Ref) -> Ref:
    """With threes around it."""
    return x.pad(0, 3, 4, 0x40400000).pad(1, 2, 1, 0x40400000)


def _reduced(dims: tuple[int, ...], red: int, view: Callable[[Ref], Ref]) -> Program:
    """The exponents, the largest and the sums of a view of a matrix."""
    builder = ProgramBuilder([[TensorSpec(DType.F32, dims)]])
    x = view(builder.input(0, 0))
    e = builder.rowexp(x, red)
    return builder.build([[e, builder.max(x, red), builder.sum(x, red, e)]])
