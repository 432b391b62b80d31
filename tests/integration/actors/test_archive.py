"""What a run left in the store, read by somebody who took no part in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.errors import UnavailableError
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.trees.state import TrainingList
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.index.computing import StateMismatch
from assay_ledger.index.publications import Publications
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import open_store
from assay_ledger.store.objects import Objects, root_of_list
from tests.harness.actors.stage import RoundStageRun, new_round_run
from tests.harness.actors.world import COMPUTE, SharedChain, small_work


@pytest.fixture(scope="module")
def played(stage: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> RoundStageRun:
    """Two rounds of eight solvers, merged."""
    made = new_round_run(stage, tmp_path_factory.mktemp("played"), small_work(), rounds=2)
    for k in range(8):
        made.solver(f"solver {k}")
    made.enrol()
    made.begin()
    made.settle(lambda run: run.view.status(2) in (GenerationStatus.MERGED, GenerationStatus.FINAL))
    return made


@pytest.fixture
def run(played: RoundStageRun, tmp_path: Path) -> RoundStageRun:
    """The same with a copy of its store, which a test may damage."""
    shutil.copytree(played.folder / "store", tmp_path / "store")
    return replace(played, folder=tmp_path)


def stranger(run: RoundStageRun) -> tuple[Archive, RunView]:
    """Somebody with nothing but the chain and the store."""
    objects = Objects(open_store(run.folder / "store"))
    archive = Archive(run.run.charter, run.run.facts, objects, Publications(run.chain, objects))
    return archive, run.view


def lose(run: RoundStageRun, wanted: Callable[[bytes], bool]) -> int:
    """The store loses every object whose bytes are so; how many."""
    gone = [path for path in (run.folder / "store").rglob("*") if path.is_file() and wanted(path.read_bytes())]
    for path in gone:
        path.unlink()
    return len(gone)


def lose_update(run: RoundStageRun, round_: int) -> int:
    """The store loses seat 3's update of a round."""
    archive, view = stranger(run)
    tensor, *_ = archive.fetch_update(view.state.works[Round(round_), Seat(3)])
    return lose(run, lambda data: tensor in data)


def lose_bases(run: RoundStageRun) -> None:
    """The store loses what solvers published of the bases of both rounds."""
    archive, view = stranger(run)
    for generation in (1, 2):
        with suppress(UnavailableError):
            largest = max(archive.fetch_base(view, generation)[0], key=len)
            assert lose(run, lambda data, part=largest: part in data) >= 1  # type: ignore[misc]


def test_every_update_comes_with_the_root_that_was_committed(run: RoundStageRun) -> None:
    archive, view = stranger(run)
    for work in view.state.works.values():
        update = archive.fetch_update(work)
        assert root_of_list(archive.update_specs, update) == work.work.update


def test_an_update_that_is_gone_is_unavailable_and_no_other(run: RoundStageRun) -> None:
    archive, view = stranger(run)
    work = view.state.works[Round(1), Seat(3)]
    assert lose_update(run, 1) >= 1
    archive, _ = stranger(run)
    with pytest.raises(UnavailableError):
        archive.fetch_update(work)
    # Others are still there.
    archive.fetch_update(view.state.works[Round(1), Seat(4)])


def test_a_base_that_nobody_published_is_merged_again_and_published(run: RoundStageRun) -> None:
    lose_bases(run)
    archive, view = stranger(run)
    with pytest.raises(UnavailableError):
        archive.fetch_base(view, 1)
    merged = archive.base(view, 2, COMPUTE)
    assert archive.base_roots(merged) == view.lists(2)
    # Whoever comes next finds both, and needs no update any more.
    assert lose_update(run, 0) + lose_update(run, 1) >= 2
    archive, _ = stranger(run)
    assert archive.fetch_base(view, 2) == merged
    assert archive.fetch_parameters(view, 2) == merged[0]
    assert archive.base_roots(archive.fetch_base(view, 1)) == view.lists(1)


def test_without_an_update_that_counted_a_lost_base_stays_lost(run: RoundStageRun) -> None:
    assert lose_update(run, 0) >= 1
    lose_bases(run)
    archive, view = stranger(run)
    with pytest.raises(UnavailableError):
        archive.base(view, 1, COMPUTE)


def test_a_merge_of_other_inputs_than_the_contract_s_is_refused(run: RoundStageRun) -> None:
    archive, view = stranger(run)
    base = archive.fetch_base(view, 0)
    made = archive.merge_job(view, Round(0), base)
    assert archive.base_roots(COMPUTE.run(made.program, made.lists, made.steps)) == view.lists(1)
    inputs = view.books.generations.inputs
    before = dict(inputs)
    try:
        inputs[1] = Digest(b"other".ljust(32, b"\0"))
        with pytest.raises(StateMismatch):
            archive.merge_job(view, Round(0), base)
    finally:
        inputs.clear()
        inputs.update(before)


def test_no_generation_without_a_root_has_a_base(run: RoundStageRun) -> None:
    archive, view = stranger(run)
    for fetch in (archive.fetch_base, archive.fetch_parameters):
        with pytest.raises(UnavailableError) as caught:
            fetch(view, 3)
        assert caught.value.code == "NoBase"


def test_a_start_is_the_base_s_parameters_zeros_and_scalars_of_its_own(run: RoundStageRun) -> None:
    archive, view = stranger(run)
    parameters = archive.base(view, 1, COMPUTE)[0]
    _, optimizer, scalars = archive.start(Round(1), Seat(2), parameters)
    zeros = root_of_list(archive.specs(TrainingList.OPTIMIZER), optimizer)
    assert zeros == run.run.facts.rounds.zero_optimizer
    assert root_of_list(archive.specs(TrainingList.SCALARS), scalars) == archive.scalars_root(Round(1), Seat(2))
    assert archive.scalars_root(Round(1), Seat(2)) != archive.scalars_root(Round(1), Seat(3))
    assert archive.scalars_root(Round(1), Seat(2), 1) != archive.scalars_root(Round(1), Seat(2))
