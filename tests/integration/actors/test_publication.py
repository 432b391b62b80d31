"""What is not published does not exist; what one machine cannot compute twice alike is not said aloud."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.types import Status
from assay_ledger.agents.participant import RecheckMismatch
from assay_ledger.index.view import RunView
from assay_ledger.store.blobs import open_store
from assay_ledger.store.objects import Objects
from assay_verifier.agent import VerifierAgent
from tests.harness.actors.world import ActorWorld, SharedChain, new_world, publish, small_work

FOUNDERS = {"first_seats": 2, "first_verifiers": 2}


def cast(stage: SharedChain, folder: Path, rounds: int) -> ActorWorld:
    world = new_world(stage, folder, small_work(), rounds=rounds)
    world.solver("ada", **FOUNDERS)
    return world


def test_a_commitment_that_cannot_be_fetched_is_void_unpaid_and_costs_no_stake(
    stage: SharedChain, tmp_path: Path
) -> None:
    world = cast(stage, tmp_path, rounds=1)
    hidden = open_store(tmp_path / "hidden")
    publish(Objects(hidden), world.work)
    world.solver("carl", store=hidden, **FOUNDERS)
    for name in ("vera", "viktor"):
        world.verifier(name, **FOUNDERS)
    before = {name: world.wealth(name) for name in world.players}
    (record,) = world.settle().rounds
    endings = {world.name_of(c.solver): c.status for c in record.commitments.values()}
    assert endings == {"ada": Status.FINAL, "carl": Status.VOID}
    assert not world.state.games
    assert world.wealth("carl") == before["carl"] and world.shares("carl") == 0
    # Only what is complete is included in the outer step, and drawn.
    ((mask, _),) = record.inclusions.values()
    assert mask == 1 << next(s for s, c in record.commitments.items() if world.name_of(c.solver) == "ada")
    duties = world.run.charter.training.duties
    assert {len(a.leaves) for a in record.attendance.values()} == {duties}


def test_a_verifier_whose_machine_errs_accuses_nobody(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = cast(stage, tmp_path, rounds=1)
    world.solver("bob", **FOUNDERS)
    vera = world.verifier("vera", **FOUNDERS)
    world.verifier("viktor", **FOUNDERS)
    world.settle(lambda state: bool(state.rounds) and state.rounds[0].seed is not None)
    assert isinstance(vera, VerifierAgent)
    vera.step()
    duty = vera.memory.duties[state_round(vera)][0]
    view = RunView(vera.facts, vera.me, 0, 0, vera.state, vera.memory)
    job = vera.archive.job(view, duty)
    wrong = tuple(tuple(bytes(len(data)) for data in slots) for slots in job.lists)
    results = [wrong, vera.compute.run(job.program, job.lists, job.steps)]
    # The first calculation errs, the second gives what is claimed: the claim stands.
    monkeypatch.setattr(vera, "compute", Sequence(results))
    assert vera.replay(duty, view) == duty.y
    # Both err, each in its own way: nothing is said.
    other = tuple(tuple(b"\x01" * len(data) for data in slots) for slots in job.lists)
    monkeypatch.setattr(vera, "compute", Sequence([wrong, other]))
    with pytest.raises(RecheckMismatch):
        vera.replay(duty, view)


def test_a_solver_that_leaves_gives_up_its_seat_and_loses_nothing(stage: SharedChain, tmp_path: Path) -> None:
    world = cast(stage, tmp_path, rounds=3)
    world.solver("bob", **FOUNDERS)
    for name in ("vera", "viktor"):
        world.verifier(name, **FOUNDERS)
    before = world.wealth("bob")
    bob = world.players["bob"].agent
    world.settle(lambda state: bool(state.rounds) and len(state.rounds[0].commitments) == 2)
    bob.leaving = True
    state = world.settle()
    assert len(state.rounds) == 3
    assert [len(r.commitments) for r in state.rounds] == [2, 1, 1]
    assert world.wealth("bob") == before
    terms = world.run.charter.economics
    assert world.shares("bob") == terms.units * terms.shares_per_unit


class Sequence:
    """A machine whose calculations come out as listed."""

    def __init__(self, results: list) -> None:  # type: ignore[type-arg]
        self._results = list(results)

    def run(self, *_: object, **__: object) -> object:
        return self._results.pop(0)

    recheck = run


def state_round(agent: VerifierAgent):  # type: ignore[no-untyped-def]
    """The latest round's number."""
    assert agent.state.round is not None
    return agent.state.round.number
