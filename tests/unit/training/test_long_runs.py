"""Runs of many units: a crash resumes them, and games about them need no run from the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.engine.runtime.native.sha256 import tensor_root
from assay.protocol.digests import state_digest
from assay.protocol.errors import InvariantError
from assay.protocol.program.trace import Tamper, Trace
from assay.training.long_runs import LongRun, MemoryProgress, Progress, StateFormat
from assay.training.long_trace import PARTS, LongTrace
from assay.training.rounds import TorchCompute
from assay_ledger.store.progress import ROOTS, ProgressFolder
from tests.harness.actors.programs import update_program
from tests.harness.programs import mlp_step
from tests.harness.training.counting import CountingCompute

UNIT, UNITS = 3, 7
ROOM = 1 << 20
EXAMPLE = mlp_step()
STATE_BYTES = sum(len(data) for part in EXAMPLE.state for data in part)


def flip(step: int, node: int, data: bytes) -> bytes:
    """A lie in the middle of the run, in the first parameter after the step."""
    if step == UNIT * 4 + 2 and node == EXAMPLE.program.input_nodes[0][0] + 40:
        return bytes(len(data))
    return data


def run_of(progress: Progress, compute: TorchCompute, room: int = ROOM, tamper: Tamper | None = None) -> LongRun:
    return LongRun(compute, EXAMPLE.program, EXAMPLE.state, UNIT, progress, room=room, tamper=tamper)


def finished(progress: Progress, room: int = ROOM, tamper: Tamper | None = None) -> LongRun:
    run = run_of(progress, TorchCompute(), room, tamper)
    for _ in range(UNITS):
        run.advance()
    return run


def whole(tamper: Tamper | None = None) -> Trace:
    return TorchCompute().trace(EXAMPLE.program, EXAMPLE.state, UNIT * UNITS, tamper)


def test_marks_and_end_are_those_of_one_run_of_all_steps() -> None:
    run, wanted = finished(MemoryProgress()), whole()
    assert run.marks == tuple(wanted.state_root(UNIT * k) for k in range(1, UNITS + 1))
    assert run.ends == wanted.list_roots(UNIT * UNITS)
    assert run.start_root == wanted.state_root(0)


def test_the_state_after_a_unit_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mark, what an auditor notes of it, and the end of a commitment are asked for one after another."""
    run, hashed = run_of(MemoryProgress(), TorchCompute()), list[int]()
    monkeypatch.setattr(
        "assay.training.long_runs.tensor_root", lambda spec, data: hashed.append(len(data)) or tensor_root(spec, data)
    )
    for _ in range(2):
        mark = run.advance()
        assert state_digest(run.ends) == mark and run.ends == run.ends
    assert 0 < sum(hashed) <= 2 * STATE_BYTES


def test_a_run_that_crashed_in_any_unit_goes_on_behind_its_last_mark(tmp_path: Path) -> None:
    marks = finished(MemoryProgress()).marks
    for k in range(UNITS):
        run = run_of(ProgressFolder(tmp_path), TorchCompute())
        assert run.units == k
        assert run.advance() == marks[k]
    assert run_of(ProgressFolder(tmp_path), TorchCompute()).marks == marks


def test_a_state_that_was_damaged_or_has_no_root_is_not_taken_up(tmp_path: Path) -> None:
    marks = finished(ProgressFolder(tmp_path)).marks
    altered = tmp_path / str(UNIT * (UNITS - 1))
    altered.write_bytes(altered.read_bytes()[:-1] + b"\xff")
    (tmp_path / str(UNIT * (UNITS - 2))).write_bytes(b"")
    # The last state is whole; the crash took its root.
    roots = (tmp_path / ROOTS).read_bytes()
    (tmp_path / ROOTS).write_bytes(roots[: 40 * (UNITS - 1) + 17])
    run = run_of(ProgressFolder(tmp_path), TorchCompute())
    assert run.units == UNITS - 3
    for k in range(UNITS - 3, UNITS):
        assert run.advance() == marks[k]


def test_a_root_that_the_disk_altered_is_not_believed(tmp_path: Path) -> None:
    finished(ProgressFolder(tmp_path))
    data = bytearray((tmp_path / ROOTS).read_bytes())
    data[40 + 10] ^= 1
    (tmp_path / ROOTS).write_bytes(data)
    assert sorted(ProgressFolder(tmp_path).roots) == [UNIT, *range(3 * UNIT, UNITS * UNIT + 1, UNIT)]


def test_states_beyond_their_room_go_every_other_one_and_the_last_stays() -> None:
    for most in (1, 2, 3, UNITS):
        progress = MemoryProgress()
        marks = finished(progress, room=most * STATE_BYTES).marks
        kept = progress.kept()
        assert kept[-1] == UNIT * UNITS and len(kept) <= most + 1
        assert len(progress.roots) == UNITS == len(marks)
        assert run_of(progress, TorchCompute()).units == UNITS


def test_data_is_not_kept_with_every_state() -> None:
    progress = MemoryProgress()
    finished(progress)
    (data,) = {len(state) for state in progress.states.values()}
    moving = sum(len(d) for part in EXAMPLE.state[:2] for d in part)
    assert data < moving + 64 < STATE_BYTES


@pytest.mark.parametrize("tamper", [None, flip], ids=["honest", "lying"])
@pytest.mark.parametrize("room", [0, 2 * STATE_BYTES, ROOM])
def test_every_answer_of_a_long_trace_is_that_of_the_whole_one(tamper: Tamper | None, room: int) -> None:
    progress = MemoryProgress()
    finished(progress, room, tamper)
    trace = LongTrace(TorchCompute(), EXAMPLE.program, EXAMPLE.state, UNIT * UNITS, progress, tamper)
    wanted = whole(tamper)
    assert (whole(tamper).state_root(UNIT * UNITS) != whole().state_root(UNIT * UNITS)) == (tamper is not None)
    for t in (20, 0, 21, 1, 14, 13, 12, 15, 3, 4):
        assert trace.state_root(t) == wanted.state_root(t)
        assert trace.list_roots(t) == wanted.list_roots(t)
        assert trace.slot_roots(t, 1) == wanted.slot_roots(t, 1)
    for t in (21, 1, 14, 15, 4):
        k = len(EXAMPLE.program.nodes) // 2
        assert trace.prefix_root(t, k) == wanted.prefix_root(t, k)
        assert trace.prefix_path(t, k, k) == wanted.prefix_path(t, k, k)
        assert trace.node_root(t, k) == wanted.node_root(t, k)
        trace.look_up([(t, k)])
        assert trace.node_bytes(t, k) == wanted.node_bytes(t, k)
    trace.shed()
    assert trace.state_root(5) == wanted.state_root(5)


def test_a_bisection_runs_each_step_once_and_a_later_life_none_again(tmp_path: Path) -> None:
    finished(ProgressFolder(tmp_path))
    compute = CountingCompute()
    trace = LongTrace(compute, EXAMPLE.program, EXAMPLE.state, UNIT * UNITS, ProgressFolder(tmp_path))
    roots = [trace.state_root(t) for t in range(UNIT * UNITS + 1)]
    assert compute.traced == [UNIT] * UNITS
    again = CountingCompute()
    later = LongTrace(again, EXAMPLE.program, EXAMPLE.state, UNIT * UNITS, ProgressFolder(tmp_path))
    assert [later.state_root(t) for t in range(UNIT * UNITS + 1)] == roots
    assert again.traced == []
    later.node_root(UNIT * 4 + 2, 0)
    assert again.traced == [UNIT]
    assert PARTS >= 2


def test_a_long_trace_goes_around_a_state_that_was_damaged(tmp_path: Path) -> None:
    finished(ProgressFolder(tmp_path))
    trace = LongTrace(TorchCompute(), EXAMPLE.program, EXAMPLE.state, UNIT * UNITS, ProgressFolder(tmp_path))
    trace.node_root(UNIT * 3, 0)
    (tmp_path / str(UNIT * 3)).write_bytes(b"damaged")
    wanted = whole()
    assert trace.prefix_root(UNIT * 3 + 2, 5) == wanted.prefix_root(UNIT * 3 + 2, 5)
    assert trace.list_roots(UNIT * 3 + 1) == wanted.list_roots(UNIT * 3 + 1)


def test_steps_are_told_of_the_whole_run() -> None:
    run, told = run_of(MemoryProgress(), TorchCompute()), list[int]()
    run.advance(told.append)
    run.advance(told.append)
    assert told == [1, 2, 3, 4, 5, 6]


def test_bytes_that_are_no_state_decode_to_none() -> None:
    format_ = StateFormat(EXAMPLE.program, EXAMPLE.state)
    data = format_.encode((*EXAMPLE.state[:1], tuple(b"\1" * len(d) for d in EXAMPLE.state[1]), *EXAMPLE.state[2:]))
    assert format_.decode(data) is not None
    for bad in (b"", data[:-1], data + b"\0", data[:3]):
        assert format_.decode(bad) is None


def test_a_program_that_cannot_be_repeated_has_no_long_run() -> None:
    specs = [EXAMPLE.program.specs[k] for k in EXAMPLE.program.input_nodes[0]]
    with pytest.raises(InvariantError) as caught:
        StateFormat(update_program(specs), (EXAMPLE.state[0], EXAMPLE.state[0]))
    assert caught.value.code == "NotIterable"
