"""A fault in any one product of a program is found by every executor, however short it lives."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
import torch
from torch import Tensor

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.parallel.executor import ParallelExecutor
from assay.engine.runtime.parallel.layout import Division
from assay.engine.runtime.parallel.pieces import PieceExecutor
from assay.engine.runtime.products import product_variants
from assay.engine.runtime.products.freivalds import Beginnings, ProductWatch
from assay.engine.runtime.products.native_dot import NativeDot
from assay.engine.runtime.trace import TorchTrace
from assay.engine.runtime.values.state_io import Lists
from assay.protocol.errors import InvariantError
from assay.protocol.program.nodes import Dot, Input, Operand, Output, RowExp
from assay.protocol.program.program import Program
from assay.protocol.program.views import View
from assay.protocol.program.wellformed import violations
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.engine.fused_instruction_sets import needs_kernels
from tests.harness.engine.helpers import same_lists

F32, I32 = DType.F32, DType.I32

ROWS = (3, 4, 5, 6, 7)
"""Of each product, by which a fault knows its own; the last one's exponents depend on rows and columns."""

TERMS, COLUMNS = 10, 2


def program() -> Program:
    """A product [rows, 2] over 10 terms per entry of ROWS."""
    specs = [TensorSpec(F32, (m, TERMS)) for m in ROWS]
    specs += [TensorSpec(F32, (COLUMNS, TERMS)), TensorSpec(I32, (ROWS[-1], COLUMNS))]
    nodes: list[Any] = [Input(s, 0, k) for k, s in enumerate(specs)]
    right = len(ROWS)
    own = Operand(right, View(0, (TERMS, 1), (0, 0), (COLUMNS, TERMS)))
    exponent_b = len(nodes)
    nodes.append(RowExp(TensorSpec(I32, (COLUMNS,)), (TERMS,), own))
    dots = []
    for k, m in enumerate(ROWS):
        over, dims = (m, COLUMNS, TERMS), (m, COLUMNS)
        e = len(nodes)
        nodes.append(RowExp(TensorSpec(I32, (m,)), (TERMS,), Operand(k, View(0, (TERMS, 1), (0, 0), (m, TERMS)))))
        a = Operand(k, View(0, (TERMS, 0, 1), (0, 0, 0), over))
        b = Operand(right, View(0, (0, TERMS, 1), (0, 0, 0), over))
        ea, eb = (Operand(j, View(0, s, (0, 0), dims)) for j, s in ((e, (1, 0)), (exponent_b, (0, 1))))
        if k == len(ROWS) - 1:
            ea = Operand(right + 1, View(0, (COLUMNS, 1), (0, 0), dims))
        dots.append(len(nodes))
        nodes.append(Dot(TensorSpec(F32, dims), (TERMS,), 14, 14, a, b, ea, eb))
    nodes += [Output(nodes[d].spec, 0, n, d) for n, d in enumerate(dots)]
    found = Program(tuple(nodes), (len(specs),), (len(dots),))
    assert not violations(found)
    return found


def inputs() -> list[list[Tensor]]:
    torch.manual_seed(3)
    return [[*(torch.randn(m, TERMS) for m in (*ROWS, COLUMNS)), torch.full((ROWS[-1], COLUMNS), 3, dtype=torch.int32)]]


def instrument(_: int, value: Tensor) -> Tensor:
    return value


def plant(patch: pytest.MonkeyPatch, rows: int) -> None:
    """One sum of the product with so many rows is one too large, in every kernel variant."""
    mm, bmm, int8, call = torch.mm, torch.bmm, product_variants.int8_product, NativeDot._call

    def wrong(s: Tensor, m: int) -> Tensor:
        if m == rows:
            s = s.clone()
            s.view(-1)[-1] += 1
        return s

    def native(self: NativeDot, values: list[Tensor], out: int, raw: int, *piece: Any) -> None:
        call(self, values, out, raw, *piece)
        if raw and rows in self._sizes:
            ctypes.c_double.from_address(raw).value += 1.0

    patch.setattr(torch, "mm", lambda a, b: wrong(mm(a, b), a.shape[-2]))
    patch.setattr(torch, "bmm", lambda a, b: wrong(bmm(a, b), a.shape[-2]))
    patch.setattr(product_variants, "int8_product", lambda a, b: wrong(int8(a, b), a.shape[0]))
    patch.setattr(NativeDot, "_call", native)


def runs_of_one(executor: Executor, hook: Callable[[int, Tensor], Tensor] | None = None) -> Callable[[Lists], Any]:
    return lambda lists: executor.run(lists, hook)


def traced(executor: Executor) -> Callable[[Lists], Any]:
    """A step as a player of a game computes it."""

    def run(lists: Lists) -> None:
        TorchTrace(executor, lists).node_root(1, len(executor.program.nodes) - 1)

    return run


def splits(of: Program) -> frozenset[int]:
    return frozenset(k for k, n in enumerate(of.nodes) if isinstance(n, Dot))


EXECUTORS: dict[str, Callable[[Program], Callable[[Lists], Any]]] = {
    "fused": lambda p: runs_of_one(Executor(p, variant=KernelVariant.FUSED)),
    "fused, instrumented": lambda p: runs_of_one(Executor(p, variant=KernelVariant.FUSED), instrument),
    "fused, traced": lambda p: traced(Executor(p, variant=KernelVariant.FUSED)),
    "fused, new each time": lambda p: lambda lists: Executor(p, variant=KernelVariant.FUSED).run(lists),
    "stock": lambda p: runs_of_one(Executor(p, variant=KernelVariant.STOCK)),
    "stock, instrumented": lambda p: runs_of_one(Executor(p, variant=KernelVariant.STOCK), instrument),
    "stock, new each time": lambda p: lambda lists: Executor(p, variant=KernelVariant.STOCK).run(lists),
    "cross-check": lambda p: runs_of_one(Executor(p, cross_check=True)),
    "cross-check, new each time": lambda p: lambda lists: Executor(p, cross_check=True).run(lists),
    "in one piece": lambda p: PieceExecutor(p, 1, splits=frozenset()).run,
    "in pieces that share sums": lambda p: PieceExecutor(p, 2, splits=splits(p)).run,
    "divided among ranks": lambda p: ParallelExecutor(p, Division(splits(p))).run,
}


@needs_kernels
@pytest.mark.parametrize("how", EXECUTORS)
def test_a_fault_in_any_product_is_found_in_as_many_runs_as_there_are(how: str):
    of, lists = program(), inputs()
    stock = Executor(of, variant=KernelVariant.STOCK).run(lists)
    honest = EXECUTORS[how](of)
    for _ in ROWS:
        ends = honest(lists)
        assert ends is None or same_lists(ends, stock)
    for rows in ROWS:
        run = EXECUTORS[how](of)
        with pytest.MonkeyPatch.context() as patch:
            plant(patch, rows)
            with pytest.raises(InvariantError) as caught:
                for _ in ROWS:
                    run(lists)
            assert caught.value.code == "HardwareFault"


@needs_kernels
def test_executors_that_are_used_by_turns_do_not_share_their_products_between_them():
    """Were there one turn for both, an actor that runs and then checks again would look at every second product."""
    of, lists = program(), inputs()
    met = []
    for _ in ROWS[1:]:
        for executor in (Executor(of, variant=KernelVariant.FUSED), Executor(of, cross_check=True)):
            executor.run(lists)
            met.append(executor._watch.due)
    assert len(set(met[::2])) == len(set(met[1::2])) == len(ROWS) - 1


def test_a_process_begins_with_any_product():
    """600 processes of one run each: one of eight products is met by none with probability 8 (7/8)^600 < 2^-110."""
    met = set()
    for _ in range(600):
        watch = ProductWatch(range(8), "a", Beginnings())
        watch.begin()
        met.add(watch.due)
    assert met == set(range(8))


def test_executors_of_one_name_take_turns_and_one_that_never_runs_takes_none():
    beginnings = Beginnings()
    met = []
    for _ in range(8):
        ProductWatch(range(8), "a", beginnings)
        other, watch = (ProductWatch(range(8), name, beginnings) for name in ("b", "a"))
        other.begin()
        watch.begin()
        met.append(watch.due)
    assert sorted(met) == list(range(8))


def test_runs_on_several_threads_keep_their_own_product():
    watch = ProductWatch(range(8))
    watch.begin()
    mine = watch.due
    others: list[int | None] = []

    def run() -> None:
        watch.begin()
        others.append(watch.due)

    for _ in range(7):
        thread = Thread(target=run)
        thread.start()
        thread.join()
    assert watch.due == mine
    assert sorted([*others, mine]) == list(range(8))  # type: ignore[list-item]
