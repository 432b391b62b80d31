"""Both sides of `assay bench inference` continue the same texts."""

from __future__ import annotations

import pytest
import torch

from assay.bench.inference import SHAPES, EagerText, ExactText, document, measure
from assay.datasets.tokenizers import Characters
from assay.inference.model import gpt
from assay.protocol.errors import UsageError
from assay.training.initialize import initialize


@pytest.mark.long
def test_both_sides_give_the_same_likeliest_tokens() -> None:
    shape = SHAPES["gpt-2x96"]
    letters = Characters("".join(map(chr, range(32, 32 + shape.vocabulary))))
    model = gpt(shape, [p * 3.0 if p.ndim > 1 else p for p in initialize(shape.module(), 1)], letters)
    prompts = torch.randint(shape.vocabulary, (2, 9), generator=torch.Generator().manual_seed(1))
    exact, eager = ExactText(model, prompts), EagerText(model, prompts)
    found = exact.read()
    assert found == eager.read()
    for _ in range(6):
        following = exact.following(found)
        assert following == eager.following(found)
        found = following
    assert exact.read() == eager.read()


@pytest.mark.long
def test_a_row_says_what_both_sides_took() -> None:
    (row,) = document(measure("gpt-2x96", "fixed14", [2], 0.0))["rows"]
    assert row["rounds"] == 3 and row["token_ratio"] > 0 and row["prompt_ratio"] > 0
    assert (row["prompt_tokens"], row["tokens"]) == (16, 16)


def test_a_model_that_nobody_measures_is_refused() -> None:
    with pytest.raises(UsageError):
        measure("gpt-5", "fixed14", [1], 0.0)
