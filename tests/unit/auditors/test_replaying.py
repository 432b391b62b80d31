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
from assay_ledger.agents.participant import RecheckMismatch
from assay_verifier.replaying import CommitmentReplay, WorkToReplay, witness_lists_of, witnessed_by
from tests.harness.programs import mlp_step

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


def replay(keys: list[Digest], shown: tuple[Digest, ...] = (), folder: Path | None = None) -> CommitmentReplay:
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


def test_one_pass_gives_each_keys_accumulator_as_it_is_alone() -> None:
    keys = [key("own"), key("audited"), key("its")]
    found = replay(keys)
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


def test_true_marks_name_no_unit() -> None:
    assert replay([key("own")], marks()).differs_at is None


@pytest.mark.parametrize("first", [1, 2, 3])
def test_the_first_mark_that_differs_is_where_the_lie_begins(first: int) -> None:
    shown = (*marks()[: first - 1], *(Digest(bytes([k]) * 32) for k in range(first, UNITS + 1)))
    assert replay([key("own")], shown).differs_at == first


def test_marks_of_another_number_than_units_are_no_hint() -> None:
    lies = tuple(Digest(bytes([k]) * 32) for k in range(UNITS + 1))
    assert replay([key("own")], lies).differs_at is None


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_fault_of_this_machine_is_no_accusation_of_a_true_mark(at: int) -> None:
    made = CommitmentReplay(FaultyCompute(at), work(marks()), [key("own")])
    with pytest.raises(RecheckMismatch):
        for _ in range(UNITS):
            made.advance()
    assert made.done == at - 1
    while not made.is_done:
        made.advance()
    assert made.ends == true_trace().list_roots(UNITS * STEPS), "what was found wrong is computed again"


def test_without_marks_everything_is_computed_again_before_an_accusation() -> None:
    made = CommitmentReplay(FaultyCompute(2), work(), [key("own")])
    for _ in range(UNITS):
        made.advance()
    with pytest.raises(RecheckMismatch):
        made.confirm()
    replay([key("own")]).confirm()


def test_an_end_that_differs_behind_true_marks_is_confirmed_by_the_last_unit() -> None:
    made = CommitmentReplay(TorchCompute(), work(marks()), [key("own")])
    for _ in range(UNITS):
        made.advance()
    made.confirm()
    made._lists = ((bytes(len(made._lists[0][0])), *made._lists[0][1:]), *made._lists[1:])
    with pytest.raises(RecheckMismatch):
        made.confirm()


def test_an_accumulator_is_confirmed_over_every_step() -> None:
    found = replay([key("own"), key("audited")])
    found.confirm_accumulators()
    wrong = bytes([found._lists[6][0][0] ^ 1]) + found._lists[6][0][1:]
    found._lists = (*found._lists[:6], (wrong,))
    with pytest.raises(RecheckMismatch):
        found.confirm_accumulators()


def test_a_process_that_died_goes_on_after_the_last_unit_it_kept(tmp_path: Path) -> None:
    keys = [key("own"), key("audited")]
    first = CommitmentReplay(COMPUTE, work(marks()), keys, tmp_path)
    first.advance()
    first.save()
    first.advance()
    again = CommitmentReplay(COMPUTE, work(marks()), keys, tmp_path)
    assert again.done == 1
    while not again.is_done:
        again.advance()
    whole = replay(keys)
    assert (again.ends, again.accumulators) == (whole.ends, whole.accumulators)
    again.save()
    assert CommitmentReplay(COMPUTE, work(marks()), keys, tmp_path).accumulators == whole.accumulators
    again.forget()
    assert not list(tmp_path.iterdir())


def test_where_a_lie_began_survives_a_crash(tmp_path: Path) -> None:
    shown = (Digest(b"lie".ljust(32, b"\0")), *marks()[1:])
    first = CommitmentReplay(COMPUTE, work(shown), [key("own")], tmp_path)
    first.advance()
    first.save()
    assert CommitmentReplay(COMPUTE, work(shown), [key("own")], tmp_path).differs_at == 1


@pytest.mark.parametrize("damage", ["cut", "bit", "head", "empty"])
def test_a_kept_state_that_is_damaged_is_as_if_it_were_not_there(tmp_path: Path, damage: str) -> None:
    first = CommitmentReplay(COMPUTE, work(), [key("own")], tmp_path)
    first.advance()
    first.save()
    (file,) = tmp_path.iterdir()
    data = file.read_bytes()
    body = data.index(b"\n") + 1
    file.write_bytes(
        {
            "cut": data[:-1],
            "bit": data[:body] + bytes([data[body] ^ 1]) + data[body + 1 :],
            "head": b"{}" + data[body - 1 :],
            "empty": b"",
        }[damage]
    )
    assert CommitmentReplay(COMPUTE, work(), [key("own")], tmp_path).done == 0


def test_a_state_kept_under_other_keys_is_another_replays(tmp_path: Path) -> None:
    first = CommitmentReplay(COMPUTE, work(), [key("own")], tmp_path)
    first.advance()
    first.save()
    assert CommitmentReplay(COMPUTE, work(), [key("other")], tmp_path).done == 0
