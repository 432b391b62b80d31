"""The records of a stage's audits, as auditors read them of a real run."""

from __future__ import annotations

from collections.abc import Sequence

from assay.protocol.rounds.duty_types import CallAnswer, DutyTerms, Epoch
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest
from assay_verifier.drawing import SeenAttestation, SeenWork
from tests.harness.rounds.duties import DutyStage


class StageRecords:
    """`assay_verifier.drawing.AuditRecords` of the executable model."""

    def __init__(self, stage: DutyStage) -> None:
        self._stage = stage

    @property
    def terms(self) -> DutyTerms:
        return self._stage.duties.terms

    @property
    def epochs(self) -> Sequence[Epoch]:
        return self._stage.duties.epochs

    def works_of(self, epoch: int) -> Sequence[SeenWork]:
        rounds = self._stage.rounds
        starts = [e.start for e in self.epochs]
        before = starts[epoch - 1] if epoch else 0
        return [
            SeenWork(round_, seat, tenure, rounds.digest_of(round_, seat, tenure, work), work)
            for (round_, seat), (tenure, work) in sorted(rounds.works.items())
            if before <= rounds.until[round_] < starts[epoch]
        ]

    def attestations_of(self, epoch: int) -> Sequence[SeenAttestation]:
        book = self._stage.attestations
        return [
            SeenAttestation(name, a.epoch, a.ticket, a.round, a.seat, book.findings[name])
            for name, a in book.attestations.items()
            if a.epoch == epoch
        ]

    def is_attested(self, attestation: Digest) -> bool:
        return attestation in self._stage.attestations.attestations

    def answer_of(self, epoch: int, ticket: TicketId) -> CallAnswer | None:
        return self._stage.duties.answers.get((epoch, ticket))

    def answers_shown_in(self, epoch: int) -> Sequence[tuple[int, TicketId]]:
        return [place for place, answer in self._stage.duties.answers.items() if answer.shown_in == epoch]

    def is_called(self, ticket: TicketId, epoch: int) -> bool:
        return self._stage.duties._is_called(ticket, self.epochs[epoch], self._stage.now)

    def exists(self, ticket: TicketId) -> bool:
        return ticket in self._stage.tickets.tickets
