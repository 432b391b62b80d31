"""Two processes of one key, each with a folder of its own: nothing that either sends convicts or costs its owner."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.types import Round
from assay_solver.cheats import solver_cheat_named
from tests.harness.actors.disputed import RATES, check_judged, is_judged
from tests.harness.actors.twins import add_twin, sweep_late
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain


def with_twins(stage: SharedChain, folder: Path, monkeypatch: pytest.MonkeyPatch) -> WholeRun:
    """A solver and an auditor, who are honest and run twice, and a solver that lies once; it is launched."""
    made = new_whole_run(stage, folder, seats=3, rounds=1, rates=RATES)
    made.solver("ada")
    made.solver("mallory", solver_cheat_named("false-step", 0))
    made.auditor("vera", tickets=5)
    for name in ("ada", "vera"):
        add_twin(made, name)
    monkeypatch.setattr(made, "sweep", lambda: sweep_late(made))
    made.settle(
        lambda v: (
            len(v.books.tenures.tenures) >= 2
            and len({t.holder for t in v.books.tenures.tenures.values()}) == 2
            and len(v.books.registry.tickets) >= 5
        )
    )
    return made


def test_two_processes_that_start_at_once_take_one_seat_and_no_chain_twice(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = with_twins(stage, tmp_path, monkeypatch)
    while made.sweep():
        pass
    view = made.view
    seats = [made.address(name) for name in ("ada", "mallory")]
    assert sorted(t.holder for t in view.books.tenures.tenures.values()) == sorted(seats)
    anchors = [anchor for named in view.books.registry.anchors.values() for _, anchor in named]
    assert len(anchors) == len(set(anchors)) == 5


@pytest.mark.long
@pytest.mark.timeout(600)
def test_two_processes_go_through_a_round_and_a_game_and_lose_nothing(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = with_twins(stage, tmp_path, monkeypatch)
    ripe = max(held.from_ for held in made.view.books.registry.tickets.values())
    made.settle(lambda view: view.now > ripe)
    made.fund()
    made.launch()
    check_judged(made, made.settle(is_judged))
    view = made.end()
    assert {work.work.units for work in view.works(Round(0))} == {made.run.charter.training.max_units}
    assert not made.fines("vera")
    assert made.wealth("ada") > made.players["ada"].brought
