"""The books of a run's rounds, as its audits ask them (AuditedRounds)."""

from __future__ import annotations

from assay.protocol.digests import ZERO
from assay.protocol.errors import refuse
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.clock import commit_until
from assay.protocol.rounds.ledger import GroupedLedger, RoundLedger
from assay.protocol.rounds.terms import GenerationStatus, SeatWork, WorkState
from assay.protocol.types import Digest, Round, Seat


class AuditedBooks:
    """Tenures, commitments and generations of one run."""

    def __init__(self, books: RoundLedger | GroupedLedger) -> None:
        self._books = books

    def commit_until(self, round_: int) -> int:
        """The last second in which the round takes commitments. Raises RoundNotOpen."""
        return commit_until(self._books.terms, self._books.commitments.round_of(Round(round_)))

    def trained_until(self, now: int) -> int | None:
        """The last second in which the run takes commitments, once no round can open any more; None before."""
        rounds = self._books.commitments.rounds
        if not rounds or not self._books.commitments.is_over(now):
            return None
        return self.commit_until(len(rounds) - 1)

    def work_of(self, round_: int, seat: Seat) -> tuple[Digest, int]:
        """Digest and tenure of a commitment; zeros where there is none."""
        made = self._books.commitments.works.get((Round(round_), seat))
        return (ZERO, 0) if made is None else (made.digest, made.tenure)

    def steps_of(self, round_: int, seat: Seat) -> int:
        """Steps of a commitment. Raises CommitmentNotFound."""
        return self._made(round_, seat).units * self._books.terms.steps_per_unit

    def is_disputable(self, round_: int, seat: Seat) -> bool:
        """Whether a commitment can still be accused, or challenged by a third party. Raises RoundNotOpen."""
        return self._books.commitments.is_disputable(Round(round_), seat)

    def digest_of(self, round_: int, seat: Seat, tenure: int, work: SeatWork) -> Digest:
        """The digest that a commitment to this work has."""
        return ids.work_digest(Round(round_), seat, tenure, work)

    def start_of(self, round_: int, seat: Seat) -> tuple[Digest, Digest, Digest]:
        """List roots that a seat's work starts from."""
        return self._books.commitments.start_lists(Round(round_), seat)

    def is_base_final(self, round_: int) -> bool:
        """Whether the generation that the round starts from is final."""
        parent = self._books.commitments.round_of(Round(round_)).parent
        return self._books.generations.status_of(parent) is GenerationStatus.FINAL

    def is_convicted(self, tenure: int) -> bool:
        """Whether a tenure's lock is gone."""
        return self._books.tenures.is_convicted(tenure)

    def accuse(self, tenure: int) -> None:
        """Nothing of the tenure settles before the verdict."""
        self._books.tenures.accuse(tenure)

    def unaccuse(self, tenure: int) -> None:
        """A verdict, or no game."""
        self._books.tenures.unaccuse(tenure)

    def suspend(self, tenure: int) -> None:
        """A game is open: the next commitments have no weight."""
        self._books.tenures.suspend(tenure)

    def resume(self, tenure: int) -> None:
        """It is over."""
        self._books.tenures.resume(tenure)

    def _made(self, round_: int, seat: Seat) -> WorkState:
        made = self._books.commitments.works.get((Round(round_), seat))
        if made is None:
            raise refuse("CommitmentNotFound", round=round_, seat=seat)
        return made
