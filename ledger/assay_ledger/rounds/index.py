"""The index of a run: its events folded into books and records, block by block."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from hexbytes import HexBytes
from web3.types import LogReceipt

from assay_ledger.chain.client import Head
from assay_ledger.contract import Contract, Event, Logged
from assay_ledger.index.follower import Follower, Listener
from assay_ledger.rounds.fold import fold
from assay_ledger.rounds.records import RunState
from assay_ledger.rounds.run import Run

TIMES_KEPT: Final = 64
"""Blocks whose times are remembered: events of a block come together."""


class RunIndex(Follower):
    """Keeps the state of one run up to date with the chain."""

    def __init__(
        self,
        run: Run,
        listeners: Sequence[Listener] = (),
        contracts: Mapping[str, Contract] | None = None,
        restarted: Callable[[], None] = lambda: None,
    ) -> None:
        """`listeners`, `restarted`: see Follower. They are told of more contracts than the state needs where
        `contracts` names them."""
        followed = run.contracts() if contracts is None else contracts
        super().__init__(run.chain, followed, run.first_block, listeners, restarted)
        self.run = run
        self._times: OrderedDict[bytes, int] = OrderedDict()
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
        fold(self.state, found.event, self._time_of(log), found.transaction)

    def reached(self, head: Head) -> None:
        """See Follower."""
        self.state.head = head
        self.state.books.now = head.timestamp

    def _time_of(self, log: LogReceipt) -> int:
        """The chain time of a log's block, in seconds: as newer nodes say with the log, else the block is asked."""
        said = cast(dict[str, Any], log).get("blockTimestamp")
        if said is not None:
            return int(said, 16) if isinstance(said, str) else int(said)
        block = bytes(log["blockHash"])
        if block not in self._times:
            found = self.chain.read(lambda: self.chain.w3.eth.get_block(HexBytes(block)))
            self._times[block] = int(found["timestamp"])
            while len(self._times) > TIMES_KEPT:
                self._times.popitem(last=False)
        return self._times[block]
