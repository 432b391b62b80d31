"""False roots of a round's merge: who challenges them, and when; and a machine that is wrong once itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.program.program import Program
from assay.protocol.program.trace import OnStep, Tamper
from assay.protocol.rounds.terms import NEVER, GenerationStatus
from assay.protocol.run.claims import NO_ADDRESS, ClaimKind, ClaimRef
from assay.protocol.trees.state import ListBytes
from assay.protocol.types import Round, Seat
from assay.training.rounds import TorchCompute
from assay_ledger.agents.keeping import PATIENCE
from assay_ledger.agents.round_actions import Choice
from assay_ledger.chain.client import Head
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.records import OpeningRecord
from assay_ledger.rounds.view import RunView
from assay_solver import strategy
from assay_solver.actions import ChallengeRoot, LeaveTenure
from assay_solver.agent import Solver
from assay_solver.cheats import solver_cheat_named
from tests.harness.actors.stage import CheatAlone, RoundsAlone, RoundStageRun, new_round_run
from tests.harness.actors.truth import replayed_bases
from tests.harness.actors.world import SharedChain, small_work

WINDOW = 50_000
"""What a root can be challenged for, in seconds."""


class ErrsOnce(TorchCompute):
    """A machine that gets one merge wrong, by one bit, and everything after it right."""

    def __init__(self, merge: Program) -> None:
        super().__init__()
        self.merge, self.errs = merge.root, True

    def run(
        self,
        program: Program,
        lists: ListBytes,
        steps: int = 1,
        tamper: Tamper | None = None,
        on_step: OnStep | None = None,
    ) -> ListBytes:
        """See Compute."""
        found = super().run(program, lists, steps, tamper, on_step)
        if program.root != self.merge or not self.errs:
            return found
        self.errs = False
        first, *others = found[0]
        return ((bytes([first[0] ^ 1]) + first[1:], *others), *found[1:])


def lied_to(stage: SharedChain, folder: Path, rounds: int) -> RoundStageRun:
    """A run of which everybody opened the first generation, mallory in seat 0 a false root of it, X built."""
    run = new_round_run(stage, folder, small_work(), rounds=rounds, challenge=WINDOW)
    lies = solver_cheat_named("false-root", 0)
    run.solver("mallory", lambda *place, **options: CheatAlone(*place, cheat=lies, **options))
    for k in range(1, 8):
        run.solver(f"solver {k}")
    run.enrol()
    run.begin()
    run.settle(lambda run: 1 in run.view.books.generations.inputs)
    return run


@pytest.fixture
def opened(stage: SharedChain, tmp_path: Path) -> RoundStageRun:
    """That of a run of one round: no round will follow."""
    return lied_to(stage, tmp_path, rounds=1)


def false_opening(run: RoundStageRun) -> OpeningRecord:
    """Mallory's."""
    return next(opening for opening in run.view.openings(1) if opening.position == 0)


def at(view: RunView, time: int, *games: GameRecord) -> RunView:
    """The same run with these games, at another chain time."""
    played = {game.game_id: game for game in games}
    return replace(view, state=replace(view.state, head=Head(view.block + 1, time), games=played))


def chosen(run: RoundStageRun, time: int, *games: GameRecord) -> list[Choice]:
    """The challenges that an honest solver would send at a time."""
    agent = run.players["solver 3"].agent
    view = at(agent.see(), time, *games)
    found = strategy.candidates(view, agent.own(view), [])
    return [action for action in found if isinstance(action, ChallengeRoot)]


@pytest.mark.long
def test_a_puppets_game_hides_no_false_root_beyond_half_its_window(opened: RoundStageRun) -> None:
    false, me = false_opening(opened), opened.players["solver 3"].agent.me
    challenge = ChallengeRoot(ClaimRef(ClaimKind.OUTER, Round(0), Seat(0), 0, NO_ADDRESS, false.root))
    mallory, puppet = (opened.players[name].agent.me for name in ("mallory", "solver 5"))
    game = GameRecord(0, challenge.ref.outer_root, challenge.ref, puppet, mallory, b"")
    middle, last = false.at + WINDOW // PATIENCE, false.at + WINDOW
    assert chosen(opened, middle - 1) == [challenge]
    assert chosen(opened, middle - 1, game) == []
    assert chosen(opened, middle, game) == chosen(opened, last, game) == [challenge]
    # What it plays itself it does not open again, and what can be challenged no more nobody challenges.
    assert chosen(opened, middle, game, replace(game, game_id=1, challenger=me)) == []
    assert chosen(opened, last + 1, game) == []
    assert middle in set(strategy.times(opened.view, opened.players["solver 3"].agent.own(opened.view)))


def test_a_false_root_that_a_backer_stands_behind_is_challenged(opened: RoundStageRun) -> None:
    false, backer = false_opening(opened), opened.players["solver 5"].agent.me
    seen = opened.players["solver 3"].agent.see()
    books = seen.books.generations
    party = books.openings[1, false.party]
    backed = replace(false, party=false.root, position=None, backer=backer)
    seen.state.openings[1, false.root] = backed
    seen.state.openings_of[1].append(backed)
    books.openings[1, false.root] = replace(party, opener=0, backer=backer)
    ref = ClaimRef(ClaimKind.OUTER, Round(0), Seat(0), 0, backer, false.root)
    assert ChallengeRoot(ref) in chosen(opened, false.at + WINDOW)


@pytest.mark.long
def test_the_last_generation_is_challenged_from_seats_that_nobody_leaves_before(opened: RoundStageRun) -> None:
    # A merge is challenged from a seat, and the last root is the model.
    held = [t.until for t in opened.view.books.tenures.tenures.values()]
    assert held == [NEVER] * 8
    false = false_opening(opened)
    assert chosen(opened, false.at + WINDOW) != []
    opened.settle()
    assert opened.view.status(1) is GenerationStatus.FINAL
    assert {t.until for t in opened.view.books.tenures.tenures.values()} == {1}


@pytest.mark.long
def test_who_leaves_challenges_first_what_it_knows_to_be_false(stage: SharedChain, tmp_path: Path) -> None:
    run = lied_to(stage, tmp_path, rounds=3)
    run.settle(lambda run: len(run.view.works(Round(1))) == 8)
    agent, false = run.players["solver 3"].agent, false_opening(run)
    mine = GameRecord(0, false.root, strategy.root_ref(false), agent.me, run.players["mallory"].agent.me, b"")

    def leaves(time: int, *games: GameRecord) -> bool:
        view = at(agent.see(), time, *games)
        found = strategy.candidates(view, replace(agent.own(view), leaving=True), [])
        return any(isinstance(action, LeaveTenure) for action in found)

    last = false.at + WINDOW
    assert not leaves(run.view.now) and not leaves(last) and leaves(last + 1)
    # Another's game may be lost on purpose; its own goes on without a seat.
    assert not leaves(last, replace(mine, challenger=run.players["solver 5"].agent.me)) and leaves(last, mine)


@pytest.mark.long
def test_who_errs_once_computes_again_and_challenges_nobody(stage: SharedChain, tmp_path: Path) -> None:
    run = new_round_run(stage, tmp_path, small_work(), rounds=2, challenge=WINDOW)
    for k in range(7):
        run.solver(f"solver {k}")
    compute = ErrsOnce(run.work.outer)

    def make(*place: Any, **options: Any) -> Solver:
        return RoundsAlone(*place, **{**options, "compute": compute})

    faulty = run.solver("faulty", make)
    run.enrol()
    run.begin()
    run.settle()
    view, bases = run.view, replayed_bases(run, 2)
    assert not compute.errs and [view.votes(g).root for g in (1, 2)] == bases[1:]
    # It sealed what it cannot stand behind, opened nothing, accused nobody, and went on from the true base.
    assert {o.position for o in view.openings(1)} == set(range(7)) and not view.books.generations.inputs
    assert {o.position for o in view.openings(2)} == set(range(8))
    assert [lists.root for key, lists in faulty.recorder.merges.items()] == bases[1:]
    assert [view.status(g) for g in (1, 2)] == [GenerationStatus.FINAL] * 2
