"""A replay under many keys at once: the protocol's accumulators, the unit where a lie begins, a crash in between."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from assay.engine.runtime.values import state_io
from assay.protocol.digests import keccak
from assay.protocol.program.program import Program
from assay.protocol.program.trace import ReferenceTrace
from assay.protocol.program.witness import witnessed_program
from assay.protocol.trees.state import ListBytes, list_roots
from assay.protocol.types import Digest
from assay.training.rounds import TorchCompute
from assay_ledger.index.computing import RecheckMismatch
from assay_ledger.store.progress import ROOTS
from assay_verifier.replaying import CommitmentReplay, WorkToReplay, witness_lists_of, witnessed_by
from tests.harness.programs import mlp_step
from tests.harness.training.counting import CountingCompute

UNITS, STEPS = 3, 2
COMPUTE = TorchCompute()


def key(name: str) -> Digest:
    """A witness key: eight bytes, then zeros."""
    return Digest(keccak(name.encode())[:8] + bytes(24))


@cache
def true_trace() -> ReferenceTrace:
    return mlp_step().trace(UNITS * STEPS)


def marks() -> tuple[Digest, ...]:
    """State roots after every unit, by the reference."""
    return tuple(true_trace().state_root(STEPS * (k + 1)) for k in range(UNITS))


def work(shown: tuple[Digest, ...] = ()) -> WorkToReplay:
    example = mlp_step()
    return WorkToReplay(example.program, example.state, UNITS, STEPS, shown)


def replay(folder: Path, keys: list[Digest], shown: tuple[Digest, ...] = ()) -> CommitmentReplay:
    made = CommitmentReplay(COMPUTE, work(shown), keys, folder)
    while not made.is_done:
        made.advance()
    return made


def accumulator_alone(of: Digest) -> Digest:
    """By the reference, under one key."""
    program = witnessed_program(mlp_step().program)
    trace = ReferenceTrace(program, (*mlp_step().state, *witness_lists_of([of])), UNITS * STEPS)
    return Digest(trace.slot_bytes(UNITS * STEPS, 4, 0))


class FaultyCompute(TorchCompute):
    """Its main kernels flip a bit of the first parameter in one of the calls; its others do not."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at, self._calls = at, 0

    def run(self, program: Program, lists: ListBytes, steps: int = 1, *args: object, **more: object) -> ListBytes:
        end = super().run(program, lists, steps)
        self._calls += 1
        if self._calls != self._at:
            return end
        first = bytes([end[0][0][0] ^ 1]) + end[0][0][1:]
        return ((first, *end[0][1:]), *end[1:])


def test_one_pass_gives_each_keys_accumulator_as_it_is_alone(tmp_path: Path) -> None:
    keys = [key("own"), key("audited"), key("its")]
    found = replay(tmp_path, keys)
    assert found.ends == true_trace().list_roots(UNITS * STEPS)
    assert found.accumulators == tuple(accumulator_alone(k) for k in keys)
    assert len(set(found.accumulators)) == 3


def test_keys_of_one_pass_are_lists_of_their_own_behind_the_state() -> None:
    keys = [key("a"), key("b")]
    program = witnessed_by(mlp_step().program, 2)
    assert program.inputs == (*mlp_step().program.inputs, 1, 1, 1, 1)
    lists = witness_lists_of(keys)
    roots = list_roots(state_io.slot_roots(state_io.from_lists_of_bytes(state_io.input_specs(program)[3:], lists)))
    assert len(roots) == 4 and roots[1] == roots[3] and roots[0] != roots[2]


def test_true_marks_name_no_unit(tmp_path: Path) -> None:
    assert replay(tmp_path, [key("own")], marks()).differs_at is None


@pytest.mark.parametrize("first", [1, 2, 3])
def test_the_first_mark_that_differs_is_where_the_lie_begins(first: int, tmp_path: Path) -> None:
    shown = (*marks()[: first - 1], *(Digest(bytes([k]) * 32) for k in range(first, UNITS + 1)))
    assert replay(tmp_path, [key("own")], shown).differs_at == first


def test_marks_of_another_number_than_units_are_no_hint(tmp_path: Path) -> None:
    lies = tuple(Digest(bytes([k]) * 32) for k in range(UNITS + 1))
    assert replay(tmp_path, [key("own")], lies).differs_at is None


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_fault_of_this_machine_is_no_accusation_of_a_true_mark(at: int, tmp_path: Path) -> None:
    made = CommitmentReplay(FaultyCompute(at), work(marks()), [key("own")], tmp_path)
    for _ in range(UNITS):
        made.advance()
    assert made.differs_at == at and made.unchecked(None) == UNITS - at + 1
    with pytest.raises(RecheckMismatch):
        made.confirm()
    assert made.done == at - 1 and made.differs_at is None
    while not made.is_done:
        made.advance()
    assert made.ends == true_trace().list_roots(UNITS * STEPS), "what was found wrong is computed again"


@pytest.mark.parametrize("at", [2, 3])
def test_a_false_mark_before_a_fault_of_this_machine_leads_to_no_accusation(at: int, tmp_path: Path) -> None:
    """Attack: a solver whose work is true shows a false first mark: the unit of that one alone would be looked at."""
    shown = (Digest(b"false".ljust(32, b"\0")), *marks()[1:])
    made = CommitmentReplay(FaultyCompute(at), work(shown), [key("own")], tmp_path)
    for _ in range(UNITS):
        made.advance()
    assert made.differs_at == 1 and made.ends != true_trace().list_roots(UNITS * STEPS)
    with pytest.raises(RecheckMismatch):
        made.confirm()
    assert made.done == at - 1


@pytest.mark.parametrize("at", [1, 2, 3])
def test_without_marks_everything_is_computed_again_before_an_accusation(at: int, tmp_path: Path) -> None:
    made = CommitmentReplay(FaultyCompute(at), work(), [key("own")], tmp_path / "faulty")
    for _ in range(UNITS):
        made.advance()
    assert made.unchecked(None) == UNITS
    with pytest.raises(RecheckMismatch):
        made.confirm()
    assert made.done == at - 1
    while not made.is_done:
        made.advance()
    made.confirm()
    assert made.unchecked(None) == 0 and made.ends == true_trace().list_roots(UNITS * STEPS)


def test_an_end_that_differs_behind_true_marks_is_confirmed_by_the_last_unit(tmp_path: Path) -> None:
    made = replay(tmp_path, [key("own")], marks())
    assert made.unchecked(None) == 1
    made.check_unit(None)
    assert made.unchecked(None) == 0 and made.unchecked(key("own")) == UNITS - 1


def test_an_accumulator_is_confirmed_over_every_step(tmp_path: Path) -> None:
    class FaultyOnce(TorchCompute):
        """Its main kernels end in another accumulator."""

        def run(self, program: Program, lists: ListBytes, steps: int = 1, *args: object, **more: object) -> ListBytes:
            end = super().run(program, lists, steps)
            return (*end[:-1], (bytes([end[-1][0][0] ^ 1]) + end[-1][0][1:],))

    made = CommitmentReplay(FaultyOnce(), work(marks()), [key("own"), key("audited")], tmp_path / "faulty")
    for _ in range(UNITS):
        made.advance()
    assert made.differs_at is None, "no mark shows it"
    with pytest.raises(RecheckMismatch):
        made.confirm(key("audited"))
    replay(tmp_path, [key("own"), key("audited")]).confirm(key("audited"))


def test_a_process_that_died_goes_on_with_the_unit_that_was_not_computed_again(tmp_path: Path) -> None:
    first = replay(tmp_path, [key("own")])
    first.check_unit(None)
    assert first.unchecked(None) == UNITS - 1
    again = CommitmentReplay(COMPUTE, work(), [key("own")], tmp_path)
    assert again.unchecked(None) == UNITS - 1
    again.confirm()
    assert CommitmentReplay(COMPUTE, work(), [key("own")], tmp_path).unchecked(None) == 0


def test_a_unit_whose_start_is_not_kept_is_computed_again_from_the_state_before(tmp_path: Path) -> None:
    shown = (*marks()[:2], Digest(b"lie".ljust(32, b"\0")))
    made = CommitmentReplay(COMPUTE, work(shown), [], tmp_path, room=1)
    while not made.is_done:
        made.advance()
    assert made.differs_at == 3 and made.unchecked(None) == 1, "it is in memory"
    after = CommitmentReplay(COMPUTE, work(shown), [], tmp_path, room=1)
    assert after.is_done and after.unchecked(None) == UNITS
    after.confirm()


def test_a_damaged_state_is_passed_over_and_what_it_began_is_computed_from_before(tmp_path: Path) -> None:
    replay(tmp_path, [key("own")])
    (folder,) = tmp_path.iterdir()
    (folder / str(STEPS)).write_bytes(b"damaged")
    made = CommitmentReplay(COMPUTE, work((*marks()[:1], *[Digest(bytes(32))] * 2)), [key("own")], tmp_path)
    assert (made.differs_at, made.unchecked(None)) == (2, 2)
    made.check_unit(None)
    assert made.unchecked(None) == 3, "the state before it is damaged"
    made.confirm()


def test_a_process_that_died_goes_on_after_the_last_unit_it_kept(tmp_path: Path) -> None:
    keys = [key("own"), key("audited")]
    first = CommitmentReplay(COMPUTE, work(marks()), keys, tmp_path / "first")
    first.advance()
    again = CommitmentReplay(COMPUTE, work(marks()), keys, tmp_path / "first")
    assert again.done == 1
    while not again.is_done:
        again.advance()
    whole = replay(tmp_path / "whole", keys)
    assert (again.ends, again.accumulators) == (whole.ends, whole.accumulators)
    again.forget()
    assert CommitmentReplay(COMPUTE, work(marks()), keys, tmp_path / "first").done == 0


def test_where_a_lie_began_survives_a_crash(tmp_path: Path) -> None:
    shown = (Digest(b"lie".ljust(32, b"\0")), *marks()[1:])
    first = CommitmentReplay(COMPUTE, work(shown), [key("own")], tmp_path)
    first.advance()
    assert CommitmentReplay(COMPUTE, work(shown), [key("own")], tmp_path).differs_at == 1


def test_roots_that_the_disk_lost_begin_the_pass_anew(tmp_path: Path) -> None:
    first = CommitmentReplay(COMPUTE, work(marks()), [key("own")], tmp_path)
    for _ in range(2):
        first.advance()
    (folder,) = tmp_path.iterdir()
    (folder / "plain" / ROOTS).unlink()
    assert CommitmentReplay(COMPUTE, work(marks()), [key("own")], tmp_path).done == 0


def test_what_was_kept_under_other_keys_is_another_replays(tmp_path: Path) -> None:
    CommitmentReplay(COMPUTE, work(), [key("own")], tmp_path).advance()
    assert CommitmentReplay(COMPUTE, work(), [key("other")], tmp_path).done == 0


@pytest.mark.parametrize("of", ["plain", "own", "audited"])
def test_a_game_about_a_replay_is_answered_from_what_it_kept(of: str, tmp_path: Path) -> None:
    found = replay(tmp_path, [key("own"), key("audited")])
    ours = found.trace(None if of == "plain" else key(of))
    example = mlp_step()
    program = witnessed_by(example.program, 0 if of == "plain" else 1)
    theirs = ReferenceTrace(
        program, (*example.state, *(witness_lists_of([key(of)]) if of != "plain" else ())), UNITS * STEPS
    )
    assert (ours.program.root, ours.steps) == (program.root, theirs.steps)
    for t in (0, 1, 3, UNITS * STEPS):
        assert ours.state_root(t) == theirs.state_root(t)
    step, node = UNITS * STEPS, len(program.nodes) - 1
    assert ours.prefix_root(step, node) == theirs.prefix_root(step, node)
    assert ours.list_roots(step) == theirs.list_roots(step)
    assert ours.node_bytes(step, node) == theirs.node_bytes(step, node)


def test_a_trace_begins_at_the_unit_before_the_one_asked_about(tmp_path: Path) -> None:
    compute = CountingCompute()
    made = CommitmentReplay(compute, work(), [key("own"), key("audited")], tmp_path)
    while not made.is_done:
        made.advance()
    made.trace(key("audited")).node_root(UNITS * STEPS, 0)
    assert compute.traced == [STEPS]
