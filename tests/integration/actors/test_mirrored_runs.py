"""A run whose first store goes dark, or never answered: nobody misses a window, since the second is read."""

from __future__ import annotations

import atexit
from pathlib import Path

import pytest

from assay.protocol.types import Round
from assay_ledger.store.blobs import StorePace, open_store
from assay_ledger.store.mirrored import MirroredStore
from tests.harness.actors.stage import new_round_run
from tests.harness.actors.truth import replayed_bases
from tests.harness.actors.world import SharedChain, small_work
from tests.harness.buckets import running_bucket


@pytest.mark.long
def test_a_first_store_that_hangs_from_the_first_round_on_costs_no_window(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atexit, "register", lambda _: None)
    with running_bucket() as bucket:
        run = new_round_run(stage, tmp_path, small_work(), rounds=2)
        for k in range(3):
            first = open_store("s3://bucket/", StorePace(call_s=0.5))
            run.solver(f"solver {k}", store=MirroredStore([first, run.store]))
        run.enrol()
        run.begin()
        bucket.hostility = "hangs"
        run.settle()
    seats = frozenset(range(3))
    assert [run.view.counted(Round(r))[0] for r in range(2)] == [seats] * 2
    assert run.view.votes(2).root == replayed_bases(run, rounds=2, counted=[seats] * 2)[2]
