"""Which duties an epoch has, and which of them a ticket missed (contracts/audit/DutyTargets.sol)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from assay.protocol.digests import ZERO
from assay.protocol.errors import refuse
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.accusations import AuditedRounds
from assay.protocol.rounds.attestations import Attestations
from assay.protocol.rounds.duty_types import (
    AGAIN_PPM,
    LAST_EPOCHS,
    UNFINED_PPM,
    Attestation,
    CallAnswer,
    DrawnDuty,
    DutyKind,
    DutyTerms,
    Missed,
)
from assay.protocol.rounds.epochs import AuditBeacon, Epochs, last_drawn, unopened
from assay.protocol.rounds.ticket_types import TicketId, next_link
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.types import Digest, Seat


@dataclass(frozen=True, slots=True)
class DutyTarget:
    """A duty in an epoch: what is audited, and the commitment underneath."""

    id: Digest
    threshold: int
    """Below which its draw is one."""
    scale: int
    """Relative to which it ranks."""
    round: int
    seat: Seat


class DutyTargets(Epochs):
    """Answers, and what follows from them; `now` is chain time in seconds."""

    def __init__(self, tickets: Tickets, beacon: AuditBeacon, rounds: AuditedRounds, terms: DutyTerms) -> None:
        super().__init__(tickets, beacon, terms)
        self.rounds = rounds
        self.answers: dict[tuple[int, TicketId], CallAnswer] = {}
        self.attestations = Attestations(tickets, self, rounds, self.fine)

    @property
    def fine(self) -> int:
        """What a miss costs, in wei."""
        return 3 * self.terms.wage

    def secret_of(self, ticket: TicketId, number: int, via: int) -> Digest:
        """The secret of a call, as the secret of `via` shows it. Raises SecretNotShown."""
        answer = self.answers.get((via, ticket))
        epoch, shown = self._epoch(number), self._epoch(via)
        known = answer is not None and via >= number and shown.shift == epoch.shift
        # Attack: read the secret of one chain as a link of another. Skipped calls are of the chain that skipped them.
        if answer is None or not known or shown.call > epoch.call + answer.skipped:
            raise refuse("SecretNotShown", ticket=ticket, epoch=number, via=via)
        secret = answer.secret
        for _ in range(shown.call - epoch.call):
            secret = next_link(secret)
        return secret

    # --- inside

    def _target_of(self, number: int, ticket: TicketId, duty: DrawnDuty, now: int) -> DutyTarget:
        """What a duty of an epoch is drawn over. Raises NotADuty and, for a redraw, what `_check_missed` raises."""
        # Attack: re-audits of re-audits for as long as epochs go on, with fines for whom nobody pays any more.
        if self._epoch(number).idle:
            raise refuse("NotADuty", kind=duty.kind, epoch=number)
        if duty.kind is not DutyKind.MISSED:
            return self._plain(number, duty.kind, ticket, duty)
        missed = duty.missed
        if missed.kind is DutyKind.MISSED:
            raise refuse("NotADuty", kind=duty.kind, epoch=number)
        target = self._plain(missed.epoch, missed.kind, missed.ticket, duty)
        # Drawn again in the epoch after the one in which it was shown, by that epoch's secrets: once, whoever else
        # missed it too.
        shown = self.answers.get((missed.via, missed.ticket))
        own = duty.attestation != ZERO and self.attestations.attestations[duty.attestation].ticket == ticket
        home = missed.epoch - missed.kind.is_again
        # Attack: show a miss when its claim is settled, and let who answers accuse what no game can be opened on.
        late = number > last_drawn(self.epochs, home) or (shown.shown_in if shown else 0) + 1 != number
        if own or late:
            raise refuse("NotADuty", kind=duty.kind, epoch=number)
        doubted = (missed.epoch, missed.ticket) in self.attestations.doubted
        self._check_missed(missed, target, doubted, now)
        ppm, on_call = AGAIN_PPM, self._epoch(number).on_call
        if not doubted and not self._epoch(missed.epoch).fines:
            # Attack: keep an epoch from fining, and be paid for what it left undone several times over. What was not
            # opened is drawn again by its share; all else once.
            answer = self.answers.get((missed.epoch, missed.ticket))
            if not (answer and answer.in_time) and not missed.kind.is_again:
                raise refuse("NotADuty", kind=duty.kind, epoch=number)
            ppm = UNFINED_PPM
        return replace(target, threshold=draws.threshold(ppm, on_call), scale=draws.threshold(AGAIN_PPM, on_call))

    def _on_began(self, now: int) -> None:
        """Duties end with the work: their last epoch is known once one began after the last commitment of all."""
        until = None if self.last_epoch else self.rounds.trained_until(now)
        if until is not None and until < now:
            self.last_epoch = self.number + LAST_EPOCHS

    def _plain(self, number: int, kind: DutyKind, ticket: TicketId, duty: DrawnDuty) -> DutyTarget:
        """A duty that is no redraw of a miss. Raises NotADuty, RoundNotOpen."""
        again = kind.is_again
        home = number - again
        none = refuse("NotADuty", kind=kind, epoch=number)
        if home < 0:
            raise none
        if kind in (DutyKind.WORK, DutyKind.WORK_AGAIN):
            ppm, (name, _) = self.terms.audit_ppm, self.rounds.work_of(duty.round, duty.seat)
            round_, seat = duty.round, duty.seat
            if duty.attestation != ZERO or name == ZERO or not self._belongs(duty.round, home):
                raise none
        elif kind in (DutyKind.REAUDIT, DutyKind.REAUDIT_AGAIN):
            ppm, name, made = self.terms.reaudit_ppm, duty.attestation, self._attestation(duty.attestation)
            # Attack: a ticket that has left makes the openings fail that would accuse it.
            if made is None or made.ticket == ticket or made.epoch + 1 != home:
                raise none
            if made.ticket not in self.tickets.tickets:
                raise none
            round_, seat = made.round, made.seat
        else:
            raise none
        if again:
            ppm = unopened(self._epoch(home), ppm)
        below = draws.threshold(ppm, self._epoch(number).on_call)
        return DutyTarget(name, below, below, round_, seat)

    def _attestation(self, name: Digest) -> Attestation | None:
        return self.attestations.attestations.get(name)

    def _belongs(self, round_: int, number: int) -> bool:
        """Whether this is the first epoch that began after the round took its last commitment.

        Attack: commit after the seed, once the secrets that could draw it are shown.
        """
        last = self.rounds.commit_until(round_)
        return last < self._epoch(number).start and (number == 0 or last >= self._epoch(number - 1).start)

    def _check_missed(self, missed: Missed, target: DutyTarget, doubted: bool, now: int) -> None:
        """Whether the ticket was called and drawn, had room, and did not answer, or answered what is drawn again."""
        self._check_called(missed.ticket, missed.epoch, now)
        secret, seed = self.secret_of(missed.ticket, missed.epoch, missed.via), self.epochs[missed.epoch].seed
        assert seed is not None
        drawn = draws.draw(secret, seed, target.id, missed.ticket, missed.kind)
        if drawn >= target.threshold:
            raise refuse("NotDrawn", target=target.id, ticket=missed.ticket)
        name = draws.attestation_id(missed.epoch, missed.ticket, missed.kind, target.id)
        if not doubted and self._attestation(name) is not None:
            raise refuse("DutyAnswered", attestation=name)
        answer = self.answers.get((missed.epoch, missed.ticket))
        rank = draws.rank_of(drawn, target.scale)
        # Attack: drop the duty that one is paid to drop, as one too many. The lowest draws are the duties.
        if answer is not None and answer.answered == self.terms.capacity and rank > answer.top_rank:
            raise refuse("DutyBeyondCapacity", rank=rank, top_rank=answer.top_rank)
