"""Honest actors train, audit, take outer steps, settle and are credited; none loses anything."""

from __future__ import annotations

from pathlib import Path

from assay.protocol.types import Status
from tests.harness.actors.world import SharedChain, new_world, small_work


def test_two_rounds_of_honest_work_are_credited_and_cost_nobody_anything(stage: SharedChain, tmp_path: Path) -> None:
    world = new_world(stage, tmp_path, small_work(), rounds=2)
    world.solver("ada", first_seats=2, first_verifiers=2)
    world.solver("bob", first_seats=2, first_verifiers=2)
    world.verifier("vera", first_seats=2, first_verifiers=2)
    world.verifier("viktor", first_seats=2, first_verifiers=2)
    world.whistleblower("wilma")
    names = list(world.players)
    before = {name: world.wealth(name) for name in names}
    state = world.settle()
    assert len(state.rounds) == 2
    for record in state.rounds:
        assert [c.status for c in record.commitments.values()] == [Status.FINAL, Status.FINAL]
        assert record.settled
    assert not state.games
    terms = world.run.charter.economics
    for name in ("ada", "bob"):
        assert world.wealth(name) == before[name]
        assert world.shares(name) == 2 * terms.units * terms.shares_per_unit
    for name in ("vera", "viktor"):
        duties = 2 * 2 * world.run.charter.training.duties
        assert world.wealth(name) == before[name] + duties * terms.wage
        assert world.shares(name) == duties * terms.shares_per_duty
