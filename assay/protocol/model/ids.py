"""How locks and grants are named: equal to contracts/libraries/ClaimIds.sol and Vesting.sol."""

from __future__ import annotations

from typing import Any

from eth_abi.abi import encode

from assay.protocol.digests import keccak
from assay.protocol.types import Address, Digest, Round, Seat


def _id(types: list[str], *values: Any) -> Digest:
    return keccak(encode(["string", *types], list(values)))


def commitment_lock(round_: Round, seat: Seat) -> Digest:
    """The lock S behind a commitment."""
    return _id(["uint64", "uint32"], "assay.commitment", round_, seat)


def seat_lock(solver: Address) -> Digest:
    """The seat fee of a solver."""
    return _id(["address"], "assay.seat", solver)


def outer_lock(round_: Round, root: Digest, poster: Address) -> Digest:
    """The lock of a poster behind an outer root."""
    return _id(["uint64", "bytes32", "address"], "assay.outer", round_, root, poster)


def attester_lock(who: Address) -> Digest:
    """The stake of a verifier or whistleblower."""
    return _id(["address"], "assay.attester", who)


def escrow_lock() -> Digest:
    """The escrow of the run."""
    return _id([], "assay.escrow")


def work_grant(round_: Round, seat: Seat) -> Digest:
    """The shares of a final commitment."""
    return _id(["uint64", "uint32"], "assay.work", round_, seat)


def duties_grant(round_: Round, attester: Address) -> Digest:
    """The shares of an attester's duties of a round."""
    return _id(["uint64", "address"], "assay.duties", round_, attester)
