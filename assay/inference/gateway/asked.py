"""What a completion is asked with, in OpenAI's words; what would change an answer and is not offered is refused."""

from __future__ import annotations

import secrets
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from assay.inference.sampling import MAX_TEMPERATURE, UNIT, SamplingTerms

MAX_PROMPT: Annotated[int, "characters, or tokens"] = 1 << 16
Token = Annotated[int, Field(ge=0, lt=(1 << 32) - 1)]
Seed = Annotated[int, Field(ge=0, lt=1 << 64)]


class CompletionAsked(BaseModel):
    """The body of a completion. top_k: of how many tokens at most, 0 for all; end: a token that ends the answer."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: Annotated[str, Field(max_length=256)]
    prompt: (
        Annotated[str, Field(min_length=1, max_length=MAX_PROMPT)]
        | Annotated[list[Token], Field(min_length=1, max_length=MAX_PROMPT)]
    )
    max_tokens: Annotated[int, Field(ge=1, le=1 << 16)] = 16
    temperature: Annotated[float, Field(ge=0, le=MAX_TEMPERATURE / UNIT, allow_inf_nan=False)] = 1.0
    seed: Seed | None = None
    top_k: Annotated[int, Field(ge=0, lt=1 << 31)] = 0
    end: Token | None = None
    stream: bool = False
    user: Annotated[str, Field(max_length=256)] | None = None

    n: Literal[1] = 1
    best_of: Literal[1] = 1
    top_p: Literal[1] = 1
    echo: Literal[False] = False
    logprobs: None = None
    stop: None = None
    suffix: None = None
    logit_bias: None = None
    stream_options: None = None
    presence_penalty: Literal[0] = 0
    frequency_penalty: Literal[0] = 0

    @property
    def terms(self) -> SamplingTerms:
        """How the answer is drawn; where no seed is given, from one that nobody chose."""
        seed = secrets.randbits(64) if self.seed is None else self.seed
        return SamplingTerms(seed, round(self.temperature * UNIT), self.top_k)
