"""Kernels that are wrong anywhere are found before they are used: an honest solver's lock depends on it."""

from __future__ import annotations

import pytest
import torch

from assay.engine.runtime import executor
from assay.engine.runtime.executor import Executor, KernelVariant, Natives, usable_natives
from assay.engine.runtime.fused import layout, selftest
from assay.engine.runtime.native.library import load
from assay.engine.runtime.products import native_dot
from assay.protocol.arithmetic.scalar import CONSTANTS, Op
from assay.protocol.program.nodes import Const, Input, Output
from tests.harness.engine.fused_instruction_sets import PRESENT, needs_kernels

pytestmark = needs_kernels


def natives(instruction_set: str = PRESENT[0]) -> Natives:
    """The kernels of an instruction set, loaded anew: a test may bend them."""
    return Natives(layout.NodeKernels(load("nodes", instruction_set), instruction_set), native_dot.kernels())


def failure(found: Natives) -> str:
    return selftest.failure(
        lambda program, lists: Executor(program, variant=KernelVariant.STOCK, natives=found).run(lists),
        lambda program, lists: Executor(program, variant=KernelVariant.FUSED, natives=found).run(lists),
    )


@pytest.mark.parametrize("instruction_set", PRESENT)
def test_every_instruction_set_passes_and_computes_every_node_of_it_itself(instruction_set: str):
    found = natives(instruction_set)
    assert failure(found) == ""
    program, names = selftest.battery()
    fused = Executor(program, variant=KernelVariant.FUSED, natives=found)
    assert fused.fallbacks == {}
    assert {op.name for op in Op if op not in CONSTANTS} <= set(names)
    families = {type(node) for node in program.nodes} - {Input, Const, Output}
    assert {f.__name__ for f in families} == {"Map", "RowExp", "Max", "Sum", "Gather", "ScatterSum", "Random"}


@pytest.mark.parametrize(
    ("wrong", "right", "named"),
    [
        ("f32_add_vv", "f32_sub_vv", "F32_ADD"),
        ("f32_le_vs", "f32_lt_vs", "F32_LE"),
        ("f32_rint", "f32_floor", "F32_RINT"),
        ("i32_shr_arith_vv", "i32_shr_logical_vv", "I32_SHR_ARITH"),
        ("i64_lt", "i64_eq", "I64_LT"),
    ],
)
def test_a_kernel_that_computes_something_else_is_named(wrong: str, right: str, named: str):
    found = natives()
    found.nodes.functions[wrong] = found.nodes.functions[right]
    assert failure(found) == named


def test_wrong_kernels_are_not_used_and_the_reason_is_said(monkeypatch: pytest.MonkeyPatch):
    bent = natives().nodes
    bent.functions["f32_mul_vv"] = bent.functions["f32_add_vv"]
    monkeypatch.setattr(executor.layout, "kernels", lambda: (bent, ""))
    usable_natives.cache_clear()
    try:
        none, reason = usable_natives()
        assert none is None
        assert "fail their self-test: F32_MUL" in reason
        program, _ = selftest.battery()
        stock = Executor(program)
        assert stock.variant is KernelVariant.STOCK
        assert stock.reason == reason
    finally:
        usable_natives.cache_clear()


def test_a_wrong_bit_in_any_output_is_seen():
    program, names = selftest.battery()
    inputs = selftest.operands()
    right = Executor(program, variant=KernelVariant.STOCK).run(inputs)

    def run_with_wrong(n: int):
        found = [[t.clone() for t in right[0]]]
        flat = found[0][n].reshape(-1)
        flat[-1] = ~flat[-1] if flat.dtype is torch.bool else flat[-1] + 1 if not flat.is_floating_point() else -7.0
        return found

    for n, name in enumerate(names):
        assert selftest.failure(lambda *_: right, lambda *_, n=n: run_with_wrong(n)) == name
