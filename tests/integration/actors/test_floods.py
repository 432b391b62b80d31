"""Junk by the thousand under the name of all that an honest solver publishes, in a bucket that lists in order."""

from __future__ import annotations

from pathlib import Path

from assay.protocol.trees.state import TrainingList
from assay.protocol.types import Seat, Status
from assay_ledger.index.publications import named_digest
from assay_ledger.store.blobs import open_store
from assay_ledger.store.objects import Objects
from tests.harness.actors.world import ActorWorld, SharedChain, new_world, publish, small_work
from tests.harness.buckets import ServedBucket, running_bucket

JUNK = 10_000
"""Markers, each of a digest below any that anybody finds: all of them come first."""


def flood(bucket: ServedBucket, name: str, count: int) -> None:
    """Markers need no objects behind them."""
    bucket.objects |= {f"names/{name}/{k:064x}": b"" for k in range(count)}


def names_of(world: ActorWorld) -> list[str]:
    """Everything that ada's commitment names."""
    (commitment,) = world.state.rounds[0].commitments.values()
    objects = world.players["ada"].agent.archive.objects
    names = [f"lists/{commitment.update.hex()}"]
    for root in commitment.roots:
        names += [f"states/{root.hex()}", *(f"lists/{r.hex()}" for r in objects.state(root)[: TrainingList.SCALARS])]
    return names


def is_committed(world: ActorWorld) -> bool:
    return bool(world.players["ada"].agent.state.rounds and world.players["ada"].agent.state.rounds[0].commitments)


def test_ten_thousand_junk_objects_with_each_name_of_a_commitment_cost_it_nothing(
    stage: SharedChain, tmp_path: Path
) -> None:
    with running_bucket() as bucket:
        world = new_world(stage, tmp_path, small_work(), rounds=1)
        world.store = open_store("s3://bucket/")  # type: ignore[assignment]
        publish(Objects(world.store), world.work)
        world.solver("ada")
        world.verifier("vera")
        world.enrol()
        world.settle(lambda state: bool(state.rounds))
        while not is_committed(world):
            world.players["ada"].agent.step()
        assert not world.state.rounds[0].commitments[Seat(0)].receipts
        sent = stage.chain.calldata(world.state.rounds[0].commitments[Seat(0)].tx_hash)
        trained = next(iter(world.players["ada"].agent.memory.trained.values()))
        assert named_digest(sent) == trained.manifest is not None
        for other in (sent[:-1], sent[:-32], sent + b"x", sent[:-32] + bytes(64), b"\x00" * len(sent), b"", sent[:40]):
            assert named_digest(other) is None
        names = names_of(world)
        assert len(names) > 15
        for name in names:
            flood(bucket, name, JUNK)
        bucket.keys = sorted(bucket.objects)
        bucket.listed.clear()
        (record,) = world.settle().rounds
        commitment = record.commitments[Seat(0)]
        assert commitment.complete and commitment.status is Status.FINAL
        assert len(record.attendance[world.address("vera")].leaves) == world.run.charter.training.duties
        # Her objects were asked for by the digests that her transaction names: no name was searched.
        assert not bucket.listed & {f"names/{name}" for name in names}
        print(f"{JUNK} junk markers under each of {len(names)} names: {bucket.requests} requests in all")
