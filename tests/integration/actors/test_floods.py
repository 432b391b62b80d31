"""Junk by the thousand under the name of all that an honest solver publishes, in a bucket that lists in order."""

from __future__ import annotations

from pathlib import Path

from assay.protocol.program.witness import witnessed_program
from assay.protocol.types import Round, Seat
from assay_ledger.index.publications import named_digest
from assay_ledger.store.blobs import open_store
from assay_ledger.store.objects import Objects
from tests.harness.actors.stage import new_round_run
from tests.harness.actors.truth import replayed_bases
from tests.harness.actors.world import SharedChain, publish, small_work
from tests.harness.buckets import ServedBucket, running_bucket

JUNK = 10_000
"""Markers, each of a digest below any that anybody finds: all of them come first."""


def flood(bucket: ServedBucket, name: str, count: int) -> None:
    """Markers need no objects behind them."""
    bucket.objects |= {f"names/{name}/{k:064x}": b"" for k in range(count)}


def test_ten_thousand_junk_objects_with_each_name_of_a_commitment_cost_it_nothing(
    stage: SharedChain, tmp_path: Path
) -> None:
    with running_bucket() as bucket:
        run = new_round_run(stage, tmp_path, small_work(), rounds=1)
        run.store = open_store("s3://bucket/")  # type: ignore[assignment]
        objects = Objects(run.store)
        publish(objects, run.work)
        objects.put_program(witnessed_program(run.work.step))
        for k in range(3):
            run.solver(f"solver {k}")
        run.enrol()
        run.begin()
        ada = run.players["solver 0"].agent
        while not ada.see().works(Round(0)):
            ada.step()
        (work,) = ada.see().works(Round(0))
        finished = next(iter(ada.recorder.finished.values()))
        sent = stage.chain.calldata(work.tx_hash)
        assert named_digest(sent) == finished.manifest is not None
        for other in (sent[:-1], sent[:-32], sent + b"x", sent[:-32] + bytes(64), b"\x00" * len(sent), b"", sent[:40]):
            assert named_digest(other) is None
        names = [f"lists/{work.work.update.hex()}", f"marks/{work.work.marks.hex()}"]
        for name in names:
            flood(bucket, name, JUNK)
        bucket.keys = sorted(bucket.objects)
        bucket.listed.clear()
        run.settle()
        # The others held her update, and merged it; whoever audits her asks for her marks.
        three = frozenset(map(Seat, range(3)))
        assert run.view.counted(Round(0))[0] == three
        assert run.view.votes(1).root == replayed_bases(run, 1, counted=[three])[1]
        archive = run.players["solver 1"].agent.archive
        with archive.told_of(work):
            assert len(archive.objects.marks(work.work.marks, work.work.units)) == work.work.units
        # Her objects were asked for by the digests that her transaction names: no name was searched.
        assert not bucket.listed & {f"names/{name}" for name in names}
        print(f"{JUNK} junk markers under each of {len(names)} names: {bucket.requests} requests in all")
