"""A run's view, as the rules of drawing, calling, keeping and reporting read it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import takewhile

from assay.protocol.rounds.duty_types import CallAnswer, DutyTerms, Epoch, ReplayFinding
from assay.protocol.rounds.ids import is_group
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import Ticket, TicketId
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.rounds.records import AttestationRecord, WorkRecord
from assay_ledger.rounds.view import RunView
from assay_verifier.ticket_keeping import HeldTicket


class ViewRecords:
    """`CallRecords` and `FinedRecords` of a view, which does not change while this is used."""

    def __init__(self, view: RunView) -> None:
        self.view = view
        self._works: dict[int, list[WorkRecord]] = {}

    # --- audits

    @property
    def terms(self) -> DutyTerms:
        """The terms of audits."""
        return self.view.terms

    @property
    def epochs(self) -> Sequence[Epoch]:
        """All epochs; the last one is the only one that is not closed."""
        return self.view.epochs

    def works_of(self, epoch: int) -> Sequence[WorkRecord]:
        """Commitments of the rounds that belong to an epoch."""
        if epoch not in self._works:
            self._works[epoch] = self.view.works_of(epoch)
        return self._works[epoch]

    def attestations_of(self, epoch: int) -> Sequence[AttestationRecord]:
        """Results that were opened in an epoch."""
        return self.view.attestations_of(epoch)

    def is_attested(self, attestation: Digest) -> bool:
        """Whether there is a result of this name."""
        return self.view.is_attested(attestation)

    def is_doubted(self, epoch: int, ticket: TicketId) -> bool:
        """Whether a ticket was accused when it opened in an epoch, or before its end."""
        return self.view.is_doubted(epoch, ticket)

    def answer_of(self, epoch: int, ticket: TicketId) -> CallAnswer | None:
        """What a ticket did at a call."""
        return self.view.answer_of(epoch, ticket)

    def answers_shown_in(self, epoch: int) -> Sequence[tuple[int, TicketId]]:
        """Epochs and tickets of the secrets that were shown while an epoch was the newest."""
        return self.view.answers_shown_in(epoch)

    def is_called(self, ticket: TicketId, epoch: int) -> bool:
        """Whether an epoch calls a ticket."""
        return self.view.is_called(ticket, epoch)

    def exists(self, ticket: TicketId) -> bool:
        """Whether a ticket was registered and its stake has not gone back."""
        return self.view.exists(ticket)

    # --- calls

    def seat_work(self, round_: int, seat: Seat) -> SeatWork:
        """A commitment that there is."""
        return self.view.state.works[Round(round_), seat].work

    def digest_of(self, round_: int, seat: Seat) -> Digest:
        """The digest of a commitment that there is."""
        return self.view.state.works[Round(round_), seat].digest

    def parameters_of(self, round_: int) -> Digest:
        """List root of the parameters that a round starts from."""
        return self.view.base(Round(round_)).parameters

    def finding_of(self, attestation: Digest) -> ReplayFinding:
        """A result that there is, in full."""
        return self.view.state.attestations[attestation].finding

    # --- tickets

    def calls_at(self, shift: int, time: int) -> int:
        """Calls of a shift by epochs that began at a time or before."""
        return self.view.books.duties.calls_at(shift, time)

    def over_since(self, epoch: int) -> int:
        """Since when nothing that belongs to an epoch can be drawn any more; 0: it can."""
        return self.view.books.duties.over_since(epoch)

    def held_ticket(self, number: TicketId, ticket: Ticket) -> HeldTicket:
        """A ticket as its owner keeps it."""
        registry = self.view.books.registry
        return HeldTicket(
            *(number, registry.shift_of(number), ticket.from_, tuple(registry.anchors[number]), ticket.until),
            *(ticket.shown, ticket.obligations, ticket.last_epoch, registry.missing[number]),
            *(ticket.convicted_at != 0, registry.can_answer(number)),
        )

    def held_tickets(self) -> list[HeldTicket]:
        """This owner's tickets whose stake has not gone back, the oldest first."""
        return [self.held_ticket(number, ticket) for number, ticket in self.view.tickets_of(self.view.me)]

    # --- reports

    def called(self, epoch: int) -> Sequence[TicketId]:
        """Tickets that an epoch calls and whose stake is there."""
        return list(self.view.called_tickets(epoch))

    def is_fined(self, name: Digest) -> bool:
        """Whether a miss or an absence of this name was reported."""
        return self.view.books.duties.is_fined(name)

    def is_convicted(self, ticket: TicketId) -> bool:
        """Whether a ticket's stake is gone."""
        return self.view.books.registry.tickets[ticket].convicted_at != 0

    def calls_shown(self, ticket: TicketId) -> int:
        """Calls of its shift up to the last one whose secret a ticket showed."""
        return self.view.books.registry.tickets[ticket].shown

    def base_final_at(self, round_: int) -> int | None:
        """Since when the generation that a round starts from is final, in seconds of chain time; None: it is not."""
        return self.view.state.final_at.get(self.view.round_of(Round(round_)).parent)

    def first_final_since(self, time: int) -> int:
        """The first epoch with commitments on a base that became final at a time or later; the newest: none is."""
        # They became final in the order of the chain, and a generation opens the round of its own number, if any.
        later = takewhile(lambda known: known[1] >= time, reversed(self.view.state.final_at.items()))
        bases = [node for node, _ in later if not is_group(node)]
        rounds = [Round(base) for base in bases if base < len(self.view.books.commitments.rounds)]
        until = min((self.view.commit_until(round_) for round_ in rounds), default=None)
        newest = len(self.epochs) - 1
        return newest if until is None else min(newest, bisect_right(self.epochs, until, key=lambda e: e.start))
