"""Known answers by Triton: a rehearsal makes every executor that is asked for later, and computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import pytest

from assay.conformance import answers, by_triton
from assay.conformance.by_triton import ByTriton
from assay.engine.runtime.triton import ahead
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.errors import InvariantError
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


def negated(count: int) -> Program:
    s = ScalarBuilder([DType.I32])
    scalar = s.build(s.sub(s.i32(0), s.operand(0)))
    b = ProgramBuilder([[TensorSpec(DType.I32, (count,))]])
    return b.build([[b.map(scalar, [b.input(0, 0)], (count,))]])


X = [[(5).to_bytes(4, "little") * 3]]


def test_what_was_rehearsed_is_compiled_at_once_and_runs_by_the_same_executor(monkeypatch: pytest.MonkeyPatch):
    compiled: list[Sequence[Any]] = []
    monkeypatch.setattr(ahead, "compile_ahead", lambda launches: compiled.append(launches()))
    run, programs = ByTriton(), [negated(3), negated(4)]
    asked = [run.rehearsed(program, X) for program in programs]
    assert asked == [[[bytes(12)]], [[bytes(16)]]]

    def raising() -> Any:
        yield 1
        raise ValueError("a program that cannot be made")

    run.rehearse([raising(), iter(())])
    ((*launches,),) = compiled
    assert len(launches) == 2
    made = dict(run._made)
    assert run(programs[0], X) == [[(-5).to_bytes(4, "little", signed=True) * 3]]
    assert run._made == made


def test_a_replayed_run_of_other_bytes_is_told(monkeypatch: pytest.MonkeyPatch):
    """Where runs are captured three are made; here the third forgets what it was given."""
    run, program = ByTriton(), negated(3)
    executor = run._executor(program)
    plain, runs = executor.run, list[int]()

    def forgetful(inputs: Any, *given: Any) -> Any:
        runs.append(1)
        return plain([[t * (len(runs) < 3) for t in part] for part in inputs], *given)

    monkeypatch.setattr(executor, "run", forgetful)
    assert run(program, X) == [[(-5).to_bytes(4, "little", signed=True) * 3]]
    monkeypatch.setattr(by_triton, "_runs", lambda: 3)
    runs.clear()
    with pytest.raises(InvariantError, match="other bytes"):
        run(program, X)


@pytest.mark.long
def test_all_that_is_asked_was_rehearsed(monkeypatch: pytest.MonkeyPatch):
    """Where Triton's executor is a GPU's: no executor is made after the rehearsal."""
    seen: list[set[Any]] = []
    rehearse: Callable[..., None] = ByTriton.rehearse

    def rehearsing(run: ByTriton, cases: Any) -> None:
        rehearse(run, cases)
        seen.append(set(run._made))
        made.append(run)

    made: list[ByTriton] = []
    monkeypatch.setattr(ByTriton, "rehearse", rehearsing)
    monkeypatch.setattr(answers.nodes, "is_on_gpu", lambda name: name.startswith("triton"))
    tallies = []
    for tally in answers.check_all(answers.default_vectors(), gpu_first=True):
        tallies.append(tally)
        if not tally.implementation.startswith("triton"):
            break
    assert [t.wrong for t in tallies[:4]] == [0, 0, 0, 0] and tallies[0].implementation.startswith("triton")
    assert set(made[0]._made) == seen[0] and len(seen[0]) > 100
