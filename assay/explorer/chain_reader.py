"""Follows one run for readers: every event once, gas and times of transactions, all from the chain.

One lock guards it: a request holds it while it reads, so that no page shows half of a new block.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

from hexbytes import HexBytes

from assay.protocol.types import Address
from assay_ledger.contract import Event, Logged
from assay_ledger.deployment.code import RunCode, code_of
from assay_ledger.rounds.run import AnyRun
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


class ChainReader(ABC):
    """Follows one run. `names` are what people call addresses, where somebody knows."""

    run: AnyRun

    def __init__(
        self,
        store: ArtifactStore | None = None,
        names: Mapping[Address, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = store
        self.names = dict(names or {})
        self.events: list[EventRow] = []
        self._clock = clock
        self._lock = threading.RLock()
        self._asked: float | None = None
        self._times: dict[int, int] = {}
        self._gas: dict[bytes, int] = {}

    @abstractmethod
    def sync(self) -> None:
        """Reads what is new. Raises UnavailableError."""

    @abstractmethod
    def forget(self) -> None:
        """Forgets what was counted of events: the first one comes again."""

    @abstractmethod
    def count(self, event: Event) -> None:
        """Counts one event."""

    @contextmanager
    def reading(self) -> Iterator[Self]:
        """The run at its newest block, unchanged while the block lasts."""
        with self._lock:
            now = self._clock()
            if self._asked is None or now - self._asked >= REFRESH_S:
                self.sync()
                self._asked = now
            yield self

    @cached_property
    def code(self) -> RunCode:
        """What is at the addresses of the run, which never changes."""
        return code_of(self.run)

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

    # --- events

    def start_again(self) -> None:
        """The index started again after a reorganization: so does everything that was counted."""
        self.events.clear()
        self._times.clear()
        self._gas.clear()
        self.forget()

    def on_event(self, contract: str, found: Logged[Event]) -> None:
        """An event, as the index tells of it."""
        name, arguments = type(found.event).__name__, plain(found.event.arguments())
        row = EventRow(
            len(self.events), found.block, found.log_index, "0x" + found.transaction.hex(), contract, name, arguments
        )
        self.events.append(row)
        self.count(found.event)


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
