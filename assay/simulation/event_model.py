"""Rounds and audits in events: draws by ticket, misses, redraws, fines, slashes, settlement. No bytes, no gas.

It stands where the executable model of the contracts will stand, behind the same interface, and shares no line with
the formulas that it checks (assay/protocol/economics/audit_prices.py). Source of the rules: docs/adr/0033, with pay an
epoch earlier, no redraw of what was not opened, and fines by the duties to be expected: softer on liars in all three.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from assay.simulation.interface import (
    AuditWord,
    ClaimNumber,
    OwnerNumber,
    OwnerTally,
    ReplayDuty,
    TenureNumber,
    TicketNumber,
)

MOST_REPEATS = 2
"""Of an epoch in which fewer than half of the tickets opened."""


@dataclass(frozen=True, slots=True)
class EventRules:
    """The terms that decide what happens; prices only decide what it is worth (`incomes.EventPrices`)."""

    seats: int = 64
    audit_rate: float = 0.10
    """p: expected replays of a commitment."""
    reaudit_rate: float = 0.20
    """q: expected replays of an attestation."""
    redraw_rate: float = 3.0
    """Expected replays, in the next epoch, of a claim that was missed: once a claim, by however many tickets.

    Once a miss, redraws would breed: where more than a third of the drawn miss, each miss brings more than one.
    """
    fine: float = 3.0
    """Wages that a miss costs, and an epoch without an opened secret once and for each duty to be expected."""
    capacity: int = 1000
    """c: of its draws a ticket owes so many, the lowest."""
    absences: int = 2
    """In a row: epochs without an opened secret cost the ticket, rounds without a commitment the seat and its fee.

    Of rounds in which most stay away the first is left out; one more absence costs the seat whatever others do.
    """


@dataclass(slots=True)
class _Ticket:
    owner: OwnerNumber
    absences: int = 0
    hidden: list[ClaimNumber] = field(default_factory=list)
    """Duties of epochs in which it did not open: its next opening shows them."""


@dataclass(slots=True)
class _EventClaim:
    """A commitment of a tenure, or an attestation of a ticket."""

    owner: OwnerNumber
    tenure: TenureNumber | None
    ticket: TicketNumber | None
    ready: int
    """The epoch at whose end it is paid."""


class EventModel:
    """Rounds and audits as `interface.PlayableRounds`, with chance as an argument."""

    def __init__(self, rules: EventRules, rng: np.random.Generator) -> None:
        self._rules, self._rng = rules, rng
        self._tickets: dict[TicketNumber, _Ticket] = {}
        self._sellers: dict[TicketNumber, OwnerNumber] = {}
        self._tenures: dict[TenureNumber, OwnerNumber] = {}
        self._away: dict[TenureNumber, int] = {}
        self._was_outage = False
        self._waived: list[bool] = []
        """Of the last rounds, whether its absences were left out."""
        self._claims: dict[ClaimNumber, _EventClaim] = {}
        self._tallies: dict[OwnerNumber, OwnerTally] = {}
        self._counter = self._epoch = self._repeats = 0
        self._commitments: list[ClaimNumber] = []
        self._attestations: list[ClaimNumber] = []
        self._last_attestations: list[ClaimNumber] = []
        self._rates: dict[ClaimNumber, float] = {}
        """Expected replays of each claim in this epoch."""
        self._redrawn: dict[ClaimNumber, None] = {}
        self._duties: dict[ReplayDuty, None] = {}
        self._opened: set[TicketNumber] = set()

    # --- joining

    def take_seat(self, owner: OwnerNumber) -> TenureNumber | None:
        """A tenure, while fewer than all seats are taken."""
        if len(self._tenures) >= self._rules.seats:
            return None
        tenure = TenureNumber(self._next())
        self._tenures[tenure] = owner
        return tenure

    def buy_ticket(self, owner: OwnerNumber) -> TicketNumber:
        """A ticket."""
        ticket = TicketNumber(self._next())
        self._tickets[ticket], self._sellers[ticket] = _Ticket(owner), owner
        return ticket

    def is_seated(self, tenure: TenureNumber) -> bool:
        """Whether the seat is still held."""
        return tenure in self._tenures

    def is_staked(self, ticket: TicketNumber) -> bool:
        """Whether the ticket still has its stake."""
        return ticket in self._tickets

    def tally(self, owner: OwnerNumber) -> OwnerTally:
        """The owner's events so far."""
        return self._tallies.setdefault(owner, OwnerTally())

    # --- an epoch

    def commit(self, tenures: Sequence[TenureNumber], invented: Collection[TenureNumber] = ()) -> Sequence[ClaimNumber]:
        """Commitments of these tenures; the others are evicted, for their fee, when they were away too often."""
        present, most = set(tenures), self._rules.absences
        is_outage = 2 * len(present) < len(self._tenures)
        self._waived = [*self._waived[1 - most :], is_outage and not self._was_outage]
        self._was_outage = is_outage
        for tenure in list(self._tenures):
            self._away[tenure] = 0 if tenure in present else self._away.get(tenure, 0) + 1
            is_excused = any(self._waived) and self._away[tenure] == most
            if self._away[tenure] >= most and not is_excused:
                self.tally(self._tenures.pop(tenure)).fees += 1
        self._commitments = [self._claim(self._tenures[t], tenure=t) for t in tenures]
        self._rates = dict.fromkeys(self._commitments, self._rules.audit_rate)
        self._rates |= dict.fromkeys(self._last_attestations, self._rules.reaudit_rate)
        for claim in self._redrawn:
            self._rates[claim] = self._rates.get(claim, 0.0) + self._rules.redraw_rate
        self._rates = {c: rate for c, rate in self._rates.items() if c in self._claims}
        self._redrawn = {}
        return self._commitments

    def draw(self) -> Sequence[ReplayDuty]:
        """Every ticket draws every claim with its rate over the tickets, independently, but not its own attestation."""
        tickets, claims = list(self._tickets), list(self._rates)
        chance = np.minimum(np.array(list(self._rates.values())) / max(len(tickets), 1), 1.0)
        draws: dict[TicketNumber, list[ClaimNumber]] = {}
        for row, column in np.argwhere(self._rng.random((len(tickets), len(claims))) < chance):
            ticket, claim = tickets[row], claims[column]
            if self._claims[claim].ticket != ticket:
                draws.setdefault(ticket, []).append(claim)
        for ticket, drawn in draws.items():
            # The lowest draws are duties; which these are nobody chooses.
            lowest = self._rng.permutation(len(drawn))[: self._rules.capacity]
            self._duties |= dict.fromkeys(ReplayDuty(ticket, drawn[k]) for k in sorted(lowest))
        return list(self._duties)

    def open_secret(self, ticket: TicketNumber) -> None:
        """Its duties of this epoch are known, and those of epochs that it skipped."""
        self._opened.add(ticket)

    def attest(self, duty: ReplayDuty, word: AuditWord = AuditWord.REPLAYED) -> ClaimNumber:
        """The duty is answered by a claim of its ticket."""
        del self._duties[duty]
        number = self._claim(self._tickets[duty.ticket].owner, ticket=duty.ticket)
        self._attestations.append(number)
        return number

    def close(self) -> bool:
        """Misses are fined and drawn again; with fewer than half of the tickets opened the epoch repeats, twice."""
        is_quorate = 2 * len(self._opened) >= len(self._tickets)
        if not is_quorate and self._repeats < MOST_REPEATS:
            self._repeats += 1
            return False
        self._repeats = 0
        if is_quorate:
            expected = sum(self._rates.values()) / len(self._tickets)
            missed = [(d.ticket, d.claim) for d in self._duties if d.ticket in self._opened]
            for number in list(self._tickets):
                ticket = self._tickets[number]
                if number in self._opened:
                    missed += [(number, claim) for claim in ticket.hidden]
                    ticket.absences, ticket.hidden = 0, []
                    continue
                self.tally(ticket.owner).fines += self._rules.fine * (1 + expected)
                ticket.absences += 1
                ticket.hidden += [d.claim for d in self._duties if d.ticket == number]
                if ticket.absences == self._rules.absences:
                    self._lose_ticket(number)
            for number, claim in missed:
                self.tally(self._sellers[number]).fines += self._rules.fine
                self._redrawn[claim] = None
        self._wait(is_quorate=is_quorate)
        return True

    def _wait(self, *, is_quorate: bool) -> None:
        """What is drawn again, or may turn out to have been missed, is paid an epoch later."""
        for claim in self._redrawn:
            if claim in self._claims:
                self._claims[claim].ready = max(self._claims[claim].ready, self._epoch + 1)
        if is_quorate and len(self._opened) < len(self._tickets):
            for claim in self._rates:
                if claim in self._claims:
                    self._claims[claim].ready = max(self._claims[claim].ready, self._epoch + 2)

    # --- verdicts and money

    def uphold(self, claim: ClaimNumber, drawn: Sequence[TicketNumber], third: OwnerNumber | None) -> None:
        """A tenure loses its lock and everything unsettled; a ticket its stake and every wage that is not settled."""
        lost = self._claims.get(claim)
        if lost is None:
            return
        if lost.tenure is not None:
            del self._tenures[lost.tenure]
            self.tally(lost.owner).locks += 1
            self._drop(c for c, x in self._claims.items() if x.tenure == lost.tenure)
        else:
            assert lost.ticket is not None
            self._lose_ticket(lost.ticket)
        kind = "locks" if lost.tenure is not None else "stakes"
        shares = [(self._sellers[t], f"drawn_{kind}", 1 / len(drawn)) for t in drawn]
        if not shares and third is not None:
            shares = [(third, f"third_{kind}", 1.0)]
        for owner, name, share in shares:
            tally = self.tally(owner)
            setattr(tally, name, getattr(tally, name) + share)

    def dismiss(self, claim: ClaimNumber, accuser: TicketNumber) -> None:
        """The accuser loses its ticket; whom it accused gets a third party's bounty."""
        if accuser not in self._tickets:
            return
        self._lose_ticket(accuser)
        if (winner := self._claims.get(claim)) is not None:
            self.tally(winner.owner).third_stakes += 1

    def settle(self) -> None:
        """Pays what is ready."""
        for number in [n for n, c in self._claims.items() if c.ready <= self._epoch]:
            claim = self._claims.pop(number)
            if claim.tenure is not None:
                self.tally(claim.owner).paid += 1
            else:
                self.tally(claim.owner).wages += 1
        self._last_attestations = [c for c in self._attestations if c in self._claims]
        self._attestations, self._duties = [], {}
        self._opened.clear()
        self._epoch += 1

    # --- helpers

    def _next(self) -> int:
        self._counter += 1
        return self._counter

    def _claim(
        self, owner: OwnerNumber, *, tenure: TenureNumber | None = None, ticket: TicketNumber | None = None
    ) -> ClaimNumber:
        number = ClaimNumber(self._next())
        self._claims[number] = _EventClaim(owner, tenure, ticket, self._epoch + 1)
        return number

    def _lose_ticket(self, number: TicketNumber) -> None:
        self.tally(self._tickets.pop(number).owner).stakes += 1
        self._drop(c for c, x in self._claims.items() if x.ticket == number)
        for duty in [d for d in self._duties if d.ticket == number]:
            del self._duties[duty]

    def _drop(self, claims: Iterable[ClaimNumber]) -> None:
        """Claims of a convicted party are void."""
        for claim in list(claims):
            del self._claims[claim]
