"""Nodes that do not tell all of a run, and how long whoever has no other waits for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from assay.protocol.errors import UnavailableError
from assay_ledger.index.kept_blocks import RowsDamaged

REFUSED_S: Final = 60.0
"""After 2 s, and each time twice as long up to this, a node that left events out is read again from the first block,
where there is no other: one wrong answer must not cost the clock of a game."""

MOST_AGAIN: Final = 4
"""So often a run is read anew before it waits: nodes that take turns would have it read without end."""


class HistoryMissing(UnavailableError):
    """A node's searches leave events out that the contracts count."""

    code = "HistoryMissing"
    remedy = "Name a node that has the logs of all blocks since the run began, as your own has."


def counted_elsewhere(number: int) -> UnavailableError:
    """Block `number` was replaced, or another node is asked, since the contracts were asked what they count."""
    return UnavailableError(
        f"Block {number} was replaced, or another node is asked, while the run's contracts were asked.",
        code="RpcError",
        remedy="Try again; nothing is lost.",
    )


def rows_too_few(why: str) -> RowsDamaged:
    """Kept events of which the contracts count more."""
    return RowsDamaged(f"The kept events are not all that the run's contracts count ({why}).")


class HistoryPatience:
    """Waits between readings of a run that were not whole. `clock` gives seconds that never run back."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._until, self._why = 0.0, ""
        self._pauses = self._readings = 0

    def check(self) -> None:
        """Raises HistoryMissing while nobody is asked."""
        if self._why and self._clock() < self._until:
            raise HistoryMissing(self._why)

    def is_whole(self) -> None:
        """What was read is all of the run."""
        self._pauses = self._readings = 0
        self._why = ""

    def is_out(self) -> bool:
        """Counts a reading that was not whole; whether there were enough of them for now."""
        self._readings += 1
        return self._readings > MOST_AGAIN

    def pause(self, why: str) -> NoReturn:
        """Nobody is asked for a while. Raises HistoryMissing."""
        self._pauses, self._readings, self._why = self._pauses + 1, 0, why
        self._until = self._clock() + min(REFUSED_S, 2.0 ** min(self._pauses, 12))
        raise HistoryMissing(why)
