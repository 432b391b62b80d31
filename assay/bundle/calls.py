"""Calldata of the calls that a dispute consists of, read by the signatures of the contracts' bindings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError

from assay.bundle.errors import BundleMalformed
from assay.protocol.game.moves import AnyMove
from assay.protocol.game.openings import Opening
from assay.protocol.rounds.duty_types import MAX_CAPACITY
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.bindings.challenges import ChallengesContract
from assay_ledger.bindings.commitments import CommitmentsContract
from assay_ledger.bindings.duties import DutiesContract
from assay_ledger.bindings.game import GameContract
from assay_ledger.bindings.generations import GenerationsContract
from assay_ledger.contract import Contract, selector, types_of

MAX_OPENINGS: Final = 16
"""Of one move: a map reads at most 8 operands."""

OPENINGS: Final = "(uint8,uint64[],bytes,bytes32[],bytes32[])[]"

MOVES: Final[Mapping[str, type[AnyMove]]] = {move.kind.function: move for move in get_args(AnyMove)}
"""Each move by its function."""

CALLS: Final[Mapping[str, tuple[type[Contract], frozenset[str]]]] = {
    "game": (GameContract, frozenset({*MOVES, "timeout", "defer", "challenge"})),
    "challenges": (ChallengesContract, frozenset({"revealChallenge"})),
    "commitments": (CommitmentsContract, frozenset({"commit"})),
    "generations": (GenerationsContract, frozenset({"open", "back"})),
    "duties": (DutiesContract, frozenset({"open"})),
}
"""The functions that have a place in a dispute, by the contract of the run that has them."""

SIGNATURES: Final[Mapping[tuple[str, str], str]] = {
    (place, name): signature
    for place, (contract, names) in CALLS.items()
    for signature in contract.CALLS
    if (name := signature.partition("(")[0]) in names
}
"""The signature of each of them by contract and name."""

_PLACES: Final = {selector(signature): place for place, signature in SIGNATURES.items()}

_MOST: Final = {OPENINGS: MAX_OPENINGS, types_of(SIGNATURES["duties", "open"])[-1]: MAX_CAPACITY}
"""How many entries an array of structs may have."""


@dataclass(frozen=True, slots=True)
class DecodedCall:
    """A call: the contract that has the function, its name and arguments; bytes32 as bytes, addresses as text."""

    contract: str
    name: str
    arguments: tuple[Any, ...]


def decode_call(data: bytes) -> DecodedCall:
    """The call in some calldata. Raises BundleMalformed for a function that has no place in a dispute."""
    place = _PLACES.get(data[:4])
    if place is None:
        raise BundleMalformed(f"The function 0x{data[:4].hex()} has no place in a dispute.")
    types, body = types_of(SIGNATURES[place]), data[4:]
    # Many entries may point at the same bytes: without a bound a small file takes gigabytes.
    for k, kind in enumerate(types):
        if kind in _MOST and _length_at(body, k) > _MOST[kind]:
            raise BundleMalformed(f"More than {_MOST[kind]} openings or results in one call.")
    try:
        # Not strict: Solidity ignores what stands in the padding, and so must every reader of the same move.
        return DecodedCall(*place, tuple(decode(types, body, strict=False)))
    except (DecodingError, OverflowError, ValueError) as error:
        raise BundleMalformed(f"The calldata of {place[1]} cannot be decoded ({type(error).__name__}).") from error


def _length_at(body: bytes, k: int) -> int:
    """The length of the array that argument k points to; 0 where there is none, which `decode` then refuses."""
    offset = int.from_bytes(body[32 * k : 32 * k + 32], "big")
    return int.from_bytes(body[offset : offset + 32], "big") if offset < len(body) else 0


def move_of(call: DecodedCall) -> tuple[int, AnyMove] | None:
    """The game's number and the move that a call makes; None for other functions."""
    kind = MOVES.get(call.name) if call.contract == "game" else None
    if kind is None:
        return None
    types = types_of(SIGNATURES[call.contract, call.name])
    game_id, *arguments = (_value(a, t) for a, t in zip(call.arguments, types, strict=True))
    return game_id, kind(*arguments)


def _value(argument: Any, kind: str) -> Any:
    if kind == OPENINGS:
        return tuple(
            Opening(dtype, tuple(dims), bytes(leaf), _digests(path), _digests(prefix))
            for dtype, dims, leaf, path, prefix in argument
        )
    if kind == "bytes32[]":
        return _digests(argument)
    return tuple(argument) if kind == "int256[]" else argument


def _digests(values: Any) -> tuple[Digest, ...]:
    return tuple(Digest(bytes(v)) for v in values)


def ref_of(value: Any) -> ClaimRef:
    """A claim reference from its decoded tuple. Raises BundleMalformed for an unknown kind."""
    kind, round_, seat, duty, party, outer_root = value
    if kind not in ClaimKind._value2member_map_:
        raise BundleMalformed(f"Claims of kind {kind} are unknown.")
    where = Address(bytes.fromhex(str(party)[2:]))
    return ClaimRef(ClaimKind(kind), Round(round_), Seat(seat), duty, where, Digest(bytes(outer_root)))
