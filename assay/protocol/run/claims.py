"""Claims: "program P, run `steps` times from X, ends in Y" (docs/protocol.md, sections 4 and 6).

A claim's id binds chain, contract, run, kind, variant, claimant, X and Y: keccak-256 over Solidity's abi.encode. X is
built by the contract, never chosen by the claimant: a true claim about a convenient X would be worthless.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from assay.protocol import abi
from assay.protocol.digests import ZERO, keccak
from assay.protocol.types import Address, Digest, Round, Seat

VARIANT: Final = 0
NO_SEAT: Final = Seat(0)
NO_ADDRESS: Final = Address(bytes(20))


class ClaimKind(IntEnum):
    """Kinds of claims; equal to `ClaimKind` in IClaims.sol."""

    NONE = 0
    INTERVAL = 1
    UPDATE = 2
    OUTER = 3
    ATTESTATION = 4
    ANSWER = 5


@dataclass(frozen=True, slots=True)
class ClaimRef:
    """Names a claim by where it stands; equal to `ClaimRef` in IClaims.sol.

    INTERVAL, UPDATE: round, seat. OUTER: round, the opener's seat or ticket as `seat`, the group of a sum plus one as
    `duty`, who backs as `party`, the root. ATTESTATION: round, seat, part as `duty`. But for OUTER `outer_root` names
    the accusation whose game it is, or the attestation. ANSWER: `outer_root` names a token of a signed statement.
    """

    kind: ClaimKind
    round: Round
    seat: Seat = NO_SEAT
    duty: int = 0
    party: Address = NO_ADDRESS
    outer_root: Digest = ZERO

    def encode(self) -> bytes:
        """abi.encode of the struct, 6 words."""
        numbers = (abi.uint(self.kind, 8), abi.uint(self.round, 64), abi.uint(self.seat, 32), abi.uint(self.duty, 32))
        return b"".join(numbers) + abi.address(self.party) + abi.bytes32(self.outer_root)


def claim_id(
    chain_id: int,
    contract: Address,
    run: Digest,
    kind: ClaimKind,
    claimant: Address,
    x_root: Digest,
    y_root: Digest,
    variant: int = VARIANT,
) -> Digest:
    """The id of a claim: K(chain id, contract, run, kind, variant, claimant, X root, Y root)."""
    return keccak(
        abi.uint(chain_id, 256)
        + abi.address(contract)
        + abi.bytes32(run)
        + abi.uint(kind, 8)
        + abi.uint(variant, 8)
        + abi.address(claimant)
        + abi.bytes32(x_root)
        + abi.bytes32(y_root)
    )


def challenge_commitment(ref: ClaimRef, own_root: Digest, salt: Digest, sender: Address) -> Digest:
    """What `commitChallenge` binds: K(claim ref, own end root, salt, sender); a copy is worthless to another."""
    return keccak(ref.encode() + abi.bytes32(own_root) + abi.bytes32(salt) + abi.address(sender))
