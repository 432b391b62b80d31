"""What a secret draws in an epoch, and what a ticket missed, from the records of a run alone. Pure.

Equal to `assay.protocol.rounds` and the contracts, which are asked about one duty at a time: here all duties of an
epoch are gone through, by whoever owns the ticket to know its own, and by everybody to know what others dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.duty_types import (
    AGAIN_PPM,
    MAX_AUDITED,
    UNFINED_PPM,
    CallAnswer,
    DrawnDuty,
    DutyKind,
    DutyTerms,
    Epoch,
    Missed,
    ReplayFinding,
)
from assay.protocol.rounds.epochs import last_drawn, unopened
from assay.protocol.rounds.ticket_types import TicketId, next_link
from assay.protocol.types import Digest, Seat

NO_TICKET: Final = TicketId(0)


class SeenWork(Protocol):
    """A commitment as its event tells it."""

    @property
    def round(self) -> int: ...
    @property
    def seat(self) -> Seat: ...
    @property
    def digest(self) -> Digest: ...


class SeenAttestation(Protocol):
    """A result as its event tells it."""

    @property
    def id(self) -> Digest: ...
    @property
    def ticket(self) -> TicketId: ...
    @property
    def round(self) -> int: ...
    @property
    def seat(self) -> Seat: ...
    @property
    def finding(self) -> ReplayFinding: ...


class AuditRecords(Protocol):
    """What has happened in a run's audits. The newest epoch is the last one; all before it are closed."""

    @property
    def terms(self) -> DutyTerms: ...

    @property
    def epochs(self) -> Sequence[Epoch]: ...

    def works_of(self, epoch: int) -> Sequence[SeenWork]:
        """Commitments of the rounds that belong to an epoch."""
        ...

    def attestations_of(self, epoch: int) -> Sequence[SeenAttestation]:
        """Results that were opened in an epoch."""
        ...

    def is_attested(self, attestation: Digest) -> bool:
        """Whether there is a result of this name."""
        ...

    def is_doubted(self, epoch: int, ticket: TicketId) -> bool:
        """Whether a ticket was accused when it opened in an epoch, or before its end."""
        ...

    def answer_of(self, epoch: int, ticket: TicketId) -> CallAnswer | None:
        """What a ticket did at a call."""
        ...

    def answers_shown_in(self, epoch: int) -> Sequence[tuple[int, TicketId]]:
        """Epochs and tickets of the secrets that were shown while an epoch was the newest."""
        ...

    def is_called(self, ticket: TicketId, epoch: int) -> bool:
        """Whether an epoch calls a ticket."""
        ...

    def exists(self, ticket: TicketId) -> bool:
        """Whether a ticket was registered and its stake has not gone back."""
        ...


@dataclass(frozen=True, slots=True)
class Drawn:
    """A duty that a secret draws; `by` is the ticket whose attestation it audits, 0 for a commitment.

    `audited` are the keys of that attestation that the result answers for beside its own.
    """

    rank: int
    duty: DrawnDuty
    target: Digest
    round: int
    seat: Seat
    key: Digest
    audited: tuple[Digest, ...]
    by: TicketId = NO_TICKET


@dataclass(frozen=True, slots=True)
class _Target:
    """A duty of an epoch, whoever draws it."""

    duty: DrawnDuty
    id: Digest
    threshold: int
    """Below which its draw is one."""
    scale: int
    """Relative to which it ranks."""
    round: int
    seat: Seat
    by: TicketId
    audited: tuple[Digest, ...]


class DutyBook:
    """Duties of the epochs of some records, which do not change while this is used."""

    def __init__(self, records: AuditRecords) -> None:
        self._records = records
        self._plain: dict[int, tuple[_Target, ...]] = {}
        self._again: dict[int, tuple[_Target, ...]] = {}

    def drawn(self, number: int, ticket: TicketId, secret: Digest) -> tuple[Drawn, ...]:
        """Everything that a ticket is drawn for in an epoch that has its seed, by rank."""
        found = self._drawn(number, ticket, secret, (*self._plain_of(number), *self._again_of(number)))
        return tuple(sorted(found, key=lambda drawn: drawn.rank))

    def missed(self, number: int, ticket: TicketId, via: int) -> tuple[Drawn, ...]:
        """Plain duties of a call that its ticket did not answer, as the secret shown at `via` draws them."""
        secret = self._secret_of(number, ticket, via)
        if secret is None or not self._records.is_called(ticket, number):
            return ()
        return tuple(self._unanswered(number, ticket, self._drawn(number, ticket, secret, self._plain_of(number))))

    def missed_again(self, number: int, ticket: TicketId, via: int) -> tuple[Drawn, ...]:
        """The same of duties that others had missed before; they are fined, and drawn no further time."""
        secret = self._secret_of(number, ticket, via)
        if secret is None or not self._records.is_called(ticket, number):
            return ()
        return tuple(self._unanswered(number, ticket, self._drawn(number, ticket, secret, self._again_of(number))))

    def calls_shown_by(self, via: int, ticket: TicketId) -> Iterator[int]:
        """Epochs of which the secret of a call shows the secret: its own, and those that it skipped."""
        answer, epochs = self._records.answer_of(via, ticket), self._records.epochs
        if answer is None:
            return
        found = []
        for number in range(via, -1, -1):
            if not epochs[number].on_call or epochs[number].shift != epochs[via].shift:
                continue
            # Calls of a shift are counted up: of those before this one none is shown.
            if epochs[number].call + answer.skipped < epochs[via].call:
                break
            found.append(number)
        yield from reversed(found)

    # --- inside

    def _drawn_again(self, number: int, ticket: TicketId, via: int) -> Iterator[Drawn]:
        """Plain duties of a call that are drawn again: missed, or answered by a ticket that is accused."""
        secret = self._secret_of(number, ticket, via)
        if secret is not None and self._records.is_called(ticket, number):
            drawn = self._drawn(number, ticket, secret, self._plain_of(number))
            yield from self._unanswered(number, ticket, drawn, self._records.is_doubted(number, ticket))

    def _drawn(self, number: int, ticket: TicketId, secret: Digest, targets: Sequence[_Target]) -> Iterator[Drawn]:
        seed = self._records.epochs[number].seed
        assert seed is not None
        for target in targets:
            # Nobody audits its own attestation.
            if target.by == ticket:
                continue
            kind = target.duty.kind
            drawn = draws.draw(secret, seed, target.id, ticket, kind)
            if drawn < target.threshold:
                key = draws.witness_key(secret, seed, target.id, ticket, kind)
                rank = draws.rank_of(drawn, target.scale)
                yield Drawn(rank, target.duty, target.id, target.round, target.seat, key, target.audited, target.by)

    def _unanswered(
        self, number: int, ticket: TicketId, drawn: Iterator[Drawn], doubted: bool = False
    ) -> Iterator[Drawn]:
        answer = self._records.answer_of(number, ticket)
        for one in drawn:
            name = draws.attestation_id(number, ticket, one.duty.kind, one.target)
            full = answer is not None and answer.answered == self._records.terms.capacity
            beyond = full and answer is not None and one.rank > answer.top_rank
            if (doubted or not self._records.is_attested(name)) and not beyond:
                yield one

    def _secret_of(self, number: int, ticket: TicketId, via: int) -> Digest | None:
        """The secret of a call, as the secret of `via` shows it."""
        answer = self._records.answer_of(via, ticket)
        if answer is None or number not in self.calls_shown_by(via, ticket):
            return None
        secret = answer.secret
        for _ in range(self._records.epochs[via].call - self._records.epochs[number].call):
            secret = next_link(secret)
        return secret

    def _plain_of(self, number: int) -> tuple[_Target, ...]:
        """Duties of an epoch that nobody missed before."""
        if number not in self._plain:
            idle = self._records.epochs[number].idle
            self._plain[number] = () if idle else tuple(self._plain_targets(number))
        return self._plain[number]

    def _plain_targets(self, number: int) -> Iterator[_Target]:
        on_call = self._records.epochs[number].on_call
        for again in (False, True):
            home = number - again
            if home < 0:
                continue
            work_ppm, reaudit_ppm = self._records.terms.audit_ppm, self._records.terms.reaudit_ppm
            if again:
                before = self._records.epochs[home]
                work_ppm, reaudit_ppm = unopened(before, work_ppm), unopened(before, reaudit_ppm)
            kind = DutyKind.WORK_AGAIN if again else DutyKind.WORK
            below = draws.threshold(work_ppm, on_call)
            for seen in self._records.works_of(home):
                duty = DrawnDuty(kind, seen.round, seen.seat)
                yield _Target(duty, seen.digest, below, below, seen.round, seen.seat, NO_TICKET, ())
            kind = DutyKind.REAUDIT_AGAIN if again else DutyKind.REAUDIT
            below = draws.threshold(reaudit_ppm, on_call)
            for made in self._records.attestations_of(home - 1) if home else ():
                # A ticket that has left can be accused no more.
                if self._records.exists(made.ticket):
                    duty = DrawnDuty(kind, attestation=made.id)
                    keys = made.finding.keys if len(made.finding.keys) <= MAX_AUDITED else ()
                    yield _Target(duty, made.id, below, below, made.round, made.seat, made.ticket, keys)

    def _again_of(self, number: int) -> tuple[_Target, ...]:
        """What others missed, as the secrets shown in the epoch before prove it."""
        if number not in self._again:
            idle = not number or self._records.epochs[number].idle
            self._again[number] = () if idle else tuple(self._again_targets(number))
        return self._again[number]

    def _again_targets(self, number: int) -> Iterator[_Target]:
        """Each claim once, however many missed it: the first miss found that draws it at the highest rate proves it."""
        on_call = self._records.epochs[number].on_call
        scale = draws.threshold(AGAIN_PPM, on_call)
        found: dict[Digest, _Target] = {}
        for via, ticket in self._records.answers_shown_in(number - 1):
            for home in self.calls_shown_by(via, ticket):
                for one in self._drawn_again(home, ticket, via):
                    # A claim may be settled once nothing draws it any more.
                    if number > last_drawn(self._records.epochs, home - one.duty.kind.is_again):
                        continue
                    below = draws.threshold(self._rate_again(home, ticket, one.duty.kind), on_call)
                    if below and (one.target not in found or found[one.target].threshold < below):
                        missed = Missed(one.duty.kind, home, ticket, via)
                        duty = replace(one.duty, kind=DutyKind.MISSED, missed=missed)
                        found[one.target] = _Target(
                            duty, one.target, below, scale, one.round, one.seat, one.by, one.audited
                        )
        yield from found.values()

    def _rate_again(self, number: int, ticket: TicketId, kind: DutyKind) -> int:
        """At which a miss of a call is drawn again, in parts per million; 0: what was not opened is, by its share."""
        if self._records.is_doubted(number, ticket) or self._records.epochs[number].fines:
            return AGAIN_PPM
        answer = self._records.answer_of(number, ticket)
        return UNFINED_PPM if kind.is_again or (answer is not None and answer.in_time) else 0
