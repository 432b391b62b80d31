"""Sums over time do not leak: editing token t changes no bit before t, and a prefix alone gives the same bits."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from assay.engine.compiler.capture import Captured, capture
from assay.engine.compiler.lowering.registry import FIXED8, FIXED14, Precision, Treatment
from assay.engine.runtime.executor import Executor
from assay.protocol.program.nodes import Dot
from assay.training.initialize import initialize
from assay.training.model import CharacterGPT
from assay.training.presets import Preset
from tests.harness.engine.helpers import bits_equal

SIZE = Preset("causal", layers=2, width=32, heads=4, context=24, batch=2, inner_steps=1)


COLUMNS = (3, 17)
"""Which calibration may take for outliers, modulo the axis."""


def treatments_of(found: Captured) -> dict[int, Treatment]:
    """Outlier columns apart in every product where a weight names them, and more bits elsewhere."""
    chosen = {}
    for p in (p for own in found.products.values() for p in own):
        axis = p.cuttable[-1] if p.cuttable else 0
        columns = tuple(sorted(c % p.axes[axis] for c in COLUMNS)) if p.cuttable else ()
        chosen[p.number] = Treatment(bits_a=0 if columns else 17, axis=axis, columns=columns)
    assert any(t.columns for t in chosen.values())
    return chosen


def logits_of(precision: Precision, length: int, *, outliers: bool = False) -> tuple[Executor, list[Tensor]]:
    """The captured forward pass on token rows of this length, and parameters with strong, uneven activations."""
    model = CharacterGPT(50, SIZE.layers, SIZE.width, SIZE.heads, SIZE.context)
    parameters = [p * 3.0 if p.ndim > 1 else p for p in initialize(model, 9)]
    names = [name for name, _ in model.named_parameters()]

    def forward(ps, tokens):
        return ([functional_call(model, dict(zip(names, ps, strict=True)), (tokens[0],))],)

    tokens = torch.zeros(SIZE.batch, length, dtype=torch.int32)
    found = capture(forward, [parameters, [tokens]], precision)
    if outliers:
        found = capture(forward, [parameters, [tokens]], precision, treatments_of(found))
    return Executor(found.program), parameters


def random_tokens(seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 50, (SIZE.batch, SIZE.context), generator=generator, dtype=torch.int32)


VARIANTS = pytest.mark.parametrize(
    ("precision", "outliers"),
    [(FIXED14, False), (FIXED8, False), (FIXED14, True)],
    ids=["fixed14", "fixed8", "outliers"],
)


@VARIANTS
def test_editing_a_token_changes_no_earlier_output_bit(precision: Precision, outliers: bool):
    executor, parameters = logits_of(precision, SIZE.context, outliers=outliers)
    for seed in range(3):
        tokens = random_tokens(seed)
        (before,) = executor.run([parameters, [tokens]])[0]
        for t in (1, 7, 12, SIZE.context - 1):
            edited = tokens.clone()
            edited[:, t:] = (edited[:, t:] + 1 + seed) % 50
            (after,) = executor.run([parameters, [edited]])[0]
            assert bits_equal(before[:, :t], after[:, :t])
            assert not bits_equal(before[:, t:], after[:, t:])


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("outliers", [False, True], ids=["plain", "outliers"])
def test_a_prefix_alone_gives_the_bits_that_it_gives_inside_a_longer_text(outliers: bool):
    whole, parameters = logits_of(FIXED14, SIZE.context, outliers=outliers)
    tokens = random_tokens(4)
    (long,) = whole.run([parameters, [tokens]])[0]
    for length in (1, 5, 16):
        short, _ = logits_of(FIXED14, length, outliers=outliers)
        (alone,) = short.run([parameters, [tokens[:, :length].contiguous()]])[0]
        assert bits_equal(alone, long[:, :length].contiguous())


class CachedDecoder(nn.Module):
    """The same model on one token, with the keys and values of earlier ones kept; no mask, since nothing is ahead."""

    def __init__(self, model: CharacterGPT) -> None:
        super().__init__()
        self.model = model

    def forward(self, token_B1: Tensor, past: list[Tensor]) -> tuple[Tensor, ...]:
        """Logits f32 [B, 1, V], then keys and values [B, N, t + 1, D] per block."""
        model, now = self.model, []
        t = past[0].shape[2] if past else 0
        x_B1C = model.token(token_B1) + model.position[t : t + 1]
        for number, block in enumerate(model.blocks):
            B, T, C = x_B1C.shape
            heads = block.attention.heads
            parts = block.attention.qkv(block.norm_1(x_B1C)).split(C, dim=2)
            q, k, v = (part.view(B, T, heads, C // heads).transpose(1, 2) for part in parts)
            if past:
                k, v = torch.cat([past[2 * number], k], 2), torch.cat([past[2 * number + 1], v], 2)
            now += [k, v]
            weights = torch.softmax((q @ k.transpose(2, 3)) * (1.0 / math.sqrt(C // heads)), dim=3)
            x_B1C = x_B1C + block.attention.out((weights @ v).transpose(1, 2).reshape(B, T, C))
            x_B1C = x_B1C + block.down(F.gelu(block.up(block.norm_2(x_B1C)), approximate="tanh"))
        return model.head(model.norm(x_B1C)), *now


@VARIANTS
@pytest.mark.gate_takes(1)
def test_decoding_token_by_token_gives_the_bits_of_the_whole_text(precision: Precision, outliers: bool):
    length = 6
    whole, parameters = logits_of(precision, length, outliers=outliers)
    tokens = random_tokens(6)[:, :length].contiguous()
    (expected,) = whole.run([parameters, [tokens]])[0]
    decoder = CachedDecoder(CharacterGPT(50, SIZE.layers, SIZE.width, SIZE.heads, SIZE.context))
    names = [name for name, _ in decoder.named_parameters()]

    def one(ps, token, past):
        return ([*functional_call(decoder, dict(zip(names, ps, strict=True)), (token[0], past))],)

    past: list[Tensor] = []
    treatments: dict[int, Treatment] = {}
    for t in range(length):
        token = tokens[:, t : t + 1].contiguous()
        lists = [parameters, [token], past]
        if outliers and t == 0:
            treatments = treatments_of(capture(one, lists, precision))
        executor = Executor(capture(one, lists, precision, treatments).program)
        logits, *past = executor.run([parameters, [token], past])[0]
        assert bits_equal(logits, expected[:, t : t + 1].contiguous()), t


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
