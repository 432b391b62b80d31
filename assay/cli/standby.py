"""A second process of a key on another machine: it waits while the first one lives, and goes on in its place.

Whether the first lives is advice, read from heartbeats; that two at once lose nothing is the chain's and the outbox's.
Source: docs/adr/0058-keys.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from assay.cli.common import talk
from assay.protocol.errors import UnavailableError
from assay_ledger.agents.heartbeat import EVERY_S, Heartbeat, read_heartbeats

if TYPE_CHECKING:
    from assay.protocol.types import Address
    from assay_ledger.store.blobs import SlotStore

SILENT_S: Final = 30.0
"""Without a new heartbeat for so long the first process is gone: above a restart of it, far below a game's move."""

DARK_S: Final = 300.0
"""Where the store answers nothing for so long, whether it is gone cannot be seen, and two are better than none."""


def stand_by(
    slots: SlotStore,
    run: Address,
    me: Address,
    stop: threading.Event,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], object] | None = None,
) -> bool:
    """Waits until no other process of this key speaks in the run; False where it was stopped before.

    Only a counter that grows shows a process: a store may repeat what it has, and nobody else can sign a new one.
    """
    wait = stop.wait if wait is None else wait
    talk.print("standing by: another process of this key is waited for as long as it lives", markup=False)
    counter, spoke, answered = _counter(read_or_none(slots, run, me)), clock(), clock()
    while not stop.is_set():
        wait(EVERY_S)
        try:
            found = read_heartbeats(slots, run, [me]).get(me)
        except UnavailableError:
            if clock() - answered >= DARK_S:
                talk.print(f"the store has not answered for {DARK_S:g} s: this process takes over", markup=False)
                return True
            # What a dark store does not show is no silence.
            spoke = clock()
            continue
        answered = clock()
        if _counter(found) > counter:
            counter, spoke = _counter(found), clock()
        elif clock() - spoke >= SILENT_S:
            talk.print(f"nothing was heard of it for {SILENT_S:g} s: this process takes over", markup=False)
            return True
    return False


def read_or_none(slots: SlotStore, run: Address, me: Address) -> Heartbeat | None:
    """The last heartbeat of this key; None where there is none, or no store."""
    try:
        return read_heartbeats(slots, run, [me]).get(me)
    except UnavailableError:
        return None


def _counter(beat: Heartbeat | None) -> int:
    return -1 if beat is None else beat.counter
