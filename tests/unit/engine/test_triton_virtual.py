"""Attention by Triton without its scores in memory: what is virtual, and the bits of stock torch all the same."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from assay.engine.compiler.capture import capture
from assay.engine.runtime import executor, footprint
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.room import check_memory
from assay.engine.runtime.triton import backend, tiles, virtual
from assay.engine.runtime.triton.virtual import TileSpace, virtual_nodes
from assay.engine.runtime.values.dtypes import canonical
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.errors import InvariantError, UserError
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Family, Map, Output
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from assay.training.model import CharacterGPT
from assay.training.recipes.recipe import RecipeStep
from tests.harness.engine.models import language
from tests.harness.engine.scores import readers

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

CONTEXT, HEADS = 20, 2


@cache
def trained() -> tuple[RecipeStep, Program]:
    """A step of training a GPT of one block with a causal mask, and its program."""
    torch.manual_seed(4)
    module = CharacterGPT(11, layers=1, width=16, heads=HEADS, context=CONTEXT)
    nn.init.normal_(module.position, std=0.5)
    step = RecipeStep(language(module, torch.optim.SGD(module.parameters(), lr=1e-2), window=CONTEXT + 1))
    return step, capture(step, step.state()).program


def squares(program: Program) -> set[int]:
    """The computed nodes that have as many elements as all scores."""
    count = 2 * HEADS * CONTEXT * CONTEXT
    return {k for k, node in enumerate(program.nodes) if node.spec.numel == count and node.family is not Family.INPUT}


def test_no_value_of_a_gpts_attention_is_stored_forward_or_backward():
    _, program = trained()
    found = virtual_nodes(program)
    assert set(found.spaces) == squares(program)
    assert set(found.spaces.values()) == {TileSpace(2 * HEADS, CONTEXT, CONTEXT)}
    kinds = [(program.nodes[k].family, reader.turned, reader.is_b) for k, reader in found.readers.items()]
    assert {kinds.count((Family.DOT, *how)) for how in ((False, False), (True, False), (True, True))} == {2, 1}
    assert kinds.count((Family.MAX, False, False)) == 1
    assert kinds.count((Family.SUM, False, False)) == 2
    assert kinds.count((Family.ROWEXP, True, False)) == 2


@pytest.mark.long
def test_a_training_step_by_tiles_ends_in_the_state_of_native_kernels():
    step, program = trained()
    state = step.state(key=(7, 8))
    ours, stored = (Executor(program, variant=KernelVariant.TRITON, by_tiles=b).whole for b in (True, False))
    assert ours is not None
    assert stored is not None
    assert ours.plan.size < stored.plan.size
    found = Executor(program, variant=KernelVariant.TRITON, by_tiles=True).run(state)
    assert state_root(found) == state_root(Executor(program).run(state))


def test_rows_columns_and_both_sides_of_short_tiles_have_the_bits_of_stock_torch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tiles, "tile", lambda: 16)
    program, inputs = readers()
    assert {program.nodes[k].family for k in virtual_nodes(program).spaces} == {Family.DOT, Family.MAP, Family.RANDOM}
    ours = Executor(program, variant=KernelVariant.TRITON, by_tiles=True)
    assert state_root(ours.run(inputs)) == state_root(Executor(program, variant=KernelVariant.STOCK).run(inputs))


def test_one_view_over_other_dims_of_the_same_tile_reads_other_elements():
    """Two maps of one chain count its elements by dims of their own, and read a tensor by the very same view."""
    specs = [TensorSpec(DType.F32, (4, rows, 5)) for rows in (12, 14)] + [TensorSpec(DType.F32, (2,))]
    b, s = ProgramBuilder([specs]), ScalarBuilder([DType.F32, DType.F32])
    q, k, x = (b.input(0, i) for i in range(3))
    eq, ek = b.rowexp(q, 1), b.rowexp(k, 1)
    scores = b.dot(q.unsqueeze(2), k.unsqueeze(1), eq.unsqueeze(2), ek.unsqueeze(1), (4, 12, 14), (5,), 14, 14)
    total, few = (
        s.build(s.add(s.operand(0), s.operand(1))),
        x.unsqueeze(1).unsqueeze(2).unsqueeze(3).expand(2, 2, 6, 14),
    )
    one = b.map(total, [scores.split(0, 2, 2), few.pad(2, 0, 6)], (2, 2, 12, 14))
    other = b.map(total, [scores.split(1, 2, 6), few.pad(0, 0, 2)], (4, 2, 6, 14))
    assert few.pad(2, 0, 6).window.view == few.pad(0, 0, 2).window.view
    both = b.map(total, [one.split(2, 2, 6), other.split(0, 2, 2)], (2, 2, 2, 6, 14))
    program = b.build([[b.sum(both, 1, b.rowexp(both, 1))]])
    assert len(virtual_nodes(program).spaces) == 4
    inputs = [[torch.randn(4, 12, 5), torch.randn(4, 14, 5), torch.tensor([3.0, -40.0])]]
    ours = Executor(program, variant=KernelVariant.TRITON, by_tiles=True)
    assert state_root(ours.run(inputs)) == state_root(Executor(program, variant=KernelVariant.STOCK).run(inputs))


def test_a_reader_that_needs_it_whole_makes_a_node_stored():
    program, _ = readers(is_output=True)
    kept = next(k for k, node in enumerate(program.nodes) if isinstance(node, Map))
    found = virtual_nodes(program)
    assert kept not in found.spaces
    assert not any(reader.source == kept for reader in found.readers.values())


def mapped(maps: int) -> Program:
    """Scores through a chain of maps, the last of which is reduced."""
    b, s = ProgramBuilder([[TensorSpec(DType.F32, (2, 20, 4))]]), ScalarBuilder([DType.F32])
    x, dims = b.input(0, 0), (2, 20, 20)
    e = b.rowexp(x, 1)
    last = b.dot(x.unsqueeze(2), x.unsqueeze(1), e.unsqueeze(2), e.unsqueeze(1), dims, (4,), 14, 14)
    once = s.build(s.add(s.operand(0), s.f32(1.0)))
    for _ in range(maps):
        last = b.map(once, [last], dims)
    return b.build([[b.rowexp(last, 1)]])


def test_a_chain_that_is_too_long_to_be_written_out_is_stored():
    assert len(virtual_nodes(mapped(virtual.MOST_CHAIN - 1)).spaces) == virtual.MOST_CHAIN
    assert not virtual_nodes(mapped(virtual.MOST_CHAIN)).spaces


def test_what_is_written_out_for_all_readers_has_an_end(monkeypatch: pytest.MonkeyPatch):
    program = mapped(3)
    size = sum(len(node.code) for node in program.nodes if isinstance(node, Map))
    monkeypatch.setattr(virtual, "MOST_WRITTEN", size)
    assert len(virtual_nodes(program).spaces) == 4
    monkeypatch.setattr(virtual, "MOST_WRITTEN", size - 1)
    assert virtual_nodes(program) == virtual.NONE


def test_each_candidate_is_looked_at_once(monkeypatch: pytest.MonkeyPatch):
    """Of a chain that ends in an output every map is stored, one because of the other."""
    looked, honest = [], virtual._is_recomputed

    def counted(program: Program, k: int, *given: Any) -> bool:
        looked.append(k)
        return honest(program, k, *given)

    monkeypatch.setattr(virtual, "_is_recomputed", counted)
    monkeypatch.setattr(virtual, "MOST_CHAIN", 1000)
    program = mapped(300)
    program = Program(
        (*program.nodes[:-2], Output(program.specs[len(program.nodes) - 3], 0, 0, len(program.nodes) - 3)),
        program.inputs, program.outputs, program.consts,
    )  # fmt: skip
    assert not virtual_nodes(program).spaces
    assert sorted(looked) == sorted(set(looked)) and len(looked) == 301


def test_scores_that_are_wrong_in_one_reader_stop_the_run_in_which_they_are_due(
    monkeypatch: pytest.MonkeyPatch,
):
    """The product that reads tiles, and it alone, makes its scores of a query that is not there: that is seen in the
    run of the scores' check; its own is right for the tiles that it has."""
    program, inputs = readers(few=True)
    inputs = [[torch.randn(2, 20, 7), torch.randn(2, 14, 7), inputs[0][2]]]
    ours, honest = Executor(program, variant=KernelVariant.TRITON, by_tiles=True), backend.launch
    for _ in range(2):
        ours.run(inputs)
    assert len(ours.product_variants) == 2

    def faulty(kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
        given = list(arguments)
        if kernel.arg_names[-1] == "BC":
            given[0] = arguments[0].clone()
            given[0].reshape(-1)[-1] += 1.0
        honest(kernel, grid, *given, **constants)

    monkeypatch.setattr(backend, "launch", faulty)
    found = []
    for _ in range(2):
        try:
            ours.run(inputs)
        except InvariantError as error:
            found.append(error.code)
    assert found == ["HardwareFault"]


def by_triton(program: Program, *, by_tiles: bool | None = None) -> Executor:
    return Executor(program, variant=KernelVariant.TRITON, by_tiles=by_tiles)


def size(executor: Executor) -> int:
    assert executor.whole is not None
    return executor.whole.nbytes


def is_by_tiles(executor: Executor) -> bool:
    return any("by tiles" in name for name in executor.product_variants.values())


def test_a_gpu_that_lacks_room_for_scores_runs_by_tiles_or_refuses(
    monkeypatch: pytest.MonkeyPatch,
):
    program, inputs = readers()
    stored, least = size(by_triton(program, by_tiles=False)), size(by_triton(program, by_tiles=True))
    assert least < stored
    found = {}
    for most in (stored, stored - 1, least):
        monkeypatch.setattr(backend, "memory", lambda most=most: most)
        found[most] = is_by_tiles(made := by_triton(program))
        assert state_root(made.run(inputs)) == state_root(Executor(program, variant=KernelVariant.STOCK).run(inputs))
    assert found == {stored: False, stored - 1: True, least: True}
    monkeypatch.setattr(backend, "memory", lambda: least - 1)
    for by_tiles in (None, True):
        with pytest.raises(UserError) as caught:
            by_triton(program, by_tiles=by_tiles)
        assert caught.value.code == "ProgramTooLarge"
    monkeypatch.setattr(backend, "memory", lambda: stored - 1)
    with pytest.raises(UserError, match="of the GPU's memory, which has"):
        by_triton(program, by_tiles=False)


def test_whoever_asks_whether_a_program_fits_is_told_of_the_gpu_too(monkeypatch: pytest.MonkeyPatch):
    program, _ = readers()
    least = size(by_triton(program, by_tiles=True))
    assert not executor.usable_triton()  # asked once: its self-test runs programs of its own
    monkeypatch.setattr(backend, "memory", lambda: least - 1)
    check_memory(program)  # nobody asked for the GPU
    monkeypatch.setenv("ASSAY_DEVICE", "cuda")
    with pytest.raises(UserError, match="of the GPU's memory"):
        check_memory(program)
    monkeypatch.setattr(backend, "memory", lambda: least)
    check_memory(program)


def test_a_dispute_whose_values_no_gpu_holds_is_played_by_the_cpu(monkeypatch: pytest.MonkeyPatch):
    """Whole runs by tiles, and every value of a step beside them, are more than the memory that tiles need."""
    program, inputs = readers()
    needed, honest = footprint.needed(program, frozenset())[0], backend.launch
    launched, seen = [0], dict[bool, list[Tensor]]()
    stored = size(by_triton(program, by_tiles=False))

    def counted(*arguments: Any, **constants: Any) -> None:
        launched[0] += 1
        honest(*arguments, **constants)

    def hook(k: int, value: Tensor) -> Tensor:
        values.append(canonical(value.clone()))  # in memory NaNs are of any payload
        return torch.zeros_like(value) if k == len(program.nodes) - 1 else value

    monkeypatch.setattr(backend, "launch", counted)
    ends = {}
    for is_held in (True, False):
        monkeypatch.setattr(backend, "memory", lambda is_held=is_held: stored + needed - (not is_held))
        values, made = list[Tensor](), by_triton(program)
        before = launched[0]
        ends[is_held] = made.run(inputs, hook)
        assert (launched[0] > before) is is_held
        seen[is_held] = values
    assert [state_root([[t]]) for t in seen[True]] == [state_root([[t]]) for t in seen[False]]
    assert state_root(ends[True]) == state_root(ends[False])
    assert not ends[False][0][-1].any()


GPU_ERRORS = {
    "torch's memory": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB."),
    "its driver's memory": RuntimeError("Triton Error [CUDA]: out of memory"),
    "it is lost": RuntimeError("CUDA error: unspecified launch failure"),
}


@pytest.mark.parametrize("lacking", GPU_ERRORS)
def test_a_dispute_goes_on_by_the_cpu_where_a_gpu_fails(lacking: str, monkeypatch: pytest.MonkeyPatch):
    """In the middle of a run. Who looks on sees each value once, and what was replaced stays so."""
    program, inputs = readers()
    launched, asked, honest, at = [0], list[int](), backend.launch, sum(program.inputs)

    def full(*arguments: Any, **constants: Any) -> None:
        launched[0] += 1
        if launched[0] > most:
            raise GPU_ERRORS[lacking]
        honest(*arguments, **constants)

    def hook(k: int, value: Tensor) -> Tensor:
        asked.append(k)
        return value + 1 if k == at else value

    wanted = state_root(Executor(program, variant=KernelVariant.STOCK).run(inputs, hook))
    made = by_triton(program)
    monkeypatch.setattr(backend, "launch", full)
    for most in (6, 0):  # later ones do not begin there
        asked.clear()
        launched[0] = 0
        with pytest.warns(RuntimeWarning, match="goes on by the CPU") if most else nullcontext():
            assert state_root(made.run(inputs, hook)) == wanted
        assert asked == list(range(len(program.nodes)))
        assert launched[0] == (most + 1 if most else 0)


def test_what_a_gpu_runs_asks_of_the_machine_what_its_native_kernels_would():
    """Before a stake the machine is looked at by these, and by stock torch, which confirms accusations: an executor
    for a GPU must not ask for more after it.
    """
    if executor.usable_natives()[0] is None:
        pytest.skip("there are no native kernels here")
    b = ProgramBuilder([[TensorSpec(DType.F32, (300, 50))]])
    program = b.build([[b.sum(b.input(0, 0), 1)]])
    most, by_stock = by_triton(program).memory, Executor(program, variant=KernelVariant.STOCK).memory
    assert most < by_stock
    check_memory(program, by_stock)
    Executor(program, variant=KernelVariant.TRITON, memory=most)
    with pytest.raises(UserError):
        check_memory(program, by_stock - 1)
    with pytest.raises(UserError):
        Executor(program, variant=KernelVariant.TRITON, memory=most - 1)
