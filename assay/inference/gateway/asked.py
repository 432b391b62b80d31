"""What a completion is asked with, in OpenAI's words; what would change an answer and is not offered is refused."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from assay.inference.sampling import MAX_TEMPERATURE, UNIT, SamplingTerms

MAX_PROMPT: Annotated[int, "characters, or tokens"] = 1 << 16


def _whole(value: Any) -> Any:
    """6.0 is an integer to whoever wrote the schema, and to languages whose numbers are doubles."""
    return int(value) if type(value) is float and value.is_integer() else value


def _no_truth(value: Any) -> Any:
    """`false` is not 0 to anybody but Python."""
    if isinstance(value, bool):
        raise ValueError("Input should be a number")
    return value


def _truth(value: Any) -> Any:
    """And 0 is not `false`."""
    if not isinstance(value, bool):
        raise ValueError("Input should be true or false")
    return value


WHOLE = BeforeValidator(_whole)
Token = Annotated[int, Field(ge=0, lt=(1 << 32) - 1), WHOLE]
One = Annotated[Literal[1], BeforeValidator(_no_truth)]
Zero = Annotated[Literal[0], BeforeValidator(_no_truth)]
Seed = Annotated[int, Field(ge=0, lt=1 << 64), WHOLE]


class CompletionAsked(BaseModel):
    """The body of a completion. top_k: of how many tokens at most, 0 for all; end: a token that ends the answer."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: Annotated[str, Field(max_length=256)]
    prompt: (
        Annotated[str, Field(min_length=1, max_length=MAX_PROMPT)]
        | Annotated[list[Token], Field(min_length=1, max_length=MAX_PROMPT)]
    )
    max_tokens: Annotated[int, Field(ge=1, le=1 << 16), WHOLE] = 16
    temperature: Annotated[float, Field(ge=0, le=MAX_TEMPERATURE / UNIT, allow_inf_nan=False)] = 1.0
    seed: Seed | None = None
    top_k: Annotated[int, Field(ge=0, lt=1 << 31), WHOLE] = 0
    end: Token | None = None
    stream: bool = False
    user: Annotated[str, Field(max_length=256)] | None = None

    n: One = 1
    best_of: One = 1
    top_p: One = 1
    echo: Annotated[Literal[False], BeforeValidator(_truth)] = False
    logprobs: None = None
    stop: None = None
    suffix: None = None
    logit_bias: None = None
    stream_options: None = None
    presence_penalty: Zero = 0
    frequency_penalty: Zero = 0

    @property
    def terms(self) -> SamplingTerms:
        """How the answer is drawn; where no seed is given, from one that nobody chose."""
        seed = secrets.randbits(64) if self.seed is None else self.seed
        return SamplingTerms(seed, round(self.temperature * UNIT), self.top_k)
