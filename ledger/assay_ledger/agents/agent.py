"""An actor of a run of the first design: its index, archive and memory behind the loop of every actor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay_ledger.agents import urgency
from assay_ledger.agents.actions import highest_base_fee
from assay_ledger.agents.actor_loop import ActorLoop, RunStore
from assay_ledger.agents.journal import Journal
from assay_ledger.agents.memory import Recorder
from assay_ledger.chain.client import Head
from assay_ledger.index.archive import Archive, Compute
from assay_ledger.index.indexer import Index
from assay_ledger.index.publications import Publications
from assay_ledger.index.records import RunState
from assay_ledger.index.run import Run
from assay_ledger.index.view import Facts, Memory, RunView
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.objects import Objects


class Agent(ActorLoop[RunView]):
    """One actor of one run; `compute` runs programs, the other options are the loop's. Raises JournalInUse."""

    def __init__(
        self, run: Run, keys: ActorKeys, store: RunStore, data_dir: Path, compute: Compute, **options: Any
    ) -> None:
        self.target = run
        self.compute = compute
        self.facts = Facts(run.chain.chain_id, run.address, run.run_id, run.charter)
        self._local_cache = LocalCache(data_dir / "cache")
        self.objects = Objects(store, self._local_cache)
        self.archive = Archive(self.facts, self.objects, Publications(run.chain, self.objects))
        self.recorder = Recorder(Journal(data_dir))
        self._index = Index(run)
        super().__init__(run.chain, run.address, keys, store, data_dir, run.charter.chain.fee_cap, **options)

    @property
    def memory(self) -> Memory:
        """What this actor knows."""
        return self.recorder.memory

    @property
    def state(self) -> RunState:
        """The records as of the last step."""
        return self._index.state

    def look(self) -> RunView:
        """See ActorLoop."""
        state = self._index.sync()
        return RunView(self.facts, self.me, state.head.timestamp, state.head.number, state, self.memory)

    def refresh(self, view: RunView) -> None:
        """See ActorLoop: copies are kept from the round before the first unsettled one on: what can be disputed, and
        its start."""
        rounds = view.state.rounds
        latest = max(len(rounds) - 1, 0)
        unsettled = next((record.number for record in rounds if not record.settled), latest)
        self._local_cache.turn(latest, max(unsettled - 1, 0))

    def patience(self, action: Any, view: RunView) -> float:
        """See ActorLoop."""
        return urgency.patience(action, view)

    def is_in_game(self, action: Any) -> bool:
        """See ActorLoop."""
        return urgency.is_in_game(action)

    def highest_base_fee(self, action: Any, head: Head) -> int | None:
        """See ActorLoop."""
        return highest_base_fee(action, head.base_fee, self.fee_cap)

    def close(self) -> None:
        """See ActorLoop."""
        self.recorder.journal.close()
