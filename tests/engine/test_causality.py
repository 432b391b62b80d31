"""Sums over time do not leak: editing token t changes no bit before t, and a prefix alone gives the same bits."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from assay.engine.capture import capture
from assay.engine.executor import Executor
from assay.engine.lowering.registry import FIXED8, FIXED14, Precision
from assay.protocol.nodes import Dot
from assay.training.initialize import initialize
from assay.training.model import CharacterGPT
from assay.training.presets import Preset
from tests.engine.helpers import bits_equal

SIZE = Preset("causal", layers=2, width=32, heads=4, context=24, batch=2, inner_steps=1)


def logits_of(precision: Precision, length: int) -> tuple[Executor, list[Tensor]]:
    """The captured forward pass on token rows of this length, and parameters with strong, uneven activations."""
    model = CharacterGPT(50, SIZE.layers, SIZE.width, SIZE.heads, SIZE.context)
    parameters = [p * 3.0 if p.ndim > 1 else p for p in initialize(model, 9)]
    names = [name for name, _ in model.named_parameters()]

    def forward(ps, tokens):
        return ([functional_call(model, dict(zip(names, ps, strict=True)), (tokens[0],))],)

    tokens = torch.zeros(SIZE.batch, length, dtype=torch.int32)
    return Executor(capture(forward, [parameters, [tokens]], precision).program), parameters


def random_tokens(seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 50, (SIZE.batch, SIZE.context), generator=generator, dtype=torch.int32)


@pytest.mark.parametrize("precision", [FIXED14, FIXED8], ids=["fixed14", "fixed8"])
def test_editing_a_token_changes_no_earlier_output_bit(precision: Precision):
    executor, parameters = logits_of(precision, SIZE.context)
    for seed in range(3):
        tokens = random_tokens(seed)
        (before,) = executor.run([parameters, [tokens]])[0]
        for t in (1, 7, 12, SIZE.context - 1):
            edited = tokens.clone()
            edited[:, t:] = (edited[:, t:] + 1 + seed) % 50
            (after,) = executor.run([parameters, [edited]])[0]
            assert bits_equal(before[:, :t], after[:, :t])
            assert not bits_equal(before[:, t:], after[:, t:])


def test_a_prefix_alone_gives_the_bits_that_it_gives_inside_a_longer_text():
    whole, parameters = logits_of(FIXED14, SIZE.context)
    tokens = random_tokens(4)
    (long,) = whole.run([parameters, [tokens]])[0]
    for length in (1, 5, 16):
        short, _ = logits_of(FIXED14, length)
        (alone,) = short.run([parameters, [tokens[:, :length].contiguous()]])[0]
        assert bits_equal(alone, long[:, :length].contiguous())


def test_a_token_that_is_not_finite_spoils_no_earlier_output():
    executor, parameters = logits_of(FIXED14, SIZE.context)
    tokens = random_tokens(5) % 49
    (before,) = executor.run([parameters, [tokens]])[0]
    poisoned = [p.clone() for p in parameters]
    poisoned[1][49, 3] = float("inf")  # the embedding of a token that only the edited text uses
    edited = tokens.clone()
    edited[:, 10] = 49
    (after,) = executor.run([poisoned, [edited]])[0]
    assert bits_equal(before[:, :10], after[:, :10])
    assert bool(after[:, 10:].isnan().all())


def test_the_exponents_of_what_attention_mixes_are_folded_into_its_weights():
    executor, _ = logits_of(FIXED14, SIZE.context)
    program = executor.program
    dots = [n for n in program.nodes if isinstance(n, Dot)]
    folded = [n for n in dots if program.nodes[n.exponent_b.node].family.name == "CONST"]
    assert len(folded) == SIZE.layers
    assert {(n.precision_a, n.precision_b) for n in folded} == {(22, 14)}
