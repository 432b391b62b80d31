"""What the events of a run say beyond its books: who sent what in which transaction, and games.

The books (`assay_ledger.rounds.books`) are those of the executable model. Records are plain mutable values, so that an
event costs one assignment; readers must not change them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.protocol.rounds.duty_types import DutyKind, ReplayFinding
from assay.protocol.rounds.ids import Node, generation_of
from assay.protocol.rounds.terms import SeatWork, WorkStatus
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.chain.client import Head
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.books import ToldBooks
from assay_ledger.rounds.facts import RunFacts
from assay_ledger.rounds.money_records import MoneyRecords


@dataclass(slots=True)
class WorkRecord:
    """A commitment; `digest` names it, and the transaction's tail names where the update lies. Time in seconds."""

    round: Round
    seat: Seat
    tenure: int
    digest: Digest
    work: SeatWork
    late: bool
    at: int
    tx_hash: bytes
    status: WorkStatus = WorkStatus.OPEN


@dataclass(frozen=True, slots=True)
class OpeningRecord:
    """Somebody stands behind a root of a node: `position` opened it, a seat, above 64 seats a ticket, or `backer` put a
    lock behind it later."""

    node: Node
    party: Digest
    root: Digest
    position: int | None
    backer: Address | None
    at: int
    tx_hash: bytes

    @property
    def generation(self) -> int:
        """The generation that the node is, or is a part of."""
        return generation_of(self.node)


@dataclass(frozen=True, slots=True)
class AttestationRecord:
    """A result in full; `target` is what was audited: a commitment's digest, an attestation, the name of a miss."""

    id: Digest
    epoch: int
    ticket: TicketId
    kind: DutyKind
    target: Digest
    round: Round
    seat: Seat
    finding: ReplayFinding
    tx_hash: bytes


@dataclass(frozen=True, slots=True)
class AccusationRecord:
    """Who accuses whom: `by` is the accuser's attestation, `against` a commitment's digest or an attestation."""

    id: Digest
    by: Digest
    against: Digest
    is_work: bool


@dataclass(slots=True)
class RunState:
    """Everything that the events of a run say up to a head."""

    head: Head
    books: ToldBooks
    works: dict[tuple[Round, Seat], WorkRecord] = field(default_factory=dict)
    openings: dict[tuple[Node, Digest], OpeningRecord] = field(default_factory=dict)
    openings_of: dict[Node, list[OpeningRecord]] = field(default_factory=dict)
    """The same by node, in the order of the chain."""
    attestations: dict[Digest, AttestationRecord] = field(default_factory=dict)
    attestations_of: dict[int, list[AttestationRecord]] = field(default_factory=dict)
    """The same by epoch, in the order of the chain."""
    accusations: dict[Digest, AccusationRecord] = field(default_factory=dict)
    games: dict[int, GameRecord] = field(default_factory=dict)
    money: MoneyRecords = field(default_factory=MoneyRecords)
    unsettled: dict[tuple[Round, Seat], WorkRecord] = field(default_factory=dict)
    """Commitments that are not settled, in the order of the chain."""
    unclosed: dict[tuple[Node, Digest], OpeningRecord] = field(default_factory=dict)
    """Openings that still hold a lock."""
    unpaid_openings: dict[tuple[Node, Digest], OpeningRecord] = field(default_factory=dict)
    unpaid_findings: dict[Digest, AttestationRecord] = field(default_factory=dict)
    """What was not paid, whatever it earns: an actor that looked through all there ever was would be slower by the day.
    """
    merged: dict[int, int] = field(default_factory=dict)
    """Generations that have a majority and are not final, with the chain time since when; cut ones too."""
    final_at: dict[Node, int] = field(default_factory=lambda: {0: 0})
    """Since when generations are final, and sums of groups."""
    halted_at: int = 0
    """Chain time at which a majority found the run unable to open a round, or a generation was cut, last."""

    @staticmethod
    def of(facts: RunFacts) -> RunState:
        """Before the first event."""
        return RunState(Head(0, 0), ToldBooks(facts))

    def participants(self) -> set[Address]:
        """Everybody who ever held a seat, or has a ticket."""
        held = self.books.registry.tickets.values()
        return {t.holder for t in self.books.tenures.tenures.values()} | {t.owner for t in held}

    def open_games_of(self, who: Address) -> list[GameRecord]:
        """Games without a verdict to which an address is a party."""
        return [g for g in self.games.values() if not g.is_over and who in (g.defender, g.challenger)]
