"""Stock optimizers have an exact form: ten steps beside PyTorch's own, the same bits, a state to go on from."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from torch import Tensor, nn, optim
from torch.nn import functional as F

from assay.engine.compiler.capture import capture
from assay.engine.compiler.lowering.registry import FIXED22
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.values.dtypes import PROTOCOL, from_bytes, to_bytes
from assay.engine.runtime.values.state_io import Lists, to_lists_of_bytes
from assay.protocol.errors import UserError
from assay.training.optimizer import clip_by_value
from assay.training.optimizers.adams import RAdam
from assay.training.optimizers.each import complement
from assay.training.recipes.recipe import Recipe, RecipeStep
from assay.training.recipes.torch_optimizers import translated
from assay.training.state import SCALAR_NAMES
from tests.harness.engine.helpers import relative

STEPS = 10
STOCK_TORCH = KernelVariant.STOCK

MakeOptimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]


def halves(ps: list[nn.Parameter]) -> list[dict]:
    """Two groups with rates and decays of their own, the first of which stands still."""
    return [{"params": ps[2:], "weight_decay": 0.1}, {"params": ps[:2], "lr": 0.05}]


STOCK: dict[str, MakeOptimizer] = {
    "RMSprop": lambda ps: optim.RMSprop(ps, lr=0.01),
    "RMSprop centered": lambda ps: optim.RMSprop(ps, lr=0.01, centered=True, momentum=0.9, weight_decay=0.1),
    "Adagrad": lambda ps: optim.Adagrad(ps, lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.2),
    "Adadelta": lambda ps: optim.Adadelta(ps, lr=1.0, rho=0.8, weight_decay=0.1),
    "Adafactor": lambda ps: optim.Adafactor(ps, lr=0.1, weight_decay=0.1),
    "Adafactor, small": lambda ps: optim.Adafactor(ps, lr=1e-3, eps=(1e-4, 0.5), d=1.25),
    "Adam, amsgrad": lambda ps: optim.Adam(ps, lr=0.05, betas=(0.5, 0.6), amsgrad=True, weight_decay=0.1),
    "AdamW, amsgrad": lambda ps: optim.AdamW(ps, lr=0.05, amsgrad=True, weight_decay=0.1, maximize=True),
    "NAdam": lambda ps: optim.NAdam(ps, lr=0.05, weight_decay=0.1),
    "NAdam, decoupled": lambda ps: optim.NAdam(ps, lr=0.05, weight_decay=0.1, decoupled_weight_decay=True),
    "RAdam": lambda ps: optim.RAdam(ps, lr=0.05, weight_decay=0.1),
    "RAdam, decoupled": lambda ps: optim.RAdam(
        ps, lr=0.05, betas=(0.0, 0.9), weight_decay=0.1, decoupled_weight_decay=True
    ),
    "RAdam, never rectified": lambda ps: optim.RAdam(ps, lr=0.01, betas=(0.9, 0.6)),
    "Adamax": lambda ps: optim.Adamax(ps, lr=0.05, weight_decay=0.1),
    "Rprop": lambda ps: optim.Rprop(ps, lr=0.01),
    "ASGD": lambda ps: optim.ASGD(ps, lr=0.1, lambd=0.01, t0=4, weight_decay=0.1),
    "SGD, dampened": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, dampening=0.5, maximize=True),
    "SGD, Nesterov": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "SGD, groups": lambda ps: optim.SGD(halves(ps), lr=0.0, momentum=0.5),
    "AdamW, tensors": lambda ps: optim.AdamW(halves(ps), lr=torch.tensor(0.02)),
}


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    return torch.randn(24, 3, generator=generator), torch.randint(0, 2, (24,), generator=generator)


def loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(module(x), y)


def recipe_of(make: MakeOptimizer, **options) -> Recipe:
    torch.manual_seed(2)
    module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    return Recipe(module, loss, make(list(module.parameters())), data=data(), batch_size=8, **options)


def by_torch(make: MakeOptimizer, clip: Callable[[list[nn.Parameter]], object] = lambda ps: None) -> list[Tensor]:
    """The parameters that PyTorch's own loop reaches in float64, on the very batches that the recipe draws."""
    step = RecipeStep(recipe_of(make))
    module = step.recipe.module.double()
    own = list(module.parameters())
    optimizer = make(own)
    for number in range(STEPS):
        x, y = step.batch(step.state(step=number, key=(3, 4))[2])
        optimizer.zero_grad()
        loss(module, x.double(), y).backward()
        clip(own)
        optimizer.step()
    return [p.detach().float() for p in own]


def by_program(recipe: Recipe) -> list[Tensor]:
    """The parameters that the program reaches, of which stock torch and a new start on the way leave the same bits."""
    step = RecipeStep(recipe)
    state = step.state(key=(3, 4))
    program = capture(step, state, FIXED22).program
    end = Executor(program).repeat(state, STEPS)
    halfway = state_of(Executor(program).repeat(state, STEPS // 2))
    assert to_lists_of_bytes(Executor(program, variant=STOCK_TORCH).repeat(halfway, STEPS // 2)) == to_lists_of_bytes(
        end
    )
    return list(end[0])


def state_of(lists: Lists) -> list[list[Tensor]]:
    """A state that went through bytes, as a store keeps it."""
    return [[from_bytes(PROTOCOL[t.dtype], tuple(t.shape), to_bytes(t)) for t in part] for part in lists]


def assert_near(ours: list[Tensor], theirs: list[Tensor], limit: float) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert relative(a, b) < limit


@pytest.mark.parametrize("name", STOCK)
def test_updates_follow_torch_optim_on_the_same_gradients(name: str):
    torch.manual_seed(2)
    shapes = ((4, 3), (4,), (2, 3, 4), ())
    theirs = [nn.Parameter(torch.randn(shape, dtype=torch.float64)) for shape in shapes]
    ours = [p.detach().float() for p in theirs]
    stock = STOCK[name](theirs)
    pure, rate = translated(stock, theirs, [str(k) for k in range(4)], range(4))
    moments = pure.zero_init(ours)
    for _ in range(STEPS):
        gradients = [torch.randn(shape) for shape in shapes]
        for p, g in zip(theirs, gradients, strict=True):
            p.grad = g.double()
        stock.step()
        ours, moments = pure.update(ours, gradients, moments, torch.tensor(rate))
        assert len(moments) == pure.size(4)
    # A few hundred roundings of 2^-24 at most, some of which a root near zero doubles.
    assert_near(ours, [p.detach().float() for p in theirs], 2e-5)


@pytest.mark.parametrize("name", STOCK)
@pytest.mark.gate_takes(4)
def test_a_program_walks_beside_pytorchs_own_loop(name: str):
    # Gradients of 22 bits are off by about 1e-6, which steps by signs and roots of squares enlarge.
    assert_near(by_program(recipe_of(STOCK[name])), by_torch(STOCK[name]), 2e-4)


def test_gradients_are_clipped_as_pytorch_clips_them():
    make = STOCK["SGD, Nesterov"]

    def clip(ps: list[nn.Parameter]) -> None:
        nn.utils.clip_grad_value_(ps, 0.02)
        nn.utils.clip_grad_norm_(ps, 0.05)

    ours = by_program(recipe_of(make, clip_value=0.02, clip_norm=0.05))
    assert_near(ours, by_torch(make, clip), 1e-5)
    assert relative(ours[0], by_torch(make)[0]) > 1e-3, "clipping had something to do"


@pytest.mark.parametrize("name", ["clip_value", "clip_norm"])
@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan")])
def test_a_limit_that_leaves_no_gradient_is_refused(name: str, limit: float):
    with pytest.raises(UserError, match=f"{name} is {limit}"):
        recipe_of(STOCK["Rprop"], **{name: limit})


def test_gradients_at_the_limit_stay_and_beyond_it_are_cut():
    cut = clip_by_value([torch.tensor([0.5, 0.5000001, -0.5, -9.0, 0.0])], 0.5)[0]
    assert cut.tolist() == [0.5, 0.5, -0.5, -0.5, 0.0]


@pytest.mark.parametrize("beta", [0.5, 0.9, 0.999, 0.99999])
def test_bias_corrections_keep_their_bits_at_early_and_at_late_steps(beta: float):
    for t in (1, 2, 10, 100, 10_000):
        exact = 1.0 - beta**t
        assert float(complement(beta, torch.tensor(float(t)))) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("beta2", [0.7, 0.9, 0.99, 0.999, 0.99999])
def test_rectification_begins_at_the_step_that_real_numbers_say(beta2: float):
    rule, longest = RAdam(beta2=beta2), 2 / (1 - beta2) - 1

    def length(t: int) -> float:
        b = Fraction(beta2)
        return float(2 / (1 - b) - 1 - 2 * t * b**t / (1 - b**t))

    first = rule.first_rectified
    assert first is not None
    assert length(first - 1) <= 5.0 < length(first)
    for t in (first, first + 1, 50, 700):
        ours = float(rule._rectifier(torch.tensor(float(t))))
        known = ((length(t) - 4) * (length(t) - 2) * longest / ((longest - 4) * (longest - 2) * length(t))) ** 0.5
        assert ours == pytest.approx(known, rel=2e-6)


@pytest.mark.parametrize(
    ("make", "words", "remedy"),
    [
        (lambda ps: optim.LBFGS(ps), "no exact form of LBFGS", "use AdamW"),
        (lambda ps: optim.SparseAdam(ps), "no exact form of SparseAdam", "use Adam"),
        (lambda ps: optim.Adam(ps, differentiable=True), "Adam with differentiable=True", "Leave differentiable out"),
    ],
)
def test_what_has_no_exact_form_is_refused_by_name_with_what_to_use(make: MakeOptimizer, words: str, remedy: str):
    with pytest.raises(UserError, match=words) as caught:
        RecipeStep(recipe_of(make))
    assert remedy in str(caught.value.remedy)


def test_groups_keep_their_rates_where_the_first_stands_still():
    step = RecipeStep(recipe_of(STOCK["SGD, groups"]))
    state = step.state()
    assert float(state[2][SCALAR_NAMES.index("learning_rate")]) == pytest.approx(0.05)
    end = step(*state)
    assert torch.equal(end[0][2], state[0][2])
    assert not torch.equal(end[0][0], state[0][0])
