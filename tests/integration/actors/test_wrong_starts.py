"""A sponsor posts programs, shards, zeros or first lists that nobody can train from: no actor stakes anything in them.

Findings S1, S10: the contracts see roots, so such a run stood still with everybody's stake in it, or convicted the
honest; no party could be slashed. Its sponsor deploys it by other means than ours, whose posting looks first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from assay.cli.joining import start_faults
from assay.engine.runtime import footprint
from assay.engine.runtime.values.state_io import to_lists_of_bytes
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.errors import AssayError
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.nodes import Family, Map
from assay.protocol.program.program import Program
from assay.protocol.program.views import Window
from assay.protocol.program.wellformed import violations
from assay.protocol.run.layouts import WrongLayout, zero_root
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay.sponsor.posting import post_run
from assay.sponsor.publishing import publish
from assay_ledger.deployment.deploy import deploy_run
from assay_ledger.store.blobs import BlobStore, open_store
from assay_ledger.store.canonical import NotCanonical
from assay_ledger.store.listfile import pack
from assay_ledger.store.objects import Objects, root_of_list
from assay_solver.actions import TakeSeat
from assay_verifier.ticket_keeping import RegisterTicket
from tests.harness.actors.programs import outer_program, update_program
from tests.harness.actors.whole_run import PACE, WholeRun, new_whole_run, tiny_rounds
from tests.harness.actors.world import SharedChain

SEATS = 4
OTHER = [TensorSpec(DType.F32, (3,))]
PAYLOAD = struct.pack("<I", 0x7FC00001)
"""A NaN that no store writes."""

PostedChange = Callable[[RunCharter, BlobStore], RunCharter]
"""What a sponsor posts in place of a charter, and publishes for it."""


def training(**changes: object) -> PostedChange:
    return lambda charter, _: replace(charter, training=replace(charter.training, **changes))  # type: ignore[arg-type]


def program(name: str, make: Callable[[Program], Program]) -> PostedChange:
    """Another program in the place of one."""

    def change(charter: RunCharter, store: BlobStore) -> RunCharter:
        made = make(tiny_rounds(SEATS).programs[("step", "update", "merge", "witness").index(name)])
        Objects(store).put_program(made)
        return replace(charter, **{name: ProgramRef.of(made)})  # type: ignore[arg-type]

    return change


def forward_reading(good: Program) -> Program:
    """The program with a map that reads a node after itself: header and sizes are as they were."""
    k = next(k for k, node in enumerate(good.nodes) if node.family is Family.MAP)
    node = good.nodes[k]
    assert isinstance(node, Map)
    late = replace(node.operands[0], node=k + 1)
    bent = replace(node, operands=(late, *node.operands[1:]))
    made = replace(good, nodes=(*good.nodes[:k], bent, *good.nodes[k + 1 :]))
    assert violations(made)
    return made


def enormous(good: Program) -> Program:
    """The program with a map of 4 TiB that nothing reads."""
    first = len(good.nodes) - sum(good.outputs)
    s = ScalarBuilder([])
    node = Map(TensorSpec(DType.F32, (1 << 40,)), (), s.build(s.f32(1.0)).encode())
    made = replace(good, nodes=(*good.nodes[:first], node, *good.nodes[first:]))
    assert not violations(made)
    return made


def beyond_stock(good: Program) -> Program:
    """The program with a sum that native kernels take term by term, and stock torch writes down: 10 TiB of terms."""
    b, first = ProgramBuilder([]), len(good.nodes) - sum(good.outputs)
    b.nodes[:] = good.nodes[:first]
    spec = good.specs[0]
    x = Ref(0, spec, Window.whole(spec.dims))
    while x.dims:
        x = x.select(0, 0)
    exponent = ScalarBuilder([])
    e = b.map(exponent.build(exponent.i32(0)), [], ())
    b.sum(x.expand(64, 1 << 32), 1, e.expand(64))
    made = replace(good, nodes=(*b.nodes, *good.nodes[first:]))
    assert not violations(made) and footprint.needed(made, footprint.left_to_stock(made))[0] < 1 << 30
    return made


def odd_parameters(charter: RunCharter, store: BlobStore) -> RunCharter:
    """First parameters that begin with a NaN that no store writes."""
    made = tiny_rounds(SEATS)
    (first, *others), step = to_lists_of_bytes([made.parameters])[0], made.programs[0]
    specs = [step.specs[k] for k in step.input_nodes[0]]
    root = Objects(store).put_list(specs, (PAYLOAD + first[4:], *others))
    return replace(charter, training=replace(charter.training, parameters=root))


def other_bytes(charter: RunCharter, store: BlobStore) -> RunCharter:
    """First parameters of which the store has, under their name, the bytes of others."""
    made, step = tiny_rounds(SEATS), tiny_rounds(SEATS).programs[0]
    specs, true = [step.specs[k] for k in step.input_nodes[0]], to_lists_of_bytes([made.parameters])[0]
    root = root_of_list(specs, (bytes(len(true[0])), *true[1:]))
    store.put(pack(specs, true), f"lists/{root.hex()}")
    return replace(charter, training=replace(charter.training, parameters=root))


STARTS: dict[str, tuple[PostedChange, str]] = {
    "step that is an update": (program("step", lambda _: tiny_rounds(SEATS).programs[1]), "WrongLayout"),
    "update of other parameters": (program("update", lambda _: update_program(OTHER)), "WrongLayout"),
    "merge of other parameters": (program("merge", lambda _: outer_program(OTHER)), "WrongLayout"),
    "witness of another step": (program("witness", lambda _: tiny_rounds(SEATS).programs[0]), "WrongWitness"),
    "shards": (training(shard_length=1 << 20), "WrongLayout"),
    "zero update": (training(zero_update=zero_root(OTHER)), "WrongLayout"),
    "zero optimizer": (training(zero_optimizer=zero_root(OTHER)), "GenesisMissing"),
    "data": (training(data=Digest(b"\1" * 32)), "GenesisMissing"),
    "malformed step": (program("step", forward_reading), "IllFormedProgram"),
    "malformed update": (program("update", forward_reading), "IllFormedProgram"),
    "malformed merge": (program("merge", forward_reading), "IllFormedProgram"),
    "enormous update": (program("update", enormous), "ProgramTooLarge"),
    "update that stock torch does not hold": (program("update", beyond_stock), "ProgramTooLarge"),
    "odd parameters": (odd_parameters, "NotCanonical"),
    "withheld momentum": (training(momentum=Digest(b"\1" * 32)), "GenesisMissing"),
    "parameters of other bytes": (other_bytes, "GenesisMissing"),
}
"""By what is wrong: what is posted, and the code by which it is refused."""


@pytest.fixture(scope="module")
def good(stage: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> WholeRun:
    return new_whole_run(stage, tmp_path_factory.mktemp("good"), seats=SEATS)


@pytest.mark.parametrize("what", STARTS)
@pytest.mark.gate_takes(1)
def test_nobody_puts_anything_at_stake_in_a_run_that_cannot_be_trained(
    good: WholeRun, tmp_path: Path, what: str
) -> None:
    change, code = STARTS[what]
    stage = good.stage
    run = deploy_run(stage.chain, stage.sponsor, change(good.run.charter, good.store))
    made = WholeRun(stage, tmp_path, run, good.store)
    ada, vera = made.solver("ada"), made.auditor("vera")
    for agent, action in ((ada, TakeSeat()), (vera, RegisterTicket(0))):
        with pytest.raises(AssayError) as refused:
            agent.perform(action, agent.see())
        assert refused.value.code == code
        agent.step()
    assert made.locks() == {}
    # Who only asks whether it can join is told the same.
    assert start_faults(made.run, made.store) == [refused.value.message.rstrip(".")]
    assert start_faults(good.run, good.store) == []


def test_nothing_that_does_not_fit_is_posted(stage: SharedChain, tmp_path: Path) -> None:
    prepared, store = tiny_rounds(SEATS), open_store(tmp_path / "store")
    step, update, _, witness = prepared.programs
    head = stage.chain.head()
    for wrong in (
        replace(prepared, programs=(step, update, update, witness)),
        replace(prepared, genesis=replace(prepared.genesis, zero_update=prepared.genesis.data)),
    ):
        with pytest.raises(WrongLayout):
            post_run(
                *(stage.chain, stage.sponsor, store, wrong),
                name="none", rounds=1, seats=SEATS, pace=PACE, token=stage.token,
            )  # fmt: skip
    with pytest.raises(NotCanonical) as refused:
        odd = prepared.parameters[0].clone()
        odd.view(torch.int32).view(-1)[0] = 0x7FC00001
        publish(store, replace(prepared, parameters=(odd, *prepared.parameters[1:])))
    assert refused.value.details["slot"] == 0
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    # What beacons cost is all that was sent: no contract of a run.
    assert stage.chain.head().number - head.number <= 2
