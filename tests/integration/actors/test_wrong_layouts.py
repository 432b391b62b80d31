"""A sponsor posts programs, shards or zeros that do not fit each other: no actor stakes anything in such a run.

Finding S10: the contracts see roots, so such a run stood still with everybody's stake in it; no party could be slashed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.errors import AssayError
from assay.protocol.run.charter import Charter, ProgramRef
from assay.protocol.run.layouts import WrongLayout, zero_root
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType, Role
from assay.sponsor.posting import post_run
from assay_ledger.agents.actions import Join, Register
from assay_ledger.store.blobs import BlobStore, open_store
from assay_ledger.store.objects import Objects
from tests.harness.actors.programs import outer_program, update_program
from tests.harness.actors.world import SharedChain, TrainedWork, new_world, small_work, tiny_prepared

FOUNDERS = {"first_seats": 1, "first_verifiers": 1}
OTHER = [TensorSpec(DType.F32, (3,))]


def training(**changes: object) -> Callable[[Charter], Charter]:
    return lambda charter: replace(charter, training=replace(charter.training, **changes))  # type: ignore[arg-type]


def same(charter: Charter) -> Charter:
    return charter


def posted() -> dict[str, tuple[TrainedWork, Callable[[Charter], Charter], str]]:
    """What a sponsor posts: the work, how its charter differs, and by which code it is refused."""
    good = small_work()
    return {
        "step": (replace(good, step=good.update), same, "WrongLayout"),
        "update": (replace(good, update=update_program(OTHER)), same, "WrongLayout"),
        "outer": (replace(good, outer=outer_program(OTHER)), same, "WrongLayout"),
        "shards": (good, training(shard_length=len(good.data) // 8 + 1), "WrongLayout"),
        "zero update": (good, training(zero_update=zero_root(OTHER)), "WrongLayout"),
        "zero optimizer": (good, training(zero_optimizer=zero_root(OTHER)), "GenesisMissing"),
        "data": (good, training(data=Digest(b"\1" * 32)), "GenesisMissing"),
    }


@pytest.mark.parametrize("what", posted())
def test_nobody_puts_anything_at_stake_for_programs_that_do_not_fit(
    stage: SharedChain, tmp_path: Path, what: str
) -> None:
    work, change, code = posted()[what]
    world = new_world(stage, tmp_path, small_work(), rounds=1, change=lambda c: change(_naming(c, work)))
    _publish(world.store, work)
    ada, vera = world.solver("ada", **FOUNDERS), world.verifier("vera", **FOUNDERS)
    will = world.whistleblower("will")
    bond = world.run.charter.economics.verifier_bond
    state = world.settle()
    assert not state.rounds and not state.holders and not state.attesters
    assert {owner for owner, _ in world.locks().values()} == {world.run.charter.sponsor}
    joins = (ada, Join()), (vera, Register(Role.VERIFIER, bond)), (will, Register(Role.WHISTLEBLOWER, bond))
    for agent, action in joins:
        with pytest.raises(AssayError) as refused:
            agent.perform(action, agent.see())
        assert refused.value.code == code


def test_nothing_that_does_not_fit_is_posted(stage: SharedChain, tmp_path: Path) -> None:
    prepared, store = tiny_prepared(), open_store(tmp_path / "store")
    step, update, _ = prepared.programs
    head = stage.chain.head()
    for wrong in (
        replace(prepared, programs=(step, update, update)),
        replace(prepared, genesis=replace(prepared.genesis, zero_update=prepared.genesis.data)),
        replace(prepared, genesis=replace(prepared.genesis, data_length=prepared.genesis.data_length + 8)),
    ):
        with pytest.raises(WrongLayout):
            post_run(stage.chain, stage.sponsor, store, wrong, name="none", rounds=1)
    assert stage.chain.head() == head
    assert store.list("programs") == ()


def _naming(charter: Charter, work: TrainedWork) -> Charter:
    """The charter with the programs of this work."""
    refs = {name: ProgramRef.of(getattr(work, name)) for name in ("step", "update", "outer")}
    return replace(charter, **refs)


def _publish(store: BlobStore, work: TrainedWork) -> None:
    for program in (work.step, work.update, work.outer):
        Objects(store).put_program(program)
