"""What the explorer knows of a run: its records, every event once, gas and times of transactions, all from the chain.

One lock guards it: a request holds it while it reads, so that no page shows half of a new block.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from hexbytes import HexBytes

from assay.bundle.document import Bundle
from assay.bundle.export import gather
from assay.bundle.replay import ReplayedDispute, replay
from assay.explorer.money import Money
from assay.protocol.run.claims import NO_ADDRESS
from assay.protocol.types import Address
from assay_ledger.contract import Event, Logged
from assay_ledger.deployment.code import RunCode, code_of
from assay_ledger.index.indexer import Index
from assay_ledger.index.records import GameRecord, RunState
from assay_ledger.index.run import Run
from assay_ledger.index.view import Facts, Memory, RunView
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
    ) -> None:
        self.run = run
        self.store = store
        self.names = dict(names or {})
        self.facts = Facts(run.chain.chain_id, run.address, run.run_id, run.charter)
        self._clock = clock
        self._lock = threading.RLock()
        self._asked: float | None = None
        self._times: dict[int, int] = {}
        self._gas: dict[bytes, int] = {}
        self._replays: dict[tuple[int, int], tuple[Bundle, ReplayedDispute]] = {}
        self._begin()

    def _begin(self) -> None:
        self.events: list[EventRow] = []
        self.money = Money(self.run)
        self._index = Index(self.run, [self._on_event])
        self._last: tuple[int, int] | None = None

    @contextmanager
    def reading(self) -> Iterator[RunReader]:
        """The run at its newest block, unchanged while the block lasts."""
        with self._lock:
            now = self._clock()
            if self._asked is None or now - self._asked >= REFRESH_S:
                self._index.sync()
                self._asked = now
            yield self

    @cached_property
    def code(self) -> RunCode:
        """What is at the addresses of the run, which never changes."""
        return code_of(self.run)

    @property
    def state(self) -> RunState:
        """The records."""
        return self._index.state

    @property
    def view(self) -> RunView:
        """The run as an outsider sees it."""
        head = self.state.head
        return RunView(self.facts, NO_ADDRESS, head.timestamp, head.number, self.state, Memory())

    # --- what a transaction says besides its events

    def time_of(self, block: int) -> int:
        """Chain time of a block in seconds."""
        if block not in self._times:
            chain = self.run.chain
            self._times[block] = int(chain.read(lambda: chain.w3.eth.get_block(block))["timestamp"])
        return self._times[block]

    def gas_of(self, tx_hash: bytes) -> int:
        """Gas that a transaction used."""
        if tx_hash not in self._gas:
            chain = self.run.chain
            receipt = chain.read(lambda: chain.w3.eth.get_transaction_receipt(HexBytes(tx_hash)))
            self._gas[tx_hash] = int(receipt["gasUsed"])
        return self._gas[tx_hash]

    def replay_of(self, game: GameRecord) -> tuple[Bundle, ReplayedDispute]:
        """The game as its signed transactions make it, over or not. Raises what `bundle` raises."""
        key = (game.game_id, len(game.moves))
        if key not in self._replays:
            bundle = gather(self.run, self.state, game.game_id)
            self._replays[key] = bundle, replay(bundle)
        return self._replays[key]

    # --- events

    def _on_event(self, contract: str, found: Logged[Event]) -> None:
        place = found.block, found.log_index
        if self._last is not None and place <= self._last:
            # The index started again after a reorganization: so does everything that was counted.
            self.events.clear()
            self.money = Money(self.run)
            self._times.clear()
            self._gas.clear()
            self._replays.clear()
        self._last = place
        name, arguments = type(found.event).__name__, plain(found.event.arguments())
        row = EventRow(len(self.events), *place, "0x" + found.transaction.hex(), contract, name, arguments)
        self.events.append(row)
        self.money.on_event(found.event)


def plain(value: Any) -> Any:
    """Event arguments as JSON values: bytes as hex, amounts and other large numbers as decimal strings."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, str) and value.startswith("0x"):
        return value.lower()
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 53:
        return str(value)
    return value
