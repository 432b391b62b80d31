"""An answer: tokens drawn one after another behind a prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from assay.inference.model import LanguageModel
from assay.inference.rows import TextRows
from assay.inference.sampling import SamplingTerms, draw

NO_END: Final = (1 << 32) - 1
"""In place of the token that ends an answer: none does."""


def answered(
    rows: TextRows, prompt: Sequence[int], terms: SamplingTerms, most: int, end: int = NO_END
) -> Iterator[int]:
    """The tokens of an answer: `most`, or up to and with `end`. Raises NumericsError (LogitsNotFinite)."""
    if most < 1:
        return
    row, logits_V = rows.admit(prompt)
    try:
        for place in range(most):
            (token,) = draw(logits_V[None], [terms], [place])
            yield token
            if token == end or place + 1 == most:
                return
            (logits_V,) = rows.advance([row], [token])
    finally:
        rows.release(row)


def generate(
    model: LanguageModel, rows: TextRows, prompt: Sequence[int], terms: SamplingTerms, most: int, end: int = NO_END
) -> list[int]:
    """All of them. Raises UserError (EmptyPrompt, PromptTooLong, UnknownToken) and the above."""
    model.check_tokens(prompt)
    return list(answered(rows, prompt, terms, most, end))
