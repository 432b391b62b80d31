"""What auditors read of a run on the executable model: the records that their own duties follow from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from assay.protocol.rounds.duty_types import CallAnswer, DutyTerms, Epoch, ReplayFinding
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Round, Seat
from assay.simulation.model_run import ModelRun


@dataclass(frozen=True, slots=True)
class ModelWork:
    """`assay_verifier.drawing.SeenWork`."""

    round: int
    seat: Seat
    digest: Digest


@dataclass(frozen=True, slots=True)
class ModelAttestation:
    """`assay_verifier.drawing.SeenAttestation`."""

    id: Digest
    ticket: TicketId
    round: int
    seat: Seat
    finding: ReplayFinding


class ModelRecords:
    """`assay_verifier.drawing.AuditRecords` of a run on the model."""

    def __init__(self, run: ModelRun) -> None:
        self._run = run
        self._made: dict[int, list[ModelAttestation]] = {}
        self._read = 0

    @property
    def terms(self) -> DutyTerms:
        """Of its audits."""
        return self._run.duties.terms

    @property
    def epochs(self) -> Sequence[Epoch]:
        """All of them, the newest last."""
        return self._run.duties.epochs

    def works_of(self, epoch: int) -> Sequence[ModelWork]:
        """Commitments of the rounds that belong to an epoch."""
        found, audited = [], self._run.audited
        before = self.epochs[epoch - 1].start if epoch else 0
        for round_ in range(self._run.round, -1, -1):
            last = audited.commit_until(round_)
            if last < before:
                break
            for seat in self._run.works.get(Round(round_), {}):
                if last < self.epochs[epoch].start:
                    found.append(ModelWork(round_, seat, audited.work_of(round_, seat)[0]))
        return found

    def attestations_of(self, epoch: int) -> Sequence[ModelAttestation]:
        """Results that were opened in an epoch."""
        book = self._run.attestations
        for name, a in islice(book.attestations.items(), self._read, None):
            seen = ModelAttestation(name, a.ticket, a.round, a.seat, book.findings[name])
            self._made.setdefault(a.epoch, []).append(seen)
        self._read = len(book.attestations)
        return self._made.get(epoch, [])

    def is_attested(self, attestation: Digest) -> bool:
        """Whether there is a result of this name."""
        return attestation in self._run.attestations.attestations

    def is_doubted(self, epoch: int, ticket: TicketId) -> bool:
        """Whether a ticket was accused when it opened in an epoch, or before its end."""
        return (epoch, ticket) in self._run.attestations.doubted

    def answer_of(self, epoch: int, ticket: TicketId) -> CallAnswer | None:
        """What a ticket did at a call."""
        return self._run.duties.answers.get((epoch, ticket))

    def answers_shown_in(self, epoch: int) -> Sequence[tuple[int, TicketId]]:
        """Epochs and tickets of the secrets that were shown while an epoch was the newest."""
        return [place for place, answer in self._run.duties.answers.items() if answer.shown_in == epoch]

    def is_called(self, ticket: TicketId, epoch: int) -> bool:
        """Whether an epoch calls a ticket."""
        return self._run.is_called(ticket, epoch)

    def exists(self, ticket: TicketId) -> bool:
        """Whether a ticket was registered and its stake has not gone back."""
        return ticket in self._run.tickets.tickets
