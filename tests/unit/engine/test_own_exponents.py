"""Where exponents are the rows' own nothing lies beyond them, and kernels ask nothing: on the bits of stock torch."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from assay.engine.runtime.executor import Executor, KernelVariant, Natives
from assay.engine.runtime.fused import layout
from assay.engine.runtime.native.library import load
from assay.engine.runtime.products.native_dot import kernels_of
from assay.engine.runtime.stock.reduce import is_row_exponent
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.nodes import Dot, Operand, RowExp, Sum
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.engine.fused_instruction_sets import PRESENT, needs_kernels
from tests.harness.engine.helpers import same_lists

pytestmark = needs_kernels

EDGES = (0.0, 2.0**-149, -(2.0**-126), 2.0**-100, 1 - 2.0**-24, -1.0, 3.4028234e38, float("inf"), float("nan"))
"""Of a row all may be the same; beside them are ordinary numbers."""


def rows(n: int, terms: int, seed: int) -> Tensor:
    """F32 [n, terms]: rows of one edge, rows with one edge among numbers of all sizes."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, terms, generator=g) * 2.0 ** torch.randint(-120, 100, (n, 1), generator=g)
    drawn = random.Random(seed)
    for r in range(n):
        kind = drawn.randrange(4)
        if kind == 0:
            x[r] = drawn.choice(EDGES)
        elif kind == 1:
            x[r, drawn.randrange(terms)] = drawn.choice(EDGES)
    return x


def program(dims: tuple[int, int], *, turned: bool, p: int = 14) -> Program:
    """Sums along both dimensions, and a product of the rows with those of another input."""
    b = ProgramBuilder([[TensorSpec(DType.F32, dims[::-1] if turned else dims)] * 2])
    x, y = (b.input(0, k).permute(1, 0) if turned else b.input(0, k) for k in range(2))
    return b.build([[b.sum(x, 1), b.sum(x.permute(1, 0), 1), b.matmul(x, y, p, p)]])


def operands(node: Sum | Dot) -> list[tuple[Operand, Operand]]:
    if isinstance(node, Sum):
        return [(node.x, node.exponent)]
    return [(node.a, node.exponent_a), (node.b, node.exponent_b)]


def executors(made: Program, instruction_set: str) -> tuple[Executor, Executor]:
    """By the kernels of an instruction set, and by stock torch."""
    natives = Natives(layout.NodeKernels(load("nodes", instruction_set), instruction_set), kernels_of(instruction_set))
    return Executor(made, variant=KernelVariant.FUSED, natives=natives), Executor(made, variant=KernelVariant.STOCK)


@pytest.mark.parametrize("instruction_set", PRESENT)
@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("p", [8, 14, 15, 22])
@pytest.mark.gate_takes(4)
def test_rows_under_their_own_exponents_have_the_bits_of_stock_torch(p: int, turned: bool, instruction_set: str):
    for seed, dims in enumerate([(16, 32), (17, 33), (48, 96), (1, 640), (64, 7), (5, 1)]):
        made = program(dims, turned=turned, p=p)
        asked = [n for n in made.nodes if isinstance(n, Sum | Dot)]
        assert all(is_row_exponent(made, o, e, n.spec.dims, n.red) for n in asked for o, e in operands(n))
        lists = [[rows(*dims, 2 * seed + k) for k in range(2)]]
        lists = [[x.t().contiguous() for x in lists[0]]] if turned else lists
        ours, stock = executors(made, instruction_set)
        assert ours.fallbacks == {}
        assert same_lists(ours.run(lists), stock.run(lists)), (dims, seed)


@pytest.mark.parametrize("instruction_set", PRESENT)
def test_the_largest_of_both_signs_add_up_without_a_wrap(instruction_set: str):
    largest = 2.0 - 2.0**-23
    for terms in (2, 3, 31, 4096):
        x = torch.full((32, terms), largest)
        x[1::2] = -largest
        made = program((32, terms), turned=False)
        ours, stock = executors(made, instruction_set)
        assert same_lists(ours.run([[x, x]]), stock.run([[x, x]]))


@pytest.mark.parametrize("by", [-3, 40], ids=["smaller", "larger"])
def test_exponents_that_a_hook_replaces_are_believed_by_nobody(by: int):
    made = program((48, 96), turned=False)
    lists = [[rows(48, 96, 5), rows(48, 96, 6)]]

    def hook(k: int, value: Tensor) -> Tensor:
        return value + by if isinstance(made.nodes[k], RowExp) else value

    ours, stock = executors(made, PRESENT[0])
    ours.run(lists)
    assert same_lists(ours.run(lists, hook), stock.run(lists, hook))
    assert not same_lists(ours.run(lists, hook), ours.run(lists))


def _other(b: ProgramBuilder, x: Ref, y: Ref) -> Ref:
    return b.rowexp(y, 1)


def _next_rows(b: ProgramBuilder, x: Ref, _y: Ref) -> Ref:
    return b.rowexp(x, 1).slice(0, 1, 16).pad(0, 0, 1)


def _backwards(b: ProgramBuilder, x: Ref, _y: Ref) -> Ref:
    return b.rowexp(x.permute(1, 0), 1)


def _first_half(b: ProgramBuilder, x: Ref, _y: Ref) -> Ref:
    return b.rowexp(x.slice(1, 0, 8), 1)


def _of_one_row(b: ProgramBuilder, x: Ref, _y: Ref) -> Ref:
    return b.rowexp(x, 1).slice(0, 3, 4).expand(16)


@pytest.mark.parametrize("exponents", [_other, _next_rows, _backwards, _first_half, _of_one_row])
def test_exponents_of_anything_else_are_not_the_rows_own(exponents: Callable[[ProgramBuilder, Ref, Ref], Ref]):
    b = ProgramBuilder([[TensorSpec(DType.F32, (16, 16)), TensorSpec(DType.F32, (16, 16))]])
    x, y = b.input(0, 0), b.input(0, 1)
    made = b.build([[b.sum(x, 1, exponents(b, x, y))]])
    (node,) = (n for n in made.nodes if isinstance(n, Sum))
    assert not is_row_exponent(made, node.x, node.exponent, node.spec.dims, node.red)
    lists = [[rows(16, 16, 7), rows(16, 16, 8)]]
    ours, stock = executors(made, PRESENT[0])
    assert same_lists(ours.run(lists), stock.run(lists))


@pytest.mark.parametrize("instruction_set", PRESENT)
@pytest.mark.parametrize("own", ["rows", "columns"])
@pytest.mark.parametrize("order", [(1, 0), (0, 1)], ids=["as multiplied", "turned"])
def test_a_product_believes_the_exponents_of_one_side_alone(own: str, order: tuple[int, int], instruction_set: str):
    n, terms = 48, 96
    b = ProgramBuilder([[TensorSpec(DType.F32, (n, terms))] * 2])
    x, y = b.input(0, 0), b.input(0, 1)
    ex, ey = b.rowexp(x, 1), b.rowexp(y, 1)
    zero = b.const(TensorSpec(DType.I32, (n,)), bytes(4 * n))
    ex, ey = (ex, zero) if own == "rows" else (zero, ey)
    (a, ea), (c, ec) = ([v.unsqueeze(at) for v in side] for side, at in zip(((x, ex), (y, ey)), order, strict=True))
    made = b.build([[b.dot(a, c, ea, ec, (n, n), (terms,))]])
    (node,) = (k for k in made.nodes if isinstance(k, Dot))
    assert [is_row_exponent(made, o, e, node.spec.dims, node.red) for o, e in operands(node)] == [
        own == "rows",
        own == "columns",
    ]
    lists = [[4 * rows(n, terms, 9), 4 * rows(n, terms, 10)]]
    ours, stock = executors(made, instruction_set)
    assert same_lists(ours.run(lists), stock.run(lists))


@pytest.mark.parametrize("terms", [(1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 21) + 3])
def test_columns_of_more_terms_than_binary64_adds_are_rounded_once(terms: int):
    b = ProgramBuilder([[TensorSpec(DType.F32, (terms, 2))]])
    made = b.build([[b.sum(b.input(0, 0).permute(1, 0), 1)]])
    x = torch.full((terms, 2), 2.0 - 2.0**-23)
    x[1::3, 1] *= -1
    ours, stock = executors(made, PRESENT[0])
    assert ours.fallbacks == {}
    assert same_lists(ours.run([[x]]), stock.run([[x]]))
