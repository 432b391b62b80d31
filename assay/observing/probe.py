"""What a process asks of the outside world for its metrics, on a connection and in a thread of its own.

An actor's loop never waits for it. Balances and locks are figures that no strategy needs at every block.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from eth_utils.address import to_checksum_address

from assay.protocol.errors import RejectedError
from assay.protocol.types import Address, Digest
from assay_ledger.agents.heartbeat import MAX_BYTES, SLOT
from assay_ledger.bindings.vault import Locked
from assay_ledger.chain.client import Chain, Head
from assay_ledger.chain.rpc import RequestListener
from assay_ledger.deadline import waiting_at_most
from assay_ledger.rounds.run import Run
from assay_ledger.store.blobs import BlobStore
from assay_ledger.store.errors import ObjectMissing

EVERY_S: Final = 15.0
"""Some ten requests to the node each time."""

PIECE: Final = 1 << 16
"""Blocks searched at once for locks: what a node fails in is asked for again, and no more than that."""

STORE_S: Final = 4.0
"""How long a look at the store may take."""


@dataclass(slots=True)
class Sightings:
    """What the last look found; None where it could not be asked. Amounts in wei."""

    node: bool | None = None
    store: bool | None = None
    head: Head | None = None
    gas: int | None = None
    free: int | None = None
    locked: int | None = None


@dataclass
class Probe:
    """Looks every `every_s` seconds at the node, at an account and at the store, from `start` to `close`.

    The store's readiness is that of its slots: an actor that cannot write heartbeats counts as dead.
    """

    run: Run
    me: Address | None
    store: BlobStore | None
    on_request: RequestListener
    every_s: float = EVERY_S
    found: Sightings = field(default_factory=Sightings)
    _stop: threading.Event = field(default_factory=threading.Event)
    _chain: Chain | None = None
    _locks: dict[Digest, int] = field(default_factory=dict)
    _next_block: int = 0

    def start(self) -> None:
        """Looks from now on."""
        self._next_block = self.run.first_block
        threading.Thread(target=self._look_on, name="assay-probe", daemon=True).start()

    def close(self) -> None:
        """Ends after the look under way."""
        self._stop.set()

    def _look_on(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._stop.wait(self.every_s)

    def look(self) -> None:
        """One look at everything; never raises what a node or a store may be at fault for."""
        self.found.node = self._try(self._ask_chain)
        if self.store is not None:
            self.found.store = self._try(self._ask_store)

    @staticmethod
    def _try(ask: Callable[[], None]) -> bool:
        try:
            ask()
        except Exception:  # whatever it is, it must not end the looking: what was seen last would be shown for ever
            return False
        return True

    def _ask_chain(self) -> None:
        if self._chain is None:
            pool = self.run.chain.pool
            quotas = () if pool is None else pool.quotas
            self._chain = Chain(self.run.chain.url, retry_for_s=0.0, quotas=quotas)
            self._chain.tell_requests(self.on_request)
        chain, me, vault = self._chain, self.me, self.run.vault
        head = self.found.head = chain.head()
        if me is None:
            return
        self.found.gas = chain.read(lambda: int(chain.w3.eth.get_balance(to_checksum_address(me))))
        with suppress(RejectedError):
            self.found.free = chain.ask(vault.free(me))
            while self._next_block <= head.number:
                last = min(head.number, self._next_block + PIECE - 1)
                for log in chain.events(Locked.search(vault.address, owner=me), self._next_block, last):
                    self._locks[log.event.id] = 0
                self._next_block = last + 1
            for name in sorted(self._locks):
                owner, amount = chain.ask(vault.lock_of(name))
                self._locks[name] = amount if owner == me else 0
            self.found.locked = sum(self._locks.values())
            # A lock that is gone and comes back is told by an event again.
            self._locks = {name: amount for name, amount in self._locks.items() if amount}

    def _ask_store(self) -> None:
        assert self.store is not None
        name = f"{SLOT}/{(self.me or self.run.address).hex()}"
        with waiting_at_most(STORE_S), suppress(ObjectMissing):
            self.store.read_slot(name, MAX_BYTES)
