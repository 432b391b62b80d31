"""Calldata of the calls that a dispute consists of, read without compiled contracts.

A test compares the signatures here with the contracts' own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from eth_abi.abi import decode
from eth_abi.exceptions import DecodingError

from assay.bundle.errors import BundleMalformed
from assay.protocol.digests import keccak
from assay.protocol.game import moves
from assay.protocol.game.moves import AnyMove
from assay.protocol.game.openings import Opening
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Round, Seat

MAX_OPENINGS: Final = 16
"""Of one move: a map reads at most 8 operands."""

OPENINGS: Final = "(uint8,uint64[],bytes,bytes32[],bytes32[])[]"
REF: Final = "(uint8,uint64,uint32,uint32,address,bytes32)"

_DIGESTS: Final = "bytes32[]"

MOVES: Final[dict[type[AnyMove], tuple[str, ...]]] = {
    moves.PostDigests: (_DIGESTS,),
    moves.BisectDigests: ("uint256", _DIGESTS),
    moves.OpenNode: ("bytes", _DIGESTS, _DIGESTS, _DIGESTS),
    moves.ProveRoot: ("bytes", _DIGESTS, "bytes"),
    moves.SelectSubtree: ("uint256", _DIGESTS),
    moves.OpenSubtree: (_DIGESTS,),
    moves.OpenLeaf: ("bytes",),
    moves.SelectElement: ("uint256", "bytes", "bytes", OPENINGS),
    moves.PostParts: ("bytes", "int256[]"),
    moves.SelectPart: ("uint256", "int256[]"),
    moves.ProveTerm: ("bytes", OPENINGS),
    moves.OpenState: (_DIGESTS,),
    moves.SelectList: ("uint256", _DIGESTS),
}
"""Types of each move's arguments after the game's number."""

OTHERS: Final[dict[str, tuple[str, ...]]] = {
    "timeout": ("uint256",),
    "defer": ("uint256",),
    "challenge": (REF,),
    "revealChallenge": (REF, "bytes32", "bytes32"),
    "commit": ("uint64", "uint32", _DIGESTS, "bytes32[3]", "bytes32", "bytes32"),
    "postOuter": ("uint64", "bytes32", "bytes32", "bytes32", "bytes32"),
    "revealLeaves": ("uint64", "(uint32,uint32,bytes32,bytes32)[]", "bytes"),
}


@dataclass(frozen=True, slots=True)
class DecodedCall:
    """A decoded call: the function's name and its arguments; bytes32 as bytes, addresses as text."""

    name: str
    arguments: tuple[Any, ...]


def signature(name: str, types: tuple[str, ...]) -> str:
    """The canonical signature of a function."""
    return f"{name}({','.join(types)})"


def _selector(name: str, types: tuple[str, ...]) -> bytes:
    return keccak(signature(name, types).encode())[:4]


_FUNCTIONS: Final = {_selector(name, types): (name, types) for name, types in OTHERS.items()} | {
    _selector(move.kind.function, ("uint256", *types)): (move.kind.function, ("uint256", *types))
    for move, types in MOVES.items()
}
_MOVE_OF: Final = {move.kind.function: move for move in MOVES}


def decode_call(data: bytes) -> DecodedCall:
    """The call in some calldata. Raises BundleMalformed for a function that has no place in a dispute."""
    found = _FUNCTIONS.get(data[:4])
    if found is None:
        raise BundleMalformed(f"The function 0x{data[:4].hex()} has no place in a dispute.")
    name, types = found
    body = data[4:]
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
    kind = _MOVE_OF.get(call.name)
    if kind is None:
        return None
    game_id, *arguments = call.arguments
    return game_id, kind(*(_value(a, t) for a, t in zip(arguments, MOVES[kind], strict=True)))


def _value(argument: Any, kind: str) -> Any:
    if kind == OPENINGS:
        return tuple(
            Opening(dtype, tuple(dims), bytes(leaf), _digests(path), _digests(prefix))
            for dtype, dims, leaf, path, prefix in argument
        )
    if kind == _DIGESTS:
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
