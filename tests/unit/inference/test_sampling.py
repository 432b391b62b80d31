"""Tokens are drawn by integers: what the formula says, in a total order, from the seed alone."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal, localcontext
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from assay.inference.sampling import (
    GREEDY,
    MAX_TEMPERATURE,
    UNIT,
    SamplingTerms,
    draw,
    powers_of_two,
    random_bits,
    weights,
)
from assay.protocol.arithmetic.philox import random_word
from assay.protocol.errors import NumericsError, UsageError

LOGITS = st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=40)


def row(*values: float) -> Tensor:
    return torch.tensor([values], dtype=torch.float32)


def test_the_tables_are_powers_of_two_to_the_nearest() -> None:
    with localcontext() as exact:
        exact.prec = 50
        for table, bits in zip(powers_of_two(), (10, 20), strict=True):
            for i, found in enumerate(table.tolist()):
                assert found == int((Decimal(2) ** (31 - Decimal(i) / 2**bits)).to_integral_value())


@given(LOGITS, st.integers(1, MAX_TEMPERATURE))
def test_weights_never_overflow_and_fall_with_the_logit(values: list[float], temperature: int) -> None:
    found = weights(row(*values), [SamplingTerms(temperature=temperature)])[0].tolist()
    assert max(found) == 1 << 31 and min(found) >= 0
    order = sorted(range(len(values)), key=lambda k: values[k])
    assert all(found[a] <= found[b] for a, b in pairwise(order))


@pytest.mark.parametrize("temperature", [0.25, 1.0, 3.0], ids=["cold", "plain", "hot"])
def test_weights_are_those_of_a_softmax(temperature: float) -> None:
    logits = torch.randn(1, 60, generator=torch.Generator().manual_seed(1)) * 4.0
    found = weights(logits, [SamplingTerms(temperature=int(temperature * UNIT))]).to(torch.float64)
    assert torch.allclose(found / found.sum(), torch.softmax(logits.double() / temperature, 1), rtol=1e-4, atol=1e-9)


def test_the_first_of_equal_logits_goes_before_the_others() -> None:
    assert draw(row(1.0, 2.0, 2.0, 2.0), [GREEDY], [0]) == [1]
    assert draw(row(-0.0, 0.0), [GREEDY], [0]) == [0]
    assert weights(row(2.0, 5.0, 5.0, 5.0), [SamplingTerms(top_k=2)])[0].tolist() == [0, 1 << 31, 1 << 31, 0]


def test_infinite_logits_are_the_largest_and_the_smallest() -> None:
    infinite = float("inf")
    found = weights(row(infinite, 0.0, -infinite), [SamplingTerms(temperature=MAX_TEMPERATURE)])
    assert found.tolist() == [[1 << 31, 0, 0]]
    assert draw(row(-infinite, -infinite), [GREEDY], [0]) == [0]


def test_logits_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(NumericsError) as refused:
        draw(row(0.0, float("nan")), [SamplingTerms()], [0])
    assert refused.value.code == "LogitsNotFinite"


def test_draws_follow_the_weights() -> None:
    logits = row(0.0, 1.0, 2.0, -3.0)
    counts = Counter(draw(logits, [SamplingTerms(seed=7)], [k])[0] for k in range(4000))
    for token, share in enumerate(torch.softmax(logits[0], 0).tolist()):
        assert abs(counts[token] / 4000 - share) < 0.03


def test_random_bits_are_two_words_of_the_seed_at_a_place() -> None:
    seed, place = 0x0123456789ABCDEF, 5
    words = [random_word(k, 0, (place, 0), (seed & 0xFFFFFFFF, seed >> 32)) for k in (0, 1)]
    assert random_bits(seed, place) == words[0] << 32 | words[1]
    assert len({random_bits(s, p) for s in range(20) for p in range(20)}) == 400


def test_a_row_is_drawn_alike_beside_any_others() -> None:
    logits = torch.randn(8, 40, generator=torch.Generator().manual_seed(2)) * 3.0
    terms = [SamplingTerms(seed=k, temperature=k * 300_000, top_k=k % 3 * 5) for k in range(8)]
    together = draw(logits, terms, list(range(8)))
    assert together == [draw(logits[k : k + 1], [terms[k]], [k])[0] for k in range(8)]


@pytest.mark.parametrize(
    "terms",
    [{"seed": 1 << 64}, {"seed": -1}, {"temperature": MAX_TEMPERATURE + 1}, {"top_k": -1}],
    ids=["seed-wide", "seed-negative", "hot", "top-k"],
)
def test_terms_beyond_their_bounds_are_refused(terms: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        SamplingTerms(**terms)
