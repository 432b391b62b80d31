"""What a run left in the store, read by somebody who took no part in it."""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.errors import RejectedError, UnavailableError
from assay.protocol.program.program import Program
from assay.protocol.program.trace import OnStep
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.trees.state import ListBytes, TrainingList
from assay.protocol.types import Digest, Round, Seat
from assay.provenance.replay import HistoryGone, MarksMissing, ReplayedWork, find_work, replay_work, work_of
from assay_ledger.agents.updates_asked import TRIES, UpdatesAsked
from assay_ledger.index.computing import Compute, RecheckMismatch, StateMismatch
from assay_ledger.index.publications import Publications
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore, open_store
from assay_ledger.store.errors import StoreUnreachable
from assay_ledger.store.listfile import file_size
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.objects import Objects, root_of_list
from assay_ledger.store.packing import unpacked
from assay_solver.cheats import FalseStep, FalseUpdate
from assay_verifier.audit_jobs import AuditJobs
from tests.harness.actors.faulty_archive import behind_faults
from tests.harness.actors.stage import CheatAlone, RoundStageRun, new_round_run
from tests.harness.actors.world import COMPUTE, SharedChain, small_work


@pytest.fixture(scope="module")
def played(stage: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> RoundStageRun:
    """Two rounds of eight solvers, merged; two of them lie, and nobody audits."""
    made = new_round_run(stage, tmp_path_factory.mktemp("played"), small_work(), rounds=2)
    for k in range(6):
        made.solver(f"solver {k}")
    for cheat in (FalseUpdate(Round(0)), FalseStep(Round(1))):
        made.solver(cheat.name, CheatAlone, cheat=cheat)
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


def bytes_of(path: Path) -> bytes:
    """Of the object that lies there, packed or not."""
    stored = path.read_bytes()
    return unpacked(stored, 1 << 30) or stored


def lose(run: RoundStageRun, wanted: Callable[[bytes], bool]) -> int:
    """The store loses every object whose bytes are so; how many."""
    gone = [path for path in (run.folder / "store").rglob("*") if path.is_file() and wanted(bytes_of(path))]
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


@pytest.mark.long
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


def auditor(run: RoundStageRun, copies: Path) -> tuple[AuditJobs, BlobStore]:
    """Somebody who replays, with copies of its own, and the store as it asks it."""
    store = open_store(run.folder / "store")
    objects = Objects(store, LocalCache(copies))
    archive = Archive(run.run.charter, run.run.facts, objects, Publications(run.chain, objects))
    return AuditJobs(archive, COMPUTE), store


def test_a_base_that_the_store_has_is_put_there_by_no_auditor_again(run: RoundStageRun, tmp_path: Path) -> None:
    """Of a large model each upload takes longer than a call leaves, and every auditor replays from some base."""
    lose_bases(run)
    archive, view = stranger(run)
    parent = view.round_of(Round(1)).parent
    jobs, store = auditor(run, tmp_path / "first")
    jobs.publish_base(view, Round(1))
    assert archive.base_roots(archive.fetch_base(view, parent)) == view.lists(parent)
    jobs, store = auditor(run, tmp_path / "second")
    jobs.work(view, Round(1), Seat(3))
    before = store.traffic.bytes_read
    jobs.publish_base(view, Round(1))
    assert store.traffic.bytes_written == 0
    # What it replayed from lies here: the momentum alone is fetched.
    assert store.traffic.bytes_read - before <= file_size(archive.specs(TrainingList.PARAMETERS))


@pytest.mark.parametrize("mode", ["dark", "hangs", "empty"])
def test_an_update_is_given_up_where_a_store_has_it_not_and_not_where_it_is_silent(
    run: RoundStageRun, tmp_path: Path, mode: str
) -> None:
    """Bad luck: a store is away for seconds when all fetch, and nobody says that it holds what is there again."""
    archive, backend = behind_faults(run, tmp_path / "copies")
    asked, view, place = UpdatesAsked(archive, archive.objects), run.view, (Round(1), Seat(4))
    assert archive.update_specs
    backend.mode = mode
    for _ in range(2 * TRIES):
        with pytest.raises(UnavailableError):
            asked.fetch(view, *place)
    assert asked.lost(view) == ({place} if mode == "empty" else set()) and not asked.held(view)


@pytest.mark.parametrize("silent", [0, 1], ids=["first", "second"])
def test_no_update_is_given_up_and_no_base_waits_where_one_store_is_silent(
    run: RoundStageRun, tmp_path: Path, silent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: a store is away for good, and the other one lacks a base, as it lacks one whose publisher was away."""
    monkeypatch.setattr(atexit, "register", lambda _: None)
    lose_bases(run)
    archive, backend = behind_faults(run, tmp_path / "copies", beside=open_store(tmp_path / "empty"), at=silent)
    asked, view, place = UpdatesAsked(archive, archive.objects), run.view, (Round(1), Seat(4))
    assert archive.update_specs
    backend.mode = "dark"
    for _ in range(2 * TRIES):
        with pytest.raises(StoreUnreachable):
            asked.fetch(view, *place)
    assert not asked.lost(view)
    archive, backend = behind_faults(run, tmp_path / "anew", beside=open_store(run.folder / "store"), at=silent)
    backend.mode = "dark"
    assert archive.base_roots(archive.base(view, 2, COMPUTE)) == view.lists(2)


@pytest.mark.parametrize("mode", ["dark", "hangs"])
def test_a_store_that_does_not_answer_is_not_asked_for_older_bases(
    run: RoundStageRun, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not answered is not gone: a hung store cost a call's seconds for every generation of a long run."""
    archive, backend = behind_faults(run, tmp_path / "copies")
    failed, fetch = list[tuple[int, int]](), archive.fetch_base
    monkeypatch.setattr(archive, "fetch_base", lambda view, k: (failed.append((k, backend.failed)), fetch(view, k))[1])
    backend.mode = mode
    with pytest.raises(StoreUnreachable):
        archive.base(run.view, 2, COMPUTE)
    # The newest alone is asked for; then its copies, and those of what came before it.
    assert [k for k, _ in failed] == [2, 2, 1, 0]
    assert failed[1][1] == backend.failed > 0


@pytest.mark.parametrize("mode", ["dark", "hangs"])
def test_who_has_copies_of_what_makes_a_base_needs_no_store(run: RoundStageRun, tmp_path: Path, mode: str) -> None:
    """Attack: a store that stands still until whoever defends its work has run out of time."""
    archive, backend = behind_faults(run, tmp_path / "copies")
    view = run.view
    assert archive.merge is not None  # whoever takes part has the programs
    archive.fetch_base(view, 1)
    for work in view.works(Round(1)):
        archive.fetch_update(work)
    backend.mode = mode
    merged = archive.base(view, 2, COMPUTE)
    assert archive.base_roots(merged) == view.lists(2)


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


# --- a piece of history done again


NOWHERE = ("no-seat", "no-round", "huge-round", "huge-seat")


def again(
    run: RoundStageRun, round_: int, seat: int, folder: Path, until: int | None = None, compute: Compute = COMPUTE
) -> ReplayedWork:
    """What a stranger's replay of a commitment comes to."""
    archive, view = stranger(run)
    record = find_work(view, round_, seat)
    work = work_of(view, archive, compute, record)
    return replay_work(record, work, AuditJobs(archive, compute), compute, folder / "replay", until)


def seat_of(run: RoundStageRun, name: str) -> int:
    """The seat that a solver holds."""
    me = run.players[name].agent.me
    return next(int(t.seat) for _, t in run.view.tenures_of(me))


def test_true_work_is_found_again_root_by_root(run: RoundStageRun, tmp_path: Path) -> None:
    for round_ in (0, 1):
        found = again(run, round_, seat_of(run, "solver 2"), tmp_path / str(round_))
        document = found.document()
        assert found.equal and document["parts"] is None
        assert document["computed"] == document["committed"] and None not in document["computed"].values()
        assert document["steps"] == document["of_steps"] == 2 * found.record.work.units


def test_a_false_mark_beside_true_work_makes_nobody_a_liar(run: RoundStageRun, tmp_path: Path) -> None:
    """Attack: work whose end is true and whose mark is not costs its solver nothing, and reads as fraud."""
    archive, view = stranger(run)
    record = find_work(view, 1, seat_of(run, "solver 2"))
    work = work_of(view, archive, COMPUTE, record)
    assert len(work.marks) == work.units > 1
    false = replace(work, marks=(Digest(bytes(32)), *work.marks[1:]))
    for until in (None, 1):
        jobs, folder = AuditJobs(archive, COMPUTE), tmp_path / str(until)
        found = replay_work(record, false, jobs, COMPUTE, folder, until)
        assert found.equal and (found.false_mark, found.unit) == (1, None)
        document = found.document()
        assert document["computed"] == document["committed"] and document["false_mark"] == 1


def test_a_false_step_is_placed_in_its_unit(run: RoundStageRun, tmp_path: Path) -> None:
    seat = seat_of(run, "false-step")
    assert again(run, 0, seat, tmp_path / "0").equal
    document = again(run, 1, seat, tmp_path / "1").document()
    assert document["parts"] == {"what": "end", "unit": 2, "first_step": 3, "last_step": 4}
    assert document["steps"] == document["of_steps"] and not document["equal"] and document["false_mark"] is None
    # Up to the unit before it the work is true.
    part = again(run, 1, seat, tmp_path / "2", until=1)
    assert part.equal and part.steps == 2 and part.document()["computed"]["parameters"] is None


def test_a_false_update_after_true_steps_is_named_as_such(run: RoundStageRun, tmp_path: Path) -> None:
    document = again(run, 0, seat_of(run, "false-update"), tmp_path).document()
    assert document["parts"] == {"what": "update", "unit": None, "first_step": None, "last_step": None}
    same = [name for name in document["computed"] if document["computed"][name] == document["committed"][name]]
    assert same == ["state", "parameters", "optimizer", "scalars"]


def test_without_marks_the_end_is_compared_and_no_part_of_it(run: RoundStageRun, tmp_path: Path) -> None:
    seat = seat_of(run, "false-step")
    archive, view = stranger(run)
    record = find_work(view, 1, seat)
    marks = b"".join(archive.objects.marks(record.work.marks, record.work.units))
    assert lose(run, lambda data: data == marks) == 1
    document = again(run, 1, seat, tmp_path / "whole").document()
    assert document["parts"] == {"what": "end", "unit": None, "first_step": None, "last_step": None}
    assert not document["marks"] and document["steps"] == document["of_steps"]
    with pytest.raises(MarksMissing):
        again(run, 1, seat, tmp_path / "part", until=1)


def test_a_base_that_is_gone_is_merged_again_and_not_published(run: RoundStageRun, tmp_path: Path) -> None:
    lose_bases(run)
    before = {path for path in (run.folder / "store").rglob("*") if path.is_file()}
    assert again(run, 1, seat_of(run, "solver 2"), tmp_path).equal
    assert {path for path in (run.folder / "store").rglob("*") if path.is_file()} == before


def test_of_a_pruned_store_it_is_said_what_is_gone_and_what_is_left(run: RoundStageRun, tmp_path: Path) -> None:
    lose_bases(run)
    assert lose_update(run, 0) >= 1
    with pytest.raises(HistoryGone, match="Round 1 started from generation 1") as gone:
        again(run, 1, 2, tmp_path)
    assert "Rounds that it has the start of: 0" in gone.value.remedy
    assert again(run, 0, seat_of(run, "solver 2"), tmp_path).equal


def test_a_store_that_gives_other_bytes_makes_nobody_a_liar(run: RoundStageRun, tmp_path: Path) -> None:
    archive, view = stranger(run)
    largest = max(archive.fetch_parameters(view, 1), key=len)
    wrong = bytes([largest[0] ^ 1]) + largest[1:]
    spoilt = 0
    for path in (run.folder / "store").rglob("*"):
        if path.is_file() and largest in (data := bytes_of(path)):
            path.chmod(0o600)
            path.write_bytes(data.replace(largest, wrong))
            spoilt += 1
    # The base is merged again from what counted; without that too, nothing is said of the work.
    assert spoilt >= 1 and again(run, 1, seat_of(run, "solver 2"), tmp_path).equal
    assert lose_update(run, 0) >= 1
    with pytest.raises(HistoryGone):
        again(run, 1, seat_of(run, "solver 2"), tmp_path / "more")


def test_a_machine_whose_kernels_disagree_accuses_nobody(run: RoundStageRun, tmp_path: Path) -> None:
    class Faulty:
        """Other kernels find something else."""

        run, trace = COMPUTE.run, COMPUTE.trace

        def recheck(self, program: Program, lists: ListBytes, steps: int, on_step: OnStep | None = None) -> ListBytes:
            found = COMPUTE.recheck(program, lists, steps)
            return (tuple(bytes([part[0] ^ 1]) + part[1:] for part in found[0]), *found[1:])

    for round_, name in ((1, "false-step"), (0, "false-update")):
        with pytest.raises(RecheckMismatch):
            again(run, round_, seat_of(run, name), tmp_path / name, compute=Faulty())


@pytest.mark.parametrize(("round_", "seat"), [(0, 8), (2, 0), (10**40, 0), (0, 10**40)], ids=NOWHERE)
def test_work_that_nobody_did_is_not_replayed(run: RoundStageRun, round_: int, seat: int) -> None:
    with pytest.raises(RejectedError, match="committed to nothing") as refused:
        find_work(run.view, round_, seat)
    assert refused.value.code == "NoSuchWork" and refused.value.remedy


def test_a_step_beyond_the_commitment_is_refused(run: RoundStageRun, tmp_path: Path) -> None:
    with pytest.raises(RejectedError) as refused:
        again(run, 0, 0, tmp_path, until=10**30)
    assert refused.value.code == "NoSuchStep"
