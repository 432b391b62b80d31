"""Where a reader finds what belongs to a round, a seat, a ticket, an address: lists that grow with the events.

A page takes what it shows from here; none goes through everything that ever happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest
from assay_ledger.bindings import attestations, commitments, duties, game, grants, tenures, tickets
from assay_ledger.bindings.generations import RootBacked, RootOpened
from assay_ledger.bindings.grouped_generations import NodeOpened
from assay_ledger.contract import Event
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.records import AttestationRecord, OpeningRecord, RunState, WorkRecord

ON_ACCUSATIONS = (ClaimKind.INTERVAL, ClaimKind.UPDATE, ClaimKind.ATTESTATION)


K = TypeVar("K")
V = TypeVar("V")


class Shelf(dict[K, list[V]]):
    """Lists by what they belong to. Where nothing was put there is an empty list, and asking for it leaves none."""

    def __missing__(self, key: K) -> list[V]:
        return []

    def put(self, key: K, value: V) -> None:
        """Adds at the end of a list."""
        self.setdefault(key, []).append(value)


@dataclass(slots=True)
class Shelves:
    """Everything in the order of the chain, and again by what it belongs to."""

    works: list[WorkRecord] = field(default_factory=list)
    works_of_round: Shelf[int, WorkRecord] = field(default_factory=Shelf)
    works_of_tenure: Shelf[int, WorkRecord] = field(default_factory=Shelf)
    openings: Shelf[Node, OpeningRecord] = field(default_factory=Shelf)
    findings: list[AttestationRecord] = field(default_factory=list)
    findings_of_work: Shelf[tuple[int, int], AttestationRecord] = field(default_factory=Shelf)
    findings_of_ticket: Shelf[int, AttestationRecord] = field(default_factory=Shelf)
    findings_of_epoch: Shelf[int, AttestationRecord] = field(default_factory=Shelf)
    calls_of_ticket: Shelf[int, int] = field(default_factory=Shelf)
    """Epochs in which each ticket showed a secret."""
    calls_of_epoch: Shelf[int, TicketId] = field(default_factory=Shelf)
    fined_in: Shelf[int, duties.DutyFined] = field(default_factory=Shelf)
    accusations: list[Digest] = field(default_factory=list)
    accusations_in: Shelf[int, Digest] = field(default_factory=Shelf)
    """By epoch."""
    accusations_by_ticket: Shelf[int, Digest] = field(default_factory=Shelf)
    accused_tickets: Shelf[int, Digest] = field(default_factory=Shelf)
    accusations_by: Shelf[Digest, Digest] = field(default_factory=Shelf)
    """By the finding that accuses."""
    accusations_against: Shelf[Digest, Digest] = field(default_factory=Shelf)
    """By the commitment or finding that is accused."""
    games: list[GameRecord] = field(default_factory=list)
    games_of_round: Shelf[int, GameRecord] = field(default_factory=Shelf)
    games_of_accusation: Shelf[Digest, int] = field(default_factory=Shelf)
    games_of: Shelf[Address, GameRecord] = field(default_factory=Shelf)
    game_of_tx: dict[bytes, int] = field(default_factory=dict)
    tenures_of: Shelf[Address, int] = field(default_factory=Shelf)
    tickets_of: Shelf[Address, TicketId] = field(default_factory=Shelf)
    grants_of: Shelf[Address, Digest] = field(default_factory=Shelf)
    """Shares that were to vest, by whose they are; some have."""

    def on_event(self, event: Event, state: RunState, transaction: bytes) -> Digest | None:
        """Puts what an event brought where it belongs, after the state has taken it in; a name that the event does not
        say itself, None for none."""
        match event:
            case commitments.WorkCommitted():
                work = state.works[event.round, event.seat]
                self.works.append(work)
                self.works_of_round.put(event.round, work)
                self.works_of_tenure.put(event.tenure, work)
                return work.digest
            case tenures.TenureBegan():
                self.tenures_of.put(event.holder, event.tenure)
            case tickets.TicketRegistered():
                self.tickets_of.put(event.owner, event.ticket)
            case tickets.SecretShown():
                self.calls_of_ticket.put(event.ticket, event.epoch)
                self.calls_of_epoch.put(event.epoch, event.ticket)
            case grants.Credited():
                self.grants_of.put(event.owner, event.id)
            case duties.DutyFined():
                self.fined_in.put(event.epoch, event)
            case RootOpened():
                self._stands(state.openings[event.generation, ids.party_of(event.seat)])
            case NodeOpened():
                self._stands(state.openings[event.node, ids.party_of(event.ticket)])
            case RootBacked():
                self._stands(state.openings[event.node, ids.backer_party(event.root, event.backer)])
            case attestations.Attested():
                self._found(state.attestations[event.attestation])
            case attestations.Accused():
                self._accused(event, state)
            case game.GameOpened():
                self._opened(state.games[event.game_id])
                self.game_of_tx[transaction] = event.game_id
            case game.Moved() | game.Verdict():
                self.game_of_tx[transaction] = event.game_id
        return None

    def _stands(self, opening: OpeningRecord) -> None:
        self.openings.put(opening.node, opening)

    def _found(self, record: AttestationRecord) -> None:
        self.findings.append(record)
        self.findings_of_work.put((record.round, record.seat), record)
        self.findings_of_ticket.put(record.ticket, record)
        self.findings_of_epoch.put(record.epoch, record)

    def _accused(self, event: attestations.Accused, state: RunState) -> None:
        made = state.books.duties.attestations.accusations[event.id]
        self.accusations.append(event.id)
        self.accusations_in.put(made.epoch, event.id)
        self.accusations_by_ticket.put(made.ticket, event.id)
        self.accusations_by.put(event.attestation, event.id)
        self.accusations_against.put(event.against, event.id)
        if not event.is_work:
            self.accused_tickets.put(made.accused, event.id)

    def _opened(self, made: GameRecord) -> None:
        self.games.append(made)
        self.games_of_round.put(made.ref.round, made)
        for who in {made.challenger, made.defender}:
            self.games_of.put(who, made)
        if made.ref.kind in ON_ACCUSATIONS:
            self.games_of_accusation.put(made.ref.outer_root, made.game_id)
