"""Freivalds' check of Triton's products: each in its turn, where they are; one wrong digit stops the run."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.products.freivalds import ProductWatch
from assay.engine.runtime.triton import backend
from assay.engine.runtime.triton import products as triton_products
from assay.engine.runtime.triton import routes as triton_routes
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.errors import InvariantError
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Dot
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


def three_products() -> tuple[Program, list[list[Tensor]]]:
    """Two with a batch, one of them turned, and one without that no tensor core takes; rows of every kind."""
    torch.manual_seed(6)
    a, b = (torch.randn(2, 3, n, 37) * torch.exp2(torch.randint(-140, 120, (2, 3, n, 1))) for n in (5, 7))
    a[0, 1, 2], a[0, 0, 0, 0], b[1, 2, 3, 4] = 0.0, float("inf"), float("nan")
    builder = ProgramBuilder([[TensorSpec(DType.F32, (2, 3, 5, 37)), TensorSpec(DType.F32, (2, 3, 7, 37))]])
    x, y = builder.input(0, 0), builder.input(0, 1)
    ex, ey = (builder.rowexp(o, 1) for o in (x, y))
    both = ex.unsqueeze(3), ey.unsqueeze(2)
    rows, columns = x.unsqueeze(3), y.unsqueeze(2)
    plain = builder.dot(rows, columns, *both, (2, 3, 5, 7), (37,), 14, 14)
    mixed = builder.dot(rows, columns, *both, (2, 3, 5, 7), (37,), 22, 8)
    wide = builder.dot(rows, columns, *both, (2, 3, 5, 7), (37,), 24, 24)
    return builder.build([[plain, mixed, wide]]), [[a, b]]


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("most_splits", [0, 2], ids=["packed", "split"])
def test_right_products_pass_in_every_turn_whatever_their_rows_are(most_splits: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(triton_products, "MOST_SPLITS", most_splits)
    program, inputs = three_products()
    stock = state_root(Executor(program, variant=KernelVariant.STOCK).run(inputs))
    ours, turns = Executor(program, variant=KernelVariant.TRITON), []
    original = ProductWatch.key
    monkeypatch.setattr(ProductWatch, "key", lambda self, k: (turns.append(k), original(self, k))[1])
    for _ in range(6):
        assert state_root(ours.run(inputs)) == stock
    assert set(turns[:3]) == set(ours.product_variants)
    assert turns[:3] == turns[3:]


def test_a_run_without_a_check_does_not_go_on_with_the_one_before() -> None:
    program, inputs = three_products()
    ours, due = Executor(program, variant=KernelVariant.TRITON, check_every=2), []
    assert ours.kernels.checks is not None
    for _ in range(6):
        ours.run(inputs)
        due.append(int(ours.kernels.checks.due))
    assert sorted({tuple(k >= 0 for k in due[at : at + 2]) for at in (0, 2, 4)}) in ([(False, True)], [(True, False)])
    assert set(due) - {-1} == set(ours.product_variants)


def few_rows() -> tuple[Program, list[list[Tensor]]]:
    """A product of 40 by 300 rows in a batch of 2, of 14 by 22 bits, whose B is split less often as A."""
    torch.manual_seed(8)
    a, b = (torch.randn(2, n, 50) * torch.exp2(torch.randint(-60, 60, (2, n, 1))) for n in (40, 300))
    a[0, 1, 2], b[1, 2, 3], b[0, 7, 7] = float("nan"), float("inf"), 0.0
    builder = ProgramBuilder([[TensorSpec(DType.F32, (2, 40, 50)), TensorSpec(DType.F32, (2, 300, 50))]])
    x, y = builder.input(0, 0), builder.input(0, 1)
    both = builder.rowexp(x, 1).unsqueeze(2), builder.rowexp(y, 1).unsqueeze(1)
    made = builder.dot(x.unsqueeze(2), y.unsqueeze(1), *both, (2, 40, 300), (50,), 14, 22)
    return builder.build([[made]]), [[a, b]]


def test_a_product_with_its_operands_in_turned_places_is_right_and_checked(monkeypatch: pytest.MonkeyPatch):
    program, inputs = few_rows()
    (k,) = [k for k, node in enumerate(program.nodes) if isinstance(node, Dot)]
    node, parts, found = program.nodes[k], ((0,), (1,), (2,)), triton_routes.route(14, 22)
    assert isinstance(node, Dot)
    assert found is not None
    assert triton_products.is_better_turned(node, parts, found)
    assert not triton_products.is_better_turned(*triton_products.turned(node, parts), found)
    stock = state_root(Executor(program, variant=KernelVariant.STOCK).run(inputs))
    ours, honest = Executor(program, variant=KernelVariant.TRITON), backend.launch
    assert state_root(ours.run(inputs)) == stock

    def faulty(kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
        given = list(arguments)
        if kernel.__name__ == "product":
            given[0] = arguments[0].clone()
            given[0].view(-1)[-1] -= 1
        honest(kernel, grid, *given, **constants)

    monkeypatch.setattr(backend, "launch", faulty)
    with pytest.raises(InvariantError) as error:
        ours.run([[torch.randn(s.dims) for s in program.specs[:2]]])
    assert error.value.code == "HardwareFault"


@pytest.mark.parametrize("most_splits", [0, 2], ids=["packed", "split"])
@pytest.mark.parametrize("operand", [0, 1], ids="ab")
@pytest.mark.gate_takes(2)
def test_a_product_that_reads_one_wrong_element_stops_the_run_in_which_it_is_due(
    operand: int, most_splits: int, monkeypatch: pytest.MonkeyPatch
):
    """The last term of the last row, in the kernel that multiplies alone."""
    monkeypatch.setattr(triton_products, "MOST_SPLITS", most_splits)
    program, _ = three_products()
    torch.manual_seed(7)
    inputs = [[torch.randn(s.dims) for s in program.specs[:2]]]
    ours, honest = Executor(program, variant=KernelVariant.TRITON), backend.launch

    def faulty(kernel: Any, grid: tuple[int, ...], *arguments: Any, **constants: Any) -> None:
        given = list(arguments)
        if kernel.__name__ == "product":
            given[operand] = arguments[operand].clone()
            last = given[operand].reshape(-1, given[operand].shape[-1])
            last[-1, 36 if most_splits == 0 else -1] -= 1
        honest(kernel, grid, *given, **constants)

    monkeypatch.setattr(backend, "launch", faulty)
    found = []
    for _ in range(3):
        try:
            ours.run(inputs)
        except InvariantError as error:
            found.append(error.code)
    assert found == ["HardwareFault", "HardwareFault"]


def test_kernels_of_the_check_return_at_once_in_runs_of_other_products(monkeypatch: pytest.MonkeyPatch):
    program, inputs = three_products()
    ours = Executor(program, variant=KernelVariant.TRITON)
    ours.run(inputs)
    checks = ours.kernels.checks
    assert checks is not None
    monkeypatch.setattr(checks, "begin", lambda: None)
    checks.due.fill_(-1)
    checks.left.zero_()
    checks.middle.zero_()
    ours.run(inputs)
    assert not checks.left.any()
    assert not checks.middle.any()
