"""Who comes while a run is under way: a solver is seated at the next T0, a verifier is drawn from the second on."""

from __future__ import annotations

from pathlib import Path

from assay.protocol.types import Status
from tests.harness.actors.world import SharedChain, new_world, small_work

ROUNDS = 4


def test_a_late_solver_is_seated_at_the_next_t0_a_late_verifier_one_t0_later(
    stage: SharedChain, tmp_path: Path
) -> None:
    world = new_world(stage, tmp_path, small_work(), rounds=ROUNDS)
    first = {"first_seats": 1, "first_verifiers": 1}
    world.solver("ada", **first)
    world.verifier("vera", **first)
    world.settle(lambda state: len(state.rounds) == 1)
    world.solver("late")
    world.verifier("tardy")
    before = {name: world.wealth(name) for name in world.players}
    state = world.settle()
    assert len(state.rounds) == ROUNDS and not state.games
    late, tardy = world.address("late"), world.address("tardy")
    for record in state.rounds:
        seat = record.seat_of(late)
        assert (seat is not None) == (record.number >= 1)
        assert seat is None or record.commitments[seat].status is Status.FINAL
        assert (tardy in record.attendance) == (record.number >= 2)
        # A verifier that does not count signs for nothing, and holds no commitment up.
        assert all(c.complete and (tardy in c.receipts) <= (record.number >= 2) for c in record.commitments.values())
    terms = world.run.charter.economics
    assert world.shares("late") == (ROUNDS - 1) * terms.units * terms.shares_per_unit
    assert all(world.wealth(name) >= before[name] for name in world.players)
    assert world.shares("tardy") == sum(len(r.attendance[tardy].leaves) for r in state.rounds[2:]) * (
        terms.shares_per_duty
    )
