"""The kernels for AVX-512 give the reference's bits where the processor has AVX2 alone, by instructions emulated in C.

A machine that has them runs all other tests of the kernels on them too.
"""

from __future__ import annotations

from functools import cache

import pytest

from assay.engine.runtime.executor import Natives
from assay.engine.runtime.fused import layout
from assay.engine.runtime.native import sha256
from assay.engine.runtime.products.native_dot import DotKernels
from tests.harness.engine import kernel_checks
from tests.harness.engine.emulator.avx512 import SETS, library, missing

UNAVAILABLE = missing()

pytestmark = pytest.mark.skipif(bool(UNAVAILABLE), reason=UNAVAILABLE or "-")


@cache
def dot_kernels(instruction_set: str) -> DotKernels:
    return DotKernels(library("dot", instruction_set), instruction_set, tiles=False)


@cache
def natives() -> Natives:
    """Products are the same text but for two instructions; of what maps and reduces there is one text alone."""
    return Natives(layout.NodeKernels(library("nodes", "vnni"), "vnni"), dot_kernels("vnni"))


@pytest.mark.gate_takes(6)
@pytest.mark.parametrize(("pa", "pb"), kernel_checks.PRECISIONS, ids=lambda bits: str(bits))
@pytest.mark.parametrize("instruction_set", list(SETS))
def test_products_are_exact_up_to_the_last_term(instruction_set: str, pa: int, pb: int):
    kernel_checks.products_are_exact_up_to_the_last_term(dot_kernels(instruction_set), pa, pb)


@pytest.mark.parametrize("instruction_set", list(SETS))
def test_operands_are_read_through_any_view(instruction_set: str):
    kernel_checks.operands_are_read_through_any_view(dot_kernels(instruction_set))


def test_bytes_are_multiplied_four_at_a_time():
    assert dot_kernels("vnni").product_variant(8, 8, 64) == "int8x1/vnni"
    assert dot_kernels("avx512").product_variant(8, 8, 64) == "int16x1/avx512"


def test_every_operation_and_reduction_agrees_on_edges():
    kernel_checks.every_operation_and_reduction_agrees_on_edges(natives())


def test_random_programs_end_as_on_stock_torch(monkeypatch: pytest.MonkeyPatch):
    kernel_checks.random_programs_end_as_on_stock_torch(natives(), monkeypatch, 120)


@pytest.mark.parametrize("variant", [-1, 0, 2], ids=["fastest", "lanes", "plain C"])
def test_digests_are_those_of_hashlib(variant: int):
    assert sha256.failure(sha256.Hasher(library("sha256", "vnni"), "vnni", variant=variant)) == ""
