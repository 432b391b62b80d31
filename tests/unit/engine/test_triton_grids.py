"""How Triton's kernels are cut over programs where sizes are large: no GPU starts more than 65,535 but by the first."""

from __future__ import annotations

import linecache
from importlib.util import find_spec

import pytest
import torch

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton import arena, backend, elementwise, nodes, products, reading, routes
from assay.engine.runtime.triton.groups import MapGroups
from assay.engine.runtime.triton.routes import Carrier, route
from assay.engine.runtime.triton.virtual import virtual_nodes
from assay.engine.runtime.values.dtypes import TORCH
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Dot, Output, Sum
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
    product = found[Dot]
    assert product is not None and product[1] == "by element"
    by_bytes = route(14, 14, next(iter(Carrier)))
    assert by_bytes is not None and routes.MOST_COUNTED + by_bytes.terms < 1 << 31
    assert "tl.program_id(0).to(tl.int64)" in elementwise.map_text((terms,), DType.F32, [(DType.F32, view)], None)


@pytest.mark.parametrize("which", range(3), ids=["rows", "columns", "terms"])
def test_a_product_that_its_kernels_do_not_count_goes_term_by_term(which: int) -> None:
    """Of 2^31 - 1 rows the number of blocks would wrap below zero, and nothing be computed."""
    for count, is_counted in ((routes.MOST_COUNTED, True), (routes.MOST_COUNTED + 1, False)):
        m, n, terms = (count if k == which else 1 for k in range(3))
        b = ProgramBuilder([[TensorSpec(DType.F32, (m, terms)), TensorSpec(DType.F32, (n, terms))]])
        product = b.build([[b.matmul(b.input(0, 0), b.input(0, 1))]])
        (made,) = [nodes.kernel(product, node) for node in product.nodes if isinstance(node, Dot)]
        assert made is not None and (made[1] != "by element") is is_counted


def test_no_product_has_more_blocks_than_a_gpu_starts() -> None:
    most = (1 << 31) - 1
    assert routes.is_counted(most, 16, 16, 8) and not routes.is_counted(most + 1, 1, 1, 8)
    assert not routes.is_counted(most, 17, 16, 8) and not routes.is_counted(most, 16, 17, 8)


def test_columns_that_repeat_beyond_what_tiles_count_are_stored() -> None:
    """They take no memory on the way in: one key, which is read for all of them."""
    for columns, is_virtual in ((routes.MOST_COUNTED, True), (routes.MOST_COUNTED + 1, False)):
        b = ProgramBuilder([[TensorSpec(DType.F32, (2, 1, 1))] * 2])
        q, k = b.input(0, 0), b.input(0, 1).expand(2, columns, 1)
        eq, ek = b.rowexp(q, 1), b.rowexp(k, 1)
        dims = 2, 1, columns
        scores = b.dot(q.unsqueeze(2), k.unsqueeze(1), eq.unsqueeze(2), ek.unsqueeze(1), dims, (1,), 14, 14)
        program = b.build([[b.max(scores, 1)]])
        assert bool(virtual_nodes(program).spaces) is is_virtual


def texts_of(program: Program) -> list[str]:
    """The kernels that whole runs would launch, over memory that nobody has."""

    def kernel(k: int) -> Kernel:
        node = program.nodes[k]
        if isinstance(node, Output):
            return lambda values: values[node.node]
        made = nodes.kernel(program, node)
        assert made is not None
        return made[0]

    kernels = MapGroups(program, kernel)
    slots = [program.specs[k] for part in program.input_nodes for k in part]
    with backend.recorded() as seen, arena.within(arena.Requests()):
        kernels.run([torch.empty(spec.dims, dtype=TORCH[spec.dtype], device="meta") for spec in slots])
    return ["".join(linecache.getlines(launch.kernel.fn.__code__.co_filename)) for launch in seen]


def test_elements_beyond_an_i32_are_numbered_in_i64_where_nothing_is_read() -> None:
    """A group of maps that read nothing, of as many bytes as there are elements."""
    dims = 1 << 16, (1 << 15) + 1
    b = ProgramBuilder([[]])
    s = ScalarBuilder([])
    one = s.build(s.i32(1))
    program = b.build([[b.map(one, [], dims, DType.U8), b.map(one, [], (4, 4), DType.U8)]])
    beyond, few = texts_of(program)
    assert "tl.program_id(0).to(tl.int64) * BLOCK" in beyond
    assert "tl.program_id(0) * BLOCK" in few


def test_columns_beyond_an_i32_are_numbered_in_i64() -> None:
    """Of rows that belong together in twos all batches have half as many columns as there are elements."""
    rows, columns = 1 << 31, 2
    b = ProgramBuilder([[TensorSpec(DType.F32, (rows, columns))]])
    x = b.input(0, 0)
    s = ScalarBuilder([DType.F32, DType.F32])
    p = b.map(s.build(s.add(*map(s.operand, range(2)))), [x, b.max(x, 1).unsqueeze(1).expand(*x.dims)], x.dims)
    by_columns = b.rowexp(p.split(0, rows // 2, 2).permute(0, 2, 1), 1)
    (text,) = [text for text in texts_of(b.build([[p, by_columns]])) if "exponent_of_bits(magnitude)" in text]
    assert "o = tl.program_id(0).to(tl.int64) * BLOCK" in text


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
