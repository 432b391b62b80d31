"""The solver: trains, commits, merges with the others, and defends what it said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain

from assay.protocol.program.trace import Trace
from assay.protocol.rounds.ids import Node, generation_of, group_of, is_group, seal_digest
from assay.protocol.run.claims import ClaimKind
from assay.protocol.trees.state import ListBytes
from assay.protocol.types import Digest, Round, Seat, Wei
from assay.training.long_runs import LongRun
from assay.training.long_trace import LongTrace
from assay_ledger.agents.game_actions import Play
from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.keeper import backs_a_root
from assay_ledger.agents.money_keeper import has_unpaid_openings
from assay_ledger.agents.node_merges import NodeMerges, seal_salt
from assay_ledger.agents.round_actions import Choice
from assay_ledger.index.computing import Computation, RecheckMismatch
from assay_ledger.index.games import Game
from assay_ledger.rounds.nodes import over_of
from assay_ledger.rounds.told_generations import node_of
from assay_ledger.rounds.view import BaseLists, RunView
from assay_solver import strategy
from assay_solver.actions import (
    BackRoot,
    ChallengeRoot,
    CheckNode,
    CommitWork,
    LeaveTenure,
    PrepareMerge,
    RestoreUpdate,
    ServeBase,
    TakeSeat,
    TrainUnit,
)
from assay_solver.memory import MergeKey
from assay_solver.merging import Abstain, ComputeMerge, FetchUpdate, HoldUpdates, OpenRoot, SealRoot
from assay_solver.worker import Worker


class Solver(Worker):
    """A solver of one run."""

    @cached_property
    def _nodes(self) -> NodeMerges:
        """Above 64 seats: what others differ about."""
        return NodeMerges(self.archive, self.compute)

    def own(self, view: RunView) -> strategy.OwnRounds:
        """What this solver has, for the strategy."""
        return strategy.OwnRounds(
            pace=self._pace,
            lead=min(view.rules.inclusion, view.rules.hold // 2),
            leaving=self.leaving,
            forgiven=self.forgiven(view),
            free=self.free,
            lost_gpu=self.lost_gpu,
            units={key: run.units for key, run in self._runs.items()},
            finished=self.recorder.finished,
            merges=self.recorder.merges,
            held=_by_round(self._updates.held(view)),
            lost=_by_round(self._updates.lost(view)),
            served=frozenset(self._served),
            nodes=self._nodes.roots(view),
        )

    def candidates(self, view: RunView) -> Iterator[Choice]:
        """See ActorLoop."""
        yield from self.play(view)
        yield from strategy.candidates(view, self.own(view), chain(self.restoring(view), self.keep(view)))

    def times(self, view: RunView) -> Iterator[int]:
        """See ActorLoop."""
        yield from self.keeping_times(view)
        yield from strategy.times(view, self.own(view))

    def share(self, action: Choice, view: RunView) -> float:
        """See Agent."""
        found = strategy.share(action, view, self.own(view))
        return super().share(action, view) if found is None else found

    def is_in_game(self, action: Choice) -> bool:
        """See ActorLoop."""
        return isinstance(action, ChallengeRoot) or super().is_in_game(action)

    def is_finished(self, view: RunView) -> bool:
        """See ActorLoop: no round will open, or it leaves, and nothing of its seats is open any more."""
        mine = view.tenures_of(self.me)
        over = view.is_over or view.state.money.is_ended
        if self.leaving or (over and self.deadline is None):
            is_out = all(t.released or t.convicted_at for _, t in mine) and not view.open_games()
            return is_out and not (has_unpaid_openings(view) or backs_a_root(view))
        return False

    def handlers(self) -> Handlers[RunView]:
        """See ActorLoop."""
        table = super().handlers()
        table.add(TakeSeat, self.do_take_seat).add(LeaveTenure, self.do_leave_tenure)
        table.add(TrainUnit, self.do_train_unit).add(CommitWork, self.do_commit_work)
        table.add(RestoreUpdate, self.do_restore_update).add(ServeBase, self.do_serve_base)
        table.add(FetchUpdate, self.do_fetch_update).add(HoldUpdates, self.do_hold_updates)
        table.add(ComputeMerge, self.do_compute_merge)
        table.add(SealRoot, self.do_seal_root).add(OpenRoot, self.do_open_root).add(Abstain, self.do_abstain)
        table.add(PrepareMerge, self.do_prepare_merge).add(ChallengeRoot, self.do_challenge_root)
        return table.add(BackRoot, self.do_back_root).add(CheckNode, self.do_check_node)

    # --- merging

    def do_fetch_update(self, action: FetchUpdate, view: RunView) -> None:
        """Fetches an update and checks it against its root. Raises UnavailableError."""
        self._updates.fetch(view, action.round, action.seat)

    def do_hold_updates(self, action: HoldUpdates, view: RunView) -> None:
        """Says which updates it holds, over what is committed now."""
        acc = view.group(action.round, 0).acc
        held = Wei(sum(1 << seat for seat in action.held))
        self.send(self.target.commitments.hold(action.round, 0, 1 << action.seat, acc, held))

    def do_compute_merge(self, action: ComputeMerge, view: RunView) -> None:
        """Computes the merge, keeps its lists, and notes its root."""
        lists = self.run_merge(action.round, self._merge_job(action.round, view))
        self._keep_merge(_merge_key(action.round, view), lists)

    def _keep_merge(self, key: MergeKey, lists: ListBytes) -> None:
        self.recorder.merge(key, *self.archive.keep_base(lists))

    def run_merge(self, round_: Round, job: Computation) -> ListBytes:
        """A round's merge as this solver claims it."""
        return self.compute.run(job.program, job.lists, job.steps)

    def _merge_job(self, round_: Round, view: RunView) -> Computation:
        base = self._base_lists(round_, view)
        with self.objects.own_copies_first():
            return self.archive.merge_job(view, round_, base)

    def _merged(self, round_: Round, view: RunView) -> tuple[MergeKey, BaseLists]:
        key = _merge_key(round_, view)
        return key, self.recorder.merges[key]

    def do_seal_root(self, action: SealRoot, view: RunView) -> None:
        """Binds itself to its root, and to what that is over; the salt follows from its key, so that no crash can lose
        it."""
        (_, over), lists = self._merged(action.round, view)
        salt = self._salt(action.round, lists.root)
        seal = seal_digest(action.round, action.seat, lists.root, over, salt, self.me)
        self.send(self.target.generations.seal(action.round, action.seat, seal))

    def do_abstain(self, action: Abstain, view: RunView) -> None:
        """Says that it cannot compute the root, so that nobody waits for it."""
        self.send(self.target.generations.abstain(action.round, action.seat))

    def do_open_root(self, action: OpenRoot, view: RunView) -> None:
        """Opens its root: from here on its lock stands behind it. Raises RecheckMismatch."""
        key, lists = self._merged(action.round, view)
        others = {opening.root for opening in view.openings(action.round + 1)}
        if others - {lists.root}:
            self.confirm(action.round, view)
        salt = self._salt(action.round, lists.root)
        call = self.target.generations.open(action.round, action.seat, lists.parameters, lists.momentum, salt)
        self.send(call, tail=self.recorder.manifests[key])

    def _salt(self, round_: Round, root: Digest) -> Digest:
        return seal_salt(bytes(self.keys.local.key), self.target.facts.identity, round_, root)

    def confirm(self, round_: Round, view: RunView) -> None:
        """Computes a merge again by other kernels before anything is said against others. Raises RecheckMismatch.

        Where the two differ a third calculation decides, so that what this machine got wrong once it does not hold
        against everybody else's root.
        """
        key, lists = self._merged(round_, view)
        if key in self.recorder.confirmed:
            return
        job = self._merge_job(round_, view)
        second = self.archive.base_roots(self.compute.recheck(job.program, job.lists, job.steps))
        if second != lists:
            third = self.compute.run(job.program, job.lists, job.steps)
            if self.archive.base_roots(third) == second:
                self._keep_merge(key, third)
                self.recorder.confirmed.add(key)
            raise RecheckMismatch(
                f"Two calculations of the merge of round {round_} differ.", first=lists.root, second=second.root
            )
        self.recorder.confirmed.add(key)

    def do_serve_base(self, action: ServeBase, view: RunView) -> None:
        """Publishes a generation where the store has it not. Raises UnavailableError, StateMismatch."""
        with self.objects.own_copies_first():
            lists = self.archive.base(view, action.generation, self.compute, publish=False)
        self.archive.serve_base(lists)
        self._served = {action.generation}

    # --- what stands

    def do_prepare_merge(self, action: PrepareMerge, view: RunView) -> None:
        """Has X of a merge built."""
        round_, group = Round(generation_of(action.node) - 1), group_of(action.node)
        if view.rules.by_seats:
            self.send(self.target.generations.prepare(round_, view.entries(round_)))
        elif is_group(action.node):
            self.send(self.target.grouped.prepare_partial(round_, group, view.entries(round_, group)))
        else:
            self.send(self.target.grouped.prepare_merge(round_))

    def do_check_node(self, action: CheckNode, view: RunView) -> None:
        """Computes a merge about which tickets differ. Raises UnavailableError, StateMismatch."""
        self._nodes.merge(
            view, action.node, lambda job: self.compute.run(job.program, job.lists, job.steps), publish=False
        )

    def _confirm_node(self, node: Node, view: RunView) -> None:
        if view.rules.by_seats:
            self.confirm(Round(node - 1), view)
        else:
            self._nodes.confirm(view, node)

    def do_challenge_root(self, action: ChallengeRoot, view: RunView) -> None:
        """Opens a game on a false root, after a second calculation."""
        self._confirm_node(node_of(action.ref), view)
        self.send(self.target.game.challenge(action.ref))

    def do_back_root(self, action: BackRoot, view: RunView) -> None:
        """Puts S behind a true root, after a second calculation."""
        self._confirm_node(action.node, view)
        self.send(self.target.generations.back(action.node, action.root))

    # --- games

    def play(self, view: RunView) -> Iterator[Choice]:
        """See Agent. Moves about attestations are left to who audits by this key: a solver has no witnessed run.

        Bad luck: one key in two roles, each a process. The solver would end at every turn of such a game.
        """
        for choice in super().play(view):
            if not isinstance(choice, Play) or view.games[choice.game_id].ref.kind is not ClaimKind.ATTESTATION:
                yield choice

    def trace_of(self, game: Game, view: RunView) -> Trace:
        """The run behind a disputed claim: one's own from the states that were kept, else computed anew."""
        ref = game.ref
        if ref.kind is ClaimKind.OUTER and not view.rules.by_seats:
            return self._nodes.trace(view, node_of(ref))
        if ref.kind is ClaimKind.OUTER:
            job = self._merge_job(ref.round, view)
            is_mine = game.state.defender == self.me
            return self.merge_trace(ref.round, job) if is_mine else self.compute.trace(job.program, job.lists, 1)
        state, work = view.round_of(ref.round), view.work(ref.round, ref.seat)
        assert work is not None
        start = self._start(ref.round, ref.seat, view)
        progress = self._progress(ref.round, ref.seat, state.base)
        steps, unit = work.work.units * view.rules.steps_per_unit, view.rules.steps_per_unit
        if ref.kind is ClaimKind.INTERVAL:
            return LongTrace(self.compute, self.archive.step, start, steps, progress, self.lie(ref.round))
        run = LongRun(
            self.compute, self.archive.step, start, unit, progress, room=self._room, tamper=self.lie(ref.round)
        )
        while run.units < work.work.units:
            run.advance()
        return self.update_trace(ref.round, self.update_job(start, run.lists))

    def merge_trace(self, round_: Round, job: Computation) -> Trace:
        """The run behind the merge of a round, as it was claimed."""
        return self.compute.trace(job.program, job.lists, job.steps)

    def update_trace(self, round_: Round, job: Computation) -> Trace:
        """The run behind the update of a round, as it was claimed."""
        return self.compute.trace(job.program, job.lists, job.steps)


def _merge_key(round_: Round, view: RunView) -> MergeKey:
    return round_, over_of(view, round_ + 1)


def _by_round(seats: Iterable[tuple[Round, Seat]]) -> dict[Round, frozenset[Seat]]:
    found: dict[Round, set[Seat]] = {}
    for round_, seat in seats:
        found.setdefault(round_, set()).add(seat)
    return {round_: frozenset(those) for round_, those in found.items()}
