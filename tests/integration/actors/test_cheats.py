"""Solvers that leave work undone, or hide it: what becomes of the round, and of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from assay.protocol.errors import UsageError
from assay.protocol.rounds.terms import Presence
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Round, Seat
from assay_ledger.index.games import Game
from assay_solver.cheats import SOLVER_CHEATS, solver_cheat_named
from tests.harness.actors.stage import CheatAlone, RoundStageRun, new_round_run
from tests.harness.actors.truth import replayed_bases
from tests.harness.actors.world import SharedChain, small_work

ALL, OTHERS = frozenset(range(8)), frozenset(range(1, 8))


def played(stage: SharedChain, folder: Path, cheat: str, rounds: int = 2) -> RoundStageRun:
    """A run in whose round 0 the solver in seat 0 cheats."""
    run = new_round_run(stage, folder, small_work(), rounds=rounds)
    run.solver("mallory", partial(CheatAlone, cheat=solver_cheat_named(cheat, 0)))
    for k in range(1, 8):
        run.solver(f"solver {k}")
    run.enrol()
    run.begin()
    run.settle()
    return run


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize(
    "cheat, counted, presence, units",
    [
        ("hidden-update", OTHERS, Presence.UNHELD, 3),
        ("absent", OTHERS, Presence.MISSED, None),
        ("late-commitment", OTHERS, Presence.PRESENT, 3),
        ("squatter", ALL, Presence.PRESENT, 2),
    ],
)
def test_what_is_left_undone_costs_weight_and_stops_nobody(
    stage: SharedChain, tmp_path: Path, cheat: str, counted: frozenset[int], presence: Presence, units: int | None
) -> None:
    run = played(stage, tmp_path, cheat)
    view = run.view
    assert view.counted(Round(0))[0] == counted
    assert view.presence(Round(0), Seat(0)) is presence
    work = view.work(Round(0), Seat(0))
    assert (None if work is None else work.work.units) == units
    # The next round goes on from what counted, with everybody.
    assert view.round == Round(1) and view.counted(Round(1))[0] == ALL
    if cheat != "squatter":
        assert view.votes(2).root == replayed_bases(run, 2, counted=[counted, ALL])[2]


@pytest.mark.long
def test_one_that_opens_a_false_root_stands_alone_behind_it(stage: SharedChain, tmp_path: Path) -> None:
    run = played(stage, tmp_path, "false-root", rounds=1)
    view = run.view
    truth = replayed_bases(run, 1)[1]
    assert view.votes(1).root == truth
    by_root = {o.position: o.root == truth for o in view.openings(1)}
    assert by_root == {Seat(k): k != 0 for k in range(8)}
    assert 1 in view.books.generations.inputs  # X was built, so that a game can open


@pytest.mark.long
def test_a_copied_update_is_merged_though_its_own_work_was_other(stage: SharedChain, tmp_path: Path) -> None:
    view = played(stage, tmp_path, "copied-update", rounds=1).view
    works = {w.seat: w.work for w in view.works(Round(0))}
    others = {w.update for seat, w in works.items() if seat != 0}
    assert works[Seat(0)].update in others and len(others) == 7
    assert view.counted(Round(0))[0] == ALL


def test_a_copied_update_is_defended_as_it_was_copied_whoever_commits_later(stage: SharedChain, tmp_path: Path) -> None:
    run = new_round_run(stage, tmp_path, small_work(), rounds=1)
    for name, cheat in (("late", "late-commitment"), ("mallory", "copied-update")):
        run.solver(name, partial(CheatAlone, cheat=solver_cheat_named(cheat, 0)))
    for k in range(2, 8):
        run.solver(f"solver {k}")
    run.enrol()
    run.begin()
    run.settle()
    said = {work.seat: work.work.update for work in run.view.works(Round(0))}
    assert said.keys() == ALL and said[Seat(1)] == said[Seat(2)] != said[Seat(0)]
    solver = run.players["mallory"].agent
    trace = solver.trace_of(game_about(ClaimRef(ClaimKind.UPDATE, Round(0), Seat(1))), solver.see())
    assert trace.list_roots(trace.steps)[0] == said[Seat(1)]


def game_about(ref: ClaimRef) -> Game:
    """What a solver reads of a game to run the claim of its own again."""
    return cast(Game, SimpleNamespace(ref=ref))


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("cheat", ["false-step", "false-update"])
def test_a_lie_is_merged_and_found_by_its_roots_alone(stage: SharedChain, tmp_path: Path, cheat: str) -> None:
    run = played(stage, tmp_path, cheat, rounds=1)
    assert run.view.counted(Round(0))[0] == ALL
    assert run.view.votes(1).root != replayed_bases(run, 1)[1]


def test_every_cheat_has_a_name_and_an_unknown_one_is_refused() -> None:
    assert sorted(SOLVER_CHEATS) == sorted(
        ["false-step", "false-update", "copied-update", "hidden-update", "squatter", "absent", "late-commitment",
         "false-root"]
    )  # fmt: skip
    with pytest.raises(UsageError) as caught:
        solver_cheat_named("nothing")
    assert caught.value.code == "UnknownCheat"
