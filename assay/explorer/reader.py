"""Follows one run for readers: every event once, books and records, money, gas and times of transactions.

All of it is the chain's. One lock guards it: a request holds it while it reads, so that no page shows half of a new
block.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

from hexbytes import HexBytes

from assay.bundle.export import gather
from assay.bundle.replay import ReplayedDispute, replay
from assay.explorer.documents import plain
from assay.explorer.money import Money
from assay.protocol.run.claims import NO_ADDRESS
from assay.protocol.types import Address
from assay_ledger.contract import Event, Logged
from assay_ledger.deployment.code import RunCode, code_of
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.index import KeepsEvents, RunIndex
from assay_ledger.rounds.records import RunState
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import ArtifactStore

REFRESH_S: Final = 1.0
"""The chain is asked for new blocks at most this often."""


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event of the run's contracts, numbered in the order of the chain; arguments as JSON values."""

    number: int
    block: int
    log_index: int
    tx: str
    contract: str
    name: str
    arguments: Mapping[str, Any]


class RunReader:
    """Follows one run. `names` are what people call addresses, where somebody knows."""

    def __init__(
        self,
        run: Run,
        store: ArtifactStore | None = None,
        names: Mapping[Address, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        keeps: KeepsEvents | None = None,
    ) -> None:
        """`keeps`: the database that keeps events, without which a start reads them from the chain."""
        self.run = run
        self.store = store
        self.names = {run.charter.sponsor: "the sponsor", **(names or {})}
        self.events: list[EventRow] = []
        self.money = Money(run)
        self._clock = clock
        self._lock = threading.RLock()
        self._asked: float | None = None
        self._times: dict[int, int] = {}
        self._gas: dict[bytes, int] = {}
        self._replays: dict[int, tuple[int, ReplayedDispute]] = {}
        self._index = RunIndex(run, [self._on_event], run.all_contracts(), self._start_again, keeps)

    @contextmanager
    def reading(self) -> Iterator[Self]:
        """The run at its newest block, unchanged while the block lasts."""
        with self._lock:
            now = self._clock()
            if self._asked is None or now - self._asked >= REFRESH_S:
                self._index.sync()
                self._asked = now
            yield self

    def close(self) -> None:
        """Lets another process have what is kept."""
        self._index.close()

    @property
    def state(self) -> RunState:
        """Books and records."""
        return self._index.state

    @property
    def view(self) -> RunView:
        """The run as an outsider sees it."""
        return RunView(self.run.charter, self.run.facts, NO_ADDRESS, self.state)

    @cached_property
    def code(self) -> RunCode:
        """What is at the addresses of the run, which never changes."""
        return code_of(self.run)

    # --- what a transaction says besides its events

    def time_of(self, block: int) -> int:
        """Chain time of a block in seconds."""
        if block not in self._times:
            chain = self.run.chain
            self._times[block] = chain.read(lambda: int(chain.w3.eth.get_block(block)["timestamp"]))
        return self._times[block]

    def gas_of(self, tx_hash: bytes) -> int:
        """Gas that a transaction used."""
        if tx_hash not in self._gas:
            chain = self.run.chain
            name = HexBytes(tx_hash)
            self._gas[tx_hash] = chain.read(lambda: int(chain.w3.eth.get_transaction_receipt(name)["gasUsed"]))
        return self._gas[tx_hash]

    def replay_of(self, game: GameRecord) -> ReplayedDispute:
        """The game as its signed transactions make it, over or not. Raises what `assay.bundle` raises."""
        # Of a game that goes on only the newest is kept: each holds all that was shown.
        moves, found = self._replays.get(game.game_id, (-1, None))
        if found is None or moves != len(game.moves):
            found = replay(gather(self.run, self.state, game.game_id))
            self._replays[game.game_id] = len(game.moves), found
        return found

    # --- events

    def _start_again(self) -> None:
        """The index started again after a reorganization: so does everything that was counted."""
        self.events.clear()
        self._times.clear()
        self._gas.clear()
        self._replays.clear()
        self.money = Money(self.run)

    def _on_event(self, contract: str, found: Logged[Event]) -> None:
        """An event, as the index tells of it."""
        name, arguments = type(found.event).__name__, plain(found.event.arguments())
        row = EventRow(
            len(self.events), found.block, found.log_index, "0x" + found.transaction.hex(), contract, name, arguments
        )
        self.events.append(row)
        self.money.on_event(found.event)
