"""Eight solvers through rounds on a real node: what they do, and what becomes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.protocol.rounds.round_terms import GenerationStatus
from assay.protocol.types import Round, Seat
from assay_ledger.contract import Call
from assay_solver.round_agent import RoundSolver
from tests.harness.actors.round_stage import STAKE, new_round_run
from tests.harness.actors.round_truth import replayed_bases
from tests.harness.actors.world import SharedChain, small_work


class Crashed(Exception):
    """A process ends without a word."""


def test_every_base_of_five_rounds_is_an_independent_replays(stage: SharedChain, tmp_path: Path) -> None:
    run = new_round_run(stage, tmp_path, small_work())
    for k in range(8):
        run.solver(f"solver {k}")
    run.enrol()
    assert run.view.free_seats == 0
    run.begin()
    run.settle()
    view = run.view
    assert view.round == Round(4)
    assert [view.status(g) for g in range(1, 6)] == [GenerationStatus.FINAL] * 5
    assert [view.votes(g).root for g in range(6)] == replayed_bases(run, rounds=5)
    for r in range(5):
        assert all(view.work(Round(r), Seat(k)).work.units == 3 for k in range(8))
        assert view.counted(Round(r))[0] == frozenset(range(8))
    # Nobody lost anything: everything that was locked is free, or on the way.
    assert all(not t.convicted_at and not t.fee_gone for t in view.books.tenures.tenures.values())


def test_solvers_killed_at_every_transaction_lose_nothing(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_round_run(stage, tmp_path, small_work(), rounds=2)
    for k in range(8):
        run.solver(f"solver {k}")
    run.enrol()
    run.begin()
    struck: dict[tuple[bytes, str], int] = {}
    send = RoundSolver.send

    def dies(self: RoundSolver, call: Call, **options: Any) -> Any:
        # Once before it is sent, and once when it is mined.
        place = bytes(self.me), f"{call.name}{call.arguments}"
        struck[place] = struck.get(place, 0) + 1
        if struck[place] == 1:
            raise Crashed
        receipt = send(self, call, **options)
        if struck[place] == 2:
            raise Crashed
        return receipt

    monkeypatch.setattr(RoundSolver, "send", dies)
    run.settle(revived=Crashed)
    assert run.view.votes(2).root == replayed_bases(run, rounds=2)[2]
    assert sum(name.startswith("Commitments.commit") for _, name in struck) == 16
    assert sum(name.startswith("Generations.open") for _, name in struck) == 16


def test_a_solver_that_dies_between_two_units_trains_none_again(stage: SharedChain, tmp_path: Path) -> None:
    run = new_round_run(stage, tmp_path, small_work(), rounds=1)
    for k in range(8):
        run.solver(f"solver {k}")
    run.enrol()
    run.begin()
    ada = run.players["solver 0"].agent
    run.settle(until=lambda _: [r.units for r in ada._runs.values()] == [2])
    again = run.restart("solver 0")
    trained: list[int] = []
    again.progress = lambda doing, done, total: trained.append(done)  # type: ignore[method-assign]
    run.settle()
    assert trained == [5, 6]
    assert run.view.votes(1).root == replayed_bases(run, rounds=1)[1]


def test_who_joins_late_starts_from_the_last_base_alone(stage: SharedChain, tmp_path: Path) -> None:
    run = new_round_run(stage, tmp_path, small_work(), rounds=3)
    for k in range(7):
        run.solver(f"solver {k}", publish_bases=k == 0)
    run.enrol()
    run.begin()
    run.settle(until=lambda r: r.view.round == 1)
    late = run.solver("late")
    run.settle()
    assert run.view.work(Round(2), Seat(7)) is not None
    everybody, seven = frozenset(range(8)), frozenset(range(7))
    counted = [run.view.counted(Round(r))[0] for r in range(3)]
    assert counted[0] == seven and counted[2] == everybody
    assert [run.view.votes(g).root for g in range(4)] == replayed_bases(run, rounds=3, counted=counted)
    assert min(round_ for round_, _, _ in late.recorder.merges) == next(r for r in range(3) if counted[r] == everybody)


def test_a_solver_that_leaves_gives_up_its_seat_and_loses_nothing(stage: SharedChain, tmp_path: Path) -> None:
    run = new_round_run(stage, tmp_path, small_work(), rounds=3)
    for k in range(3):
        run.solver(f"solver {k}")
    run.enrol()
    run.begin()
    run.settle(until=lambda r: len(r.view.works(Round(0))) == 3)
    bob = run.players["solver 1"].agent
    bob.leaving = True
    run.settle()
    assert [run.view.counted(Round(r))[0] for r in range(3)] == [frozenset({0, 1, 2})] + [frozenset({0, 2})] * 2
    assert bob.is_finished(bob.see()) and not run.players["solver 0"].agent.leaving
    (_, tenure), *others = bob.see().tenures_of(bob.me)
    assert tenure.released and not tenure.convicted_at and not tenure.fee_gone and not others
    assert run.chain.ask(run.run.vault.free(bob.me)) == STAKE
