"""Training steps of a captured GPT end in one state: by fused kernels on every instruction set, and by stock torch."""

from __future__ import annotations

from functools import cache

import pytest
import torch

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.native.library import native
from assay.engine.runtime.values import state_io
from assay.protocol.program.program import Program
from assay.training.data import corpus_from_text, pydoc_text
from assay.training.initialize import initialize
from assay.training.presets import preset
from assay.training.programs import training_program
from assay.training.state import Scalars, TensorLists
from assay.training.step import initial_state, preset_step
from tests.harness.engine.fused_instruction_sets import PRESENT, at_instruction_set, needs_kernels
from tests.harness.engine.helpers import same_lists

pytestmark = needs_kernels

STEPS = 4


@cache
def training(name: str) -> tuple[Program, TensorLists]:
    """The program of a preset's step and a state to start from."""
    chosen = preset(name)
    corpus = corpus_from_text(pydoc_text()[:20_000])
    step = preset_step(chosen, len(corpus.vocabulary))
    scalars = Scalars.of(corpus.train, learning_rate=3e-3, key=(3, 4))
    return training_program(chosen, corpus), initial_state(step, initialize(step.module, 1), scalars)


@cache
def expected(name: str) -> TensorLists:
    """The state after some steps by stock torch."""
    program, state = training(name)
    return Executor(program, variant=KernelVariant.STOCK).repeat(state, STEPS)


@pytest.mark.gate_takes(4)
@pytest.mark.parametrize("instruction_set", PRESENT)
@pytest.mark.parametrize("name", ["tiny", "demo"])
def test_steps_end_in_the_same_state_on_every_instruction_set(name: str, instruction_set: str):
    program, state = training(name)
    with at_instruction_set(instruction_set):
        executor = Executor(program, variant=KernelVariant.FUSED)
        assert executor.fallbacks == {}
        assert same_lists(executor.repeat(state, STEPS), expected(name))


@pytest.mark.parametrize("threads", [2, 3])
def test_steps_end_in_the_same_state_on_several_threads(threads: int):
    program, state = training("demo")
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert same_lists(Executor(program, variant=KernelVariant.FUSED).repeat(state, STEPS), expected("demo"))
    finally:
        torch.set_num_threads(before)


def test_instrumented_and_plain_runs_agree():
    program, state = training("tiny")
    executor = Executor(program, variant=KernelVariant.FUSED)
    instrumented = executor.run(state, lambda _, value: value)
    assert same_lists(instrumented, executor.run(state))


def test_a_state_that_is_not_finite_stays_the_same_state():
    program, state = training("tiny")
    for value in (float("nan"), float("inf"), 2.0**-140, 2.0**120):
        odd = [[t.clone() for t in part] for part in state]
        odd[0][1].view(-1)[3] = value
        odd[0][2].fill_(-0.0)
        stock, fused = (
            Executor(program, variant=variant).repeat(odd, 2) for variant in (KernelVariant.STOCK, KernelVariant.FUSED)
        )
        assert state_io.state_root(stock) == state_io.state_root(fused)


@pytest.mark.skipif(native("canary").handle is None, reason=native("canary").reason or "-")
def test_kernels_round_as_usual_on_a_thread_that_flushes_subnormals():
    """The executor refuses such a thread; the kernels beneath it do not depend on it."""
    program, state = training("tiny")
    executor = Executor(program, variant=KernelVariant.FUSED)
    assert executor._plan is not None
    tiny = [[t * 2.0**-130 if t.dtype is torch.float32 else t for t in part] for part in state]
    flat = [t for part in tiny for t in part]
    usual = executor._plan.run(flat)
    torch.set_flush_denormal(True)
    try:
        flushed = executor._plan.run(flat)
    finally:
        torch.set_flush_denormal(False)
    assert same_lists([usual], [flushed])
