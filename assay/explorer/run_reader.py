"""What the explorer knows of a run: its records, money, and games as their signed transactions make them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from assay.bundle.document import Bundle
from assay.bundle.export import gather
from assay.bundle.replay import ReplayedDispute, replay
from assay.explorer.chain_reader import ChainReader
from assay.explorer.money import Money
from assay.protocol.run.claims import NO_ADDRESS
from assay.protocol.types import Address
from assay_ledger.contract import Event
from assay_ledger.index.indexer import Index
from assay_ledger.index.records import GameRecord, RunState
from assay_ledger.index.run import Run
from assay_ledger.index.view import Facts, Memory, RunView
from assay_ledger.store.blobs import ArtifactStore


class RunReader(ChainReader):
    """See ChainReader."""

    run: Run

    def __init__(
        self,
        run: Run,
        store: ArtifactStore | None = None,
        names: Mapping[Address, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(store, names, clock)
        self.run = run
        self.facts = Facts(run.chain.chain_id, run.address, run.run_id, run.charter)
        self._replays: dict[tuple[int, int], tuple[Bundle, ReplayedDispute]] = {}
        self.money = Money(run)
        self._index = Index(run, [self.on_event], self.start_again)

    def sync(self) -> None:
        """See ChainReader."""
        self._index.sync()

    def forget(self) -> None:
        """See ChainReader."""
        self.money = Money(self.run)
        self._replays.clear()

    def count(self, event: Event) -> None:
        """See ChainReader."""
        self.money.on_event(event)

    @property
    def state(self) -> RunState:
        """The records."""
        return self._index.state

    @property
    def view(self) -> RunView:
        """The run as an outsider sees it."""
        head = self.state.head
        return RunView(self.facts, NO_ADDRESS, head.timestamp, head.number, self.state, Memory())

    def replay_of(self, game: GameRecord) -> tuple[Bundle, ReplayedDispute]:
        """The game as its signed transactions make it, over or not. Raises what `bundle` raises."""
        key = (game.game_id, len(game.moves))
        if key not in self._replays:
            bundle = gather(self.run, self.state, game.game_id)
            self._replays[key] = bundle, replay(bundle)
        return self._replays[key]
