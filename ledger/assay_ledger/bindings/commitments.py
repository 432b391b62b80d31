"""Calls, queries and events of contracts/rounds/Commitments.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.rounds.terms import Presence, SeatWork, WorkStatus
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay_ledger.bindings.structs import ClaimViewFields, as_work
from assay_ledger.contract import Call, Contract, Decoded, Event, Query


@dataclass(frozen=True, slots=True)
class GroupStateFields:
    """The struct `GroupState`, as contracts give it."""

    acc: Digest
    committed: int
    maskable: int
    spoke: int
    close_at: int

    @staticmethod
    def of(v: Decoded) -> GroupStateFields:
        """Of its fields in order."""
        return GroupStateFields(Digest(v[0]), v[1], v[2], v[3], v[4])


@dataclass(frozen=True, slots=True)
class RoundStateFields:
    """The struct `RoundState`, as contracts give it."""

    t0: int
    mask_at: int
    seated: int
    committed: int
    groups: int
    parent: int
    base: Digest

    @staticmethod
    def of(v: Decoded) -> RoundStateFields:
        """Of its fields in order."""
        return RoundStateFields(v[0], v[1], v[2], v[3], v[4], v[5], Digest(v[6]))


@dataclass(frozen=True, slots=True)
class WorkStateFields:
    """The struct `WorkState`, as contracts give it."""

    digest: Digest
    tenure: int
    units: int
    games: int
    late: bool
    settled: bool

    @staticmethod
    def of(v: Decoded) -> WorkStateFields:
        """Of its fields in order."""
        return WorkStateFields(Digest(v[0]), v[1], v[2], v[3], v[4], v[5])


@dataclass(frozen=True, slots=True)
class ClaimPrepared(Event):
    """X of a claim was built: it can be challenged now."""

    ABI: ClassVar = "ClaimPrepared(uint64 indexed round, uint32 indexed seat, uint8 kind, bytes32 x, bytes32 y)"
    round: Round
    seat: Seat
    kind: ClaimKind
    x: Digest
    y: Digest

    @classmethod
    def _of(cls, v: Decoded) -> ClaimPrepared:
        return cls(Round(v[0]), Seat(v[1]), ClaimKind(v[2]), Digest(v[3]), Digest(v[4]))


@dataclass(frozen=True, slots=True)
class Held(Event):
    """Positions said which updates they hold."""

    ABI: ClassVar = "Held(uint64 indexed round, uint32 indexed group, uint64 positions, uint64 held)"
    round: Round
    group: int
    positions: int
    held: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Held:
        return cls(Round(v[0]), v[1], v[2], Wei(v[3]))


@dataclass(frozen=True, slots=True)
class MaskClosing(Event):
    """The last second of the round's mask was moved forward."""

    ABI: ClassVar = "MaskClosing(uint64 indexed round, uint48 maskAt)"
    round: Round
    mask_at: int

    @classmethod
    def _of(cls, v: Decoded) -> MaskClosing:
        return cls(Round(v[0]), v[1])


@dataclass(frozen=True, slots=True)
class RoundBegan(Event):
    """A round opened."""

    ABI: ClassVar = "RoundBegan(uint64 indexed round, uint64 parent, uint48 t0, uint32 seated)"
    round: Round
    parent: int
    t0: int
    seated: int

    @classmethod
    def _of(cls, v: Decoded) -> RoundBegan:
        return cls(Round(v[0]), v[1], v[2], v[3])


@dataclass(frozen=True, slots=True)
class WorkCommitted(Event):
    """A tenure committed to its work of a round."""

    ABI: ClassVar = (
        "WorkCommitted(uint64 indexed round, uint32 indexed seat, uint32 indexed tenure, "
        "(uint32,bytes32,bytes32[3],bytes32) work, bytes32 acc, bool late)"
    )
    round: Round
    seat: Seat
    tenure: int
    work: SeatWork
    acc: Digest
    late: bool

    @classmethod
    def _of(cls, v: Decoded) -> WorkCommitted:
        return cls(Round(v[0]), Seat(v[1]), v[2], as_work(v[3]), Digest(v[4]), v[5])


@dataclass(frozen=True, slots=True)
class WorkSettled(Event):
    """A commitment ended."""

    ABI: ClassVar = "WorkSettled(uint64 indexed round, uint32 indexed seat, uint8 status)"
    round: Round
    seat: Seat
    status: WorkStatus

    @classmethod
    def _of(cls, v: Decoded) -> WorkSettled:
        return cls(Round(v[0]), Seat(v[1]), WorkStatus(v[2]))


class CommitmentsContract(Contract):
    """`contracts/rounds/Commitments.sol` at an address."""

    EVENTS = (
        ClaimPrepared,
        Held,
        MaskClosing,
        RoundBegan,
        WorkCommitted,
        WorkSettled,
    )

    CALLS = (
        "commit(uint64,uint32,uint32,bytes32,(uint32,bytes32,bytes32[3],bytes32))",
        "hold(uint64,uint32,uint64,bytes32,uint64)",
        "onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)",
        "onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)",
        "openRound(uint64,bytes32)",
        "prepare(uint8,uint64,uint32,(uint32,bytes32,bytes32[3],bytes32))",
        "settle(uint64,uint32)",
    )

    def by_seats(self) -> Query[bool]:
        """The seats that committed are the positions; else tickets are drawn."""
        return self._query("bySeats()", "(bool)", lambda v: v[0])

    def claim_of(self, ref: ClaimRef) -> Query[ClaimViewFields]:
        """Resolves a reference; a claim that does not exist, or that nobody prepared, has challengeableUntil = 0."""
        return self._query(
            "claimOf((uint8,uint64,uint32,uint32,address,bytes32))",
            "((bytes32,address,bytes32,bytes32,bytes32,uint32,uint64,uint64,bytes32,uint256,bool,uint256,address))",
            lambda v: ClaimViewFields.of(v[0]),
            ref,
        )

    def commit(self, round: Round, seat: Seat, tenure: int, base: Digest, work: SeatWork) -> Call:
        """A tenure's only commitment of the round, until T0 + C + F."""
        return self._call(
            "commit(uint64,uint32,uint32,bytes32,(uint32,bytes32,bytes32[3],bytes32))", round, seat, tenure, base, work
        )

    def commit_until(self, round: Round) -> Query[int]:
        """Last second to commit: T0 + C + F."""
        return self._query("commitUntil(uint64)", "(uint48)", lambda v: v[0], round)

    def counted_of(self, round: Round, group: int) -> Query[tuple[int, bool]]:
        """Seats of the group whose update counts, and whether that can still change."""
        return self._query("countedOf(uint64,uint32)", "(uint64,bool)", lambda v: (v[0], v[1]), round, group)

    def digest_of(self, round: Round, seat: Seat, tenure: int, work: SeatWork) -> Query[Digest]:
        """The digest that a commitment to this work has."""
        return self._query(
            "digestOf(uint64,uint32,uint32,(uint32,bytes32,bytes32[3],bytes32))",
            "(bytes32)",
            lambda v: Digest(v[0]),
            round,
            seat,
            tenure,
            work,
        )

    def grace(self) -> Query[int]:
        """Seconds that a stage still takes once enough have taken part: g."""
        return self._query("grace()", "(uint48)", lambda v: v[0])

    def group_of(self, round: Round, group: int) -> Query[GroupStateFields]:
        """`groupOf`."""
        return self._query(
            "groupOf(uint64,uint32)",
            "((bytes32,uint64,uint64,uint64,uint48))",
            lambda v: GroupStateFields.of(v[0]),
            round,
            group,
        )

    def group_size(self) -> Query[int]:
        """`groupSize`."""
        return self._query("groupSize()", "(uint32)", lambda v: v[0])

    def groups_in(self, round: Round) -> Query[int]:
        """Groups of which somebody committed with weight."""
        return self._query("groupsIn(uint64)", "(uint256)", lambda v: v[0], round)

    def hold(self, round: Round, group: int, positions: int, acc: Digest, held: Wei) -> Call:
        """The caller's positions say which of the group's updates they hold, after the mask closed."""
        return self._call("hold(uint64,uint32,uint64,bytes32,uint64)", round, group, positions, acc, held)

    def hold_until(self, round: Round, group: int) -> Query[int]:
        """Last second to say what one holds."""
        return self._query("holdUntil(uint64,uint32)", "(uint48)", lambda v: v[0], round, group)

    def is_disputable(self, round: Round, seat: Seat) -> Query[bool]:
        """Can the work of a seat still be accused, or challenged by a third party?"""
        return self._query("isDisputable(uint64,uint32)", "(bool)", lambda v: v[0], round, seat)

    def is_over(self) -> Query[bool]:
        """No round will open any more."""
        return self._query("isOver()", "(bool)", lambda v: v[0])

    def is_under_half(self, round: Round) -> Query[bool]:
        """Did fewer than half of the seats commit in time?"""
        return self._query("isUnderHalf(uint64)", "(bool)", lambda v: v[0], round)

    def mask_closed_at(self, round: Round) -> Query[int]:
        """Chain time after which the mask of the round cannot change; it moves forward only, while commitments come."""
        return self._query("maskClosedAt(uint64)", "(uint48)", lambda v: v[0], round)

    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> Query[bool]:
        """May `who` open a game without commit-reveal?"""
        return self._query(
            "mayChallengeDirectly((uint8,uint64,uint32,uint32,address,bytes32),address)",
            "(bool)",
            lambda v: v[0],
            ref,
            who,
        )

    def merge_until(self, round: Round) -> Query[int]:
        """Last second in which the round's generation can have its majority: T_m."""
        return self._query("mergeUntil(uint64)", "(uint48)", lambda v: v[0], round)

    def merged_of(self, round: Round, group: int) -> Query[tuple[int, Digest]]:
        """Seats of the group whose update counts, for good, and the accumulator over all that it committed with
        weight.
        """
        return self._query("mergedOf(uint64,uint32)", "(uint64,bytes32)", lambda v: (v[0], Digest(v[1])), round, group)

    def on_closed(self, ref: ClaimRef, convicted: bool) -> Call:
        """Game only: a game ended."""
        return self._call("onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)", ref, convicted)

    def on_opened(self, ref: ClaimRef, challenger: Address) -> Call:
        """Game only: `challenger` opened a game on the claim (delays finality)."""
        return self._call("onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)", ref, challenger)

    def open_round(self, parent: int, base: Digest) -> Call:
        """Generations only: opens the next round."""
        return self._call("openRound(uint64,bytes32)", parent, base)

    def opened(self) -> Query[int]:
        """How many rounds were opened; the latest is one less."""
        return self._query("opened()", "(uint64)", lambda v: v[0])

    def over_of(self, round: Round, group: int) -> Query[Digest]:
        """What a merge of the group's updates is over, for good (SealOver): the round's base, which of them count, and
        the accumulator.
        """
        return self._query("overOf(uint64,uint32)", "(bytes32)", lambda v: Digest(v[0]), round, group)

    def parent_of(self, round: Round) -> Query[int]:
        """Generation that the round starts from."""
        return self._query("parentOf(uint64)", "(uint64)", lambda v: v[0], round)

    def partial_until(self, round: Round) -> Query[int]:
        """Last second in which a group's partial sum can be opened."""
        return self._query("partialUntil(uint64)", "(uint48)", lambda v: v[0], round)

    def prepare(self, kind: ClaimKind, round: Round, seat: Seat, work: SeatWork) -> Call:
        """Builds X and Y of a claim from the work that was committed; anybody who wants to challenge it calls this
        first.
        """
        return self._call("prepare(uint8,uint64,uint32,(uint32,bytes32,bytes32[3],bytes32))", kind, round, seat, work)

    def presence_of(self, round: Round, seat: Seat) -> Query[Presence]:
        """Was the seat there in this round?"""
        return self._query("presenceOf(uint64,uint32)", "(uint8)", lambda v: Presence(v[0]), round, seat)

    def round_of(self, round: Round) -> Query[RoundStateFields]:
        """`roundOf`."""
        return self._query(
            "roundOf(uint64)",
            "((uint48,uint48,uint32,uint32,uint16,uint64,bytes32))",
            lambda v: RoundStateFields.of(v[0]),
            round,
        )

    def seed_of(self, round: Round) -> Query[Digest]:
        """Randomness of the beacon after the mask's close, which draws the positions of the round's nodes."""
        return self._query("seedOf(uint64)", "(bytes32)", lambda v: Digest(v[0]), round)

    def settle(self, round: Round, seat: Seat) -> Call:
        """Payments only: ends a commitment."""
        return self._call("settle(uint64,uint32)", round, seat)

    def speaker_of(self, node: int, position: int, positions: int, who: Address) -> Query[tuple[int, int, int, int]]:
        """Whether an account may speak at a node, and for whom: reverts unless it holds all positions named, what is
        to be merged there is known for good, and enough was committed.
        """
        return self._query(
            "speakerOf(uint64,uint32,uint64,address)",
            "(uint32,uint256,uint256,uint256)",
            lambda v: (v[0], v[1], v[2], v[3]),
            node,
            position,
            positions,
            who,
        )

    def start_of(self, round: Round, seat: Seat) -> Query[tuple[Digest, Digest, Digest, Digest]]:
        """List roots and state root that a seat's work starts from."""
        return self._query(
            "startOf(uint64,uint32)",
            "(bytes32,bytes32,bytes32,bytes32)",
            lambda v: (Digest(v[0]), Digest(v[1]), Digest(v[2]), Digest(v[3])),
            round,
            seat,
        )

    def work_of(self, round: Round, seat: Seat) -> Query[WorkStateFields]:
        """`workOf`."""
        return self._query(
            "workOf(uint64,uint32)",
            "((bytes32,uint32,uint32,uint32,bool,bool))",
            lambda v: WorkStateFields.of(v[0]),
            round,
            seat,
        )
