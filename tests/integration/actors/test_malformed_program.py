"""A sponsor posts a run whose program is none, or one that no machine holds: no actor joins it or loses by it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.errors import UserError
from assay.protocol.program.nodes import Family, Map
from assay.protocol.program.program import Program
from assay.protocol.program.wellformed import violations
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType, Role
from assay_ledger.agents.actions import Join, Register
from tests.harness.actors.world import SharedChain, TrainedWork, new_world, small_work

FOUNDERS = {"first_seats": 1, "first_verifiers": 1}


def forward_reading(program: Program) -> Program:
    """The program with a map that reads a node after itself: header and sizes are as they were."""
    k = next(k for k, node in enumerate(program.nodes) if node.family is Family.MAP)
    node = program.nodes[k]
    assert isinstance(node, Map)
    late = replace(node.operands[0], node=k + 1)
    bent = replace(node, operands=(late, *node.operands[1:]))
    return replace(program, nodes=(*program.nodes[:k], bent, *program.nodes[k + 1 :]))


@pytest.mark.parametrize("part", ["step", "update", "outer"])
def test_nobody_puts_anything_at_stake_for_a_malformed_program(stage: SharedChain, tmp_path: Path, part: str) -> None:
    good = small_work()
    work: TrainedWork = replace(good, **{part: forward_reading(getattr(good, part))})
    assert violations(getattr(work, part))
    world = new_world(stage, tmp_path, work, rounds=1)
    ada, vera = world.solver("ada", **FOUNDERS), world.verifier("vera", **FOUNDERS)
    bond = world.run.charter.economics.verifier_bond
    state = world.settle()
    assert not state.rounds and not state.holders and not state.attesters
    assert {owner for owner, _ in world.locks().values()} == {world.run.charter.sponsor}
    for agent, action in ((ada, Join()), (vera, Register(Role.VERIFIER, bond))):
        with pytest.raises(UserError) as refused:
            agent.perform(action, agent.see())
        assert refused.value.code == "IllFormedProgram"


def enormous(program: Program) -> Program:
    """The program with a map of 4 TiB that nothing reads."""
    first = len(program.nodes) - sum(program.outputs)
    dims = (1 << 40,)
    s = ScalarBuilder([])
    node = Map(TensorSpec(DType.F32, dims), (), s.build(s.f32(1.0)).encode())
    return replace(program, nodes=(*program.nodes[:first], node, *program.nodes[first:]))


def test_nobody_puts_anything_at_stake_for_a_program_that_no_memory_holds(stage: SharedChain, tmp_path: Path) -> None:
    good = small_work()
    work: TrainedWork = replace(good, step=enormous(good.step))
    assert not violations(work.step)
    world = new_world(stage, tmp_path, work, rounds=1)
    ada, vera = world.solver("ada", **FOUNDERS), world.verifier("vera", **FOUNDERS)
    state = world.settle()
    assert not state.rounds and not state.holders and not state.attesters
    assert {owner for owner, _ in world.locks().values()} == {world.run.charter.sponsor}
    bond = world.run.charter.economics.verifier_bond
    for agent, action in ((ada, Join()), (vera, Register(Role.VERIFIER, bond))):
        with pytest.raises(UserError) as refused:
            agent.perform(action, agent.see())
        assert refused.value.code == "ProgramTooLarge"
