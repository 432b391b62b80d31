"""An actor of a run: the loop over its index, its memory and its journal."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from assay_ledger.agents import urgency
from assay_ledger.agents.actions import Action, highest_base_fee
from assay_ledger.agents.game_actor import GameActor
from assay_ledger.agents.journal import Journal
from assay_ledger.agents.loop import RunStore
from assay_ledger.agents.memory import Recorder
from assay_ledger.index.archive import Archive, Compute
from assay_ledger.index.indexer import Index
from assay_ledger.index.publications import Publications
from assay_ledger.index.records import RunState
from assay_ledger.index.run import Run
from assay_ledger.index.view import Facts, Memory, RunView
from assay_ledger.keys.keystore import ActorKeys


class Agent(GameActor[RunView, Action]):
    """One actor of one run; see ActorLoop. Raises JournalInUse."""

    def __init__(
        self,
        run: Run,
        keys: ActorKeys,
        store: RunStore,
        data_dir: Path,
        compute: Compute,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self.recorder = Recorder(Journal(data_dir))  # first: one process at a time works in this folder
        super().__init__(
            *(run.chain, run.address, run.charter.chain.fee_cap, keys, store, data_dir, compute),
            clock=clock,
            on_progress=on_progress,
        )
        self.target = run
        self.facts = Facts(run.chain.chain_id, run.address, run.run_id, run.charter)
        self.archive = Archive(self.facts, self.objects, Publications(run.chain, self.objects))
        self._index = Index(run)

    # --- what this kind of run adds

    def see(self) -> RunView:
        """See ActorLoop."""
        state = self._index.sync()
        return RunView(self.facts, self.me, state.head.timestamp, state.head.number, state, self.memory)

    def keep_copies(self, view: RunView) -> None:
        """See ActorLoop. From the round before the first unsettled one on they are kept."""
        rounds = view.state.rounds
        latest = max(len(rounds) - 1, 0)
        unsettled = next((record.number for record in rounds if not record.settled), latest)
        self.local_cache.turn(latest, max(unsettled - 1, 0))

    def patience(self, action: Action, view: RunView) -> float:
        """See ActorLoop."""
        return urgency.patience(action, view)

    def is_in_game(self, action: Action) -> bool:
        """See ActorLoop."""
        return urgency.is_in_game(action)

    def highest_base_fee(self, action: Action, base_fee: int) -> int | None:
        """See ActorLoop."""
        return highest_base_fee(action, base_fee, self.facts.charter.chain.fee_cap)

    @property
    def disputes(self) -> Run:
        """See GameActor."""
        return self.target

    @property
    def arity(self) -> int:
        """See GameActor."""
        return self.facts.charter.clocks.arity

    @property
    def memory(self) -> Memory:
        """What this actor knows."""
        return self.recorder.memory

    @property
    def state(self) -> RunState:
        """The records as of the last step."""
        return self._index.state

    def close(self) -> None:
        """See ActorLoop."""
        self.recorder.journal.close()
