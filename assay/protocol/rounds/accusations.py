"""Results that differ from what they audit (contracts/audit/Accusations.sol).

An accusation freezes the accused at once and needs no stake of its own. A game decides it; one without a game lapses.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from assay.protocol.errors import refuse
from assay.protocol.rounds.duty_draws import accusation_id
from assay.protocol.rounds.duty_types import Accusation, AccusationStatus, Attestation
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import Calls, TicketId
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.types import Address, Digest, Seat


class AuditedRounds(Protocol):
    """What audits ask of commitments, tenures and generations."""

    def commit_until(self, round_: int) -> int:
        """The last second in which the round takes commitments. Raises RoundNotOpen."""

    def trained_until(self, now: int) -> int | None:
        """The last second in which the run takes commitments, once no round can open any more; None before."""

    def work_of(self, round_: int, seat: Seat) -> tuple[Digest, int]:
        """Digest and tenure of a commitment; zeros where there is none."""

    def steps_of(self, round_: int, seat: Seat) -> int:
        """Steps of a commitment."""

    def is_disputable(self, round_: int, seat: Seat) -> bool:
        """Whether a commitment can still be accused, or challenged by a third party."""

    def digest_of(self, round_: int, seat: Seat, tenure: int, work: SeatWork) -> Digest:
        """The digest that a commitment to this work has."""

    def start_of(self, round_: int, seat: Seat) -> tuple[Digest, Digest, Digest]:
        """List roots that a seat's work starts from."""

    def is_base_final(self, round_: int) -> bool:
        """Whether the generation that the round starts from is final."""

    def is_convicted(self, tenure: int) -> bool:
        """Whether a tenure's lock is gone."""

    def accuse(self, tenure: int) -> None:
        """Nothing of the tenure settles before the verdict."""

    def unaccuse(self, tenure: int) -> None:
        """A verdict, or no game."""

    def suspend(self, tenure: int) -> None:
        """A game is open: the next commitments have no weight."""

    def resume(self, tenure: int) -> None:
        """It is over."""


class Accusations:
    """The books of all accusations; `now` is chain time in seconds."""

    def __init__(self, tickets: Tickets, calls: Calls, rounds: AuditedRounds, fine: int) -> None:
        self.tickets = tickets
        self.calls = calls
        self.rounds = rounds
        self.fine = fine
        """What an accusation without a game costs: 3 w, in wei."""
        self.attestations: dict[Digest, Attestation] = {}
        self.accusations: dict[Digest, Accusation] = {}
        self.against: Counter[int] = Counter()
        """Accusations against a ticket that are recorded or tried."""
        self.doubted: set[tuple[int, TicketId]] = set()
        """Epochs in which a ticket was accused when it opened, or before their end: what it answered is drawn again."""

    def lapse(self, who: Address, accusation: Digest, now: int) -> None:
        """End an accusation without a game: excused where the accused was convicted elsewhere, else late and fined.

        What a stop leaves without a game lapses at once, without a fine. Raises WrongAccusation, EpochOpen.
        """
        made = self._at(accusation, AccusationStatus.RECORDED)
        # Attack: let the accused lose everything in a puppet's game, and take the fine of who accused it rightly.
        if self._is_convicted(made):
            self._end(made, AccusationStatus.EXCUSED, now)
            return
        # Attack: accuse falsely just before a stop, after which nothing is tried, and share what an older game takes.
        if self.tickets.state.is_stopped():
            self._end(made, AccusationStatus.LAPSED, now)
            return
        newest, _ = self.calls.newest()
        if newest <= made.epoch + 1:
            raise refuse("EpochOpen", epoch=made.epoch + 1)
        self._end(made, AccusationStatus.LAPSED, now)
        self.tickets.fine(made.ticket, self.fine, who, now)

    # --- games

    def may_try(self, accusation: Digest, against: Digest, who: Address) -> bool:
        """Whether this is a recorded accusation by somebody of a commitment or attestation."""
        made = self.accusations.get(accusation)
        return made is not None and made.status is AccusationStatus.RECORDED and self._is_own(made, against, who)

    def on_tried(self, accusation: Digest, against: Digest, who: Address) -> None:
        """The accuser opened its game. Raises WrongAccusation, NotYourAccusation."""
        made = self._at(accusation, AccusationStatus.RECORDED)
        # Attack: a puppet of the accused opens the accuser's game and loses it.
        if not self._is_own(made, against, who):
            raise refuse("NotYourAccusation", id=accusation, caller=who)
        made.status = AccusationStatus.TRIED
        if made.is_work:
            self.rounds.suspend(made.accused)

    def on_judged(self, accusation: Digest, right: bool, now: int) -> None:
        """Its game is over; `right`: the accused was convicted. Raises WrongAccusation."""
        made = self._at(accusation, AccusationStatus.TRIED)
        if made.is_work:
            self.rounds.resume(made.accused)
        self._end(made, AccusationStatus.UPHELD if right else AccusationStatus.REJECTED, now)

    # --- inside

    def _accuse(
        self, by: Digest, against: Digest, epoch: int, ticket: TicketId, is_work: bool, accused: int, now: int
    ) -> None:
        recorded = AccusationStatus.RECORDED
        made = Accusation(recorded, is_work, accused, ticket, epoch, now, by, against)
        self.accusations[accusation_id(by, against)] = made
        # Attack: accuse and leave, so that nothing ends the accusation.
        self.tickets.oblige(ticket)
        if is_work:
            self.rounds.accuse(accused)
        else:
            self.tickets.dispute(TicketId(accused))
            self.against[accused] += 1
            self.doubted.add((epoch, TicketId(accused)))
            self.attestations[against].disputes += 1

    def _end(self, made: Accusation, status: AccusationStatus, now: int) -> None:
        made.status = status
        self.tickets.acquit(made.ticket)
        if made.is_work:
            self.rounds.unaccuse(made.accused)
        else:
            self.tickets.undispute(TicketId(made.accused), False, now)
            self.against[made.accused] -= 1
            self._quiet(self.attestations[made.against], now)

    def _quiet(self, made: Attestation, now: int) -> None:
        """One accusation of an attestation, or one game on it, is over."""
        made.disputes -= 1
        made.quiet_at = now

    def _is_convicted(self, made: Accusation) -> bool:
        if made.is_work:
            return self.rounds.is_convicted(made.accused)
        return self.tickets.tickets[TicketId(made.accused)].convicted_at != 0

    def _is_own(self, made: Accusation, against: Digest, who: Address) -> bool:
        return made.against == against and self.tickets.owner_of(made.ticket) == who

    def _at(self, accusation: Digest, wanted: AccusationStatus) -> Accusation:
        made = self.accusations.get(accusation)
        if made is None or made.status is not wanted:
            raise refuse("WrongAccusation", id=accusation)
        return made
