"""Kernels of causal rows: columns up to the diagonal, one value a row behind it, and the bits of stock torch."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.triton import backend, row_kernels
from assay.engine.runtime.triton.row_kernels import row_blocks, row_kernel
from assay.engine.runtime.triton.row_text import RowBlocks
from assay.engine.runtime.triton.rows import RowGroup, row_groups
from assay.engine.runtime.triton.tails import CausalRows, Tails
from assay.engine.runtime.triton.triangles import Triangles
from assay.engine.runtime.values.dtypes import canonical
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import ScalarProgram
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.nodes import Map
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.unit.engine.test_triton_triangles import added, masked, step_of

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

F32, BOOL, U8 = DType.F32, DType.BOOL, DType.U8
T, BATCH, TERMS = 20, 2, 4
NUMBERS = (float("nan"), float("inf"), float("-inf"), 2.0**100, -0.0)


def scalar(make: Callable[..., Reg], *types: DType) -> ScalarProgram:
    s = ScalarBuilder(list(types))
    return s.build(make(s, *(s.operand(k) for k in range(len(types)))))


def drop_to(number: float) -> ScalarProgram:
    return scalar(lambda s, gone, a: s.select(gone, s.f32(number), a), BOOL, F32)


ADD = scalar(lambda s, a, b: s.add(a, b), F32, F32)
MULTIPLY = scalar(lambda s, a, b: s.mul(a, b), F32, F32)
EXP_OF_DIFFERENCE = scalar(lambda s, a, b: functions.exp(s, s.sub(a, b)), F32, F32)
QUOTIENT = scalar(lambda s, a, b: s.div(a, b), F32, F32)
SLOPE = scalar(lambda s, p, weighed, total: s.sub(weighed, s.mul(p, total)), F32, F32, F32)
SCALED = scalar(lambda s, a, n: s.scale2(a, n), F32, DType.I32)
CEILING = scalar(lambda s, a: s.cast(s.mul(a, s.f32(200.0)), DType.I32), F32)


def along(x: Ref) -> Ref:
    """One value of each row for all of its elements."""
    return x.unsqueeze(2).expand(BATCH, T, T)


def product(b: ProgramBuilder, x: Ref, y: Ref) -> Ref:
    ex, ey = b.rowexp(x, 1).unsqueeze(2), b.rowexp(y, 1).unsqueeze(1)
    return b.dot(x.unsqueeze(2), y.unsqueeze(1), ex, ey, (BATCH, T, T), (TERMS,), 14, 14)


def attention(*, is_added: bool, dropped: float = float("-inf")) -> Program:
    """Weights of causal scores, and the gradient of the scores; with exponents of rows and columns.

    dropped: what scores are behind the diagonal.
    """
    dims = (BATCH, T, T)
    b = ProgramBuilder(
        [[TensorSpec(F32, (BATCH, T, TERMS))] * 4 + [TensorSpec(F32, (BATCH, T)), TensorSpec(DType.I32, dims)]]
    )
    q, k, g, v = (b.input(0, i) for i in range(4))
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    if is_added:
        mask = b.const(TensorSpec(F32, (T, T)), torch.full((T, T), float("-inf")).triu(1).numpy().tobytes())
        scores = b.map(ADD, [product(b, q, k), mask.unsqueeze(0).expand(*dims)], dims)
    else:
        mask = b.const(TensorSpec(BOOL, (T, T)), future.numpy().tobytes())
        scores = b.map(drop_to(dropped), [mask.unsqueeze(0).expand(*dims), product(b, q, k)], dims)
    e = b.map(EXP_OF_DIFFERENCE, [scores, along(b.max(scores, 1))], dims)
    p = b.map(QUOTIENT, [e, along(b.sum(e, 1))], dims)
    # Zeros alone are the same by any power.
    scaled = b.map(SCALED, [p, b.input(0, 5)], dims) if dropped == float("-inf") else p
    ends = [
        p,
        b.rowexp(scaled, 1),
        b.rowexp(p, 1),
        b.rowexp(p.permute(0, 2, 1), 1),
        b.max(b.map(CEILING, [p], dims, U8), 1),
    ]
    of_weights = product(b, g, v)
    weighed = b.map(MULTIPLY, [p, of_weights], dims)
    slope = b.map(SLOPE, [p, weighed, along(b.sum(weighed, 1))], dims)
    far = b.map(MULTIPLY, [slope, b.input(0, 4).unsqueeze(2).expand(*dims)], dims)
    return b.build([[*ends, b.rowexp(slope, 1), b.rowexp(far, 1), b.rowexp(far.permute(0, 2, 1), 1)]])


def inputs_of(seed: int = 1) -> list[list[Tensor]]:
    torch.manual_seed(seed)
    x = [torch.randn(BATCH, T, TERMS) * torch.exp2(torch.randint(-20, 3, (BATCH, T, 1))) for _ in range(4)]
    return [[*x, torch.randn(BATCH, T), torch.randint(-20, 20, (BATCH, T, T), dtype=torch.int32)]]


def groups_of(program: Program) -> list[tuple[RowGroup, Tails]]:
    causal, every = CausalRows(program, Triangles(program)), row_groups(program, range(len(program.nodes)), 1)
    found = [(group, causal.tails_of(group)) for group in every.values()]
    return [(group, tails) for group, tails in found if tails is not None and len(group.is_whole) > 3]


def values_of(program: Program, inputs: list[list[Tensor]]) -> dict[int, Tensor]:
    """Of every node, by stock torch."""
    found: dict[int, Tensor] = {}
    stock = Executor(program, variant=KernelVariant.STOCK, check_every=1 << 30)
    stock.run(inputs, hook=lambda k, value: found.setdefault(k, value))
    return found


def without_signs(t: Tensor) -> Tensor:
    """Zeros behind the diagonal have either sign where a finite number stood for another: nobody tells them apart."""
    if t.dtype is not torch.float32 or t.shape[-2:] != (T, T):
        return canonical(t)
    return torch.where(torch.ones(T, T, dtype=torch.bool).triu(1) & (t == 0), torch.zeros(()), canonical(t))


def agrees(program: Program, inputs: list[list[Tensor]], cut: RowBlocks) -> bool:
    """Whether kernels of these groups give every member's bits, from what stock torch's nodes give."""
    wanted = values_of(program, inputs)
    given = [wanted.get(k, torch.empty(0)) for k in range(len(program.nodes))]
    for group, tails in groups_of(program):
        found = row_kernel(program, group, group.members, cut, tails)(given)
        whole = [wanted[k] for k in group.members]
        look = without_signs if tails.finite else canonical
        roots = [state_root([[look(t) for t in part]]) for part in (found, whole)]
        if roots[0] != roots[1]:
            return False
    return True


@pytest.mark.parametrize("is_added", [False, True])
def test_a_softmax_and_its_gradient_have_tails(is_added: bool):
    program = attention(is_added=is_added)
    forward, backward = groups_of(program)
    assert [(len(tails.finite), len(tails.same)) for _, tails in (forward, backward)] == [
        (int(is_added), 0),
        (1, int(is_added)),
    ]
    assert forward[0].by_columns
    assert backward[0].by_columns
    assert len(forward[1].free) == 1
    assert sum(forward[0].is_whole.values()) >= 5


LONG = pytest.mark.long
CUT, BY_ONE = RowBlocks(1, 4, (8, 16, 32)), RowBlocks(1, 1, (8, 32))


@pytest.mark.parametrize(
    ("cut", "is_added"),
    [
        *[(CUT, False), (CUT, True), (BY_ONE, False)],
        *(pytest.param(cut, True, marks=LONG) for cut in (BY_ONE, RowBlocks(2, 2, (16, 32)))),
    ],
    ids=str,
)
@pytest.mark.gate_takes(1)
def test_columns_up_to_the_diagonal_give_all_bits(cut: RowBlocks, is_added: bool):
    assert agrees(attention(is_added=is_added), inputs_of(), cut)


@pytest.mark.parametrize("dropped", [-3.0, 2.0])
def test_tails_that_are_no_zeros_count_as_often_as_they_are(dropped: float):
    program = attention(is_added=False, dropped=dropped)
    assert len(groups_of(program)) == 1
    assert agrees(program, inputs_of(), CUT)


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize(
    ("number", "is_added"),
    [(NUMBERS[0], False), (NUMBERS[1], True)]
    + [pytest.param(n, a, marks=LONG) for k, n in enumerate(NUMBERS) for a in (False, True) if k != a],
)
def test_numbers_that_are_none_fill_the_rows_that_they_would(number: float, is_added: bool):
    """In an early query, and in the last column of scores and of gradients, which early rows do not compute."""
    program = attention(is_added=is_added)
    for which, row in ((0, 2), (1, T - 1), (3, T - 1)):
        inputs = inputs_of(which + row)
        inputs[0][which][1, row, 3] = number
        inputs[0][4][0, row] = number
        assert agrees(program, inputs, CUT), (which, row)


@pytest.mark.parametrize("which", [(2, 3), (0, 1)])
def test_a_product_beyond_all_numbers_behind_the_diagonal_shows_in_its_row(which: tuple[int, int]):
    """Zero times it is none: with factors of a number each it is known when the product is there alone."""
    program, inputs = attention(is_added=True), inputs_of()
    inputs[0][which[0]][1, 1], inputs[0][which[1]][1, T - 1] = 2.0**80, 2.0**80
    wanted = values_of(program, inputs)
    (large,) = groups_of(program)[which == (2, 3)][1].finite
    assert wanted[large][1, 1, T - 1] == float("inf")
    assert wanted[large][1, 1, : T - 1].isfinite().all()
    assert agrees(program, inputs, CUT)


@pytest.mark.long
@pytest.mark.parametrize("mask", [pytest.param(masked, marks=LONG), added])
def test_a_causal_step_takes_kernels_of_several_widths(mask: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_kernels, "LEAST_CAUSAL", 16)
    monkeypatch.setattr(row_kernels, "_BLOCK", 256)
    honest, seen = backend.is_interpreted, list[tuple[int, ...]]()
    blocks = row_blocks

    def cut(group: RowGroup, together: int, *, is_causal: bool = False) -> RowBlocks:
        monkeypatch.setattr(backend, "is_interpreted", lambda: False)
        found = blocks(group, together, is_causal=is_causal)
        monkeypatch.setattr(backend, "is_interpreted", honest)
        seen.append(found.widths)
        return found

    monkeypatch.setattr(row_kernels, "row_blocks", cut)
    step, program = step_of(mask)
    state = step.state(key=(7, 8))
    ours = Executor(program, variant=KernelVariant.TRITON)
    assert seen.count((16, 32, 64)) == 2
    stock = state_root(Executor(program, variant=KernelVariant.STOCK).run(state))
    assert [state_root(ours.run(state)) for _ in range(2)] == [stock, stock]


@pytest.mark.parametrize(
    ("rows", "together", "wanted"),
    [
        (98304, 1024, RowBlocks(2, 16, (256, 512, 1024))),
        (98304, 0, RowBlocks(2, 16, (256, 512, 1024))),
        (4096, 0, RowBlocks(2, 8, (256, 512, 1024))),
        (98304, 3, RowBlocks(1, 1, (256, 512, 1024))),
    ],
)
def test_a_program_keeps_to_rows_of_one_matrix(
    rows: int, together: int, wanted: RowBlocks, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(backend, "is_interpreted", lambda: False)
    assert row_blocks(RowGroup(rows * 1024, 1024), together, is_causal=True) == wanted


def test_short_rows_are_computed_whole(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backend, "is_interpreted", lambda: False)
    assert row_blocks(RowGroup(4096 * 256, 256), 0, is_causal=True).widths == ()


def noisy(b: ProgramBuilder, p: Ref) -> Ref:
    """Other words behind the diagonal than one a row."""
    return b.map(MULTIPLY, [p, b.input(0, 0)], p.dims)


def turned(b: ProgramBuilder, p: Ref) -> Ref:
    """What is behind the diagonal comes of what is before it."""
    return b.map(ADD, [p, p.permute(0, 2, 1)], p.dims)


def shifted(b: ProgramBuilder, p: Ref) -> Ref:
    """The diagonal is another one."""
    return b.map(ADD, [p, p.slice(2, 1, T).pad(2, 0, 1, 0)], p.dims)


@pytest.mark.parametrize("make", [noisy, turned, shifted])
def test_rows_of_several_values_behind_the_diagonal_have_no_tails(make: Callable[[ProgramBuilder, Ref], Ref]):
    dims = (BATCH, T, T)
    b = ProgramBuilder([[TensorSpec(F32, dims)]])
    mask = b.const(TensorSpec(BOOL, (T, T)), torch.ones(T, T, dtype=torch.bool).triu(1).numpy().tobytes())
    dropped = b.map(drop_to(float("-inf")), [mask.unsqueeze(0).expand(*dims), b.input(0, 0)], dims)
    other = make(b, dropped)
    program = b.build([[b.max(other, 1), other]])
    causal = CausalRows(program, Triangles(program))
    seen = 0
    for group in row_groups(program, range(len(program.nodes)), 1).values():
        nodes = [program.nodes[k] for k in group.members]
        is_other = any(isinstance(node, Map) and node.code in (ADD.encode(), MULTIPLY.encode()) for node in nodes)
        assert (causal.tails_of(group) is None) == is_other
        seen += is_other
    assert seen == 1
