"""What others left undone, which anybody proves for half of the fine: misses, absences, secrets never shown. Pure.

Of all owners of tickets one goes first, drawn by what is reported, the others wait for it: a report is paid once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol

from assay.protocol.digests import keccak
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.duty_types import DrawnDuty
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest
from assay_ledger.agents.round_actions import WithoutClock
from assay_verifier.drawing import AuditRecords, Drawn, DutyBook

STAGGER_S: Final = 60
"""Chain time for which each owner waits for the one before it, in seconds."""

MOST_TURNS: Final = 10
"""Places after which all others go at once."""

MEMORY: Final = 6
"""Closed epochs that are looked through, and that a base is final in which older epochs wait for: what is older still
was reported, or has left no stake to fine."""


@dataclass(frozen=True, slots=True)
class ReportMiss(WithoutClock):
    """A duty that a ticket did not answer, shown by the secret of `via`."""

    ticket: TicketId
    epoch: int
    via: int
    duty: DrawnDuty
    id: Digest


@dataclass(frozen=True, slots=True)
class ReportAbsence(WithoutClock):
    """A ticket that did not open in time."""

    ticket: TicketId
    epoch: int
    id: Digest


@dataclass(frozen=True, slots=True)
class ReportForfeit(WithoutClock):
    """A ticket whose secret is not shown, though an epoch with fines that is later than its call's has closed."""

    ticket: TicketId
    epoch: int
    later: int


Report = ReportMiss | ReportAbsence | ReportForfeit


@dataclass(frozen=True, slots=True)
class ReportDue:
    """A report, and the first chain time, in seconds, at which this owner makes it."""

    at: int
    report: Report


class FinedRecords(AuditRecords, Protocol):
    """What reports need to know beside the audits themselves."""

    def called(self, epoch: int) -> Sequence[TicketId]:
        """Tickets that an epoch calls and whose stake is there."""
        ...

    def is_fined(self, name: Digest) -> bool:
        """Whether a miss or an absence of this name was reported."""
        ...

    def is_convicted(self, ticket: TicketId) -> bool:
        """Whether a ticket's stake is gone."""
        ...

    def calls_shown(self, ticket: TicketId) -> int:
        """Calls of its shift up to the last one whose secret a ticket showed."""
        ...

    def base_final_at(self, round_: int) -> int | None:
        """Since when the generation that a round starts from is final, in seconds of chain time; None: it is not."""
        ...

    def first_final_since(self, time: int) -> int:
        """The first epoch with commitments on a base that became final at a time or later; the newest: none is."""
        ...


@dataclass(frozen=True, slots=True)
class ShownMiss:
    """A duty that a ticket did not answer at a call of epoch `number`."""

    ticket: TicketId
    number: int
    one: Drawn


class MissesDrawn:
    """Misses by the epoch whose secrets show them, drawn once: what is over draws nothing else later.

    Bad luck: where thousands of tickets are called the draws of one look take minutes, and an actor that drew anew at
    each step would come too late for its own calls and games. For one history: after a reorganization another is made.
    """

    def __init__(self) -> None:
        self._found: dict[int, tuple[object, tuple[ShownMiss, ...]]] = {}

    def shown_at(self, via: int, records: FinedRecords, book: DutyBook) -> tuple[ShownMiss, ...]:
        """What the secrets of an epoch show; drawn again where one more of them was shown meanwhile."""
        answers = [(ticket, records.answer_of(via, ticket)) for ticket in records.called(via)]
        known, found = self._found.get(via, (None, ()))
        # Bad luck: a base is final late, and whose miss a redraw names has left. Another's proves it, if any.
        first = {missed.one.duty.missed.ticket for missed in found} - {0}
        if known != answers or not all(map(records.exists, first)):
            found = tuple(
                ShownMiss(ticket, number, one)
                for ticket, _ in answers
                for number in book.calls_shown_by(via, ticket)
                if records.epochs[number].fines
                for one in (*book.missed(number, ticket, via), *book.missed_again(number, ticket, via))
            )
            self._found[via] = answers, found
        return found

    def forget_before(self, oldest: int) -> None:
        """Lets go of epochs that nobody looks through any more."""
        self._found = {via: kept for via, kept in self._found.items() if via >= oldest}


def reports(records: FinedRecords, owners: Sequence[Address], me: Address, misses: MissesDrawn) -> Iterator[ReportDue]:
    """What there is to report and when it is this owner's, forfeits first; owners: of tickets that count, in order.

    Turns are counted from the beginning of the epoch in which something can be reported, or from when the base under
    it became final. `misses` are kept for the next time.
    """
    newest = len(records.epochs) - 1
    recent = max(0, newest - MEMORY)
    # Attack: a game about a true base that lasts longer than anybody looks back, and all that is missed meanwhile is
    # drawn again at rate 3 and fined never. What a base kept from being fined is looked through once that is final.
    looked_at = range(min(recent, records.first_final_since(records.epochs[recent].start)), newest)
    closed = [n for n in looked_at if records.epochs[n].fines]

    def due(report: Report, name: Digest, since: int, at: int = 0) -> ReportDue:
        return ReportDue(max(at, records.epochs[since + 1].start) + wait_of(name, owners, me), report)

    for number, later in pairwise(closed):
        for ticket in records.called(number):
            unseen = records.calls_shown(ticket) < records.epochs[number].call
            name = keccak(b"forfeit" + draws.absence_id(number, ticket))
            if unseen and not records.is_convicted(ticket):
                yield due(ReportForfeit(ticket, number, later), name, later)
    for number in closed:
        for ticket in records.called(number):
            answer, name = records.answer_of(number, ticket), draws.absence_id(number, ticket)
            absent = answer is None or not answer.in_time
            if absent and not records.is_fined(name):
                yield due(ReportAbsence(ticket, number, name), name, number)
    book, seen = DutyBook(records), set()
    misses.forget_before(looked_at.start)
    for via in looked_at:
        for missed in misses.shown_at(via, records, book):
            ticket, number, one = missed.ticket, missed.number, missed.one
            answer, name = records.answer_of(via, ticket), draws.missed_id(number, ticket, one.duty.kind, one.target)
            assert answer is not None  # it shows the miss
            # Whose result a ticket was to audit, and has left, can be accused no more.
            is_gone = one.by != 0 and not records.exists(one.by)
            final_at = records.base_final_at(one.round)
            known = name in seen or records.is_fined(name)
            if number in closed and final_at is not None and not (is_gone or known):
                seen.add(name)
                # A secret that is shown late can be read once the epoch is over in which it was shown.
                since = min(max(number, answer.shown_in), newest - 1)
                yield due(ReportMiss(ticket, number, via, one.duty, name), name, since, final_at)


def wait_of(name: Digest, owners: Sequence[Address], me: Address) -> int:
    """How long this owner waits until it reports something of this name, in seconds of chain time."""
    order = sorted(owners, key=lambda who: keccak(name + who))
    return STAGGER_S * (min(order.index(me), MOST_TURNS) if me in order else MOST_TURNS + 1)
