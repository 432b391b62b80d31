"""Bytes that no store writes, planted in slots that a step passes through: no honest party loses by them.

Finding S1 of the hostile readings. A replay that made such slots canonical ended in another root than the trace that it
would have to be defended by: a NaN's payload in a frozen parameter convicted the honest.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.game.state import Outcome
from assay.protocol.program import wellformed
from assay.protocol.program.nodes import Family
from assay.protocol.program.trace import Tamper
from assay.protocol.trees.state import TrainingList
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType, Role, Round, Status
from assay.sponsor.posting import publish
from assay_ledger.agents.actions import Join, Register
from assay_ledger.index import archive
from assay_ledger.index.archive import Computation
from assay_ledger.store.blobs import open_store
from assay_ledger.store.canonical import NotCanonical, check_canonical, is_canonical
from assay_solver.agent import SolverAgent
from assay_solver.cheats import Cheat, Scene
from assay_solver.lies import Lie
from tests.harness.actors.programs import outer_program, update_program
from tests.harness.actors.world import (
    ActorWorld,
    SharedChain,
    TrainedWork,
    new_world,
    small_work,
    tiny_prepared,
    with_economics,
)
from tests.harness.programs import next_scalars, training_inputs, unary

FOUNDERS = {"first_seats": 2, "first_verifiers": 2}
F32, I32, BOOL, U8 = DType.F32, DType.I32, DType.BOOL, DType.U8
PAYLOAD = struct.pack("<4I", 0x7FC00001, 0x7F800001, 0xFFC00000, 0x3F800000)
"""Two NaNs with payloads, one with a sign, and a number."""


def frozen_work() -> TrainedWork:
    """A step that trains one parameter and passes on a frozen one and a buffer of bools."""
    parameters = [TensorSpec(F32, (16,)), TensorSpec(F32, (4,))]
    b = training_inputs(parameters, [TensorSpec(I32, ()), TensorSpec(BOOL, (8,))], TensorSpec(U8, (512,)))
    s = ScalarBuilder([I32])
    grown = b.map(unary(F32, "add", 1.0), [b.input(0, 0)], (16,))
    counted = b.map(s.build(s.add(s.operand(0), s.i32(1))), [b.input(1, 0)], ())
    step = b.build([[grown, b.input(0, 1)], [counted, b.input(1, 1)], next_scalars(b)])
    good = small_work()
    return TrainedWork(
        *(step, update_program(parameters), outer_program(parameters)),
        *((bytes(64), bytes(16)), (bytes(4), bytes(8)), good.data, good.inner_steps, good.learning_rate),
    )


class Plant(Cheat):
    """At the end of the first interval the slot that is passed on has other bytes; everything after is honest."""

    name = "plant"

    def __init__(self, list_: TrainingList, data: bytes) -> None:
        super().__init__(Round(0))
        self._list, self._data = list_, data

    def lie(self, scene: Scene, number: int, job: Computation) -> Tamper | None:
        """In the last step of interval 0, at the output node."""
        if number != 0:
            return None
        return Lie({(job.steps, job.program.output_nodes[self._list][1]): lambda _: self._data})


def play(stage: SharedChain, folder: Path, cheat: Cheat) -> ActorWorld:
    """An honest and a planting solver, two verifiers who are drawn for every duty."""
    everything = with_economics(audit_ppm=6_000_000)
    world = new_world(stage, folder, frozen_work(), rounds=1, change=everything)
    world.solver("ada", **FOUNDERS)
    world.solver("mallory", cheat=cheat, **FOUNDERS)
    world.verifier("vera", **FOUNDERS)
    world.verifier("viktor", **FOUNDERS)
    for name in world.players:
        world.players[name].wealth = world.wealth(name)
    world.settle()
    return world


PLANTS = [
    pytest.param(TrainingList.PARAMETERS, PAYLOAD, id="NaN payloads in a frozen parameter"),
    pytest.param(TrainingList.OPTIMIZER, bytes((0, 1, 2, 3, 128, 255, 1, 0)), id="bytes of a bool buffer"),
]


@pytest.mark.parametrize(("list_", "data"), PLANTS)
def test_planted_bytes_convict_nobody_but_their_planter(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, list_: TrainingList, data: bytes
) -> None:
    """Even where verifiers sign for such lists: who replays interval 1 from them agrees with its trace."""
    monkeypatch.setattr(archive, "check_canonical", lambda what, specs, tensors: None)
    world = play(stage, tmp_path, Plant(list_, data))
    verdicts = [game.verdict for game in world.verdicts()]
    assert {world.name_of(v.loser) for v in verdicts if v is not None} == {"mallory"}
    assert all(game.outcome is Outcome.LEAF and game.ref.duty == 0 for game in world.verdicts())
    assert {v.family for v in verdicts if v is not None} == {Family.OUTPUT}
    record = world.state.rounds[0]
    for name in ("vera", "viktor"):
        leaves = record.attendance[world.address(name)].leaves
        (mallory,) = (s for s, c in record.commitments.items() if c.solver == world.address("mallory"))
        roots = record.commitments[mallory].roots
        assert {n: root for (s, n), root in leaves.items() if s == mallory and 0 < n < len(roots) - 1} == {
            n: roots[n + 1] for n in range(1, len(roots) - 1)
        }
        assert world.wealth(name) >= world.players[name].wealth
    assert world.wealth("ada") == world.players["ada"].wealth


@pytest.mark.parametrize(("list_", "data"), PLANTS)
def test_nobody_signs_for_lists_that_no_store_writes(
    stage: SharedChain, tmp_path: Path, list_: TrainingList, data: bytes
) -> None:
    world = play(stage, tmp_path, Plant(list_, data))
    assert not world.verdicts()
    record = world.state.rounds[0]
    commitments = {world.name_of(c.solver): c for c in record.commitments.values()}
    assert commitments["ada"].complete and len(commitments["ada"].receipts) == 2
    assert not commitments["mallory"].complete and not commitments["mallory"].receipts
    assert commitments["ada"].status is Status.FINAL and commitments["mallory"].status is not Status.FINAL
    for name in ("ada", "vera", "viktor"):
        assert world.wealth(name) >= world.players[name].wealth


def test_an_honest_solver_can_defend_what_it_claims_from_such_a_genesis(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were a run joined all the same, the trace behind every claim ends where the claim does, for every challenger."""
    monkeypatch.setattr(archive, "check_canonical", lambda what, specs, tensors: None)
    work = replace(frozen_work(), parameters=(bytes(64), PAYLOAD), optimizer=(bytes(4), bytes((2,) * 8)))
    world = new_world(stage, tmp_path, work, rounds=1)
    founders = {"first_seats": 1, "first_verifiers": 1}
    ada, _ = world.solver("ada", **founders), world.verifier("vera", **founders)
    state = world.settle()
    assert isinstance(ada, SolverAgent) and not world.verdicts()
    (record,) = state.rounds
    (commitment,) = record.commitments.values()
    view = ada.see()
    for j in range(world.run.charter.training.intervals):
        duty = view.duty(record, commitment, j)
        job = ada.archive.job(view, duty)
        assert ada.compute.trace(job.program, job.lists, job.steps).state_root(job.steps) == duty.y
    assert commitment.status is Status.FINAL


GENESES = [
    pytest.param({"parameters": (bytes(64), PAYLOAD)}, id="parameters"),
    pytest.param({"optimizer": (bytes(4), bytes((2,) * 8))}, id="optimizer"),
]


@pytest.mark.parametrize("bent", GENESES)
def test_nobody_puts_anything_at_stake_for_a_genesis_that_no_store_writes(
    stage: SharedChain, tmp_path: Path, bent: dict[str, object]
) -> None:
    world = new_world(stage, tmp_path, replace(frozen_work(), **bent), rounds=1)  # type: ignore[arg-type]
    founders = {"first_seats": 1, "first_verifiers": 1}
    ada, vera = world.solver("ada", **founders), world.verifier("vera", **founders)
    state = world.settle()
    assert not state.rounds and not state.holders and not state.attesters
    bond = world.run.charter.economics.verifier_bond
    for agent, action in ((ada, Join()), (vera, Register(Role.VERIFIER, bond))):
        with pytest.raises(NotCanonical):
            agent.perform(action, agent.see())


def test_a_genesis_that_no_store_writes_is_not_posted(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    good = tiny_prepared()
    odd = good.parameters[0].clone()
    odd.view(torch.int32).view(-1)[0] = 0x7FC00001
    with pytest.raises(NotCanonical) as refused:
        publish(store, replace(good, parameters=(odd, *good.parameters[1:])))
    assert refused.value.details["slot"] == 0
    assert not list(tmp_path.rglob("*")) or not any(p.is_file() for p in tmp_path.rglob("*"))


@pytest.mark.parametrize("dtype", list(DType))
def test_lists_are_looked_through_as_constants_of_programs_are(dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    import assay_ledger.store.canonical as ledger

    monkeypatch.setattr(ledger, "_AT_A_TIME", 32)
    words = (0x7FC00000, 0x7FC00001, 0xFFC00000, 0x7F800000, 0x7F800001, 0xFF800000, 0x00000100, 0x01010101, 0x02000000)
    for count in (1, 8, 9, 17):
        for word in words:
            data = bytes(4 * (count - 1)) + struct.pack("<I", word)
            assert is_canonical(dtype, data) == wellformed.is_canonical(dtype, data), (count, hex(word))
    spec = TensorSpec(F32, (2,))
    with pytest.raises(NotCanonical):
        check_canonical("this", [spec], [struct.pack("<2I", 0, 0x7FC00001)])
