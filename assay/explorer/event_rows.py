"""Every event of a run once, in the order of the chain: kept as it was decoded, made into a row when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from assay.explorer.documents import plain
from assay_ledger.contract import Event, Logged


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event of the run's contracts, numbered in the order of the chain; arguments as JSON values, time in seconds
    of chain time."""

    number: int
    block: int
    log_index: int
    tx: str
    contract: str
    name: str
    arguments: Mapping[str, Any]
    time: int


class ShownEvents(Sequence[EventRow]):
    """A list that grows at its end. A row of a million takes ten times what the event does, so none is kept."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, Logged[Event], int]] = []

    def add(self, contract: str, found: Logged[Event], time: int) -> int:
        """Keeps the newest event; its number."""
        self._kept.append((contract, found, time))
        return len(self._kept) - 1

    def event(self, number: int) -> Event:
        """An event as it was decoded."""
        return self._kept[number][1].event

    def transaction(self, number: int) -> bytes:
        """The hash of what brought an event."""
        return self._kept[number][1].transaction

    def __len__(self) -> int:
        return len(self._kept)

    @overload
    def __getitem__(self, place: int) -> EventRow: ...

    @overload
    def __getitem__(self, place: slice) -> list[EventRow]: ...

    def __getitem__(self, place: int | slice) -> EventRow | list[EventRow]:
        if isinstance(place, slice):
            return [self._row(number) for number in range(*place.indices(len(self._kept)))]
        return self._row(range(len(self._kept))[place])

    def __iter__(self) -> Iterator[EventRow]:
        return map(self._row, range(len(self._kept)))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def _row(self, number: int) -> EventRow:
        contract, found, time = self._kept[number]
        name, arguments = type(found.event).__name__, plain(found.event.arguments())
        tx = "0x" + found.transaction.hex()
        return EventRow(number, found.block, found.log_index, tx, contract, name, arguments, time)
