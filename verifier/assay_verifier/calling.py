"""Which calls of this owner's tickets wait for an answer, and what each owes: secrets meet records. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from assay.protocol.digests import ZERO
from assay.protocol.rounds.duty_types import NO_FINDING, ReplayFinding
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.types import Digest, Seat
from assay_verifier.answering import OwnCall, OwnDuty, owed
from assay_verifier.drawing import AuditRecords, Drawn, DutyBook
from assay_verifier.finding_book import place_of
from assay_verifier.secret_chains import TicketChains
from assay_verifier.ticket_keeping import HeldTicket, TicketRecords, secret_of


class CallRecords(AuditRecords, TicketRecords, Protocol):
    """What has happened in a run, as far as a call depends on it."""

    def seat_work(self, round_: int, seat: Seat) -> SeatWork:
        """A commitment that there is."""
        ...

    def parameters_of(self, round_: int) -> Digest:
        """List root of the parameters that a round starts from."""
        ...

    def finding_of(self, attestation: Digest) -> ReplayFinding:
        """A result that there is, in full."""
        ...

    def digest_of(self, round_: int, seat: Seat) -> Digest:
        """The digest of a commitment that there is."""
        ...


def own_calls(records: CallRecords, tickets: Sequence[HeldTicket], chains: TicketChains) -> tuple[OwnCall, ...]:
    """Calls of the newest epoch that its tickets have not answered; none before its seed."""
    number = len(records.epochs) - 1
    epoch, book = records.epochs[number], DutyBook(records)
    if epoch.seed is None:
        return ()
    found = []
    for held in tickets:
        waits = held.can_answer and not held.is_convicted and records.answer_of(number, held.id) is None
        if not waits or not records.is_called(held.id, number):
            continue
        secret = secret_of(held, chains, records, number)
        if secret is None:
            continue
        drawn = book.drawn(number, held.id, secret)
        duties = tuple(_duty(records, held, one) for one in owed(drawn, records.terms.capacity))
        found.append(OwnCall(held.id, number, epoch.seed, epoch.deadline, duties, len(drawn) > len(duties)))
    return tuple(found)


def _duty(records: CallRecords, held: HeldTicket, drawn: Drawn) -> OwnDuty:
    digest = records.digest_of(drawn.round, drawn.seat)
    place = place_of(records.parameters_of(drawn.round), digest)
    audited = NO_FINDING if drawn.duty.attestation == ZERO else records.finding_of(drawn.duty.attestation)
    return OwnDuty(held.id, drawn, place, records.seat_work(drawn.round, drawn.seat), audited)
