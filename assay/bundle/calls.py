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
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.bindings.audit import AuditContract
from assay_ledger.bindings.game import GameContract
from assay_ledger.bindings.outers import OutersContract
from assay_ledger.bindings.rounds import RoundsContract
from assay_ledger.contract import Contract, selector, types_of

MAX_OPENINGS: Final = 16
"""Of one move: a map reads at most 8 operands."""

OPENINGS: Final = "(uint8,uint64[],bytes,bytes32[],bytes32[])[]"

MOVES: Final[Mapping[str, type[AnyMove]]] = {move.kind.function: move for move in get_args(AnyMove)}
"""Each move by its function."""

CALLS: Final[Mapping[type[Contract], frozenset[str]]] = {
    GameContract: frozenset({*MOVES, "timeout", "defer", "challenge", "revealChallenge"}),
    RoundsContract: frozenset({"commit"}),
    OutersContract: frozenset({"postOuter"}),
    AuditContract: frozenset({"revealLeaves"}),
}
"""The functions that have a place in a dispute, by the contract that has them."""

SIGNATURES: Final[Mapping[str, str]] = {
    name: signature
    for contract, names in CALLS.items()
    for signature in contract.CALLS
    if (name := signature.partition("(")[0]) in names
}
"""The signature of each of them by its name."""

_NAMES: Final = {selector(signature): name for name, signature in SIGNATURES.items()}


@dataclass(frozen=True, slots=True)
class DecodedCall:
    """A decoded call: the function's name and its arguments; bytes32 as bytes, addresses as text."""

    name: str
    arguments: tuple[Any, ...]


def decode_call(data: bytes) -> DecodedCall:
    """The call in some calldata. Raises BundleMalformed for a function that has no place in a dispute."""
    name = _NAMES.get(data[:4])
    if name is None:
        raise BundleMalformed(f"The function 0x{data[:4].hex()} has no place in a dispute.")
    types, body = types_of(SIGNATURES[name]), data[4:]
    # Many openings may point at the same bytes: without a bound a small file takes gigabytes.
    for k, kind in enumerate(types):
        if kind == OPENINGS and _length_at(body, k) > MAX_OPENINGS:
            raise BundleMalformed(f"More than {MAX_OPENINGS} openings in one move.")
    try:
        # Not strict: Solidity ignores what stands in the padding, and so must every reader of the same move.
        return DecodedCall(name, tuple(decode(types, body, strict=False)))
    except (DecodingError, OverflowError, ValueError) as error:
        raise BundleMalformed(f"The calldata of {name} cannot be decoded ({type(error).__name__}).") from error


def _length_at(body: bytes, k: int) -> int:
    """The length of the array that argument k points to; 0 where there is none, which `decode` then refuses."""
    offset = int.from_bytes(body[32 * k : 32 * k + 32], "big")
    return int.from_bytes(body[offset : offset + 32], "big") if offset < len(body) else 0


def move_of(call: DecodedCall) -> tuple[int, AnyMove] | None:
    """The game's number and the move that a call makes; None for other functions."""
    kind = MOVES.get(call.name)
    if kind is None:
        return None
    game_id, *arguments = (_value(a, t) for a, t in zip(call.arguments, types_of(SIGNATURES[call.name]), strict=True))
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
