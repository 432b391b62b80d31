"""An actor: the loop over its index, its games, and what anybody does for the run.

A role adds what it chooses (`candidates`, `times`), its handlers, and the runs behind disputed claims (`trace_of`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from assay.protocol.game.clock import Clocks
from assay_ledger.agents import keeper, playing
from assay_ledger.agents.game_actions import Challenge, CommitChallenge, Defer, EndOverdue, Play, RevealChallenge
from assay_ledger.agents.game_actor import GameActor
from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.journal import Journal
from assay_ledger.agents.loop import RunStore
from assay_ledger.agents.money_handlers import MoneyHandlers
from assay_ledger.agents.observing import tell
from assay_ledger.agents.patience import BESIDE_GAME_S, IN_GAME_S, MOST_S
from assay_ledger.agents.round_actions import (
    Choice,
    CloseEpoch,
    CloseOpening,
    CutGeneration,
    DropOpening,
    Evict,
    FinalizeGeneration,
    LapseAccusation,
    ReleaseTenure,
    RemoveTicket,
    Restart,
    SeedEpoch,
    SubmitBeacon,
    highest_base_fee,
)
from assay_ledger.beacon.sources import BeaconSource, source_of
from assay_ledger.index.computing import Compute
from assay_ledger.index.listeners import Listener, Once
from assay_ledger.index.publications import Publications
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.index import KeepsEvents, RunIndex
from assay_ledger.rounds.records import RunState
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView

IN_A_GAME: Final = (Play, Defer, EndOverdue, Challenge, CommitChallenge, RevealChallenge)
"""Actions that open, answer or end a game."""


class Agent(GameActor[RunView, Choice]):
    """One actor of one run; see ActorLoop. Raises JournalInUse, FolderOfAnotherRun, UnavailableError."""

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
        listeners: Sequence[Listener] = (),
        relays: Sequence[str] = (),
        index_url: str | None = None,
        told_from: int = 0,
        journal: Journal | None = None,
    ) -> None:
        """`listeners` are told every event of the run once, after the records have it, whatever blocks are replaced;
        of blocks before `told_from` they need none. `relays`: see source_of. `index_url`: the database that keeps
        events, without which each start reads them from the chain. `journal`: that of `data_dir`, if it is held."""
        self.journal = journal or Journal(data_dir)  # first: one process at a time works in this folder
        self.journal.keep_to(run.address)
        super().__init__(
            *(run.chain, run.address, run.charter.chain.fee_cap, keys, store, data_dir, compute),
            clock=clock,
            on_progress=on_progress,
        )
        self.target = run
        self.archive = Archive(run.charter, run.facts, self.objects, Publications(run.chain, self.objects))
        self._beacon: BeaconSource | None = source_of(run.chain, run.beacon, relays, clock)
        keeps = None if index_url is None else KeepsEvents(index_url, "0x" + self.me.hex())
        told = [Once(partial(tell, listener)) for listener in listeners]
        self._index = RunIndex(run, told, keeps=keeps, told_from=told_from)
        self._cheap_at: int | None = None
        """The newest chain time at which a base fee at the cap or below was seen; else the first one."""
        clocks, delay = run.charter.clocks, run.charter.chain.inclusion_delay
        self._clocks = Clocks(clocks.budget, clocks.replay + delay, clocks.move + delay)

    # --- what this kind of run adds

    def see(self) -> RunView:
        """See ActorLoop."""
        view = RunView(self.target.charter, self.target.facts, self.me, self._index.sync())
        if self._cheap_at is None or not self._is_expensive(view):
            self._cheap_at = view.now
        return view

    @property
    def state(self) -> RunState:
        """The records as of the last step."""
        return self._index.state

    def keep_copies(self, view: RunView) -> None:
        """See ActorLoop. From the round before the first unsettled one on they are kept."""
        self.local_cache.turn(view.round or 0, self.oldest_kept(view))

    def oldest_kept(self, view: RunView) -> int:
        """The first round of which copies are kept."""
        unsettled = next(iter(view.state.unsettled), (view.round or 0, 0))[0]
        return self.before_base(view, unsettled)

    @staticmethod
    def before_base(view: RunView, round_: int) -> int:
        """The round before one, or before what the newest round starts from, whichever is earlier.

        Bad luck: rounds are void while all are away, and where the store has lost it nobody else has the base.
        """
        base = 0 if view.round is None else view.round_of(view.round).parent
        return max(min(round_, base) - 1, 0)

    def patience(self, action: Choice, view: RunView) -> float:
        """See ActorLoop. Less beside a game whose clock runs, else what its window leaves."""
        if self.is_in_game(action):
            return IN_GAME_S
        is_beside = any(playing.is_my_turn(view.me, game) for game in view.open_games())
        return BESIDE_GAME_S if is_beside else self.share(action, view)

    def share(self, action: Choice, view: RunView) -> float:
        """Seconds that an action outside of games may wait for stores in all; a role knows its windows."""
        return MOST_S

    def is_in_game(self, action: Choice) -> bool:
        """See ActorLoop."""
        return isinstance(action, IN_A_GAME)

    def highest_base_fee(self, action: Choice, base_fee: int) -> int | None:
        """See ActorLoop."""
        dear_for = 0 if self._cheap_at is None else self._seen.timestamp - self._cheap_at
        return highest_base_fee(action, base_fee, self.target.charter.chain.fee_cap, dear_for)

    @property
    def disputes(self) -> Run:
        """See GameActor."""
        return self.target

    @property
    def arity(self) -> int:
        """See GameActor."""
        return self.target.charter.clocks.arity

    def close(self) -> None:
        """See ActorLoop."""
        self._index.close()
        self.journal.close()

    # --- strategy

    def play(self, view: RunView) -> Iterator[Choice]:
        """Moves that are due in this actor's games, and games whose other side is overdue."""
        return playing.moves(view.open_games(), view.me, view.now, self._is_expensive(view), self._clocks)

    def keep(self, view: RunView) -> Iterator[Choice]:
        """What this actor does for the run now."""
        for action in keeper.due(view):
            if not isinstance(action, SubmitBeacon) or self._beacon is not None:
                yield action

    def keeping_times(self, view: RunView) -> Iterator[int]:
        """Chain times at which a move or a task may become due."""
        yield from keeper.times(view)
        yield from playing.times(view.open_games(), self._is_expensive(view), self._clocks)

    def _is_expensive(self, view: RunView) -> bool:
        """Whether gas costs more than what games refund."""
        return view.head.base_fee > self.target.charter.chain.fee_cap

    # --- what anybody does

    def handlers(self) -> Handlers[RunView]:
        """See ActorLoop."""
        table = super().handlers()
        table.add(SubmitBeacon, self.do_submit_beacon)
        table.add(SeedEpoch, self.do_seed_epoch).add(CloseEpoch, self.do_close_epoch)
        table.add(Restart, self.do_restart).add(CutGeneration, self.do_cut_generation)
        table.add(DropOpening, self.do_drop_opening).add(FinalizeGeneration, self.do_finalize_generation)
        table.add(CloseOpening, self.do_close_opening)
        table.add(Evict, self.do_evict).add(ReleaseTenure, self.do_release_tenure)
        table.add(LapseAccusation, self.do_lapse_accusation).add(RemoveTicket, self.do_remove_ticket)
        return MoneyHandlers(lambda: self.target, self.send).add_to(table)

    def do_submit_beacon(self, action: SubmitBeacon, view: RunView) -> None:
        """Proves a round of the beacon. Raises UnavailableError while nobody gives its proof."""
        assert self._beacon is not None
        proof = self._beacon.proof(action.beacon_round)
        self.send(self.target.beacon.submit(action.beacon_round, proof))

    def do_seed_epoch(self, action: SeedEpoch, view: RunView) -> None:
        """Takes the newest epoch's seed."""
        self.send(self.target.duties.seed_epoch())

    def do_close_epoch(self, action: CloseEpoch, view: RunView) -> None:
        """Closes the newest epoch, or repeats it."""
        self.send(self.target.duties.close_epoch())

    def do_restart(self, action: Restart, view: RunView) -> None:
        """Opens a round from the newest generation that is not cut."""
        self.send(self.target.generations.restart())

    def do_cut_generation(self, action: CutGeneration, view: RunView) -> None:
        """Cuts a generation that nobody answers for."""
        self.send(self.target.generations.fall(action.node))

    def do_drop_opening(self, action: DropOpening, view: RunView) -> None:
        """Drops the claim of one that was convicted elsewhere."""
        self.send(self.target.generations.drop(action.node, action.party))

    def do_finalize_generation(self, action: FinalizeGeneration, view: RunView) -> None:
        """Makes a generation final."""
        self.send(self.target.generations.finalize(action.node, action.party))

    def do_close_opening(self, action: CloseOpening, view: RunView) -> None:
        """Frees the lock behind an opening."""
        self.send(self.target.generations.close(action.node, action.party))

    def do_evict(self, action: Evict, view: RunView) -> None:
        """Takes a seat from who stayed away."""
        self.send(self.target.tenures.evict(action.tenure, action.round))

    def do_release_tenure(self, action: ReleaseTenure, view: RunView) -> None:
        """Gets a lock back."""
        self.send(self.target.tenures.release(action.tenure))

    def do_lapse_accusation(self, action: LapseAccusation, view: RunView) -> None:
        """Ends an accusation without a game."""
        self.send(self.target.attestations.lapse(action.accusation))

    def do_remove_ticket(self, action: RemoveTicket, view: RunView) -> None:
        """Retires a ticket that is short."""
        self.send(self.target.tickets.remove_short(action.ticket))
