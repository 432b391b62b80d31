"""Triton's kernels, by its interpreter: the bits of stock torch and of the known answers, on every kind of node."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

from assay.engine.compiler.capture import capture
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.fused import selftest
from assay.engine.runtime.triton import backend
from assay.engine.runtime.triton import nodes as triton_nodes
from assay.engine.runtime.triton import products as triton_products
from assay.engine.runtime.triton.probe import differs, failure
from assay.engine.runtime.triton.routes import Carrier, route
from assay.engine.runtime.values.dtypes import TORCH
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.errors import UserError
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from assay.training.recipes.recipe import RecipeStep
from tests.harness.engine.helpers import all_values, tensors_of
from tests.harness.engine.hostile_views import programs
from tests.harness.engine.models import gpt

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


@cache
def trained() -> tuple[RecipeStep, Program]:
    """A step of training a small GPT, and its program."""
    torch.manual_seed(4)
    step = RecipeStep(gpt())
    return step, capture(step, step.state()).program


def by(variant: KernelVariant, program: Program, inputs: list[list[Tensor]]) -> list[list[Tensor]]:
    return Executor(program, variant=variant).run(inputs)


def test_every_operation_and_reduction_has_the_bits_of_stock_torch():
    stock, triton = (partial(by, variant) for variant in (KernelVariant.STOCK, KernelVariant.TRITON))
    assert selftest.failure(stock, triton) == ""


@pytest.mark.parametrize("carrier", [Carrier.I8, Carrier.F16], ids=["i8", "f16"])
@pytest.mark.parametrize("precisions", [(14, 14), (8, 8), (22, 15)], ids=str)
@pytest.mark.parametrize("packed", [False, True], ids=["split", "packed"])
@pytest.mark.gate_takes(4)
def test_a_route_is_exact_at_its_last_term_and_in_chunks_past_it(
    carrier: Carrier, precisions: tuple[int, int], packed: bool
):
    found = route(*precisions, carrier)
    assert found is not None
    for terms in (found.terms, 4 * found.terms if carrier is Carrier.F16 else found.terms + 1):
        assert not differs(found, *precisions, terms, packed=packed)


@pytest.mark.parametrize(("columns", "kernels"), [(128, ["product"]), (129, ["pack", "pack", "product"])], ids=str)
def test_planes_are_packed_where_blocks_would_split_an_element_more_than_twice(columns: int, kernels: list[str]):
    builder = ProgramBuilder([[TensorSpec(DType.F32, (256, 40)), TensorSpec(DType.F32, (columns, 40))]])
    program = builder.build([[builder.matmul(builder.input(0, 0), builder.input(0, 1))]])
    node = program.nodes[-2]
    found = triton_nodes.kernel(program, node)
    assert found is not None
    with backend.recorded() as seen:
        found[0]([torch.zeros(s.dims, dtype=TORCH[s.dtype]) for s in program.specs])
    assert [launch.kernel.__name__ for launch in seen] == kernels


@pytest.mark.parametrize(("carrier", "times"), [(Carrier.I8, 3), (Carrier.F16, 12)], ids=["i8", "f16"])
def test_the_probe_notices_accumulators_that_overflow(carrier: Carrier, times: int):
    found = route(14, 14, carrier)
    assert found is not None
    more = replace(found, terms=times * found.terms)
    assert all(differs(more, 14, 14, more.terms, packed=packed) for packed in (False, True))


def test_the_probe_refuses_bf16_where_the_interpreter_multiplies_its_patterns():
    found = route(14, 14, Carrier.BF16)
    assert found is not None
    assert failure(found, 14, 14) == "bf16x4 adds 7 products of 14 by 14 bits wrongly"


def test_a_carrier_that_fails_is_refused_and_the_next_one_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch):
    builder = ProgramBuilder([[TensorSpec(DType.F32, (5, 40)), TensorSpec(DType.F32, (6, 40))]])
    program = builder.build([[builder.matmul(builder.input(0, 0), builder.input(0, 1))]])
    inputs = [[torch.randn(5, 40), torch.randn(6, 40)]]
    refused: set[Carrier] = set()
    monkeypatch.setattr(triton_nodes, "failure", lambda r, pa, pb: f"{r.name} is wrong" if r.carrier in refused else "")
    names = []
    for carrier in (None, Carrier.I8, Carrier.F16, Carrier.BF16):
        refused |= {carrier} if carrier is not None else set()
        ours = Executor(program, variant=KernelVariant.TRITON)
        names += ours.product_variants.values()
        if not names[-1].startswith("bf16x4"):  # the interpreter multiplies the patterns of bf16
            assert state_root(ours.run(inputs)) == state_root(by(KernelVariant.STOCK, program, inputs))
    reasons = [f"{name} is wrong" for name in ("i8x4", "f16x4", "bf16x4")]
    taken = ("i8x4", "f16x4", "bf16x4", "by element")
    assert names == ["; ".join([name, *reasons[:k]]) for k, name in enumerate(taken)]


def test_a_carrier_whose_kernel_cannot_be_made_for_a_device_is_refused_by_name(monkeypatch: pytest.MonkeyPatch):
    """An old GPU multiplies no integers, another has less memory to share: compilers raise errors of many kinds."""
    builder = ProgramBuilder([[TensorSpec(DType.F32, (5, 40)), TensorSpec(DType.F32, (6, 40))]])
    program = builder.build([[builder.matmul(builder.input(0, 0), builder.input(0, 1))]])
    inputs, honest = [[torch.randn(5, 40), torch.randn(6, 40)]], backend.launch

    def none_of_i8(kernel, grid, *arguments, **constants):
        if constants.get("CARRIER") == Carrier.I8:
            raise NotImplementedError("unsupported MMA version\nwith a long text")
        honest(kernel, grid, *arguments, **constants)

    failure.cache_clear()
    monkeypatch.setattr(backend, "launch", none_of_i8)
    try:
        ours = Executor(program, variant=KernelVariant.TRITON)
        (name,) = ours.product_variants.values()
        assert name == "f16x4; i8x4 does not run (NotImplementedError: unsupported MMA version)"
        assert state_root(ours.run(inputs)) == state_root(by(KernelVariant.STOCK, program, inputs))
        failure.cache_clear()
        monkeypatch.setattr(backend, "launch", out_of_memory)
        with pytest.raises(torch.OutOfMemoryError):
            Executor(program, variant=KernelVariant.TRITON)
    finally:
        failure.cache_clear()


def out_of_memory(*_, **__):
    raise torch.OutOfMemoryError("others hold it")


@pytest.mark.parametrize("most_splits", [0, 2], ids=["packed", "split"])
def test_products_of_odd_exponents_batches_and_views_have_the_bits_of_stock_torch(
    most_splits: int, monkeypatch: pytest.MonkeyPatch
):
    """Subnormal, huge and non-finite rows; exponents that are no row's; results that are subnormal by one rounding."""
    monkeypatch.setattr(triton_products, "MOST_SPLITS", most_splits)
    torch.manual_seed(3)
    a, b = (torch.randn(2, 3, 5, 37) * torch.exp2(torch.randint(-140, 120, (2, 3, 5, 1))) for _ in range(2))
    a[0, 0, 0, 0], a[0, 1, 2], b[1, 2, 3, 4] = float("inf"), 0.0, float("nan")
    ea, eb = (torch.randint(-150, 131, (2, 3, 5), dtype=torch.int32) for _ in range(2))
    ea[0, 0], eb[0, 0], ea[1, 1, 0], ea[1, 1, 1] = -64, -70, -(2**31), 2**31 - 1
    a[0, 0], b[0, 0] = torch.randn(5, 37) * 2.0**-66, torch.randn(5, 37) * 2.0**-72
    f32, i32 = TensorSpec(DType.F32, (2, 3, 5, 37)), TensorSpec(DType.I32, (2, 3, 5))
    builder = ProgramBuilder([[f32, f32, i32, i32]])
    x, y, ex, ey = (builder.input(0, k) for k in range(4))
    found = []
    for px, py in ((14, 14), (8, 8), (14, 9), (15, 15), (22, 14), (24, 24)):
        for turned in (False, True):
            rows, columns = (x.permute(0, 1, 2, 3).unsqueeze(3), y.unsqueeze(2))
            dims = (2, 3, 5, 5)
            if turned:  # the batch last, and both operands read backwards along the terms
                rows, columns = (r.permute(2, 3, 0, 1, 4).slice(4, 36, -1, -1) for r in (rows, columns))
                dims = (5, 5, 2, 3)
            e_rows, e_columns = ex.unsqueeze(3), ey.unsqueeze(2)
            if turned:
                e_rows, e_columns = (e.permute(2, 3, 0, 1) for e in (e_rows, e_columns))
            found.append(builder.dot(rows, columns, e_rows, e_columns, dims, (37,), px, py))
    program = builder.build([found])
    ours, stock = (by(v, program, [[a, b, ea, eb]]) for v in (KernelVariant.TRITON, KernelVariant.STOCK))
    assert state_root(ours) == state_root(stock)
    magnitudes = torch.cat([t.flatten() for t in stock[0]]).abs()
    assert int(((magnitudes > 0) & (magnitudes < 2.0**-126)).sum()) > 50
    assert int(magnitudes.isnan().sum()) > 50


@pytest.mark.parametrize("precision", [14, 24])
def test_a_subnormal_result_is_rounded_once(precision: int):
    """Sums 2^28 + 128 m + 63 over 2^156: to 24 bits they are ties between subnormal numbers, which they are below."""
    terms = torch.full((8, 17), 4096.0), torch.full((8, 17), 4096.0)
    terms[0][:, 16], terms[1][:, 16] = 1.0, 63.0 + 128.0 * torch.arange(8)
    ea, eb = (torch.full((8,), e + precision - 14, dtype=torch.int32) for e in (-64, -66))
    a, b = (t * 2.0 ** (e - 13) for t, e in zip(terms, (-64, -66), strict=True))
    builder = ProgramBuilder([[*(TensorSpec(DType.F32, (8, 17)),) * 2, *(TensorSpec(DType.I32, (8,)),) * 2]])
    x, y, ex, ey = (builder.input(0, k) for k in range(4))
    dot = builder.dot(
        x.unsqueeze(1), y.unsqueeze(0), ex.unsqueeze(1), ey.unsqueeze(0), (8, 8), (17,), precision, precision
    )
    ((found,),) = by(KernelVariant.TRITON, builder.build([[dot]]), [[a, b, ea, eb]])
    assert found[0].view(torch.int32).tolist() == [(1 << 21) + m for m in range(8)]


def test_exponents_of_a_product_may_be_bytes():
    builder = ProgramBuilder([[TensorSpec(DType.F32, (4, 9)), TensorSpec(DType.U8, (4,)), TensorSpec(DType.I8, (4,))]])
    x, ex, ey = (builder.input(0, k) for k in range(3))
    dot = builder.dot(x.unsqueeze(1), x.unsqueeze(0), ex.unsqueeze(1), ey.unsqueeze(0), (4, 4), (9,))
    program = builder.build([[dot]])
    inputs = [
        torch.randn(4, 9),
        torch.tensor([0, 3, 128, 255]).to(torch.uint8),
        torch.tensor([-9, 0, 3, 1]).to(torch.int8),
    ]
    ours, stock = (by(v, program, [inputs]) for v in (KernelVariant.TRITON, KernelVariant.STOCK))
    assert state_root(ours) == state_root(stock)


def test_a_step_of_training_has_the_bits_of_native_kernels_at_every_node():
    step, program = trained()
    state = step.state(key=(7, 8))
    values = [all_values(program, state, variant) for variant in (KernelVariant.TRITON, None)]
    assert [k for k, (a, b) in enumerate(zip(*values, strict=True)) if a != b] == []


def test_maps_share_kernels_and_a_whole_step_ends_in_the_state_of_native_kernels():
    """Maps that read each other through stored types, an optimizer's among them; values read elsewhere are stored."""
    step, program = trained()
    ours, state = Executor(program, variant=KernelVariant.TRITON), step.state(key=(7, 8))
    assert ours.whole is not None
    shared = [k for maps in ours.whole.groups.groups.values() for k in maps]
    assert len(shared) == len(set(shared)) > 40
    assert state_root(ours.run(state)) == state_root(Executor(program).run(state))


def test_views_that_read_nothing_give_the_bits_of_stock_torch():
    for case in list(programs())[::7]:
        inputs = tensors_of(case.program, case.state)
        ours, stock = (by(v, case.program, inputs) for v in (KernelVariant.TRITON, KernelVariant.STOCK))
        assert state_root(ours) == state_root(stock), case.name


def test_where_triton_or_a_gpu_is_missing_the_executor_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch):
    program = ProgramBuilder([[TensorSpec(DType.F32, (2,))]])
    whole = program.build([[program.input(0, 0)]])
    monkeypatch.setenv(backend.INTERPRETER, "0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    backend.absence.cache_clear()
    try:
        with pytest.raises(UserError, match="there is no GPU that torch can use") as caught:
            Executor(whole, variant=KernelVariant.TRITON)
        assert caught.value.code == "NoTritonKernels"
        monkeypatch.setenv(backend.INTERPRETER, "1")
        monkeypatch.setattr(backend, "find_spec", lambda name: None if name == "numpy" else object())
        backend.absence.cache_clear()
        assert backend.absence() == "Triton's interpreter needs NumPy, which is not installed"
        monkeypatch.setattr(backend, "find_spec", lambda name: None)
        backend.absence.cache_clear()
        assert backend.absence() == "Triton is not installed"
    finally:
        backend.absence.cache_clear()
