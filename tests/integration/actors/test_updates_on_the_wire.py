"""Runs whose updates travel in fewer bytes: trained, audited, merged and paid like any other, a lie found inside."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.engine.runtime.executor import Executor
from assay.engine.runtime.values.dtypes import from_bytes
from assay.engine.runtime.values.state_io import input_specs, list_roots
from assay.protocol.digests import state_digest
from assay.protocol.game.state import Outcome
from assay.protocol.program.nodes import Family
from assay.protocol.program.trace import Tamper
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.run.claims import ClaimKind
from assay.protocol.trees.state import RoundScalars
from assay.protocol.types import Digest, DType, Round, Seat
from assay.sponsor.charters import AuditRates, Pace
from assay.sponsor.preparing import PreparedRounds, prepare_rounds
from assay.training.presets import TINY, Preset
from assay.training.updates import UpdateWire
from assay_ledger.index.computing import Computation
from assay_ledger.store.blobs import BlobStore
from assay_solver.agent import Solver
from assay_solver.cheats import FalseUpdate
from assay_solver.lies import Lie
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import SharedChain
from tools.recompute.bases import false_merges
from tools.recompute.chain import RecordedRun
from tools.recompute.store import Store

TEXT = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(120))
WIDE = Preset("wide", layers=1, width=96, heads=2, context=8, batch=2, inner_steps=4)
"""Of 117 thousand parameters in rows of 96: what lies beside an update in its file counts for little."""
MOST = {"bf16": 2.1, "int8": 1.1, "int4": 0.6, "sparse": 0.08, "sign": 0.19, "powersgd": 0.18, "cocktail": 0.08}
"""Bytes that a solver uploads a parameter and round."""
BASE = 4.1
"""Of a base: parameters and momentum in f32, once in two rounds."""

TYPES = {
    "bf16": {DType.U16},
    "int8": {DType.I8, DType.F32},
    "int4": {DType.U8, DType.U16},
    "sparse": {DType.U8, DType.U16},
    "sign": {DType.U8, DType.U16},
    "powersgd": {DType.U16},
    "cocktail": {DType.U8, DType.U16},
}


class MeteredStore:
    """A store that counts the bytes of what is published in it."""

    def __init__(self, store: BlobStore) -> None:
        self.store, self.sent = store, 0

    def put(self, data: bytes, name: str | None = None, packed: bytes | None = None) -> Digest:
        """See BlobStore."""
        self.sent += len(data if packed is None else packed)
        return self.store.put(data, name, packed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def roots_without_a_chain(prepared: PreparedRounds, scalars_of: Callable[[int, int], RoundScalars]) -> list[Digest]:
    """The bases that two rounds of four seats come to by the run's programs alone."""
    step, update, merge = (Executor(program) for program in prepared.programs[:3])
    parameters = list(prepared.parameters)
    momentum, found = [torch.zeros_like(p) for p in parameters], []
    for r in range(2):
        sent = []
        for seat in range(4):
            values = scalars_of(r, seat).values()
            specs = input_specs(prepared.programs[0])[2][:-1]
            slots = [
                from_bytes(spec.dtype, spec.dims, values[s]) for s, spec in zip(sorted(values), specs, strict=True)
            ]
            state = [parameters, list(prepared.optimizer), [*slots, prepared.data]]
            end = step.repeat(state, prepared.inner_steps)
            sent.append([t.clone() for t in update.run([parameters, list(end[0])])[0]])
        parameters, momentum = (
            [t.clone() for t in part] for part in merge.run([parameters, momentum, *sent, [torch.ones(4)]])
        )
        found.append(state_digest(tuple(list_roots([parameters, momentum]))))
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", MOST)
def test_a_run_of_small_updates_ends_where_it_ends_without_a_chain(
    stage: SharedChain, tmp_path: Path, name: str
) -> None:
    prepared = prepare_rounds(WIDE, TEXT, 4, wire=UpdateWire(name))
    pace, rates = Pace(units=2, least=1, steps=2, commit=600), AuditRates(audit_ppm=500_000)
    made = new_whole_run(stage, tmp_path, rounds=2, pace=pace, rates=rates, prepared=prepared)
    stores = {name: MeteredStore(made.store) for name in ("ada", "bob", "cleo", "dan")}
    solvers = {name: made.solver(name, store=store) for name, store in stores.items()}
    made.auditor("vera", tickets=3)
    made.auditor("viktor", tickets=2)
    made.enrol()
    made.fund()
    made.launch()
    view = made.end()
    assert view.state.money.phase is RunPhase.OVER and not view.games
    assert all(view.status(generation) is GenerationStatus.FINAL for generation in (1, 2))
    assert all(len(view.counted(Round(k))[0]) == len(stores) for k in range(2))
    archive = solvers["ada"].archive
    assert {spec.dtype for spec in archive.update_specs} == TYPES[name]
    parameters = sum(tensor.numel() for tensor in prepared.parameters)
    # The base of each of the two rounds is published besides, by one of them in turn.
    uploads = sorted(store.sent / parameters / 2 for store in stores.values())
    assert uploads[-3] < MOST[name], uploads
    assert sum(uploads) < 4 * MOST[name] + 2 * BASE, uploads
    # A script that knows nothing of the programs merges the same of what the stores have.
    recorded = RecordedRun(made.chain.url, "0x" + made.run.address.hex())
    assert list(false_merges(recorded, Store(made.folder / "store"))) == []
    # Both generations differ from the one before: what travelled says something.
    assert len({view.base(Round(0)).root, *(view.votes(g).root for g in (1, 2))}) == 3
    scalars = lambda r, seat: made.run.facts.round_scalars(Round(r), Seat(seat))  # noqa: E731
    assert [view.votes(g).root for g in (1, 2)] == roots_without_a_chain(prepared, scalars)


class LieInside(FalseUpdate):
    """Another number in a node within the update program, and everything after it computed from that."""

    def __init__(self, family: Family) -> None:
        super().__init__(Round(0))
        self.family = family

    def update_lie(self, job: Computation, solver: Solver) -> Tamper | None:
        """See SolverCheat: the elements of the largest such node move up by one."""
        nodes = job.program.nodes
        at = max((k for k, node in enumerate(nodes) if node.family is self.family), key=lambda k: nodes[k].spec.numel)
        size = nodes[at].spec.dtype.size
        return Lie({(1, at): lambda data: data[size:] + data[:size]})


@pytest.mark.parametrize(
    ("wire", "family"),
    [
        (UpdateWire.BF16, Family.MAP),
        (UpdateWire.INT4, Family.MAX),
        (UpdateWire.SPARSE, Family.RANK),
        pytest.param(UpdateWire.SIGN, Family.SUM, marks=pytest.mark.long),
        pytest.param(UpdateWire.POWERSGD, Family.DOT, marks=pytest.mark.long),
        pytest.param(UpdateWire.COCKTAIL, Family.RANDOM, marks=pytest.mark.long),
    ],
    ids=["bf16-map", "int4-largest", "sparse-rank", "sign-sum", "powersgd-dot", "cocktail-random"],
)
@pytest.mark.long
def test_a_lie_inside_an_update_rule_is_convicted_by_its_one_element(
    stage: SharedChain, tmp_path: Path, wire: UpdateWire, family: Family
) -> None:
    prepared = prepare_rounds(TINY, TEXT, 2, wire=wire)
    # One ticket a shift, so that whoever is called is drawn for all.
    rates = AuditRates(audit_ppm=1_000_000, capacity=14, shifts=5, drawn_bounty_ppm=1_000_000)
    made = new_whole_run(stage, tmp_path, seats=2, rounds=1, rates=rates, prepared=prepared)
    made.solver("ada")
    made.solver("mallory", LieInside(family))
    made.auditor("vera", tickets=3)
    made.auditor("viktor", tickets=2)
    made.enrol()
    made.fund()
    made.launch()
    view = made.settle(lambda view: any(game.is_over for game in view.games.values()))
    (won,) = [game for game in view.games.values() if game.is_over]
    assert won.ref.kind is ClaimKind.UPDATE and won.outcome is Outcome.LEAF and won.convicted
    assert won.defender == made.address("mallory")
