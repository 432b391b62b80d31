"""What the explorer knows of a run of the second round: its books and records, and its money."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from assay.explorer.chain_reader import ChainReader
from assay.explorer.round_money import RoundMoney
from assay.protocol.run.claims import NO_ADDRESS
from assay.protocol.types import Address
from assay_ledger.contract import Event
from assay_ledger.rounds.round_index import RoundIndex
from assay_ledger.rounds.round_records import RoundRunState
from assay_ledger.rounds.round_view import RoundView
from assay_ledger.rounds.run import RoundRun
from assay_ledger.store.blobs import ArtifactStore


class RoundReader(ChainReader):
    """See ChainReader."""

    run: RoundRun

    def __init__(
        self,
        run: RoundRun,
        store: ArtifactStore | None = None,
        names: Mapping[Address, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(store, names, clock)
        self.run = run
        self.money = RoundMoney(run)
        self._index = RoundIndex(run, [self.on_event], run.all_contracts(), self.start_again)

    def sync(self) -> None:
        """See ChainReader."""
        self._index.sync()

    def forget(self) -> None:
        """See ChainReader."""
        self.money = RoundMoney(self.run)

    def count(self, event: Event) -> None:
        """See ChainReader."""
        self.money.on_event(event)

    @property
    def state(self) -> RoundRunState:
        """Books and records."""
        return self._index.state

    @property
    def view(self) -> RoundView:
        """The run as an outsider sees it."""
        return RoundView(self.run.charter, self.run.facts, NO_ADDRESS, self.state)
