"""The records of a stage's audits, as auditors read them of a real run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assay.protocol.rounds.duty_types import CallAnswer, DutyTerms, Epoch, ReplayFinding
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Seat
from tests.harness.rounds.duties import DutyStage


@dataclass(frozen=True, slots=True)
class StageWork:
    """`SeenWork`."""

    round: int
    seat: Seat
    digest: Digest


@dataclass(frozen=True, slots=True)
class StageAttestation:
    """`SeenAttestation`."""

    id: Digest
    ticket: TicketId
    round: int
    seat: Seat
    finding: ReplayFinding


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

    def works_of(self, epoch: int) -> Sequence[StageWork]:
        rounds = self._stage.rounds
        starts = [e.start for e in self.epochs]
        before = starts[epoch - 1] if epoch else 0
        return [
            StageWork(round_, seat, rounds.digest_of(round_, seat, tenure, work))
            for (round_, seat), (tenure, work) in sorted(rounds.works.items())
            if before <= rounds.until[round_] < starts[epoch]
        ]

    def attestations_of(self, epoch: int) -> Sequence[StageAttestation]:
        book = self._stage.attestations
        return [
            StageAttestation(name, a.ticket, a.round, a.seat, book.findings[name])
            for name, a in book.attestations.items()
            if a.epoch == epoch
        ]

    def is_attested(self, attestation: Digest) -> bool:
        return attestation in self._stage.attestations.attestations

    def is_doubted(self, epoch: int, ticket: TicketId) -> bool:
        return (epoch, ticket) in self._stage.attestations.doubted

    def answer_of(self, epoch: int, ticket: TicketId) -> CallAnswer | None:
        return self._stage.duties.answers.get((epoch, ticket))

    def answers_shown_in(self, epoch: int) -> Sequence[tuple[int, TicketId]]:
        return [place for place, answer in self._stage.duties.answers.items() if answer.shown_in == epoch]

    def is_called(self, ticket: TicketId, epoch: int) -> bool:
        return self._stage.duties._is_called(ticket, self.epochs[epoch], self._stage.now)

    def exists(self, ticket: TicketId) -> bool:
        return ticket in self._stage.tickets.tickets

    # --- what reports need

    def called(self, epoch: int) -> Sequence[TicketId]:
        return [ticket for ticket in sorted(self._stage.tickets.tickets) if self.is_called(ticket, epoch)]

    def is_fined(self, name: Digest) -> bool:
        return name in self._stage.duties._fined

    def is_convicted(self, ticket: TicketId) -> bool:
        return self._stage.tickets.tickets[ticket].convicted_at != 0

    def calls_shown(self, ticket: TicketId) -> int:
        return self._stage.tickets.tickets[ticket].shown

    def base_final_at(self, round_: int) -> int | None:
        return self._stage.rounds.final_at.get(round_)

    def first_final_since(self, time: int) -> int:
        rounds = self._stage.rounds
        found = [rounds.until[round_] for round_, at in rounds.final_at.items() if at >= time]
        began = [number for number, epoch in enumerate(self.epochs) if found and epoch.start > min(found)]
        return min(began, default=len(self.epochs) - 1)

    # --- what calls need

    def seat_work(self, round_: int, seat: Seat) -> SeatWork:
        return self._stage.rounds.works[round_, seat][1]

    def digest_of(self, round_: int, seat: Seat) -> Digest:
        return self._stage.rounds.work_of(round_, seat)[0]

    def parameters_of(self, round_: int) -> Digest:
        return self._stage.rounds.start_of(round_, Seat(0))[0]

    def finding_of(self, attestation: Digest) -> ReplayFinding:
        return self._stage.attestations.findings[attestation]

    def calls_at(self, shift: int, time: int) -> int:
        return self._stage.duties.calls_at(shift, time)

    def over_since(self, epoch: int) -> int:
        return self._stage.duties.over_since(epoch)
