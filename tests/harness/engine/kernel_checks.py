"""What kernels of every processor must show, whether this machine has it or one is emulated."""

from __future__ import annotations

import random

import pytest
import torch

from assay.conformance.fuzz.programs import draw
from assay.engine.runtime import executor
from assay.engine.runtime.executor import Executor, KernelVariant, Natives
from assay.engine.runtime.fused import selftest
from assay.engine.runtime.products import native_dot
from assay.engine.runtime.products.native_dot import DotKernels, NativeDot
from assay.engine.runtime.values.dtypes import to_bytes
from tests.harness.engine.helpers import tensors_of

PRECISIONS = [(14, 14), (8, 8), (22, 14), (14, 22), (15, 15), (24, 24)]


def products_are_exact_up_to_the_last_term(kernels: DotKernels, pa: int, pb: int) -> None:
    """Extremes, ramps through all digits, every exponent, odd tails, and the most terms that each way admits."""
    ways = {kernels.product_variant(pa, pb, k) for k in (1, 40)} | {kernels.on("int16").product_variant(pa, pb, 1)}
    for way in sorted(ways):
        assert native_dot.failure(kernels, pa, pb, way) == ""


def operands_are_read_through_any_view(kernels: DotKernels) -> None:
    """Random shapes, strides, offsets and fills beside the sums of stock torch, one element at a time."""
    from tests.unit.engine.test_native_dot import _by_element, groups, random_node, same

    rng = random.Random(9)
    torch.manual_seed(9)
    compared = 0
    for _ in range(40):
        program, node, values = random_node(rng)
        parts = groups(node)
        if parts is None or kernels.refuses(node.precision_a, node.precision_b, 64):
            continue
        ours = NativeDot(kernels, program, node, parts, threaded=False)
        assert same(ours.run(values), _by_element(program, node)(values)), (node, ours.name)
        compared += 1
    assert compared > 20


def every_operation_and_reduction_agrees_on_edges(natives: Natives) -> None:
    """The battery with which kernels are proven before they are used."""
    program, _ = selftest.battery()
    assert Executor(program, variant=KernelVariant.FUSED, natives=natives).fallbacks == {}
    assert (
        selftest.failure(
            lambda program, lists: Executor(program, variant=KernelVariant.STOCK).run(lists),
            lambda program, lists: Executor(program, variant=KernelVariant.FUSED, natives=natives).run(lists),
        )
        == ""
    )


def random_programs_end_as_on_stock_torch(natives: Natives, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Programs drawn by conformance, on hostile states."""
    monkeypatch.setattr(executor, "usable_natives", lambda: (natives, ""))
    for seed in range(count):
        case = draw(seed)
        inputs = tensors_of(case.program, case.state)
        ends = [
            [to_bytes(t) for part in Executor(case.program, variant=variant).run(inputs) for t in part]
            for variant in (KernelVariant.STOCK, KernelVariant.FUSED)
        ]
        assert ends[0] == ends[1], seed
