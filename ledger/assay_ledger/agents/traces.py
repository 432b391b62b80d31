"""The runs behind disputed claims, executed once for all games on a claim, however many there are.

Games in lockstep ask about one claim after the other; a run that is thrown away for the next game's would be executed
again at every reply, and enough games would exhaust any clock. Source: docs/adr/0025-many-challengers.md.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Final, Protocol, runtime_checkable

from assay.protocol.program.trace import Trace

WHOLE: Final = 4
"""Traces that keep all that they may; what is beyond keeps its start and its roots."""

MOST: Final = 32
"""Traces in all: the claims behind several commitments, each with its start in memory."""


@runtime_checkable
class Sheds(Protocol):
    """A trace that can do with less memory, and compute again what it is asked for."""

    def shed(self) -> None: ...


@runtime_checkable
class LooksUp(Protocol):
    """A trace that computes at once what many games ask for: (step, node), or (step, None) for its prefix roots."""

    def look_up(self, places: Iterable[tuple[int, int | None]]) -> None: ...


class Traces:
    """A bounded cache of traces; the one that was asked for longest ago goes first."""

    def __init__(self, whole: int = WHOLE, most: int = MOST) -> None:
        self._whole, self._most = whole, most
        self._kept: OrderedDict[Hashable, Trace] = OrderedDict()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable, make: Callable[[], Trace]) -> Trace:
        """The trace of a claim, made if it is not there."""
        if key not in self._kept:
            # Memory is made free before it is needed.
            self._make_room(self._whole - 1, self._most - 1)
            self._kept[key] = make()
        else:
            self._kept.move_to_end(key)
            self._make_room(self._whole, self._most)
        return self._kept[key]

    def _make_room(self, whole: int, most: int) -> None:
        while len(self._kept) > most:
            self._kept.popitem(last=False)
        for key in list(self._kept)[: max(0, len(self._kept) - whole)]:
            trace = self._kept[key]
            if isinstance(trace, Sheds):
                trace.shed()
