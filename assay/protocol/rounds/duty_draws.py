"""Who is drawn for what, and how attestations and their states are named (contracts/libraries/DutyDraws.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from assay.protocol import abi
from assay.protocol.digests import keccak, list_digest, state_digest, tensor_digest
from assay.protocol.digests import leaf_digest as leaf
from assay.protocol.rounds.duty_types import DutyKind, ReplayFinding
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, DType, Seat

PPM: Final = 1_000_000
MAX_WORD: Final = (1 << 256) - 1

_FINDING = "(bytes32[3],bytes32,bytes32[],bytes32[])"


def draw(secret: Digest, seed: Digest, target: Digest, ticket: TicketId, kind: DutyKind) -> int:
    """What a ticket draws for a target, of 2^256.

    Attack: register a copy of somebody's anchor, and copy its answers. Ticket and kind are hashed too.
    """
    return int.from_bytes(_drawn("assay.draw", secret, seed, target, ticket, kind), "big")


def witness_key(secret: Digest, seed: Digest, target: Digest, ticket: TicketId, kind: DutyKind) -> Digest:
    """The witness key of a duty: eight bytes, the two words of the program's key, then zeros."""
    return Digest(_drawn("assay.witness", secret, seed, target, ticket, kind)[:8] + bytes(24))


def threshold(ppm: int, on_call: int) -> int:
    """Below what a draw is one, when `on_call` tickets share a rate in parts per million."""
    everything = PPM * on_call
    return MAX_WORD if ppm >= everything else MAX_WORD // everything * ppm


def rank_of(drawn: int, below: int) -> int:
    """A draw relative to its threshold, of 2^128: duties of all kinds and rates rank alike."""
    return drawn // ((below >> 128) + 1)


def attestation_id(epoch: int, ticket: TicketId, kind: DutyKind, target: Digest) -> Digest:
    """The name of a result."""
    return _hash(["string", "uint24", "uint32", "uint8", "bytes32"], "assay.attestation", epoch, ticket, kind, target)


def missed_id(epoch: int, ticket: TicketId, kind: DutyKind, target: Digest) -> Digest:
    """The name of a miss, which is fined once."""
    return _hash(["string", "uint24", "uint32", "uint8", "bytes32"], "assay.missed", epoch, ticket, kind, target)


def absence_id(epoch: int, ticket: TicketId) -> Digest:
    """The name of a call that was not answered."""
    return _hash(["string", "uint24", "uint32"], "assay.absent", epoch, ticket)


def accusation_id(by: Digest, against: Digest) -> Digest:
    """The name of an accusation by an attestation against a commitment or another attestation."""
    return _hash(["string", "bytes32", "bytes32"], "assay.accusation", by, against)


def finding_digest(round_: int, seat: Seat, finding: ReplayFinding) -> Digest:
    """What the contract keeps of a finding."""
    fields = (finding.ends, finding.update, finding.keys, finding.accumulators)
    return _hash(["uint64", "uint32", _FINDING], round_, seat, fields)


def witnessed_state(lists: Sequence[Digest], key: Digest, accumulator: Digest) -> Digest:
    """State root of three lists, then of a list of a witness key and one of an accumulator."""
    return state_digest((*lists, _words(key[:8]), _words(accumulator)))


def _words(data: bytes) -> Digest:
    """List root of one tensor of i32 words."""
    return list_digest(1, tensor_digest(DType.I32, (len(data) // 4,), leaf(data)))


def _drawn(tag: str, secret: Digest, seed: Digest, target: Digest, ticket: TicketId, kind: DutyKind) -> Digest:
    """The hash of abi.encode(tag, ...), laid out here: auditors take it for each of their tickets and each claim."""
    head = (192).to_bytes(32, "big") + secret + seed + target + ticket.to_bytes(32, "big") + kind.to_bytes(32, "big")
    return keccak(head + len(tag).to_bytes(32, "big") + tag.encode().ljust(32, b"\0"))


def _hash(types: list[str], *values: Any) -> Digest:
    return keccak(abi.encode(types, list(values)))
