"""One meaning of a passed-through input: its bytes, by every executor, over several steps, canonical or not.

Readers of elements see the one NaN and bools of 0 and 1; a slot that goes straight to an output is not read.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from assay.cli import weights
from assay.conformance.fuzz.programs import Limits, draw
from assay.engine.runtime.executor import Executor, KernelVariant, usable_natives
from assay.engine.runtime.parallel.executor import ParallelExecutor
from assay.engine.runtime.parallel.group import Distributed
from assay.engine.runtime.parallel.pieces import PieceExecutor
from assay.engine.runtime.values import state_io
from assay.engine.runtime.values.dtypes import raw_bytes
from assay.engine.runtime.values.state_io import from_lists_of_bytes, input_specs, tensor_from_bytes, to_lists_of_bytes
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.program import Program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.program.trace import ReferenceTrace
from assay.protocol.program.views import fill_bits
from assay.protocol.trees import state as protocol_state
from assay.protocol.trees.state import ListBytes
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay.training.rounds import TorchCompute
from assay_ledger.store.blobs import open_store
from assay_ledger.store.objects import Objects, root_of_list
from tests.harness.programs import unary

F32, I32, BOOL = DType.F32, DType.I32, DType.BOOL
RunSteps = Callable[[Program, ListBytes, int], ListBytes]

ODD = (0x7FC00001, 0x7F800001, 0xFFC00000, 0x80000000, 0x00000001)
"""A NaN with a payload, a signalling one, a negative one, -0 and a subnormal."""


def frozen(rows: int = 400) -> tuple[Program, ListBytes]:
    """Two f32 slots that change places, a frozen buffer of bools, a bool and an f32 that are read, and a counter."""
    wide, flags = TensorSpec(F32, (rows, 5)), TensorSpec(BOOL, (rows,))
    b = ProgramBuilder([[wide, wide, wide], [flags, flags, TensorSpec(I32, (rows,))]])
    s = ScalarBuilder([BOOL, I32])
    counted = b.map(s.build(s.add(s.cast(s.operand(0), I32), s.operand(1))), [b.input(1, 0), b.input(1, 2)], (rows,))
    added = b.map(unary(F32, "add", 1.0), [b.input(0, 2)], wide.dims)
    s = ScalarBuilder([BOOL])
    flipped = b.map(s.build(s.logical_not(s.operand(0))), [b.input(1, 1)], (rows,))
    program = b.build([[b.input(0, 1), b.input(0, 0), added], [b.input(1, 0), flipped, counted]])
    odd = struct.pack("<5I", *ODD) * rows
    bools = bytes(k % 256 for k in range(rows))
    return program, ((odd, bytes(wide.nbytes), odd), (bools, bools[::-1], bytes(4 * rows)))


def by_reference(program: Program, state: ListBytes, steps: int) -> ListBytes:
    """The state by the definition."""
    for _ in range(steps):
        values = ReferenceExecutor(program).run(state)
        state = tuple(tuple(values[k] for k in nodes) for nodes in program.output_nodes)
    return state


def by_executor(variant: KernelVariant) -> RunSteps:
    """By the executor of a kind."""
    return lambda program, state, steps: to_lists_of_bytes(
        Executor(program, variant=variant).repeat(from_lists_of_bytes(input_specs(program), state), steps)
    )


def step_by_step(program: Program, state: ListBytes, steps: int) -> ListBytes:
    """By the usual executor, each step taking over the one before."""
    executor, tensors = Executor(program), from_lists_of_bytes(input_specs(program), state)
    for _ in range(steps):
        tensors = tuple(executor.run(tensors, give=True))
    return to_lists_of_bytes(tensors)


def in_pieces(program: Program, state: ListBytes, steps: int) -> ListBytes:
    """In three pieces, one after the other."""
    return to_lists_of_bytes(PieceExecutor(program, 3).repeat(from_lists_of_bytes(input_specs(program), state), steps))


def as_a_rank(program: Program, state: ListBytes, steps: int) -> ListBytes:
    """As the only rank of a group."""
    return to_lists_of_bytes(ParallelExecutor(program).repeat(from_lists_of_bytes(input_specs(program), state), steps))


COMPUTE = TorchCompute()

RUNS: dict[str, RunSteps] = {
    "stock": by_executor(KernelVariant.STOCK),
    "given": step_by_step,
    "pieces": in_pieces,
    "rank": as_a_rank,
    "compute": COMPUTE.run,
    "recheck": COMPUTE.recheck,
    "tampered by nobody": lambda p, s, t: COMPUTE.run(p, s, t, lambda step, node, data: data),
    "trace": lambda p, s, t: COMPUTE.trace(p, s, t).state_bytes(t),  # type: ignore[attr-defined]
}
if usable_natives()[0] is not None:
    RUNS["fused"] = by_executor(KernelVariant.FUSED)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_slot_that_is_passed_through_keeps_its_bytes(name: str, steps: int) -> None:
    program, state = frozen()
    assert RUNS[name](program, state, steps) == by_reference(program, state, steps)


@pytest.mark.parametrize("name", ["stock", "pieces", "recheck"])
def test_random_programs_end_in_the_same_bytes(name: str) -> None:
    """By stock torch and what is built on it; native kernels are compared in processes that may die."""
    for seed in range(40):
        case = draw(seed, Limits(nodes=6, elements=48, terms=12))
        steps = 2 if case.program.is_iterable() else 1
        expected = by_reference(case.program, case.state, steps)
        assert RUNS[name](case.program, case.state, steps) == expected, seed


def test_a_sum_over_rows_of_nothing_runs() -> None:
    b = ProgramBuilder([[TensorSpec(F32, (8, 0, 3))]])
    program = b.build([[b.sum(b.input(0, 0), 1)]])
    assert RUNS["stock"](program, ((b"",),), 1) == ((b"",),)


@pytest.mark.parametrize("fill", [129, 2**31 - 1, -(2**31), -150, -149, 128])
def test_a_constant_exponent_may_have_any_fill(fill: int) -> None:
    row = TensorSpec(F32, (3, 2))
    b = ProgramBuilder([[row]])
    e = b.const(TensorSpec(I32, (1,)), bytes(4)).pad(0, 1, 1, fill_bits(I32, fill))
    x = b.input(0, 0)
    program = b.build([[b.dot(x.unsqueeze(1), x.unsqueeze(0), e.unsqueeze(1), e, (3, 3), (2,))]])
    state = ((struct.pack("<6f", 1, 0.5, 3, -0.25, 1e30, 7),),)
    for name in ("stock", "recheck", "compute", "trace"):
        assert RUNS[name](program, state, 1) == by_reference(program, state, 1), name


def test_roots_of_a_trace_are_the_references() -> None:
    program, state = frozen()
    ours, reference = COMPUTE.trace(program, state, 2), ReferenceTrace(program, state, 2)
    for t in range(3):
        assert ours.state_root(t) == reference.state_root(t)
    for k in range(len(program.nodes)):
        assert ours.node_root(2, k) == reference.node_root(2, k)
        assert ours.node_bytes(2, k) == reference.node_bytes(2, k)


@pytest.mark.parametrize("dims", [(), (1,), (0,)])
def test_equal_bytes_of_other_types_have_roots_of_their_own(dims: tuple[int, ...]) -> None:
    """CPython keeps short bytes once: a passed u8 of 1 and a computed bool of 1 are one object, and two tensors."""
    small, flag = TensorSpec(DType.U8, dims), TensorSpec(BOOL, dims)
    b = ProgramBuilder([[small], [flag]])
    s = ScalarBuilder([BOOL])
    negated = b.map(s.build(s.logical_not(s.operand(0))), [b.input(1, 0)], dims)
    program = b.build([[b.input(0, 0)], [negated]])
    state = ((b"\x01" * small.nbytes,), (bytes(flag.nbytes),))
    ours, reference = COMPUTE.trace(program, state, 3), ReferenceTrace(program, state, 3)
    assert [ours.state_root(t) for t in range(4)] == [reference.state_root(t) for t in range(4)]
    assert [ours.node_root(2, k) for k in range(len(program.nodes))] == [
        reference.node_root(2, k) for k in range(len(program.nodes))
    ]


def test_a_lie_in_a_slot_is_told_alike_by_a_run_and_its_trace() -> None:
    """A tamperer's bytes are what it publishes and what its trace defends, canonical or not."""
    program, state = frozen()
    last = len(program.nodes) - 1

    def lie(step: int, node: int, data: bytes) -> bytes:
        return struct.pack("<I", 0x7FC00BAD) + data[4:] if step == 2 and node in (2, last - 5) else data

    told = COMPUTE.run(program, state, 3, lie)
    traced = COMPUTE.trace(program, state, 3, lie)
    assert told == traced.state_bytes(3)  # type: ignore[attr-defined]
    assert told != COMPUTE.run(program, state, 3)
    reference = ReferenceTrace(program, state, 3, lie)
    assert told == tuple(
        tuple(reference.slot_bytes(3, number, index) for index in range(len(part))) for number, part in enumerate(state)
    )


def test_the_roots_of_tensors_are_those_of_their_bytes() -> None:
    program, state = frozen()
    tensors = from_lists_of_bytes(input_specs(program), state)
    specs = input_specs(program)
    expected = [root_of_list(s, d) for s, d in zip(specs, state, strict=True)]
    assert list(state_io.list_roots(tensors)) == expected
    assert state_io.state_root(tensors) == protocol_state.state_digest(expected)


def test_lists_keep_their_bytes_in_a_store(tmp_path: Path) -> None:
    program, state = frozen()
    objects = Objects(open_store(tmp_path))
    for specs, datas in zip(input_specs(program), state, strict=True):
        assert objects.list(objects.put_list(specs, datas), specs) == datas


def test_weights_keep_their_bytes_in_a_file_for_people(tmp_path: Path) -> None:
    specs = (TensorSpec(F32, (5,)), TensorSpec(BOOL, (5,)))
    datas = (struct.pack("<5I", *ODD), bytes((0, 1, 2, 128, 255)))
    path = tmp_path / "model.safetensors"
    weights.write_weights(path, weights.Weights(Digest(bytes(32)), None, True, ("w", "m"), specs, datas))
    assert weights._read(path, ("w", "m"), specs) == datas


def test_a_computed_slot_that_is_passed_on_later_is_stored_before() -> None:
    """A NaN whose payload arithmetic carries along is the one NaN in the state, also where the next step copies it."""
    spec = TensorSpec(F32, (2000,))
    b = ProgramBuilder([[spec, spec]])
    program = b.build([[b.map(unary(F32, "add", 1.0), [b.input(0, 1)], spec.dims), b.input(0, 0)]])
    rng = random.Random(1)
    state = (tuple(struct.pack("<2000I", *(rng.choice(ODD) for _ in range(2000))) for _ in range(2)),)
    for steps in (1, 2, 3):
        for name, run in RUNS.items():
            assert run(program, state, steps) == by_reference(program, state, steps), (name, steps)


def test_torch_never_sees_a_bool_that_is_neither_0_nor_1() -> None:
    """What hooks and kernels get of a bool slot is 0 and 1; the caller's tensor stays as it was."""
    program, state = frozen()
    tensors = from_lists_of_bytes(input_specs(program), state)
    seen: Sequence[torch.Tensor] = []

    def look(k: int, value: torch.Tensor) -> torch.Tensor:
        if value.dtype is torch.bool:
            assert int(value.view(torch.uint8).max()) <= 1
            seen.append(value)  # type: ignore[attr-defined]
        return value

    ends = Executor(program).run(tensors, look)
    assert len(seen) >= 4
    assert to_lists_of_bytes(tensors) == state
    assert to_lists_of_bytes(ends) == by_reference(program, state, 1)


def test_rows_that_ranks_gather_keep_their_bytes(tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'ranks'}", rank=0, world_size=1)
    try:
        for dtype, data in ((F32, struct.pack("<5I", *ODD)), (BOOL, bytes((0, 1, 2, 128, 255)))):
            found = Distributed().gather(tensor_from_bytes(TensorSpec(dtype, (5,)), data), [5])
            assert raw_bytes(found) == data
    finally:
        dist.destroy_process_group()
