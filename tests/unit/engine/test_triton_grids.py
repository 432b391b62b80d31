"""How Triton's kernels are cut over programs where sizes are large: no GPU starts more than 65,535 but by the first."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.triton import elementwise, nodes, products, reading
from assay.engine.runtime.triton.routes import Carrier, route
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Dot, Sum
from assay.protocol.program.program import Program
from assay.protocol.program.views import View
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

MOST = 65_535


def batched(batch: int, m: int, n: int, terms: int) -> Program:
    """Scores of a batch, and the sum of each row."""
    specs = [TensorSpec(DType.F32, (batch, rows, terms)) for rows in (m, n)]
    b = ProgramBuilder([specs])
    q, k = (b.input(0, i) for i in range(2))
    eq, ek = b.rowexp(q, 1), b.rowexp(k, 1)
    scores = b.dot(q.unsqueeze(2), k.unsqueeze(1), eq.unsqueeze(2), ek.unsqueeze(1), (batch, m, n), (terms,), 14, 14)
    return b.build([[b.sum(scores, 1, b.rowexp(scores, 1))]])


@pytest.mark.parametrize("by_tiles", [False, True], ids=["stored", "by tiles"])
@pytest.mark.parametrize("most_splits", [0, 2], ids=["packed", "split"])
def test_a_batch_may_be_larger_than_what_a_gpu_counts_beside_blocks(
    most_splits: int, by_tiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "MOST_SPLITS", most_splits)
    executor = Executor(batched(MOST + 1, 3, 4, 2), variant=KernelVariant.TRITON, by_tiles=by_tiles)
    assert executor.whole is not None
    launches = executor.whole.launches()
    assert any("by tiles" in name for name in executor.product_variants.values()) is by_tiles
    assert len(launches) >= 3
    assert [launch.grid for launch in launches if max(launch.grid[1:], default=1) > MOST] == []
    assert max(launch.grid[0] for launch in launches) > MOST


@pytest.mark.parametrize("most_splits", [0, 2], ids=["packed", "split"])
def test_every_block_of_every_matrix_of_a_batch_is_computed(most_splits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks of rows, three of columns, and of 9 rows of blocks more than run together."""
    monkeypatch.setattr(products, "MOST_SPLITS", most_splits)
    monkeypatch.setattr(products, "_tile", lambda size, most: 16)
    program = batched(3, 140, 40, 70)
    torch.manual_seed(2)
    inputs = [[torch.randn(3, 140, 70), torch.randn(3, 40, 70)]]
    ours, stock = (Executor(program, variant=v).run(inputs) for v in (KernelVariant.TRITON, KernelVariant.STOCK))
    assert state_root(ours) == state_root(stock)


def test_loops_that_would_step_past_what_an_i32_counts_are_counted_in_i64() -> None:
    """2^31 - 1 terms end within an i32, and the step after the last one does not: it would begin again."""
    terms = (1 << 31) - 1
    view = View(0, (1,), (0,), (terms,), 0)
    assert not reading.is_narrow(view, (terms,))
    assert reading.is_narrow(view, (terms - (1 << 16),))
    b = ProgramBuilder([[TensorSpec(DType.F32, (1, terms))] * 2])
    x, y = b.input(0, 0), b.input(0, 1)
    program = b.build([[b.sum(x, 1), b.matmul(x, y)]])
    found = {type(node): nodes.kernel(program, node) for node in program.nodes if isinstance(node, Sum | Dot)}
    assert found[Dot] is not None
    assert found[Dot][1] == "by element"
    for count, is_counted in ((nodes.MOST_TERMS, True), (nodes.MOST_TERMS + 1, False)):
        b = ProgramBuilder([[TensorSpec(DType.F32, (1, count))] * 2])
        product = b.build([[b.matmul(b.input(0, 0), b.input(0, 1))]])
        (made,) = [nodes.kernel(product, node) for node in product.nodes if isinstance(node, Dot)]
        assert made is not None and (made[1] != "by element") is is_counted
    by_bytes = route(14, 14, next(iter(Carrier)))
    assert by_bytes is not None and nodes.MOST_TERMS + by_bytes.terms < 1 << 31
    assert "tl.program_id(0).to(tl.int64)" in elementwise.map_text((terms,), DType.F32, [(DType.F32, view)], None)


def test_third_planes_of_more_than_a_billion_terms_are_read_where_they_are() -> None:
    """Twice the way to the second plane is more than an i32 holds. Of four GiB that are asked for pages are touched."""
    from tests.harness.engine.third_places import third_place

    apart, block = (1 << 30) + 4096, 16
    memory = torch.empty((1 << 31) + 2 * apart + 4096, dtype=torch.int8)
    start = 1 << 31  # so far before it lies what would be read instead
    generator = torch.Generator().manual_seed(1)
    planes = [torch.randint(-128, 128, (block, block), dtype=torch.int8, generator=generator) for _ in range(3)]
    for k, each in enumerate(planes):
        memory[start + k * apart :][: block * block] = each.flatten()
    out = torch.empty(block, block, dtype=torch.int32)
    third_place[(1,)](memory[start:], memory[start:], out, apart, apart, BLOCK=block)
    wanted = planes[2].to(torch.int32) @ planes[2].to(torch.int32).T
    assert torch.equal(out, wanted)
