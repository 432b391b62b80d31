"""What the escrow asks of the other books of a run."""

from __future__ import annotations

from typing import Protocol

from assay.protocol.rounds.ticket_types import Calls
from assay.protocol.types import Round


class CountedTickets(Protocol):
    """What the escrow asks of tickets."""

    def count_at(self, time: int, now: int) -> int:
        """Tickets that count at a time."""


class LaunchedRounds(Protocol):
    """What the escrow asks of the books of rounds."""

    def begin(self, now: int) -> None:
        """Open round 0. Raises Paused."""

    def opened(self) -> int:
        """Rounds that have opened."""

    def opened_at(self) -> int:
        """Chain time at which the last of them opened."""

    def commit_until(self, round_: Round) -> int:
        """The last second of a round's commitments."""

    def seated_at(self, round_: Round) -> int:
        """Seats held in a round."""

    def is_over(self, now: int) -> bool:
        """No round will open any more."""

    def final_at(self) -> int:
        """Chain time at which a generation became final for the last time."""

    def is_decided(self) -> bool:
        """The last round's generation is final, or it is cut and the newest before it is final."""


class GovernedRounds(Protocol):
    """What the escrow asks of the run's governor."""

    price_ppm: int
    """Part of the charter's price of a unit that a round that opens now pays, in parts per million."""

    def is_paused(self, now: int) -> bool:
        """Whether no round opens now, by a pause."""


class EscrowedAudits(Calls, Protocol):
    """What the escrow asks of audits."""

    def over_after(self, time: int) -> int:
        """See EpochEnds."""

    @property
    def last_epoch(self) -> int:
        """The last epoch in which duties are drawn; 0 until it is known."""

    def unpaid_findings(self) -> int:
        """Findings that were made and are not settled."""
