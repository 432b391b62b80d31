"""What parts a program from stock PyTorch: its meaning, which float64 shows, or rounding, which it takes away."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from assay.engine.compiler.capture import capture
from assay.programs import against_eager
from assay.programs.against_eager import beside_eager, check_beside
from assay.programs.capture import capture_recipe
from assay.programs.meaning import MEANT, Meaning, meaning_of
from assay.programs.own_rounding import first_off_grid
from assay.programs.real_functions import functions_in
from assay.programs.real_program import RealProgram, evaluate, short
from assay.programs.real_stock import RealNumbers
from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import Op, ScalarProgram
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.errors import PartedError
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from assay.training.recipes.recipe import Recipe, RecipeStep

torch.set_num_threads(1)


def loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return nn.functional.cross_entropy(module(x), y)


def recipe(decay: float = 0.0) -> Recipe:
    torch.manual_seed(3)
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2, weight_decay=decay)
    return Recipe(module, loss, optimizer, (torch.randn(24, 4), torch.randint(0, 3, (24,))), 4)


def meaning(wrong: Recipe | None = None, tier: str = "fixed8") -> Meaning:
    given = recipe()
    program = capture_recipe(given if wrong is None else wrong, tier, calibrate=False).program
    return meaning_of(program, RecipeStep(given), 3)


def test_a_coarse_grid_changes_nothing_in_what_a_program_means() -> None:
    found = meaning()
    assert found.is_rounding and found.worst < MEANT and found.steps == 3
    # The bias before the normalization is moved by nothing but rounding.
    assert found.tensors - found.determined == 1


def test_a_decay_that_hides_below_rounding_is_seen_in_the_meaning() -> None:
    found = meaning(recipe(decay=2e-4))
    assert (
        found.parts
        and found.share > 1.0
        and MEANT < found.worst < against_eager.LIMITS["fixed22"]
        and not found.is_rounding
    )


@pytest.mark.parametrize(("name", "parts"), [("0.bias", False), ("0.weight", True)])
def test_what_goes_where_rounding_takes_it_takes_no_other_along(
    monkeypatch: pytest.MonkeyPatch, name: str, parts: bool
) -> None:
    """The bias before the normalization may end anywhere; the running mean behind it may not follow it there."""
    place, run = RecipeStep(recipe()).names.index(name), RealProgram.run

    def elsewhere(program: RealProgram, lists: Sequence[Sequence[Tensor]]) -> list[list[Tensor]]:
        state = [list(part) for part in run(program, lists)]
        state[0][place] = state[0][place] + 0.25
        return state

    monkeypatch.setattr(RealProgram, "run", elsewhere)
    found = meaning()
    assert found.parts is parts and (parts or found.worst < MEANT)


def test_what_rounding_alone_parts_is_right_and_what_means_something_else_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(against_eager.LIMITS, "fixed8", 1e-9)
    monkeypatch.setattr(against_eager, "_SPREAD", 0.0)
    given = recipe()
    right = beside_eager(capture_recipe(given, "fixed8", calibrate=False).program, RecipeStep(given), 2, "fixed8")
    assert right.parting is not None and right.is_right
    check_beside(right)
    other = capture_recipe(recipe(decay=2e-4), "fixed8", calibrate=False).program
    wrong = beside_eager(other, RecipeStep(recipe()), 2, "fixed8")
    assert not wrong.is_right
    with pytest.raises(PartedError, match="It means something else: without any rounding it is off by") as caught:
        check_beside(wrong)
    assert caught.value.code == "PartsFromStock"


def operations(lists: list[Tensor]) -> list[list[Tensor]]:
    """Products, orders, sums by index and the functions of models."""
    x, w, image = lists
    order = x.argsort(dim=1, stable=True)
    picked = x.gather(1, order[:, :3])
    summed = torch.zeros(5, 4, dtype=x.dtype).index_add(0, order[0, :4], x[:4])
    curve = torch.erf(x) + torch.sigmoid(w.t()) + torch.log1p(x.abs()) + (x.cos() / 3.0)
    seen = nn.functional.max_pool2d(nn.functional.conv2d(image, image[:, :, :2, :2], padding=1), 2)
    return [[(x @ w).softmax(-1), picked.std(1), summed, curve.flip(0).cumsum(0), seen, x.amax(1), order.int()]]


def test_nodes_over_real_numbers_are_what_pytorch_computes_in_float64() -> None:
    torch.manual_seed(1)
    given = [torch.randn(6, 4), torch.randn(4, 6), torch.randn(2, 3, 6, 6)]
    program = capture(lambda lists: operations(lists), [given]).program
    real = RealProgram(program)
    (found,), (expected,) = real.run([given]), operations([t.double() for t in given])
    for a, b in zip(found, expected, strict=True):
        assert a.dtype is (torch.float64 if b.is_floating_point() else torch.int32)
        assert torch.allclose(a.double(), b.double(), rtol=1e-12, atol=1e-12)
    assert first_off_grid(real, [given]) is None


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp,
    "log": lambda x: x.abs().log(),
    "log1p": lambda x: x.abs().log1p(),
    "log2": lambda x: x.abs().log2(),
    "exp2": torch.exp2,
    "pow": lambda x: x.abs() ** x,
    "sigmoid": torch.sigmoid,
    "silu": nn.functional.silu,
    "mish": nn.functional.mish,
    "softplus": nn.functional.softplus,
    "hardswish": nn.functional.hardswish,
    "hardsigmoid": nn.functional.hardsigmoid,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sin": torch.sin,
    "cos": torch.cos,
    "atan2": lambda x: torch.atan2(x, x.flip(0)),
    "gelu": nn.functional.gelu,
    "gelu by tanh": lambda x: nn.functional.gelu(x, approximate="tanh"),
}


@pytest.mark.gate_takes(8)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_a_program_writes_out_is_that_function_over_real_numbers(name: str) -> None:
    """Its 24 bits are rounding: a network that amplifies them must not be held to mean something else."""

    def step(lists: list[list[Tensor]]) -> list[list[Tensor]]:
        with torch.enable_grad():
            x = lists[0][0].detach().requires_grad_()
            y = FUNCTIONS[name](x * 0.75)
            return [[y.detach(), torch.autograd.grad((y * y).sum(), x)[0]]]

    torch.manual_seed(2)
    x = torch.randn(40) * 2.0
    program = capture(lambda *lists: step(list(lists)), [[x]]).program
    with RealNumbers() as numbers:
        (stock,) = step([[x]])
        expected = [numbers.of(t).clone() for t in stock]
    for a, b in zip(RealProgram(program).run([[x]])[0], expected, strict=True):
        assert torch.allclose(a, b, rtol=1e-11, atol=1e-11), (a - b).abs().max()


def test_a_number_that_was_computed_is_a_ratio_and_one_that_was_written_a_decimal() -> None:
    assert [short(x) for x in (1 / 6, 64 / 63, 0.001, 0.1, -math.sqrt(0.5), math.inf)] == [
        *(1 / 6, 64 / 63, 0.001, 0.1, -0.70710677, math.inf)
    ]


def test_indices_that_an_operation_only_reads_are_not_written_back() -> None:
    sums, index = torch.zeros(2), torch.tensor([[1]]).expand(1, 3)[0]
    with RealNumbers(is_coarse=True) as numbers:
        sums.scatter_add_(0, index, torch.ones(3) / 3.0)
    assert numbers.of(sums).tolist() == pytest.approx([0.0, 1.0], rel=2.0**-46)


def test_what_is_nearly_a_function_is_computed_as_it_stands() -> None:
    b = ScalarBuilder([DType.F32])
    code = b.build(functions.sigmoid(b, b.operand(0)))
    last = len(code.instructions)
    assert set(functions_in(code)) == {last}
    (place,) = [k for k, i in enumerate(code.instructions) if i.op == Op.CONST_F32 and i.imm == _bits(-104.0)]
    other = list(code.instructions)
    other[place] = replace(other[place], imm=_bits(-3.0))
    near = ScalarProgram(code.operands, tuple(other))
    assert not functions_in(near)
    x = torch.tensor([5.0], dtype=torch.float64)
    assert float(evaluate(code, [x], functions_in(code))) == float(torch.sigmoid(x))
    assert abs(float(evaluate(near, [x], functions_in(near)) - torch.sigmoid(torch.tensor(3.0)))) < 1e-6


def _bits(x: float) -> int:
    return int.from_bytes(struct.pack(">f", x))


class Timed(nn.Module):
    """Sinusoids of a computed number, as denoisers are told of time, through a gate that squeezes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.gate, self.last = nn.Linear(8, 12), nn.Linear(12, 12), nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        times = (x[:, 0] * 1000.0).abs()
        waves = torch.exp(-math.log(10000.0) * torch.arange(4) / 4)
        phases = times[:, None] * waves
        h = nn.functional.silu(self.first(torch.cat([phases.sin(), phases.cos()], 1)))
        found: Tensor = self.last(h * torch.sigmoid(self.gate(h)))
        return found


def test_neither_functions_nor_numbers_in_the_code_are_a_difference_of_meaning() -> None:
    torch.manual_seed(5)
    module = Timed()
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2)
    given = Recipe(module, loss, optimizer, (torch.randn(24, 4), torch.randint(0, 3, (24,))), 4)
    program = capture_recipe(given, "fixed8", calibrate=False).program
    found = meaning_of(program, RecipeStep(given), 3)
    assert found.is_rounding and found.worst < 2.0**-30


def test_a_grid_too_small_for_its_terms_is_no_rounding() -> None:
    b = ProgramBuilder([[TensorSpec(DType.F32, (2, 4))]])
    x = b.input(0, 0)
    small = b.const(TensorSpec(DType.I32, (2,)), bytes(8))  # terms up to 1
    program = b.build([[b.sum(x, 1, small)]])
    assert first_off_grid(RealProgram(program), [[torch.full((2, 4), 0.7)]]) is None
    assert first_off_grid(RealProgram(program), [[torch.full((2, 4), 7.0)]]) == 2


def test_shadows_follow_views_writes_in_place_counters_and_choices() -> None:
    third, base, count = torch.tensor([1.0, 2.0]) / 3.0, torch.zeros(4), torch.zeros((), dtype=torch.int64)
    p = nn.Parameter(torch.ones(2))
    with RealNumbers() as numbers:
        part = base[1:3]
        part.add_(third).mul_(p.detach() / 3.0)
        count.add_(1)
        torch.autograd.backward((p * part.sum() / 7.0).sum())
        near = torch.tensor([1.0, 1.0]) + torch.tensor([0.0, 1e-3]) * 1e-7
        chosen = int(near.argmax())
    assert count == 1 and chosen == 1 and near[0] == near[1]  # f32 does not tell them apart
    expected = third.double() / 3.0
    assert torch.allclose(numbers.of(base)[1:3], expected, rtol=1e-12, atol=0.0)
    assert numbers.of(base).dtype is torch.float64
    share = (expected.sum() / 7.0).expand(2)
    assert p.grad is not None and torch.allclose(numbers.of(p.grad), share, rtol=1e-12, atol=0.0)
