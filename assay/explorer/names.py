"""Which events name what: transactions, digests and addresses, found by their first hex digits. 12 bytes a name.

Eight bytes of a name are kept; whoever shows an event checks that it names all of what was asked for.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

NAME_BYTES: Final = (20, 32)
"""Lengths of what is a name: an address, a digest."""

LEAST_SORTED: Final = 1 << 14
"""So many names wait unsorted before they are merged into the sorted ones, or an eighth of those if that is more."""

EventNumbers = npt.NDArray[np.uint32]


class EventNames:
    """EventNumbers of events by the names that they contain."""

    def __init__(self) -> None:
        self._prefixes: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self._events: EventNumbers = np.empty(0, np.uint32)
        self._new_prefixes, self._new_events = array("Q"), array("I")

    def add(self, name: bytes, event: int) -> None:
        """An event names this too. Events come in order."""
        self._new_prefixes.append(int.from_bytes(name[:8]))
        self._new_events.append(event)
        if len(self._new_events) > max(LEAST_SORTED, len(self._events) >> 3):
            self._merge()

    def starting(self, digits: str) -> EventNumbers:
        """Events with a name that begins with these hex digits, in the order of the chain."""
        head = digits[:16]
        low, high = np.uint64(int(head.ljust(16, "0"), 16)), np.uint64(int(head.ljust(16, "f"), 16))
        first = np.searchsorted(self._prefixes, low, "left")
        last = np.searchsorted(self._prefixes, high, "right")
        prefixes = np.array(self._new_prefixes, np.uint64)
        new = np.array(self._new_events, np.uint32)[(prefixes >= low) & (prefixes <= high)]
        return np.unique(np.concatenate([self._events[first:last], new]))

    def _merge(self) -> None:
        prefixes = np.concatenate([self._prefixes, np.array(self._new_prefixes, np.uint64)])
        events = np.concatenate([self._events, np.array(self._new_events, np.uint32)])
        order = np.argsort(prefixes, kind="stable")
        self._prefixes, self._events = prefixes[order], events[order]
        self._new_prefixes, self._new_events = array("Q"), array("I")


def names_in(value: Any) -> Iterator[bytes]:
    """Addresses and digests anywhere in an event's arguments; zeros name nothing."""
    if isinstance(value, bytes):
        if len(value) in NAME_BYTES and any(value):
            yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from names_in(each)
    elif is_dataclass(value):
        for name in _fields(type(value)):
            yield from names_in(getattr(value, name))


_FIELDS: Final[dict[type, tuple[str, ...]]] = {}
"""Of each kind of event and struct, once."""


def _fields(kind: type) -> tuple[str, ...]:
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(f.name for f in fields(kind))
    return _FIELDS[kind]
