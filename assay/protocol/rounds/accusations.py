"""Results that differ from what they audit (contracts/audit/Accusations.sol).

An accusation freezes the accused at once and needs no stake of its own. A game decides it; one without a game lapses.
"""

from __future__ import annotations

from typing import Protocol

from assay.protocol.model.errors import refuse
from assay.protocol.rounds.duty_draws import accusation_id
from assay.protocol.rounds.duty_types import Accusation, AccusationStatus, DutyTerms
from assay.protocol.rounds.epochs import AuditBeacon, Epochs
from assay.protocol.rounds.round_terms import SeatWork
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.types import Address, Digest, Seat


class AuditedRounds(Protocol):
    """What audits ask of commitments, tenures and generations."""

    def commit_until(self, round_: int) -> int:
        """The last second in which the round takes commitments. Raises RoundNotOpen."""

    def work_of(self, round_: int, seat: Seat) -> tuple[Digest, int]:
        """Digest and tenure of a commitment; zeros where there is none."""

    def digest_of(self, round_: int, seat: Seat, tenure: int, work: SeatWork) -> Digest:
        """The digest that a commitment to this work has."""

    def start_of(self, round_: int, seat: Seat) -> tuple[Digest, Digest, Digest]:
        """List roots that a seat's work starts from."""

    def is_base_final(self, round_: int) -> bool:
        """Whether the generation that the round starts from is final."""

    def accuse(self, tenure: int) -> None:
        """Nothing of the tenure settles before the verdict."""

    def unaccuse(self, tenure: int) -> None:
        """A verdict, or no game."""

    def suspend(self, tenure: int) -> None:
        """A game is open: the next commitments have no weight."""

    def resume(self, tenure: int) -> None:
        """It is over."""


class Accusations(Epochs):
    """The books of all accusations; `now` is chain time in seconds."""

    def __init__(self, tickets: Tickets, beacon: AuditBeacon, rounds: AuditedRounds, terms: DutyTerms) -> None:
        super().__init__(tickets, beacon, terms)
        self.rounds = rounds
        self.accusations: dict[Digest, Accusation] = {}
        self.first_accused: dict[int, int] = {}
        """The epoch of the first accusation of a tenure, plus one."""

    @property
    def fine(self) -> int:
        """What a miss costs, in wei."""
        return 3 * self.terms.wage

    def lapse(self, who: Address, accusation: Digest, now: int) -> int:
        """Fine an accuser whose game was not opened; the fine taken. Raises WrongAccusation, EpochOpen."""
        made = self._at(accusation, AccusationStatus.RECORDED)
        self._check_closed(made.epoch + 1)
        made.status = AccusationStatus.LAPSED
        taken = self.tickets.fine(made.ticket, self.fine, who, now)
        self._free(made)
        return taken

    # --- the game

    def on_tried(self, accusation: Digest) -> None:
        """An accusation's game is open. Raises WrongAccusation."""
        made = self._at(accusation, AccusationStatus.RECORDED)
        made.status = AccusationStatus.TRIED
        if made.is_work:
            self.rounds.suspend(made.accused)

    def on_judged(self, accusation: Digest, right: bool) -> None:
        """An accusation's game is over. Raises WrongAccusation."""
        made = self._at(accusation, AccusationStatus.TRIED)
        made.status = AccusationStatus.UPHELD if right else AccusationStatus.REJECTED
        if made.is_work:
            self.rounds.resume(made.accused)
        self._free(made)

    # --- inside

    def _accuse(self, by: Digest, against: Digest, number: int, ticket: TicketId, is_work: bool, accused: int) -> None:
        made = Accusation(AccusationStatus.RECORDED, is_work, accused, ticket, number)
        self.accusations[accusation_id(by, against)] = made
        # Attack: accuse and leave, so that nothing ends the accusation.
        self.tickets.oblige(ticket)
        if is_work:
            self.first_accused.setdefault(accused, number + 1)
            self.rounds.accuse(accused)
        else:
            self.tickets.oblige(TicketId(accused))

    def _free(self, made: Accusation) -> None:
        self.tickets.acquit(made.ticket)
        if made.is_work:
            self.rounds.unaccuse(made.accused)
        else:
            self.tickets.acquit(TicketId(made.accused))

    def _at(self, accusation: Digest, wanted: AccusationStatus) -> Accusation:
        made = self.accusations.get(accusation)
        if made is None or made.status is not wanted:
            raise refuse("WrongAccusation", id=accusation)
        return made
