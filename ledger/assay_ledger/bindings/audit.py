"""Calls, queries and events of contracts/Audit.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address, Digest, Role, Round, Seat, Wei
from assay_ledger.bindings.structs import AttendanceFields, AttesterFields, ClaimViewFields, LeafFields
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class Attested(Event):
    """A verifier or whistleblower bound its results of a round, still hidden."""

    ABI: ClassVar = "Attested(uint64 indexed round, address indexed who, uint8 role, bytes32 root)"
    round: Round
    who: Address
    role: Role
    root: Digest

    @classmethod
    def _of(cls, v: Decoded) -> Attested:
        return cls(Round(v[0]), address(v[1]), Role(v[2]), Digest(v[3]))


@dataclass(frozen=True, slots=True)
class AttesterConvictedAt(Event):
    """A verifier or whistleblower lost a game about its attestation: its bond is gone."""

    ABI: ClassVar = "AttesterConvictedAt(address indexed who, uint64 round)"
    who: Address
    round: Round

    @classmethod
    def _of(cls, v: Decoded) -> AttesterConvictedAt:
        return cls(address(v[0]), Round(v[1]))


@dataclass(frozen=True, slots=True)
class DrawRevealed(Event):
    """A verifier or whistleblower revealed which duties it had drawn."""

    ABI: ClassVar = "DrawRevealed(uint64 indexed round, address indexed who, bytes y)"
    round: Round
    who: Address
    y: bytes

    @classmethod
    def _of(cls, v: Decoded) -> DrawRevealed:
        return cls(Round(v[0]), address(v[1]), v[2])


@dataclass(frozen=True, slots=True)
class LeafRevealed(Event):
    """A verifier or whistleblower revealed its result for a duty."""

    ABI: ClassVar = (
        "LeafRevealed(uint64 indexed round, address indexed who, uint32 seat, uint32 duty, bytes32 claimId, "
        "bytes32 endRoot, bool agrees)"
    )
    round: Round
    who: Address
    seat: Seat
    duty: int
    claim_id: Digest
    end_root: Digest
    agrees: bool

    @classmethod
    def _of(cls, v: Decoded) -> LeafRevealed:
        return cls(Round(v[0]), address(v[1]), Seat(v[2]), v[3], Digest(v[4]), Digest(v[5]), v[6])


@dataclass(frozen=True, slots=True)
class Reclaimed(Event):
    """A verifier or whistleblower took back what was left of its stake."""

    ABI: ClassVar = "Reclaimed(address indexed who, uint256 amount)"
    who: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Reclaimed:
        return cls(address(v[0]), Wei(v[1]))


@dataclass(frozen=True, slots=True)
class Registered(Event):
    """A verifier or whistleblower registered its key and its stake."""

    ABI: ClassVar = "Registered(address indexed who, uint8 role, uint256 stake, uint64 countsFrom, bytes publicKey)"
    who: Address
    role: Role
    stake: Wei
    counts_from: Round
    public_key: bytes

    @classmethod
    def _of(cls, v: Decoded) -> Registered:
        return cls(address(v[0]), Role(v[1]), Wei(v[2]), Round(v[3]), v[4])


@dataclass(frozen=True, slots=True)
class Retired(Event):
    """A verifier or whistleblower stops being drawn."""

    ABI: ClassVar = "Retired(address indexed who, uint64 retiresWith)"
    who: Address
    retires_with: Round

    @classmethod
    def _of(cls, v: Decoded) -> Retired:
        return cls(address(v[0]), Round(v[1]))


@dataclass(frozen=True, slots=True)
class SeedDrawn(Event):
    """The seed of a round's audit was drawn."""

    ABI: ClassVar = "SeedDrawn(uint64 indexed round, bytes32 seed)"
    round: Round
    seed: Digest

    @classmethod
    def _of(cls, v: Decoded) -> SeedDrawn:
        return cls(Round(v[0]), Digest(v[1]))


@dataclass(frozen=True, slots=True)
class WhistleSeedDrawn(Event):
    """The seed of a round's re-audit was drawn."""

    ABI: ClassVar = "WhistleSeedDrawn(uint64 indexed round, bytes32 seed)"
    round: Round
    seed: Digest

    @classmethod
    def _of(cls, v: Decoded) -> WhistleSeedDrawn:
        return cls(Round(v[0]), Digest(v[1]))


class AuditContract(Contract):
    """`contracts/Audit.sol` at an address."""

    EVENTS = (
        Attested,
        AttesterConvictedAt,
        DrawRevealed,
        LeafRevealed,
        Reclaimed,
        Registered,
        Retired,
        SeedDrawn,
        WhistleSeedDrawn,
    )

    CALLS = (
        "attest(uint64,bytes32,bytes32)",
        "close(uint64,address)",
        "drawSeed(uint64)",
        "drawWhistleSeed(uint64)",
        "onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)",
        "onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)",
        "reclaim()",
        "register(uint8,bytes,bytes,uint128)",
        "retire()",
        "revealDraw(uint64,bytes)",
        "revealLeaves(uint64,(uint32,uint32,bytes32,bytes32)[],bytes)",
        "whistle(uint64,bytes32,bytes32)",
    )

    def attendance_of(self, round: Round, who: Address) -> Query[AttendanceFields]:
        """`attendanceOf`."""
        return self._query(
            "attendanceOf(uint64,address)",
            "((bytes32,bytes32,uint32,uint32,bool,bool))",
            lambda v: AttendanceFields.of(v[0]),
            round,
            who,
        )

    def attest(self, round: Round, seed: Digest, root: Digest) -> Call:
        """A verifier's root of hidden leaves (zero for none), after the seed and until T3."""
        return self._call("attest(uint64,bytes32,bytes32)", round, seed, root)

    def attester_of(self, who: Address) -> Query[AttesterFields]:
        """`attesterOf`."""
        return self._query(
            "attesterOf(address)", "((uint8,uint128,uint64,uint64,uint32))", lambda v: AttesterFields.of(v[0]), who
        )

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def claim_of(self, ref: ClaimRef) -> Query[ClaimViewFields]:
        """Resolves a reference; a claim that does not exist (an incomplete commitment among them) has
        challengeableUntil = 0.
        """
        return self._query(
            "claimOf((uint8,uint64,uint32,uint32,address,bytes32))",
            "((bytes32,address,bytes32,bytes32,bytes32,uint32,uint64,uint64,bytes32,uint256,bool,uint256,address))",
            lambda v: ClaimViewFields.of(v[0]),
            ref,
        )

    def close(self, round: Round, who: Address) -> Call:
        """Settlement only: ends an attester's round."""
        return self._call("close(uint64,address)", round, who)

    def draw_seed(self, round: Round) -> Call:
        """Draws the audit seed, at or after T2."""
        return self._call("drawSeed(uint64)", round)

    def draw_whistle_seed(self, round: Round) -> Call:
        """Draws the whistle seed, at or after T4."""
        return self._call("drawWhistleSeed(uint64)", round)

    def end_root_of(self, round: Round, seat: Seat, duty: int, who: Address) -> Query[Digest]:
        """The end root that an attester revealed for a duty; zero if none."""
        return self._query(
            "endRootOf(uint64,uint32,uint32,address)", "(bytes32)", lambda v: Digest(v[0]), round, seat, duty, who
        )

    def key_of(self, who: Address) -> Query[bytes]:
        """`keyOf`."""
        return self._query("keyOf(address)", "(bytes)", lambda v: v[0], who)

    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> Query[bool]:
        """May `who` open a game without commit-reveal?"""
        return self._query(
            "mayChallengeDirectly((uint8,uint64,uint32,uint32,address,bytes32),address)",
            "(bool)",
            lambda v: v[0],
            ref,
            who,
        )

    def members(self, role: Role) -> Query[int]:
        """Registered members of a role now."""
        return self._query("members(uint8)", "(uint256)", lambda v: v[0], role)

    def on_closed(self, ref: ClaimRef, convicted: bool) -> Call:
        """Game only: a game ended."""
        return self._call("onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)", ref, convicted)

    def on_opened(self, ref: ClaimRef, argument_1: Address) -> Call:
        """Game only: `challenger` opened a game on the claim (delays finality)."""
        return self._call("onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)", ref, argument_1)

    def reclaim(self) -> Call:
        """Releases what is left of the stake, once the last round it was drawn in is beyond challenge and no game is
        open.
        """
        return self._call("reclaim()")

    def register(self, role: Role, public_key: bytes, proof: bytes, stake: Wei) -> Call:
        """Registers a drawing key with proof of possession and locks a stake of at least B."""
        return self._call("register(uint8,bytes,bytes,uint128)", role, public_key, proof, stake)

    def retire(self) -> Call:
        """Stops being drawn from the second T0 from now."""
        return self._call("retire()")

    def reveal_draw(self, round: Round, y: bytes) -> Call:
        """Reveals the signature y that draws the caller's duties."""
        return self._call("revealDraw(uint64,bytes)", round, y)

    def reveal_leaves(self, round: Round, leaves: Sequence[LeafFields], y: bytes) -> Call:
        """Reveals every leaf under the caller's root, sorted by (claim id, duty)."""
        return self._call("revealLeaves(uint64,(uint32,uint32,bytes32,bytes32)[],bytes)", round, leaves, y)

    def revealers(self, round: Round) -> Query[int]:
        """Attesters who revealed leaves in a round."""
        return self._query("revealers(uint64)", "(uint256)", lambda v: v[0], round)

    def seed_of(self, round: Round) -> Query[tuple[Digest, Digest]]:
        """`seedOf`."""
        return self._query("seedOf(uint64)", "(bytes32,bytes32)", lambda v: (Digest(v[0]), Digest(v[1])), round)

    def stake_at(self, who: Address, round: Round) -> Query[Wei]:
        """Stake that counts in a round."""
        return self._query("stakeAt(address,uint64)", "(uint256)", lambda v: Wei(v[0]), who, round)

    def total_at(self, role: Role, round: Round) -> Query[Wei]:
        """Total stake of a role that counts in a round."""
        return self._query("totalAt(uint8,uint64)", "(uint256)", lambda v: Wei(v[0]), role, round)

    def whistle(self, round: Round, seed: Digest, root: Digest) -> Call:
        """A whistleblower's root of hidden leaves, after the whistle seed and until T5."""
        return self._call("whistle(uint64,bytes32,bytes32)", round, seed, root)
