"""A run whose updates travel in one byte a parameter: trained, audited, merged and paid like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Digest, DType, Round
from assay.sponsor.charters import AuditRates, Pace
from assay.sponsor.preparing import prepare_rounds
from assay.training.presets import Preset
from assay.training.updates import UpdateWire
from assay_ledger.store.blobs import BlobStore
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import SharedChain
from tools.recompute.bases import false_merges
from tools.recompute.chain import RecordedRun
from tools.recompute.store import Store

TEXT = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(120))
WIDE = Preset("wide", layers=1, width=96, heads=2, context=8, batch=2, inner_steps=4)
"""Of 117 thousand parameters in rows of 96: what lies beside an update in its file counts for little."""
MOST = 1.1
"""Bytes that a solver uploads a parameter and round."""


class MeteredStore:
    """A store that counts the bytes of what is published in it."""

    def __init__(self, store: BlobStore) -> None:
        self.store, self.sent = store, 0

    def put(self, data: bytes, *name: str) -> Digest:
        """See BlobStore."""
        self.sent += len(data)
        return self.store.put(data, *name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def test_int8_updates_are_merged_and_cost_a_byte_a_parameter_and_round(stage: SharedChain, tmp_path: Path) -> None:
    prepared = prepare_rounds(WIDE, TEXT, 4, wire=UpdateWire.INT8)
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
    assert {spec.dtype for spec in archive.update_specs} == {DType.I8, DType.F32}
    parameters = sum(tensor.numel() for tensor in prepared.parameters)
    assert all(store.sent / parameters / 2 < MOST for store in stores.values()), stores
    # A script that knows nothing of the programs merges the same of what the stores have.
    recorded = RecordedRun(made.chain.url, "0x" + made.run.address.hex())
    assert list(false_merges(recorded, Store(made.folder / "store"))) == []
    # Both generations differ from the one before: what travelled says something.
    assert len({view.base(Round(0)).root, *(view.votes(g).root for g in (1, 2))}) == 3
