"""What tickets are drawn for, and what they missed (contracts/audit/Duties.sol).

A ticket on call opens one secret with all its results. Whether a duty was its own follows from that secret, so anybody
proves a duty missed without a list.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.protocol.errors import refuse
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.accusations import AuditedRounds
from assay.protocol.rounds.duty_targets import DutyTargets
from assay.protocol.rounds.duty_types import CallAnswer, DrawnDuty, DrawnResult, DutyResult, DutyTerms, Missed
from assay.protocol.rounds.epochs import AuditBeacon
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.types import Address, Digest


class Duties(DutyTargets):
    """The books of all audits; `now` is chain time in seconds."""

    def __init__(self, tickets: Tickets, beacon: AuditBeacon, rounds: AuditedRounds, terms: DutyTerms) -> None:
        super().__init__(tickets, beacon, rounds, terms)
        self._fined: set[Digest | TicketId] = set()

    # --- tickets

    def open(
        self, who: Address, ticket: TicketId, seed: Digest, secret: Digest, results: Sequence[DutyResult], now: int
    ) -> None:
        """Answer a call of the newest epoch, by its seed: the secret, and results in the order of their draws.

        A result without accumulators names a duty that is left out.

        Raises RunStopped, NotTheTicketsOwner, TicketConvicted, TicketDrained, EpochNotSeeded, SeedMismatch, TooLate,
        NotCalled, TooManyResults, what `Tickets.advance` raises, NotADuty, NotDrawn, FindingMismatch,
        AccumulatorsMissing, WorkMismatch, NotAscending.
        """
        # Attack: accuse falsely when no game can open any more, and share what an older one takes.
        self._check_running()
        number, epoch = self.number, self.epochs[-1]
        held = self.tickets.tickets.get(ticket)
        if held is None or held.owner != who:
            raise refuse("NotTheTicketsOwner", ticket=ticket, caller=who)
        # Attack: accuse with a ticket that has nothing left to lose.
        if held.convicted_at:
            raise refuse("TicketConvicted", ticket=ticket)
        if not self.tickets.can_answer(ticket):
            raise refuse("TicketDrained", ticket=ticket)
        if epoch.seed is None:
            raise refuse("EpochNotSeeded", epoch=number)
        # Attack: an honest answer that is mined again after a reorganization, under another seed.
        if seed != epoch.seed:
            raise refuse("SeedMismatch", got=seed, wanted=epoch.seed)
        if now > epoch.deadline:
            raise refuse("TooLate", now=now, deadline=epoch.deadline)
        self._check_called(ticket, number, now)
        if len(results) > self.terms.capacity:
            raise refuse("TooManyResults", count=len(results), most=self.terms.capacity)
        self.tickets.check_secret(ticket, epoch.call, epoch.start, secret)
        found, top = [], 0
        for k, result in enumerate(results):
            rank, drawn = self._checked(number, ticket, secret, result, now)
            # Attack: answer one duty twice, or hide the highest draw answered.
            if k and rank <= top:
                raise refuse("NotAscending", rank=rank, before=top)
            top = rank
            if result.accumulators:
                found.append(drawn)
        skipped = self.tickets.advance(ticket, number, epoch.call, epoch.start, secret)
        epoch.opened += 1
        for drawn in found:
            self.attestations.record(drawn, now)
        self.answers[number, ticket] = CallAnswer(secret, top, len(results), skipped, number, True)

    def show(self, ticket: TicketId, number: int, secret: Digest, now: int) -> None:
        """Show the secret of a call that was not answered.

        Raises RunStopped, EpochOpen, NotCalled, and what `Tickets.advance` raises.
        """
        self._check_running()
        self._check_closed(number)
        self._check_called(ticket, number, now)
        epoch = self.epochs[number]
        skipped = self.tickets.advance(ticket, number, epoch.call, epoch.start, secret)
        self.answers[number, ticket] = CallAnswer(secret, 0, 0, skipped, self.number, False)

    # --- anybody

    def miss(self, who: Address, ticket: TicketId, number: int, via: int, duty: DrawnDuty, now: int) -> int:
        """Fine a ticket for a duty that it did not answer; the fine taken, in wei.

        Raises RunStopped, EpochOpen, EpochWithoutFines, NotADuty, NotCalled, SecretNotShown, NotDrawn, DutyAnswered,
        DutyBeyondCapacity, BaseNotFinal, AlreadyFined.
        """
        self._check_fines(number)
        target = self._target_of(number, ticket, duty, now)
        self._check_missed(Missed(duty.kind, number, ticket, via), target, False, now)
        # Attack: work on a base that nobody honest holds. Nobody is fined before the base is final.
        if not self.rounds.is_base_final(target.round):
            raise refuse("BaseNotFinal", round=target.round)
        self._once(draws.missed_id(number, ticket, duty.kind, target.id))
        return self.tickets.fine(ticket, self.fine, who, now)

    def absent(self, who: Address, ticket: TicketId, number: int, now: int) -> int:
        """Fine a ticket that did not open in time; the fine taken, in wei.

        Raises RunStopped, EpochOpen, EpochWithoutFines, NotCalled, CallAnswered, AlreadyFined.
        """
        self._check_fines(number)
        self._check_called(ticket, number, now)
        answer = self.answers.get((number, ticket))
        if answer is not None and answer.in_time:
            raise refuse("CallAnswered", ticket=ticket, epoch=number)
        self._once(draws.absence_id(number, ticket))
        # Rounds open only while c per ticket is twice what is expected, so c / 2 is no fewer than its expected duties.
        return self.tickets.fine(ticket, self.fine + self.fine * self.terms.capacity // 2, who, now)

    def forfeit(self, ticket: TicketId, number: int, later: int, now: int) -> None:
        """Burn the stake of a ticket whose secret is not shown when a later epoch with fines has closed too.

        Raises RunStopped, EpochOpen, EpochWithoutFines, NotCalled, SecretKnown, AlreadyFined.
        """
        self._check_fines(number)
        self._check_fines(later)
        if later <= number:
            raise refuse("EpochOpen", epoch=later)
        self._check_called(ticket, number, now)
        # Attack: be drawn on a lie, be paid, and never show it.
        if self.tickets.tickets[ticket].shown >= self.epochs[number].call:
            raise refuse("SecretKnown", ticket=ticket, epoch=number)
        self._once(ticket)
        self.tickets.forfeit(ticket, now)

    # --- views

    def is_audited(self, round_: int, number: int) -> bool:
        """Whether nothing about a round's work can be drawn any more, given the epoch that it belongs to."""
        return bool(self.over_since(number)) and self._belongs(round_, number)

    # --- inside

    def _checked(
        self, number: int, ticket: TicketId, secret: Digest, result: DutyResult, now: int
    ) -> tuple[int, DrawnResult]:
        """A result whose draw is right, and its rank."""
        target, kind, seed = self._target_of(number, ticket, result.duty, now), result.duty.kind, self.epochs[-1].seed
        assert seed is not None
        drawn = draws.draw(secret, seed, target.id, ticket, kind)
        if drawn >= target.threshold:
            raise refuse("NotDrawn", target=target.id, ticket=ticket)
        key = draws.witness_key(secret, seed, target.id, ticket, kind)
        if result.accumulators:
            self.attestations.check(key, target.round, target.seat, result)
        name = draws.attestation_id(number, ticket, kind, target.id)
        made = DrawnResult(name, key, target.round, target.seat, number, ticket, result)
        return draws.rank_of(drawn, target.scale), made

    def _once(self, name: Digest | TicketId) -> None:
        if name in self._fined:
            raise refuse("AlreadyFined", id=name)
        self._fined.add(name)
