"""Moves the chain time of a local node, and only while every actor is idle.

Wall time never moves chain time on the local node (ledger.node), so a loaded machine makes no actor late. When every
live actor is idle at the present head and no transaction waits, time jumps by one atomic `evm_mine(T)` to the earliest
deadline that somebody waits for. Nothing else moves it: `evm_increaseTime` and `evm_setNextBlockTimestamp` stack with
other accounts' transactions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from assay.protocol.types import Address
from assay_ledger.agents.heartbeat import (
    Activity,
    Heartbeat,
    Pulse,
    earliest_deadline,
    is_at_rest,
    is_quiet,
    read_heartbeats,
)
from assay_ledger.chain.client import Chain
from assay_ledger.store.blobs import SlotStore
from assay_ledger.store.errors import StoreSilent

STRANGER_LIMIT_S: Final = 60.0
"""A stranger's actor that stays busy at one head is waited for at most this long; the runner's own children always."""


class Timekeeper:
    """Watches heartbeats and moves time. `own` are the actors that the runner started; others are strangers."""

    def __init__(
        self,
        chain: Chain,
        slots: SlotStore,
        run: Address,
        own: frozenset[Address],
        clock: Callable[[], float] = time.monotonic,
        participants: Callable[[], Iterable[Address]] = tuple,
    ) -> None:
        """`participants` gives who takes part by the chain: among any number of slots their heartbeats are found."""
        self._chain, self._slots, self._run, self._own, self._clock = chain, slots, run, own, clock
        self._participants = participants
        self._pulse = Pulse(clock)
        self._busy_since: dict[Address, float] = {}
        self.beats: dict[Address, Heartbeat] = {}
        """The last tick's heartbeats."""
        self.strangers_work = False
        """Whether, at the last tick, a living stranger did or waited for anything."""
        self.is_anyone_busy = False
        """Whether, at the last tick, an actor that lives and is waited for was busy."""

    def tick(self) -> int | None:
        """Moves time if that is due; returns the new chain time. Raises StoreUnreachable, not where it is slow."""
        head = self._chain.head()
        try:
            beats = read_heartbeats(self._slots, self._run, self._own.union(self._participants()))
        except StoreSilent:
            # A machine that stood still for seconds: whoever was not heard may be busy, so time waits.
            return None
        self.beats = beats
        living = self._pulse.alive(beats)
        waited = [beat for beat in living.values() if not self._given_up(beat, head.number)]
        self.is_anyone_busy = any(beat.activity is Activity.BUSY for beat in waited)
        self.strangers_work = any(b.actor not in self._own and not is_at_rest(b, head.number) for b in waited)
        done = {actor for actor, beat in beats.items() if beat.activity is Activity.DONE}
        if not self._own <= living.keys() | done:
            return None  # a child that has not spoken yet, or is silent: its process decides, not the clock
        if not waited or not is_quiet(waited, head.number) or self._pending():
            return None
        target = earliest_deadline(waited, head.timestamp)
        if target is None:
            return None
        if self._chain.head().number != head.number:
            return None
        self._chain.rpc("evm_mine", {"timestamp": target})
        return target

    def jump(self, timestamp: int) -> None:
        """Moves time to a moment at which no actor acts, such as the end of vesting."""
        if timestamp > self._chain.head().timestamp:
            self._chain.rpc("evm_mine", {"timestamp": timestamp})

    def _given_up(self, beat: Heartbeat, head: int) -> bool:
        """Whether a stranger has held everybody up for too long."""
        if beat.actor in self._own or is_quiet([beat], head):
            self._busy_since.pop(beat.actor, None)
            return False
        since = self._busy_since.setdefault(beat.actor, self._clock())
        return self._clock() - since > STRANGER_LIMIT_S

    def _pending(self) -> bool:
        status = self._chain.rpc("txpool_status")
        return int(status["pending"], 16) + int(status["queued"], 16) > 0
