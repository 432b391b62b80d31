"""Whole models: captured steps are well formed, exact, alike in the reference, and their gradients are autograd's."""

from __future__ import annotations

import copy
from functools import cache

import pytest
import torch
from torch import Tensor

from assay.engine.compiler.capture import capture
from assay.engine.compiler.lowering.registry import FIXED14, FIXED22, Precision
from assay.engine.compiler.randomness import Randomness
from assay.engine.runtime.executor import Executor
from assay.protocol.program.nodes import Const, Dot
from assay.protocol.program.program import Program
from assay.protocol.program.wellformed import violations
from assay.training.recipes.recipe import RecipeStep
from tests.harness.engine.helpers import differing_nodes, relative
from tests.harness.engine.models import MODELS

BARS = [(FIXED14, 1e-2), (FIXED22, 1e-4)]


@cache
def stepped(name: str) -> tuple[RecipeStep, Program]:
    """The step of a model and its program."""
    torch.manual_seed(4)
    step = RecipeStep(MODELS[name]())
    return step, capture(step, step.state()).program


def flat(lists) -> list[Tensor]:
    return [t for part in lists for t in part]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.gate_takes(2)
def test_three_steps_are_exact_and_follow_eager_pytorch(name: str):
    step, program = stepped(name)
    assert violations(program) == ()
    assert program.is_iterable()
    state = step.state(key=(7, 8))
    ours, eager = Executor(program).repeat(state, 3), state
    for _ in range(3):
        eager = step(*eager)
    for slot, a, b in zip(flat(step.slot_names), flat(ours), flat(eager), strict=True):
        assert a.dtype == b.dtype, slot
        if a.is_floating_point():
            # Adam divides by the size of gradients, so that of the smallest ones even the sign is rounding.
            assert bool(((a - b).abs() <= 0.02 * b.abs().max() + 0.031).all()), slot
        else:
            assert torch.equal(a, b), slot
    moved = [not torch.equal(a, b) for a, b in zip(ours[0], state[0], strict=True)]
    trained = [p.requires_grad for p in step.recipe.module.parameters()]
    assert moved == trained if name != "muon" else sum(moved) == 1


@pytest.mark.gate_takes(2)
@pytest.mark.parametrize("name", MODELS)
def test_every_node_equals_the_reference(name: str):
    step, program = stepped(name)
    assert differing_nodes(program, step.state(key=(7, 8))) == []


def gradients_in_float64(step: RecipeStep, batch: list[Tensor], mode: Randomness) -> list[Tensor]:
    """Autograd's gradients of the mean over micro-batches, all in binary64."""
    module = copy.deepcopy(step.recipe.module).double()
    trained = [p for p in module.parameters() if p.requires_grad]
    pieces = step.recipe.micro_batches
    totals = [torch.zeros_like(p) for p in trained]
    for part in zip(*(t.chunk(pieces) for t in batch), strict=True):
        with mode:
            loss = step.recipe.loss(module, *part)
        for total, g in zip(totals, torch.autograd.grad(loss, trained), strict=True):
            total += g / pieces
    return totals


@pytest.mark.parametrize(
    ("precision", "bar"), [BARS[0], pytest.param(*BARS[1], marks=pytest.mark.long)], ids=["fixed14", "fixed22"]
)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.gate_takes(5)
def test_gradients_meet_the_bar(name: str, precision: Precision, bar: float):
    step, _ = stepped(name)
    state = step.state(key=(7, 8))
    key, now = state[2][2], state[2][0]
    buffers = state[1][len(state[1]) - len(step.buffers) :]

    def gradients(parameters, buffers, scalars):
        mode = Randomness(scalars[2], scalars[0])
        return (step.gradients(parameters, buffers, step.batch(scalars), mode)[0],)

    lists = [state[0], buffers, state[2]]
    (ours,) = Executor(capture(gradients, lists, precision).program).run(lists)
    exact = gradients_in_float64(step, step.batch(state[2]), Randomness(key, now))
    names = [n for n, p in step.recipe.module.named_parameters() if p.requires_grad]
    largest = max(float(g.norm()) for g in exact)
    # A gradient that vanishes by symmetry (a bias before a norm) has no relative error.
    found = {n: relative(a, b) for n, a, b in zip(names, ours, exact, strict=True) if float(b.norm()) > 1e-6 * largest}
    assert len(found) > len(names) // 2
    assert max(found.values()) <= bar, sorted(found.items(), key=lambda item: -item[1])[:5]


def test_tied_embeddings_are_one_parameter():
    assert stepped("gpt")[0].names == [*stepped("gpt tied")[0].names, "head.weight"]


def test_rotary_tables_are_constants_and_no_state():
    step, program = stepped("llama")
    assert not any("cos" in n or "sin" in n for n in flat(step.slot_names))
    assert any(n.spec.dims == (4, 4) for n in program.nodes if isinstance(n, Const))


def test_running_statistics_are_state():
    step, program = stepped("cnn")
    assert step.buffers == ["1.running_mean", "1.running_var", "1.num_batches_tracked"]
    _, optimizer, _ = Executor(program).repeat(step.state(), 2)
    assert int(optimizer[-1]) == 2
    assert optimizer[-1].dtype is torch.int32
    assert not torch.equal(optimizer[-3], torch.zeros(4))


def test_a_frozen_base_gets_no_products_of_its_own():
    _, whole = stepped("gpt")
    _, low_rank = stepped("lora")
    work = [sum(n.spec.numel * n.terms for n in p.nodes if isinstance(n, Dot)) for p in (whole, low_rank)]
    assert work[1] < work[0]
