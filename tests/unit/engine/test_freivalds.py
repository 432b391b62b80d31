"""Products are checked in turn while a program runs; one wrong bit is noticed, non-finite rows are no error."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.conformance.fuzz.programs import draw
from assay.engine.compiler.lowering.registry import Precision
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.native.library import native
from assay.engine.runtime.products import native_dot, native_selftest, product_variants
from assay.engine.runtime.products.dot import NativeProduct
from assay.engine.runtime.products.freivalds import Beginnings, ProductWatch
from assay.engine.runtime.products.native_dot import NativeDot
from assay.protocol.errors import InvariantError
from assay.protocol.program.nodes import Dot, Operand, Output
from assay.protocol.program.program import Program
from assay.protocol.program.views import View
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.engine.helpers import captured, same_lists, tensors_of


def operands(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randint(-8192, 8193, (2, n, 40), generator=generator).float() for n in (7, 5))
    return a, b, product_variants.INT64.multiply(a, b)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_a_right_product_passes_and_every_wrong_element_is_found(dtype: torch.dtype):
    a, b, s = operands()
    watch = ProductWatch()
    watch.check(3, a, b, s.to(dtype))
    for index in range(0, s.numel(), 3):
        for change in (1, -1, 1 << 20):
            wrong = s.clone()
            wrong.view(-1)[index] += change
            watch.begin()
            with pytest.raises(InvariantError) as caught:
                watch.check(3, a, b, wrong.to(dtype))
            assert caught.value.code == "HardwareFault"


def test_rows_that_are_not_finite_are_left_out():
    a, b, s = operands()
    a[0, 2, 5], b[1, 1, 0] = float("nan"), float("inf")
    product = s.double()
    product[0, 2], product[1, :, 1] = float("nan"), float("nan")
    ProductWatch().check(0, a, b, product)


def test_each_product_of_a_program_is_checked_in_its_turn(monkeypatch: pytest.MonkeyPatch):
    x, y = torch.randn(4, 6), torch.randn(6, 4)
    executor = Executor(captured(lambda a, b: (a @ b, (b @ a).relu() @ b), x, y).program)
    checked: list[int] = []
    original = ProductWatch.key
    monkeypatch.setattr(ProductWatch, "key", lambda self, k: (checked.append(k), original(self, k))[1])
    for _ in range(6):
        executor.run([[x, y]])
    assert len(checked) == 6
    assert sorted(set(checked)) == sorted(executor.product_variants)
    assert checked[:3] == checked[3:]


def test_a_library_that_miscalculates_stops_the_run(monkeypatch: pytest.MonkeyPatch):
    x = torch.randn(4, 4)
    monkeypatch.setattr("assay.engine.runtime.products.dot.native_dot", lambda *_: None)
    executor = Executor(captured(lambda a: (a @ a,), x).program)
    honest = torch.mm
    monkeypatch.setattr(torch, "mm", lambda a, b: honest(a, b).add_(1.0))
    with pytest.raises(InvariantError, match="miscalculates"):
        executor.run([[x]])


needs_native = pytest.mark.skipif(native("check").handle is None, reason=native("check").reason or "-")


@needs_native
@pytest.mark.parametrize("bits", [8, 14, 22])
@pytest.mark.parametrize("turned", [False, True])
def test_the_native_check_rounds_the_same_results(bits: int, turned: bool):
    torch.manual_seed(bits)
    x, y = torch.randn(2, 9, 2100 if bits == 8 else 21), torch.randn(2, 2100 if bits == 8 else 21, 6)
    x[0, 3], y[1, :, 2] = float("nan"), 0.0
    x[1, 2], y[0, :, 1] = x[1, 2] * 2.0**-120, y[0, :, 1] * 2.0**100
    program = captured(
        lambda a, b: (b.mT @ a.mT if turned else a @ b, b.sum(2) @ b[0]), x, y, precision=Precision(bits, bits)
    ).program
    executor = Executor(program, variant=KernelVariant.FUSED)
    stock = Executor(program, variant=KernelVariant.STOCK).run([[x, y]])
    assert len(executor.product_variants) == 2
    for _ in executor.product_variants:
        assert same_lists(executor.run([[x, y]]), stock)


@needs_native
@given(st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_the_native_check_passes_whatever_exponents_and_views_a_program_has(seed: int):
    case = draw(seed)
    program, inputs = case.program, tensors_of(case.program, case.state)
    executor = Executor(program, variant=KernelVariant.FUSED)
    stock = Executor(program, variant=KernelVariant.STOCK).run(inputs)
    for _ in executor.product_variants:
        assert same_lists(executor.run(inputs), stock)


@needs_native
@pytest.mark.parametrize("precision", [*range(2, 9), 14, 15, 22])
def test_the_native_check_quantizes_as_the_product_at_every_exponent(precision: int):
    # With 2 bits and the largest exponent the power 2^(p-1-e) is 2^-127, which is no normal binary32 number.
    found = native_dot.kernels()
    assert found is not None
    exponents = torch.arange(-420, 130, dtype=torch.int32)
    sizes = [2.0**n for n in range(-149, 128)]
    halves = [0.5, 0.75, 1.0, 1.5, 0.9999999, 1.9999999]
    x = torch.tensor([0.0, float("inf"), *(s * h for s in sizes for h in halves)], dtype=torch.float64).float()
    x = torch.cat([x, -x.flip(0)])
    # Weights of 1 to 127, so that errors of opposite signs do not cancel.
    y, ey = (torch.arange(2 * len(x)) % 127 + 1.0).reshape(1, 2, -1), torch.full((1, 2), 7, dtype=torch.int32)
    rows = x.expand(len(exponents), -1)[None].contiguous()
    for pa, pb, values in (
        (precision, 8, [rows, exponents[None], y, ey]),
        (8, precision, [y, ey, rows, exponents[None]]),
    ):
        shape = (1, values[0].shape[1], values[2].shape[1], len(x))
        program, node = native_selftest.matrix_program(shape, pa, pb)
        product = NativeDot(found, program, node, ((0,), (1,), (2,)), threaded=False)
        checked = product.checked(values, (7, 9))
        assert checked is not None
        assert torch.equal(checked.view(torch.int32), product.run(values).view(torch.int32))


@needs_native
@pytest.mark.parametrize(("batches", "m", "n"), [(1, 75, 23), (5, 33, 7), (3, 64, 9)])
@pytest.mark.parametrize("turned", [False, True])
def test_pieces_of_a_product_are_the_product(
    batches: int, m: int, n: int, turned: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("assay.engine.runtime.products.native_dot._CHECKED_AT_ONCE", 500)
    torch.manual_seed(m)
    x, y = torch.randn(batches, m, 40), torch.randn(batches, 40, n)
    x[0, 3] = float("nan")
    program = captured(lambda a, b: ((a @ b).mT.clone() if turned else a @ b, b.sum(2)), x, y).program
    executor = Executor(program, variant=KernelVariant.FUSED)
    (product,) = (executor.kernels.of(k) for k in executor.product_variants)
    assert isinstance(product, NativeProduct)
    assert len(product.own._pieces) >= max(2, batches // 2)
    assert same_lists(executor.run([[x, y]]), Executor(program, variant=KernelVariant.STOCK).run([[x, y]]))


@needs_native
@pytest.mark.parametrize("change", [1.0, -1.0, 2.0**40])
def test_one_wrong_sum_stops_the_run(change: float, monkeypatch: pytest.MonkeyPatch):
    x = torch.randn(5, 7)
    executor = Executor(captured(lambda a: (a @ a.T,), x).program, variant=KernelVariant.FUSED)
    executor.run([[x]])
    original = NativeDot._call

    def call(self: NativeDot, values: list[torch.Tensor], out: int, raw: int, *piece: Any) -> None:
        original(self, values, out, raw, *piece)
        if raw:
            ctypes.c_double.from_address(raw + 8 * 17).value += change

    monkeypatch.setattr(NativeDot, "_call", call)
    with pytest.raises(InvariantError) as caught:
        executor.run([[x]])
    assert caught.value.code == "HardwareFault"


@needs_native
def test_the_check_reads_exponents_of_storage_types_as_long_as_it_runs(monkeypatch: pytest.MonkeyPatch):
    """They are copied to i32; code that lets go of the copy reads what was written there since."""
    terms, rows = 6, 37
    exponents = TensorSpec(DType.U8, (rows,))
    program, _ = native_selftest.matrix_program((1, rows, rows, terms), 14, 14)
    inputs = (program.nodes[0], replace(program.nodes[1], spec=exponents))
    inputs += (program.nodes[2], replace(program.nodes[3], spec=exponents))
    e = [Operand(k, View(0, (1, 0) if k == 1 else (0, 1), (0, 0), (rows, rows))) for k in (1, 3)]
    a, b = (
        Operand(k, View(0, (terms, 0, 1) if k == 0 else (0, terms, 1), (0, 0, 0), (rows, rows, terms))) for k in (0, 2)
    )
    dot = Dot(TensorSpec(DType.F32, (rows, rows)), (terms,), 14, 14, a, b, *e)
    whole = Program((*inputs, dot, Output(dot.spec, 0, 0, 4)), (4,), (1,))
    torch.manual_seed(2)
    state = [torch.randn(1, rows, terms), torch.full((rows,), 3, dtype=torch.uint8)]
    state += [torch.randn(1, rows, terms), torch.full((rows,), 2, dtype=torch.uint8)]
    original, taken = NativeDot._call, []

    def call(self: NativeDot, values: list[torch.Tensor], out: int, raw: int, *piece: Any) -> None:
        original(self, values, out, raw, *piece)
        taken.extend(torch.full((rows,), 11, dtype=torch.int32) for _ in range(4))

    monkeypatch.setattr(NativeDot, "_call", call)
    executor = Executor(whole, variant=KernelVariant.FUSED)
    assert same_lists(executor.run([state]), Executor(whole, variant=KernelVariant.STOCK).run([state]))
    assert taken


def test_a_watch_that_pauses_checks_every_product_in_turn_all_the_same():
    watch, seen = ProductWatch((4, 7, 9), "paused", Beginnings(), every=5), []
    for _ in range(3 * 5):
        watch.begin()
        seen.append(watch.due)
    assert sorted(k for k in seen if k is not None) == [4, 7, 9]
