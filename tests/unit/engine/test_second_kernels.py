"""What computes a claim a second time: other instructions, the same bits, and in time for a call."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from assay.engine.runtime import second_kernels
from assay.engine.runtime.executor import Executor, KernelVariant, usable_natives
from assay.engine.runtime.fused import selftest
from assay.engine.runtime.native.library import allowed_instruction_sets, processor_flags
from assay.engine.runtime.second_kernels import NARROW, second_executor, second_natives, second_to
from assay.engine.runtime.values.state_io import from_lists_of_bytes, input_specs, to_lists_of_bytes
from assay.training.rounds import TorchCompute
from tests.harness.engine.fused_instruction_sets import needs_kernels
from tests.harness.programs import mlp_step

PRESENT = allowed_instruction_sets({}, processor_flags())


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    second_to.cache_clear()
    yield
    second_to.cache_clear()


@needs_kernels
@pytest.mark.parametrize("usual", PRESENT)
def test_a_second_calculation_takes_narrower_instructions_for_the_same_bits(usual: str) -> None:
    step = mlp_step()
    state = from_lists_of_bytes(input_specs(step.program), step.state)
    wanted = Executor(step.program, variant=KernelVariant.STOCK).run(state)
    natives = second_to(usual)
    later = [name for name in PRESENT[PRESENT.index(usual) + 1 :] if name in NARROW]
    assert (None if natives is None else natives.nodes.instruction_set) == next(iter(later), None)
    if natives is not None:
        found = Executor(step.program, variant=KernelVariant.FUSED, natives=natives).run(state)
        assert to_lists_of_bytes(found) == to_lists_of_bytes(wanted)


@needs_kernels
def test_kernels_that_fail_their_self_test_confirm_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, _ = usable_natives()
    assert usual is not None
    monkeypatch.setattr(selftest, "failure", lambda *_: "it differs")
    assert second_to(usual.nodes.instruction_set) is None
    assert second_executor(mlp_step().program).variant is KernelVariant.STOCK


@needs_kernels
def test_beside_a_gpu_the_cpus_best_kernels_compute_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_kernels, "usual_variant", lambda: KernelVariant.TRITON)
    assert second_natives() is usable_natives()[0]
    assert second_executor(mlp_step().program).variant is KernelVariant.FUSED


@needs_kernels
@pytest.mark.parametrize(("threads", "second"), [(1, 2), (2, 1), (4, 3)])
def test_a_second_calculation_has_another_number_of_threads(
    threads: int, second: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All but one: on a machine of many cores one thread would take many times as long."""
    had: list[int] = []
    step, usual = mlp_step(), torch.get_num_threads()

    def made(program: object) -> Executor:
        had.append(torch.get_num_threads())
        return second_executor(step.program)

    monkeypatch.setattr("assay.training.rounds.second_executor", made)
    torch.set_num_threads(threads)
    try:
        assert TorchCompute().recheck(step.program, step.state) == TorchCompute().run(step.program, step.state)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(usual)
    assert had == [second]
