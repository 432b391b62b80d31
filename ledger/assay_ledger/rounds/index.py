"""The index of a run: its events folded into books and records, block by block."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from web3.types import LogReceipt

from assay_ledger.chain.client import Head
from assay_ledger.contract import Contract, Event, Logged
from assay_ledger.index.follower import Follower
from assay_ledger.index.kept_blocks import KeptName
from assay_ledger.index.kept_events import open_kept, read_kept
from assay_ledger.index.listeners import Listener
from assay_ledger.rounds import frozen
from assay_ledger.rounds.counted import left_out_of, left_out_of_logs
from assay_ledger.rounds.fold import fold
from assay_ledger.rounds.records import RunState
from assay_ledger.rounds.run import Run


@dataclass(frozen=True, slots=True)
class KeepsEvents:
    """Where an index keeps events: a database's URL, and for whom; each reader has rows of its own."""

    url: str
    reader: str


@dataclass(frozen=True, slots=True)
class ReadsEvents:
    """Databases in which others may keep events of the run; an index reads them and writes nothing."""

    urls: tuple[str, ...]


class RunIndex(Follower):
    """Keeps the state of one run up to date with the chain."""

    def __init__(
        self,
        run: Run,
        listeners: Sequence[Listener] = (),
        contracts: Mapping[str, Contract] | None = None,
        restarted: Callable[[], None] = lambda: None,
        keeps: KeepsEvents | ReadsEvents | None = None,
        told_from: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`listeners`, `restarted`, `told_from`, `clock`: see Follower. They are told of more contracts than the state
        needs where `contracts` names them."""
        followed = run.contracts() if contracts is None else contracts
        kept = None
        if keeps is not None:
            chain_id = run.chain.chain_id
            name_of = partial(KeptName.of, chain_id, run.address, run.kept_from, followed)
            if isinstance(keeps, KeepsEvents):
                kept = open_kept(keeps.url, name_of(keeps.reader))
            else:
                kept = read_kept(keeps.urls, chain_id, run.address, name_of)
        super().__init__(run.chain, followed, run.first_block, listeners, restarted, kept, told_from, clock)
        self.run = run
        self.begin()

    def sync(self) -> RunState:
        """The state at the newest head. Raises UnavailableError."""
        self.follow()
        return self.state

    def begin(self) -> None:
        """See Follower."""
        self.state = RunState.of(self.run.facts)

    def apply(self, found: Logged[Event], log: LogReceipt) -> None:
        """See Follower."""
        fold(self.state, found.event, self.time_of(log), found.transaction)

    def left_out(self) -> str:
        """See Follower."""
        return left_out_of(self.state, self.run)

    def left_out_of_logs(self) -> str:
        """See Follower."""
        return left_out_of_logs(self.run)

    def freeze(self) -> bytes | None:
        """See Follower."""
        return frozen.freeze(self.state)

    def thaw(self, body: bytes) -> bool:
        """See Follower."""
        state = frozen.thaw(body, self.run.facts)
        self.state = self.state if state is None else state
        return state is not None

    def version(self) -> bytes:
        """See Follower."""
        return frozen.version()

    def reached(self, head: Head) -> None:
        """See Follower."""
        self.state.head = head
        self.state.books.now = head.timestamp
