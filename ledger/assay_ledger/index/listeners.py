"""Who is told the events of a run beside its state, and how often.

Blocks are read again after reorganizations, and a listener that fails says nothing about the node.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from assay_ledger.contract import Event, Logged

Listener = Callable[[str, Logged[Event]], None]


class ListenerFailed(Exception):
    """A listener raised what is its cause, which says nothing about the node."""


class Once:
    """Tells a listener every event once, however often blocks are read, and though its transaction is mined again."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._told: set[bytes] = set()
        """A hash of each, 32 bytes."""

    def __call__(self, contract: str, found: Logged[Event]) -> None:
        told = sha256(repr((contract, found.transaction, found.event)).encode()).digest()
        if told not in self._told:
            self._told.add(told)
            self._listener(contract, found)


def nobody_restarts() -> None:
    """For whoever keeps nothing of its own."""
