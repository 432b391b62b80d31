"""Triton's reductions of many terms to few elements, cut over programs: parts in any order, the same bits."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.triton import backend, reductions
from assay.engine.runtime.triton import nodes as triton_nodes
from assay.engine.runtime.values.dtypes import TORCH
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


def test_every_reduction_that_is_cut_has_the_bits_of_stock_torch(monkeypatch: pytest.MonkeyPatch):
    """Rows of both signs, of negative numbers alone, of zeros, with NaN, infinities; 301 terms leave a short part."""
    monkeypatch.setattr(reductions, "blocks", lambda elements, terms: (2, 4))
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
