"""What tickets are drawn for, what they found, what they missed (contracts/audit/Duties.sol).

A ticket on call opens one secret with all its results. Whether a duty was its own follows from that secret, so anybody
proves a duty missed without a list. A result that differs from what it audits is an accusation: it freezes the accused
at once, needs no further stake, and lapses unless its game is opened.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.protocol.digests import ZERO
from assay.protocol.model.errors import refuse
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.accusations import AuditedRounds
from assay.protocol.rounds.duty_targets import DutyTarget, DutyTargets
from assay.protocol.rounds.duty_types import (
    MAX_AUDITED,
    Attestation,
    CallAnswer,
    DrawnDuty,
    DutyResult,
    DutyTerms,
    Missed,
    ReplayFinding,
)
from assay.protocol.rounds.epochs import AuditBeacon
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.types import Address, Digest, Seat


class Duties(DutyTargets):
    """The books of all audits; `now` is chain time in seconds."""

    def __init__(self, tickets: Tickets, beacon: AuditBeacon, rounds: AuditedRounds, terms: DutyTerms) -> None:
        super().__init__(tickets, beacon, rounds, terms)
        self.findings: dict[Digest, ReplayFinding] = {}
        """As the contract's events tell them."""
        self.accusers: set[tuple[int, Seat, Address]] = set()
        """Whose own attestation differs from a round's commitment of a seat: they challenge it directly."""
        self._fined: set[Digest | TicketId] = set()

    # --- tickets

    def open(self, who: Address, ticket: TicketId, secret: Digest, results: Sequence[DutyResult], now: int) -> None:
        """CallAnswer a call of the newest epoch: its secret, and results in the order of their draws.

        Raises NotTheTicketsOwner, TicketConvicted, EpochNotSeeded, TooLate, NotCalled, TooManyResults, what
        `Tickets.advance` raises, NotADuty, NotDrawn, FindingMismatch, AccumulatorsMissing, WorkMismatch, NotAscending.
        """
        number, epoch = self.number, self.epochs[-1]
        held = self.tickets.tickets.get(ticket)
        if held is None or held.owner != who:
            raise refuse("NotTheTicketsOwner", ticket=ticket, caller=who)
        # Attack: accuse with a ticket that has nothing left to lose.
        if held.convicted_at:
            raise refuse("TicketConvicted", ticket=ticket)
        if epoch.seed is None:
            raise refuse("EpochNotSeeded", epoch=number)
        if now > epoch.deadline:
            raise refuse("TooLate", now=now, deadline=epoch.deadline)
        self._check_called(ticket, number, now)
        if len(results) > self.terms.capacity:
            raise refuse("TooManyResults", count=len(results), most=self.terms.capacity)
        self.tickets.check_secret(ticket, epoch.call, epoch.start, secret)
        found, top = [], 0
        for k, result in enumerate(results):
            rank, attestation, finding, target = self._checked(number, ticket, secret, result, now)
            # Attack: answer one duty twice, or hide the highest draw answered.
            if k and rank <= top:
                raise refuse("NotAscending", rank=rank, before=top)
            top = rank
            found.append((attestation, finding, target, result))
        skipped = self.tickets.advance(ticket, number, epoch.call, epoch.start, secret)
        epoch.opened += 1
        for attestation, finding, target, result in found:
            self._record(number, ticket, attestation, finding, target, result)
        self.answers[number, ticket] = CallAnswer(secret, top, len(results), skipped, number, True)

    def show(self, ticket: TicketId, number: int, secret: Digest, now: int) -> None:
        """Show the secret of a call that was not answered.

        Raises EpochOpen, NotCalled, and what `Tickets.advance` raises.
        """
        self._check_closed(number)
        self._check_called(ticket, number, now)
        epoch = self.epochs[number]
        skipped = self.tickets.advance(ticket, number, epoch.call, epoch.start, secret)
        self.answers[number, ticket] = CallAnswer(secret, 0, 0, skipped, self.number, False)

    # --- anybody

    def miss(self, who: Address, ticket: TicketId, number: int, via: int, duty: DrawnDuty, now: int) -> int:
        """Fine a ticket for a duty that it did not answer; the fine taken, in wei.

        Raises EpochOpen, EpochWithoutFines, NotADuty, NotCalled, SecretNotShown, NotDrawn, DutyAnswered,
        DutyBeyondCapacity, BaseNotFinal, AlreadyFined.
        """
        self._check_fines(number)
        target = self._target_of(number, ticket, duty, now)
        self._check_missed(Missed(duty.kind, number, ticket, via), target, now)
        # Attack: work on a base that nobody honest holds. Nobody is fined before the base is final.
        if not self.rounds.is_base_final(target.round):
            raise refuse("BaseNotFinal", round=target.round)
        self._once(draws.missed_id(number, ticket, duty.kind, target.id))
        return self.tickets.fine(ticket, self.fine, who, now)

    def absent(self, who: Address, ticket: TicketId, number: int, now: int) -> int:
        """Fine a ticket that did not open in time; the fine taken, in wei.

        Raises EpochOpen, EpochWithoutFines, NotCalled, CallAnswered, AlreadyFined.
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

        Raises EpochOpen, EpochWithoutFines, NotCalled, SecretKnown, AlreadyFined.
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
        return self.number > number + 2 and self._belongs(round_, number)

    def states_of(self, attestation: Digest, finding: ReplayFinding) -> tuple[Digest, Digest]:
        """X and Y of an attestation's claim on the witnessed program. Raises FindingMismatch."""
        made = self.attestations.get(attestation)
        self._check_finding(made, finding)
        assert made is not None
        start = self.rounds.start_of(made.round, made.seat)
        return draws.witnessed_state(start, finding, False), draws.witnessed_state(finding.ends, finding, True)

    # --- results

    def _checked(
        self, number: int, ticket: TicketId, secret: Digest, result: DutyResult, now: int
    ) -> tuple[int, Digest, ReplayFinding, DutyTarget]:
        """Rank, name, finding and target of a result."""
        target, kind, seed = self._target_of(number, ticket, result.duty, now), result.duty.kind, self.epochs[-1].seed
        assert seed is not None
        drawn = draws.draw(secret, seed, target.id, ticket, kind)
        if drawn >= target.threshold:
            raise refuse("NotDrawn", target=target.id, ticket=ticket)
        own = draws.witness_key(secret, seed, target.id, ticket, kind)
        keys = (own, *self._audited_keys(result))
        if len(result.accumulators) != len(keys):
            raise refuse("AccumulatorsMissing", count=len(result.accumulators), wanted=len(keys))
        wanted, tenure = self.rounds.work_of(target.round, target.seat)
        digest = self.rounds.digest_of(target.round, target.seat, tenure, result.work)
        if digest != wanted:
            raise refuse("WorkMismatch", got=digest, wanted=wanted)
        rank = draws.rank_of(drawn, target.threshold)
        finding = ReplayFinding(result.ends, result.update, keys, result.accumulators)
        return rank, draws.attestation_id(number, ticket, kind, target.id), finding, target

    def _record(
        self,
        number: int,
        ticket: TicketId,
        name: Digest,
        finding: ReplayFinding,
        target: DutyTarget,
        result: DutyResult,
    ) -> None:
        """Keep a result, and record what it accuses."""
        differs = (result.ends, result.update) != (result.work.ends, result.work.update)
        kept = draws.finding_digest(target.round, target.seat, finding)
        keys = len(finding.keys)
        self.attestations[name] = Attestation(kept, number, ticket, target.round, target.seat, keys, differs)
        self.findings[name] = finding
        if differs:
            self.accusers.add((target.round, target.seat, self.tickets.owner_of(ticket)))
            digest, tenure = self.rounds.work_of(target.round, target.seat)
            self._accuse(name, digest, number, ticket, True, tenure)
        audited = result.duty.attestation
        if audited != ZERO and _contradicts(result):
            self._accuse(name, audited, number, ticket, False, self.attestations[audited].ticket)

    def _audited_keys(self, result: DutyResult) -> tuple[Digest, ...]:
        """The keys of the attestation that a result audits.

        Attack: find a blind attestation, keep silent about its accumulator, and sell the silence. Who audits it answers
        for it.
        """
        if result.duty.attestation == ZERO:
            return ()
        self._check_finding(self.attestations.get(result.duty.attestation), result.audited)
        return result.audited.keys if len(result.audited.keys) <= MAX_AUDITED else ()

    # --- inside

    def _once(self, name: Digest | TicketId) -> None:
        if name in self._fined:
            raise refuse("AlreadyFined", id=name)
        self._fined.add(name)

    def _check_finding(self, made: Attestation | None, finding: ReplayFinding) -> None:
        round_, seat, wanted = (made.round, made.seat, made.finding) if made else (0, Seat(0), ZERO)
        digest = draws.finding_digest(round_, seat, finding)
        if digest != wanted:
            raise refuse("FindingMismatch", got=digest, wanted=wanted)


def _contradicts(result: DutyResult) -> bool:
    """Whether a re-audit finds anything else than the attestation that it audits."""
    audited = result.audited
    if (result.ends, result.update) != (audited.ends, audited.update):
        return True
    return len(audited.keys) <= MAX_AUDITED and result.accumulators[1:] != audited.accumulators
