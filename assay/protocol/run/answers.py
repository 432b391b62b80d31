"""Answers as claims: what a bonded gateway's statement says of one token, as X and Y of the answer program.

X is (parameters, (tokens i32 [1, W], length i32 [1]), (rates i64 [2], draw i32 [4])), Y is ((bool [1])). The contract
builds both from the statement (AnswerStates.sol, Gateways.sol). Source: docs/adr/0067-bonded-gateways.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.protocol import abi
from assay.protocol.arithmetic.philox import philox4x32
from assay.protocol.arithmetic.words import from_ints, to_bytes
from assay.protocol.digests import ZERO, keccak, state_digest
from assay.protocol.errors import refuse
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.trees.state import list_root
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Address, Digest, DType, Wei

MAX_TOKENS: Final = 4000
"""Tokens of prompt and answer together of which a claim is built: what nodes' pools and a transaction's gas take."""

UNIT: Final = 1_000_000
"""A temperature of 1."""

MAX_TEMPERATURE: Final = 100 * UNIT
LOG2_E: Final = 1_549_082_005
NO_LIMIT: Final = (1 << 31) - 1
_MASK: Final = (1 << 32) - 1

RATES: Final = TensorSpec(DType.I64, (2,))
DRAW: Final = TensorSpec(DType.I32, (4,))
LENGTH: Final = TensorSpec(DType.I32, (1,))
HOLDS: Final = TensorSpec(DType.BOOL, (1,))


@dataclass(frozen=True, slots=True)
class AnswerTerms:
    """What gateways of a model answer for; equal to `AnswerTerms` in IGateways.sol.

    answer: the answer program; forward: root of the forward program that statements name; window: W; vocabulary: V;
    bond: of each gateway.
    """

    answer: ProgramRef
    forward: Digest
    window: int
    vocabulary: int
    bond: Wei


@dataclass(frozen=True, slots=True)
class SaidAnswer:
    """What of a statement its claims follow from; equal to `SaidAnswer` in IGateways.sol. temperature: millionths."""

    model: Digest
    tokenizer: Digest
    prompt: tuple[int, ...]
    seed: int
    temperature: int
    top_k: int
    most: int
    end: int
    answer: tuple[int, ...]


AnswerInputs = tuple[tuple[bytes, bytes], tuple[bytes, bytes]]
"""The bytes of the lists of X behind the parameters."""


def answer_inputs(said: SaidAnswer, place: int, window: int) -> AnswerInputs:
    """Lists 1 and 2 of X: the window in front of token `place`, and how it is drawn.

    Greedy is the draw from one token: the first of the largest.
    """
    text = (*said.prompt, *said.answer[:place])[-window:]
    rate = LOG2_E * UNIT // (said.temperature or UNIT)
    most = (32 << 50) // rate + 1
    limit = 1 if said.temperature == 0 else min(said.top_k, NO_LIMIT) or NO_LIMIT
    seed = (said.seed & _MASK, said.seed >> 32)
    upper, lower, _, _ = philox4x32((0, 0, place & _MASK, place >> 32), seed)
    token = said.answer[place] if place < len(said.answer) else 0
    tokens = _words(DType.I32, [*text, *[0] * (window - len(text))])
    return (
        (tokens, _words(DType.I32, [len(text)])),
        (_words(DType.I64, [rate, most]), _words(DType.I32, [limit, token, upper, lower])),
    )


def answer_start(model: Digest, inputs: AnswerInputs, window: int) -> Digest:
    """The root of X. model: of the list of parameters."""
    specs = (TensorSpec(DType.I32, (1, window)), LENGTH), (RATES, DRAW)
    lists = [
        list_root([tensor_root(spec, data) for spec, data in zip(part, given, strict=True)])
        for part, given in zip(specs, inputs, strict=True)
    ]
    return state_digest((model, *lists))


def verdict_root(holds: bool) -> Digest:
    """The root of Y where the token is what the model says, or is not."""
    return state_digest((list_root([tensor_root(HOLDS, bytes([holds]))]),))


HELD: Final = verdict_root(True)
REFUTED: Final = verdict_root(False)


def said_end(said: SaidAnswer, place: int, vocabulary: int) -> Digest:
    """The root of Y that a statement claims for token `place`: `HELD`, or zero, in which nothing ends.

    Zero is claimed by a statement that contradicts itself: no prompt, a token that the model has not, an answer that
    goes on behind its end or beyond the most, or one that stops before (`place` is the number of its tokens then).
    Raises RejectedError (NothingSaid) for a place behind an answer that ends where it should.
    """
    count = len(said.answer)
    ends = count == said.most or (count > 0 and said.answer[-1] == said.end)
    if place > count or (place == count and ends):
        raise refuse("NothingSaid", place=place, count=count)
    read = (*said.prompt, *said.answer[: place + 1])
    odd = (
        place == count
        or place >= said.most
        or not said.prompt
        or said.end in said.answer[:place]
        or said.temperature > MAX_TEMPERATURE
        or any(t >= vocabulary for t in read)
    )
    return ZERO if odd else HELD


def answer_claim(digest: Digest, gateway: Address, place: int) -> Digest:
    """What names the claim of a token of a statement that a gateway signed: K(digest, gateway, place)."""
    return keccak(abi.bytes32(digest) + abi.address(gateway) + abi.uint(place))


def _words(dtype: DType, values: Sequence[int]) -> bytes:
    return to_bytes(dtype, from_ints(dtype, values))
