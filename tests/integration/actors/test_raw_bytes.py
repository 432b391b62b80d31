"""Bytes that no store writes, planted in slots that a program passes through: no honest party loses by them.

Finding S1 of the hostile readings. A replay that made such slots canonical ended in another root than the trace that it
would have to be defended by: a NaN's payload in a frozen parameter convicted the honest. What a liar can still plant is
its update, which every solver merges; whoever joins such a run (test_wrong_starts.py) replays from its own start.
"""

from __future__ import annotations

import struct

import pytest

from assay.protocol.arithmetic import f32
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.arithmetic.words import to_bytes
from assay.protocol.program import wellformed
from assay.protocol.program.program import Program
from assay.protocol.program.trace import ReferenceTrace
from assay.protocol.trees.state import ListBytes
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import SEATS, DType
from assay.training.long_runs import LongRun, MemoryProgress
from assay.training.long_trace import LongTrace
from assay_ledger.store.canonical import NotCanonical, check_canonical, is_canonical
from tests.harness.actors.world import COMPUTE, small_work
from tests.harness.programs import next_scalars, training_inputs, unary

F32, I32, BOOL, U8 = DType.F32, DType.I32, DType.BOOL, DType.U8
PAYLOAD = struct.pack("<4I", 0x7FC00001, 0x7F800001, 0xFFC00000, 0x3F800000)
"""Two NaNs with payloads, one with a sign, and a number."""


def frozen_step() -> tuple[Program, ListBytes]:
    """A step that trains one parameter and passes on a frozen one and a buffer of bools, and a start that is odd."""
    parameters = [TensorSpec(F32, (16,)), TensorSpec(F32, (4,))]
    b = training_inputs(parameters, [TensorSpec(I32, ()), TensorSpec(BOOL, (8,))], TensorSpec(U8, (512,)))
    s = ScalarBuilder([I32])
    grown = b.map(unary(F32, "add", 1.0), [b.input(0, 0)], (16,))
    counted = b.map(s.build(s.add(s.operand(0), s.i32(1))), [b.input(1, 0)], ())
    program = b.build([[grown, b.input(0, 1)], [counted, b.input(1, 1)], next_scalars(b)])
    scalars = tuple(program.specs[k].zeros() for k in program.input_nodes[2])
    return program, ((bytes(64), PAYLOAD), (bytes(4), bytes((0, 1, 2, 3, 128, 255, 1, 0))), scalars)


def test_an_honest_solver_can_defend_what_it_claims_from_such_a_genesis() -> None:
    program, start = frozen_step()
    progress = MemoryProgress()
    run = LongRun(COMPUTE, program, start, 2, progress, room=1 << 20)
    marks = [run.advance() for _ in range(3)]
    truth = ReferenceTrace(program, start, 6)
    assert marks == [truth.state_root(step) for step in (2, 4, 6)]
    # Whoever is challenged answers from what it kept, and after a crash from its start.
    for kept in (progress, MemoryProgress()):
        trace = LongTrace(COMPUTE, program, start, 6, kept)
        assert [trace.state_root(step) for step in range(7)] == [truth.state_root(step) for step in range(7)]
        assert trace.list_roots(6) == truth.list_roots(6) == run.ends
    # It goes on from the very bytes that it kept.
    again = LongRun(COMPUTE, program, start, 2, progress, room=1 << 20)
    assert (again.units, again.lists) == (3, run.lists)


@pytest.mark.parametrize("counts", [True, False], ids=["counted", "left out"])
def test_planted_bytes_in_an_update_merge_to_one_root_for_everybody(counts: bool) -> None:
    work = small_work()
    zeros = tuple(spec.zeros() for spec in work.specs)
    planted = tuple((PAYLOAD * (len(data) // 16 + 1))[: len(data)] for data in zeros)
    mask = to_bytes(F32, [f32.ONE if seat and (counts or seat != 3) else 0 for seat in range(SEATS)])
    updates = [planted if seat == 3 else zeros for seat in range(SEATS)]
    lists: ListBytes = (work.parameters, zeros, *updates, (mask,))
    merged = COMPUTE.run(work.outer, lists, 1)
    assert COMPUTE.recheck(work.outer, lists, 1) == merged
    traces = COMPUTE.trace(work.outer, lists, 1), ReferenceTrace(work.outer, lists, 1)
    assert traces[0].state_root(1) == traces[1].state_root(1)
    assert traces[0].slot_roots(1, 0) == traces[1].slot_roots(1, 0)
    # What is merged is made by the program: no store has to take odd bytes, and the next round starts from none.
    for part in merged:
        assert all(is_canonical(spec.dtype, data) for spec, data in zip(work.specs, part, strict=True))


@pytest.mark.parametrize("dtype", list(DType))
def test_lists_are_looked_through_as_constants_of_programs_are(dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    import assay_ledger.store.canonical as ledger

    monkeypatch.setattr(ledger, "_AT_A_TIME", 32)
    words = (0x7FC00000, 0x7FC00001, 0xFFC00000, 0x7F800000, 0x7F800001, 0xFF800000, 0x00000100, 0x01010101, 0x02000000)
    for count in (1, 8, 9, 17):
        for word in words:
            data = bytes(4 * (count - 1)) + struct.pack("<I", word)
            assert is_canonical(dtype, data) == wellformed.is_canonical(dtype, data), (count, hex(word))
    spec = TensorSpec(F32, (2,))
    with pytest.raises(NotCanonical):
        check_canonical("this", [spec], [struct.pack("<2I", 0, 0x7FC00001)])
