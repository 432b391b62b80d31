"""Attention by Triton without its scores in memory: what is virtual, and the bits of stock torch all the same."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from assay.engine.compiler.capture import capture
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.triton import backend, tiles
from assay.engine.runtime.triton.virtual import TileSpace, virtual_nodes
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.arithmetic.scalar import ScalarProgram
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.errors import InvariantError
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Family, Map
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from assay.training.model import CharacterGPT
from assay.training.recipes.recipe import RecipeStep
from tests.harness.engine.models import language

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


def dropped() -> ScalarProgram:
    """The score where its random word is not negative, else 0; a score past the end of a tile would be large."""
    s = ScalarBuilder([DType.F32, DType.I32])
    return s.build(s.select(s.lt(s.operand(1), s.i32(0)), s.f32(0.0), s.add(s.operand(0), s.f32(2.0**20))))


def readers(*, is_output: bool = False, few: bool = False) -> tuple[Program, list[list[Tensor]]]:
    """Scores of 2 heads, 20 by 14, with dropout; rows and columns are reduced, and multiplied from either side."""
    heads, m, n, d = 2, 20, 14, 7
    specs = [TensorSpec(DType.F32, (heads, rows, d)) for rows in (m, n)] + [TensorSpec(DType.I32, (2,))]
    b = ProgramBuilder([specs])
    q, k, key = (b.input(0, i) for i in range(3))
    eq, ek = b.rowexp(q, 1), b.rowexp(k, 1)
    scores = b.dot(q.unsqueeze(2), k.unsqueeze(1), eq.unsqueeze(2), ek.unsqueeze(1), (heads, m, n), (d,), 14, 14)
    kept = b.map(dropped(), [scores, b.random(3, key, key, (heads, m, n))], (heads, m, n))
    columns = kept.permute(0, 2, 1)
    ew, down = b.rowexp(q.permute(0, 2, 1), 1), b.rowexp(columns, 1)
    back = b.dot(
        q.permute(0, 2, 1).unsqueeze(2), columns.unsqueeze(1), ew.unsqueeze(2), down.unsqueeze(1),
        (heads, d, n), (m,), 14, 22,
    )  # fmt: skip
    ends = [b.max(scores, 1), back]
    if not few:
        e, turned = b.rowexp(kept, 1), k.permute(0, 2, 1)
        both = e.unsqueeze(2), b.rowexp(turned, 1).unsqueeze(1)
        mixed = b.dot(kept.unsqueeze(2), turned.unsqueeze(1), *both, (heads, m, d), (n,), 22, 14)
        ends += [b.sum(kept, 1, e), b.sum(columns, 1, down), mixed]
    program = b.build([[*ends, *([kept] if is_output else [])]])
    torch.manual_seed(6)
    x = [torch.randn(s.dims) * torch.exp2(torch.randint(-20, 20, (*s.dims[:2], 1))) for s in specs[:2]]
    x[0][0, 3], x[1][1, 2, 1], x[0][1, 4, 0] = 0.0, float("inf"), float("nan")
    return program, [[*x, torch.tensor([5, -6], dtype=torch.int32)]]


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
