"""Keeps the time of a local chain: by the wall clock, or by jumps to what everybody waits for.

A chain whose blocks come with transactions alone stands still while everybody waits for its time to pass. By the wall
clock a block comes every BLOCK_EVERY_S. By jumps, as in a demo, time moves as soon as every living actor of the node's
store is idle, to the earliest deadline that one of them waits for, so that nobody is late on a slow machine and hours
of a charter take seconds. Time never jumps over people: not while a run waits for somebody to join, fund or open it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from assay.protocol.errors import AssayError, UnavailableError
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.terms import NEVER
from assay.protocol.run.claims import NO_ADDRESS
from assay.protocol.types import Address
from assay_ledger.agents.heartbeat import Heartbeat, Pulse, earliest_deadline, is_quiet, read_every_heartbeat
from assay_ledger.agents.waiting import waits
from assay_ledger.chain.client import Chain, Head
from assay_ledger.rounds.index import RunIndex
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import SlotStore

BLOCK_EVERY_S: Final = 2.0
"""Between blocks by the wall clock."""

IDLE_BLOCK_S: Final = 10.0
"""By jumps: a block comes after so long without one, so that what is retried by blocks is retried."""

SETTLES_S: Final = 0.5
"""By jumps: an actor that has just gone idle may be about to read what another has just published."""


KEEPER_SLOT: Final = "keeper"
"""Where a node says in its store that it keeps its chain's time."""

KEEPER_EVERY_S: Final = 5.0
KEEPER_SILENT_S: Final = 20.0
"""After so long without a word of it nobody keeps the time."""


def say_kept(slots: SlotStore, url: str, wall: Callable[[], float] = time.time) -> None:
    """Writes that the time of the chain at `url` is kept now; for the owner's own commands, and proves nothing."""
    slots.write_slot(KEEPER_SLOT, f"{wall():.3f} {url}".encode())


def kept_since(slots: SlotStore, url: str, wall: Callable[[], float] = time.time) -> float | None:
    """Seconds since the keeper of the chain at `url` spoke last; None where none of that chain ever did here."""
    try:
        said, _, where = slots.read_slot(KEEPER_SLOT, 512).decode().partition(" ")
        return wall() - float(said) if where == url else None
    except (UnavailableError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Moved:
    """What a tick did: the chain time that it mined a block at, in seconds, and how far that was from the head's."""

    timestamp: int
    by: int


class WallKeeper:
    """Time goes as on the wall, from the head's time on: after a stop or a skip too. `clock` never runs back."""

    def __init__(self, chain: Chain, clock: Callable[[], float] = time.monotonic) -> None:
        self._chain, self._clock = chain, clock
        self._since, self._base = clock(), chain.head().timestamp
        self._mined = clock()

    def tick(self) -> Moved | None:
        """Mines a block if one is due. Raises UnavailableError."""
        now = self._clock()
        if now - self._mined < BLOCK_EVERY_S:
            return None
        self._mined, head = now, self._chain.head()
        due = self._base + int(now - self._since)
        if head.timestamp >= due:
            # Transactions and skips move time on their own: from there it goes on as on the wall.
            self._since, self._base = now, head.timestamp + 1
            due = head.timestamp + 1
        return _mine(self._chain, head, due)


class JumpKeeper:
    """Time jumps while everybody waits; see the module. `clock` gives seconds that never run back."""

    def __init__(self, chain: Chain, slots: SlotStore, clock: Callable[[], float] = time.monotonic) -> None:
        self._chain, self._slots, self._clock = chain, slots, clock
        self._pulse = Pulse(clock)
        self._runs: dict[Address, RunIndex | None] = {}
        self._head, self._changed = Head(-1, 0), clock()
        self.held: dict[Address, RunView] = {}
        """Runs that waited for people at the last tick, as they stood."""

    def tick(self) -> Moved | None:
        """Moves time if that is due. Raises UnavailableError."""
        now, head = self._clock(), self._chain.head()
        if head.number != self._head.number:
            self._head, self._changed = head, now
        living = self._pulse.alive(read_every_heartbeat(self._slots))
        if now - self._changed >= IDLE_BLOCK_S:
            return _mine(self._chain, head, head.timestamp + 1)
        if now - self._changed < SETTLES_S or not is_quiet(living.values(), head.number) or self._is_anything_sent():
            return None
        target = earliest_deadline(self._unheld(living), head.timestamp)
        if target is None or self._chain.head().number != head.number:
            return None
        return _mine(self._chain, head, target)

    def _unheld(self, living: dict[Address, Heartbeat]) -> Iterable[Heartbeat]:
        """Heartbeats of runs that wait for nobody who is not there."""
        self.held = {}
        for address in sorted({beat.run for beat in living.values()}):
            index = self._index(address)
            if index is None:
                continue
            view = RunView(index.run.charter, index.run.facts, NO_ADDRESS, index.sync())
            if waits_for_people(view, frozenset(living)):
                self.held[address] = view
            else:
                yield from (beat for beat in living.values() if beat.run == address)

    def _index(self, address: Address) -> RunIndex | None:
        """The records of a run; None where this chain has none at the address: it may be another chain's store."""
        if address not in self._runs:
            try:
                self._runs[address] = RunIndex(Run(self._chain, address))
            except AssayError:
                self._runs[address] = None
        return self._runs[address]

    def _is_anything_sent(self) -> bool:
        status = self._chain.rpc("txpool_status")
        return int(status["pending"], 16) + int(status["queued"], 16) > 0


def waits_for_people(view: RunView, living: frozenset[Address]) -> bool:
    """Whether only somebody who is not there can bring a run on: `living` are the actors that run now.

    Attack on a sponsor who types slowly: epochs go on before a run is opened and while no solver is there, so time that
    jumps from one to the next would reach the day on which the run is wound down.
    """
    books = view.books
    if _is_anybody_leaving(view, living):
        return False
    if view.state.money.phase is RunPhase.FUNDING:
        # Tickets that were registered and do not count yet are what time alone brings.
        tickets = books.registry.tickets.values()
        return not any(t.from_ > view.now and not t.until and not t.convicted_at for t in tickets)
    if view.state.money.phase is RunPhase.RUNNING and not view.is_over:
        is_manned = any(t.until == NEVER and t.holder in living for t in books.tenures.tenures.values())
        # Too few tickets or an empty escrow: what was done is settled first, and then nothing but people helps.
        is_stuck = not view.state.unsettled and any(wait.needs_people for wait in waits(view))
        return is_stuck or not is_manned
    return False


def _is_anybody_leaving(view: RunView, living: frozenset[Address]) -> bool:
    """Whether a lock of somebody who runs comes back by time alone: those who leave wait for no one who joins."""
    tenures, tickets = view.books.tenures.tenures.values(), view.books.registry.tickets.values()
    seats = any(t.until != NEVER and not (t.released or t.convicted_at) and t.holder in living for t in tenures)
    return seats or any(t.until and not t.convicted_at and t.owner in living for t in tickets)


def _mine(chain: Chain, head: Head, timestamp: int) -> Moved:
    chain.rpc("evm_mine", {"timestamp": timestamp})
    return Moved(timestamp, timestamp - head.timestamp)
