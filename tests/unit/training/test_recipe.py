"""A recipe's step is one training step: exact, the same as eager PyTorch's up to rounding, its state complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.engine.compiler.capture import capture
from assay.engine.compiler.lowering.registry import FIXED22
from assay.engine.runtime.executor import Executor
from assay.protocol.errors import UserError
from assay.protocol.program.nodes import Dot, Random
from assay.training.recipes.recipe import Recipe, RecipeStep
from assay.training.recipes.torch_optimizers import translated
from assay.training.schedules import RoundWarmup, warmup_cosine, warmup_linear
from assay.training.state import SCALAR_NAMES
from tests.harness.engine.helpers import differing_nodes, relative


def points(count: int = 48) -> tuple[Tensor, Tensor]:
    """Points in the plane and the quadrant pair they lie in."""
    generator = torch.Generator().manual_seed(3)
    x = torch.rand(count, 2, generator=generator) * 4 - 2
    return x, (x[:, 0] * x[:, 1] > 0).long()


def perceptron(*extra: nn.Module) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 8), *extra, nn.Tanh(), nn.Linear(8, 2))


def mean_loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(module(x), y)


def recipe(module: nn.Module | None = None, **options) -> Recipe:
    module = module or perceptron()
    optimizer = options.pop("optimizer", lambda ps: torch.optim.SGD(ps, lr=0.1))
    given = {"data": points(), "batch_size": 8, "loss": mean_loss, **options}
    return Recipe(module, optimizer=optimizer(module.parameters()) if callable(optimizer) else optimizer, **given)


def stepped(step: RecipeStep, count: int, key: tuple[int, int] = (5, 6)) -> tuple[list[Tensor], list[Tensor]]:
    """All tensors of the state after some steps: exact at 22 bits, and by the same step in eager PyTorch."""
    state = step.state(key=key)
    exact = Executor(capture(step, state, FIXED22).program).repeat(state, count)
    eager = state
    for _ in range(count):
        eager = step(*eager)
    return [t for part in exact for t in part], [t for part in eager for t in part]


def assert_alike(ours: Sequence[Tensor], theirs: Sequence[Tensor], limit: float = 1e-4) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        assert relative(a, b) < limit if a.is_floating_point() else torch.equal(a, b)


OPTIONS = {
    "plain": {},
    "micro-batches": {"micro_batches": 4},
    "clipped": {"clip_norm": 0.05},
    "cosine": {"schedule": warmup_cosine(2, 6, floor=0.1)},
    "linear": {"schedule": warmup_linear(2, 6)},
    "rising": {"round_warmup": RoundWarmup(3, 4)},
    "rising cosine": {"schedule": warmup_cosine(2, 6), "round_warmup": RoundWarmup(3, 4)},
}


@pytest.mark.gate_takes(3)
@pytest.mark.parametrize("name", OPTIONS)
def test_a_captured_recipe_computes_what_eager_pytorch_computes(name: str):
    ours, theirs = stepped(RecipeStep(recipe(**OPTIONS[name])), 4)
    assert_alike(ours, theirs)


def test_a_tiny_recipe_is_bit_equal_in_the_reference():
    module = perceptron(nn.Dropout(0.25))
    step = RecipeStep(recipe(module, batch_size=4, micro_batches=2, clip_norm=1.0, schedule=warmup_cosine(2, 6)))
    state = step.state(key=(1, 2))
    program = capture(step, state).program
    assert program.is_iterable()
    assert differing_nodes(program, state) == []


STOCK = {
    "sgd": lambda ps: torch.optim.SGD(ps, lr=0.1, weight_decay=0.01),
    "momentum": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9),
    "nesterov": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True),
    "dampened": lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9, dampening=0.3),
    "adam": lambda ps: torch.optim.Adam(ps, lr=0.02, weight_decay=0.1),
    "adamw": lambda ps: torch.optim.AdamW(ps, lr=0.02, betas=(0.8, 0.95)),
    "groups": lambda ps: torch.optim.AdamW(
        [{"params": [p for p in ps if p.ndim > 1], "weight_decay": 0.2}], lr=0.02, weight_decay=0.0
    ),
}


@pytest.mark.parametrize("name", STOCK)
def test_optimizers_follow_torch_optim(name: str):
    module = perceptron().double()
    start = [p.detach().clone().float() for p in module.parameters()]
    stock = STOCK[name](list(module.parameters()))
    names = [n for n, _ in module.named_parameters()]
    pure, rate = translated(stock, list(module.parameters()), names, range(len(names)))
    parameters, moments = start, pure.zero_init(start)
    for k in range(5):
        x, y = (t[k * 8 : k * 8 + 8] for t in points())
        stock.zero_grad()
        mean_loss(module, x.double(), y).backward()
        gradients = [p.grad.float() for p in module.parameters()]
        stock.step()
        parameters, moments = pure.update(parameters, gradients, moments, torch.tensor(rate))
        assert len(moments) == pure.size(len(parameters))
    assert_alike(parameters, [p.detach().float() for p in module.parameters()], 1e-5)


def test_muon_orthogonalizes_as_torch_optim_does_in_its_coarser_arithmetic():
    torch.manual_seed(1)
    p = nn.Parameter(torch.randn(6, 4))
    stock = torch.optim.Muon([p], lr=0.1, weight_decay=0.05)
    pure, rate = translated(stock, [p], ["p"], [0])
    parameters, moments = [p.detach().clone()], pure.zero_init([p.detach()])
    for _ in range(3):
        g = torch.randn(6, 4)
        p.grad = g.clone()
        stock.step()
        parameters, moments = pure.update(parameters, [g], moments, torch.tensor(rate))
    assert_alike(parameters, [p.detach()], 2e-2)


def test_muon_is_captured():
    module = perceptron()
    matrices = [p for p in module.parameters() if p.ndim == 2]
    ours, theirs = stepped(RecipeStep(recipe(module, optimizer=torch.optim.Muon(matrices, lr=0.02))), 3)
    assert_alike(ours, theirs, 1e-3)
    assert torch.equal(ours[1], module[0].bias.detach()), "a parameter in no group stays"


def test_each_micro_batch_has_products_of_its_own():
    step = RecipeStep(recipe(micro_batches=2))
    state = step.state()
    program = capture(step, state).program
    whole = capture(RecipeStep(recipe()), state).program
    dots = [n for n in program.nodes if isinstance(n, Dot)]
    assert len(dots) == 2 * sum(isinstance(n, Dot) for n in whole.nodes)


def test_dropout_draws_from_key_and_step_and_each_call_from_its_own_stream():
    module = perceptron(nn.Dropout(0.5), nn.Dropout(0.5))
    step = RecipeStep(recipe(module))
    program = capture(step, step.state()).program
    streams = sorted(n.stream for n in program.nodes if isinstance(n, Random))
    assert streams == [0, 1, 2]
    ours, theirs = stepped(step, 3)
    assert_alike(ours, theirs)
    other, _ = stepped(step, 3, key=(5, 7))
    assert not torch.equal(ours[0], other[0])


def test_dropout_in_evaluation_draws_nothing():
    step = RecipeStep(recipe(perceptron(nn.Dropout(0.5)).eval()))
    program = capture(step, step.state()).program
    assert [n.stream for n in program.nodes if isinstance(n, Random)] == [0]


class _Noisy(nn.Module):
    """Draws in several ways."""

    def forward(self, x: Tensor) -> Tensor:
        x = F.alpha_dropout(F.dropout1d(x[..., None], 0.2).squeeze(-1), 0.1, training=True)
        x = x + torch.randn(x.shape, generator=None) * 0.1 + torch.randn_like(x) * 0.1
        x = x + torch.rand(x.shape) * torch.bernoulli(torch.full_like(x, 0.5))
        x = x * torch.empty(x.shape[0], 1).bernoulli_(0.9) + torch.empty_like(x).uniform_(-0.1, 0.1)
        x = x[torch.randperm(x.shape[0])] + F.gumbel_softmax(x, dim=-1) * 0.1
        return x + torch.randint(-1, 2, x.shape) * 0.1 + torch.empty_like(x).normal_(0.0, 0.1)


def test_other_random_functions_draw_from_the_state_too():
    ours, theirs = stepped(RecipeStep(recipe(perceptron(_Noisy()))), 3)
    assert_alike(ours, theirs, 1e-3)


class _Counting(nn.Module):
    """Changes one buffer in place and another by assignment, and keeps a third."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("scale", torch.linspace(0.5, 1.5, 8))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.mean(0) * 0.1)
            self.count = self.count + 1
        return (x - self.mean) * self.scale


def test_buffers_that_change_are_state_and_the_others_constants():
    module = perceptron(_Counting())
    step = RecipeStep(recipe(module, micro_batches=2))
    assert step.buffers == ["1.mean", "1.count"]
    assert step.slot_names[1] == ["1.mean", "1.count"]
    ours, theirs = stepped(step, 3)
    assert_alike(ours, theirs)
    at = len(step.names)
    assert ours[at + 1].dtype is torch.int32
    assert int(ours[at + 1]) == 6
    assert int(module[1].count) == 0, "the user's module is left as it was"


class _Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)
        self.second.weight = self.first.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.tanh(self.first(x)))


def test_tied_weights_are_one_parameter_with_the_gradients_of_both_uses():
    step = RecipeStep(recipe(_Tied()))
    assert step.names == ["first.weight", "first.bias", "second.bias"]
    ours, theirs = stepped(step, 3)
    assert_alike(ours, theirs)


class _Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(2, 2), nn.BatchNorm1d(2)
        self.second, self.again = self.first, self.norm

    def forward(self, x: Tensor) -> Tensor:
        return self.again(self.second(torch.tanh(self.norm(self.first(x)))))


def test_a_module_under_two_names_is_one_and_is_left_as_it_was():
    module = _Twice()
    before = {n: t.clone() for n, t in module.state_dict().items()}
    tensors = [*module.parameters(), *module.buffers()]
    step = RecipeStep(recipe(module))
    assert step.names == ["first.weight", "first.bias", "norm.weight", "norm.bias"]
    ours, theirs = stepped(step, 3)
    assert_alike(ours, theirs, 1e-3)
    counter = step.slot_names[1].index("norm.num_batches_tracked")
    assert int(ours[len(step.names) + counter]) == 6, "each use counts"
    assert all(a is b for a, b in zip(tensors, [*module.parameters(), *module.buffers()], strict=True))
    assert all(torch.equal(before[n], t) for n, t in module.state_dict().items())


def test_frozen_parameters_stay_and_have_no_moments():
    module = perceptron()
    module[0].requires_grad_(False)
    step = RecipeStep(recipe(module, optimizer=lambda ps: torch.optim.AdamW(ps, lr=0.1)))
    assert len(step.state()[1]) == 2 * 2 + 2
    ours, theirs = stepped(step, 3)
    assert_alike(ours, theirs)
    assert torch.equal(ours[0], module[0].weight)
    assert not torch.equal(ours[2], module[2].weight)


def test_windows_of_a_stream_are_drawn_whole():
    stream = torch.arange(100, dtype=torch.uint8)

    class Rising(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(()))

    def loss(module: nn.Module, windows: Tensor) -> Tensor:
        assert windows.shape == (4, 5)
        assert windows.dtype is torch.uint8
        return ((windows.float().diff(dim=1) - 1.0).abs().sum() + 1.0) * module.weight

    step = RecipeStep(recipe(Rising(), data=(stream,), batch_size=4, window=5, loss=loss))
    assert step.first_loss == 1.0
    for key in range(30):
        (rows,) = step.batch(step.state(key=(key, 0))[2])
        assert torch.equal(rows.int().diff(dim=1), torch.ones(4, 4, dtype=torch.int32))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"module": perceptron().double()}, "Parameter 0.weight has the element type torch.float64"),
        ({"data": (torch.zeros(3, 2), torch.zeros(4))}, r"hold \[3, 4\] examples"),
        ({"data": torch.zeros(3, 2)}, "no sequence of tensors"),
        ({"data": ()}, "no sequence of tensors"),
        ({"data": (torch.zeros(3, 2), torch.tensor([1, 2, 2**40]))}, "beyond 32 bits"),
        ({"batch_size": 8, "micro_batches": 3}, "8 examples do not divide into 3"),
        ({"window": 99}, "window of 99 does not fit"),
        ({"module": perceptron().requires_grad_(False)}, "no parameter that needs a gradient"),
        ({"optimizer": "AdamW"}, "optimizer is a str"),
        ({"loss": 3}, "loss is a int"),
        ({"optimizer": lambda ps: torch.optim.LBFGS(ps)}, "no exact form of LBFGS"),
        ({"optimizer": lambda ps: torch.optim.SGD([torch.zeros(2)])}, "1 tensors that are no parameters"),
        ({"loss": lambda m, x, y: m(x)}, r"is torch.float32 \[8, 2\]"),
        (
            {"loss": lambda m, x, y: m(y)},
            r"The loss fails on the recipe's own data: RuntimeError.* at .*test_recipe.py:\d+",
        ),
        ({"loss": lambda m, x: m(x).sum()}, "The loss fails on the recipe's own data: TypeError"),
        ({"loss": lambda m, x, y: m(x).sum() * torch.poisson(x).sum()}, r"no state determines at .*test_recipe.py:\d+"),
        (
            {"loss": lambda m, x, y: m(x).sum() * torch.rand((), generator=torch.Generator())},
            r"A generator of its own .* at .*test_recipe.py:\d+",
        ),
        ({"loss": lambda m, x, y: x.bernoulli_(0.5, generator=torch.Generator()).sum()}, "A generator of its own"),
    ],
)
def test_what_is_wrong_with_a_recipe_is_said_in_one_sentence(options: dict, words: str):
    with pytest.raises(UserError, match=words) as caught:
        RecipeStep(recipe(**options))
    assert caught.value.remedy


def checkpointed(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(torch.utils.checkpoint.checkpoint(module, x, use_reentrant=False), y)


def test_checkpointed_layers_are_computed_again_with_the_same_parameters():
    ours, theirs = stepped(RecipeStep(recipe(loss=checkpointed)), 3)
    plain, _ = stepped(RecipeStep(recipe()), 3)
    assert_alike(ours, theirs)
    assert_alike(ours, plain)


def test_a_checkpointed_layer_that_drops_is_refused():
    with pytest.raises(UserError, match=line_after("is checkpointed at", checkpointed, 1)):
        RecipeStep(recipe(perceptron(nn.Dropout(0.5)), loss=checkpointed))


def test_the_refusal_of_a_second_draw_names_every_checkpoint_that_can_have_caused_it():
    def loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        inside = torch.utils.checkpoint.checkpoint(module[0], x, use_reentrant=False)
        inside = torch.utils.checkpoint.checkpoint(module[1], inside, use_reentrant=False)
        other = torch.utils.checkpoint.checkpoint(module[1], inside, use_reentrant=False)
        return F.cross_entropy(module[3](module[2](F.dropout(other))), y)

    words = line_after("checkpointed at", loss, 2) + line_after(" or", loss, 3) + ", which draws"
    with pytest.raises(UserError, match=words):
        RecipeStep(recipe(perceptron(nn.Dropout(0.5)), loss=loss))


class _Dropping(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, 0.5)


def test_a_draw_of_the_users_own_code_in_the_backward_pass_is_refused_there():
    with pytest.raises(UserError, match=line_after("in the backward pass at", _Dropping.forward, 1)):
        RecipeStep(recipe(perceptron(_Dropping()), loss=checkpointed))


def line_after(words: str, function: Callable[..., object], offset: int) -> str:
    """A pattern: these words, and the line so far below the function's first."""
    return rf"{words} \S*test_recipe.py:{function.__code__.co_firstlineno + offset}(?!\d)"


def test_what_the_loss_does_not_reach_stays_as_it_is():
    module = perceptron()
    module.register_parameter("unused", nn.Parameter(torch.ones(3)))
    step = RecipeStep(recipe(module, loss=lambda m, x, y: F.cross_entropy(m(x), y), optimizer=STOCK["adam"]))
    assert step.unreached == ["unused"]
    ours, theirs = stepped(step, 3)
    assert_alike(ours, theirs)
    assert torch.equal(ours[step.names.index("unused")], torch.ones(3))


def test_a_recipe_warms_up_anew_in_each_round() -> None:
    step, plain = (RecipeStep(recipe(round_warmup=r)) for r in (RoundWarmup(3, 4), None))
    moved = []
    for number, round_ in ((0, 0), (1, 0), (3, 0), (4, 1), (6, 1)):
        parameters, optimizer, scalars = step.state(step=number)
        scalars[SCALAR_NAMES.index("round")] = torch.tensor(round_, dtype=torch.int32)
        ends = [s(parameters, optimizer, scalars)[0] for s in (step, plain)]
        moved.append(float((ends[0][0] - parameters[0]).norm() / (ends[1][0] - parameters[0]).norm()))
    assert moved == pytest.approx([4 / 9, 8 / 9, 4 / 3, 4 / 9, 4 / 3], rel=1e-4)


@pytest.mark.parametrize("steps", [0, 5])
def test_a_warm_up_that_does_not_fit_its_round_is_refused(steps: int) -> None:
    with pytest.raises(UserError) as caught:
        recipe(round_warmup=RoundWarmup(steps, 4))
    assert caught.value.code == "BadRecipe"
    assert recipe(round_warmup=RoundWarmup(4, 4)).round_warmup == RoundWarmup(4, 4)
