"""A scheduler that a recipe follows sets the rates that PyTorch's own loop would see, or is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import lr_scheduler as schedulers

from assay.engine.compiler.capture import capture
from assay.engine.compiler.lowering.registry import FIXED22
from assay.engine.runtime.executor import Executor
from assay.protocol.errors import UserError
from assay.training.recipes.recipe import Recipe, RecipeStep
from assay.training.recipes.schedulers import followed
from tests.harness.engine.helpers import relative

STEPS = 8

Attach = Callable[[torch.optim.Optimizer], schedulers.LRScheduler]


def chained(o: torch.optim.Optimizer) -> schedulers.LRScheduler:
    return schedulers.SequentialLR(o, [schedulers.LinearLR(o, 0.1, total_iters=3), schedulers.StepLR(o, 2)], [3])


SCHEDULERS: dict[str, Attach] = {
    "LambdaLR from 0": lambda o: schedulers.LambdaLR(o, lambda k: min(1.0, k / 4)),
    "CosineAnnealingLR": lambda o: schedulers.CosineAnnealingLR(o, 5),
    "CosineAnnealingWarmRestarts": lambda o: schedulers.CosineAnnealingWarmRestarts(o, 3),
    "OneCycleLR": lambda o: schedulers.OneCycleLR(o, [0.3, 0.6], total_steps=STEPS, cycle_momentum=False),
    "PolynomialLR": lambda o: schedulers.PolynomialLR(o, 6),
    "ExponentialLR": lambda o: schedulers.ExponentialLR(o, 0.8),
    "SequentialLR": chained,
}


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    return torch.randn(24, 3, generator=generator), torch.randint(0, 2, (24,), generator=generator)


def loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(module(x), y)


def linear() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(2)
    module = nn.Linear(3, 2)
    groups = [{"params": [module.weight]}, {"params": [module.bias], "lr": 0.2}]
    return module, torch.optim.SGD(groups, lr=0.1, momentum=0.5)


def step_of(attach: Attach, steps: int = STEPS) -> RecipeStep:
    module, optimizer = linear()
    return RecipeStep(Recipe(module, loss, optimizer, data(), 8, schedule=followed(attach(optimizer), steps)))


def by_torch(attach: Attach) -> list[Tensor]:
    """Where PyTorch's own loop ends, with the scheduler called after each step, on the batches that a recipe draws."""
    module, optimizer = linear()
    scheduler, drawing = attach(optimizer), step_of(attach)
    for number in range(STEPS):
        optimizer.zero_grad()
        loss(module, *drawing.batch(drawing.state(step=number)[2])).backward()
        optimizer.step()
        if number + 1 < STEPS:
            scheduler.step()
    return [p.detach() for p in module.parameters()]


@pytest.mark.gate_takes(3)
@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_followed_scheduler_sets_the_rates_of_pytorchs_own_loop(name: str):
    step = step_of(SCHEDULERS[name])
    state = step.state()
    ours = Executor(capture(step, state, FIXED22).program).repeat(state, STEPS)[0]
    for a, b, start in zip(ours, by_torch(SCHEDULERS[name]), state[0], strict=True):
        assert relative(a, b) < 1e-5
        assert relative(a, start) > 1e-2, "the rates did something"


def test_the_table_holds_each_rate_over_the_largest_and_after_it_the_last_one_stays():
    _, optimizer = linear()
    scheduler = schedulers.LambdaLR(optimizer, lambda k: [0.0, 2.0, 1.0][min(k, 2)])
    before = [dict(group) for group in optimizer.param_groups]
    schedule = followed(scheduler, 3)
    assert schedule.peaks == (0.2, 0.4)
    assert [float(schedule(torch.tensor(float(k)))) for k in (0, 1, 2, 3, 10**6)] == [0.0, 1.0, 0.5, 0.5, 0.5]
    assert [dict(group) for group in optimizer.param_groups] == before
    assert scheduler.last_epoch == 0


TICKS = count()

REFUSED: dict[str, tuple[Attach, str, str]] = {
    "losses": (schedulers.ReduceLROnPlateau, "ReduceLROnPlateau sets rates by losses", "steps alone"),
    "momentum": (lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=9), "moves momentum", "cycle_momentum=False"),
    "too short": (
        lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=STEPS - 2, cycle_momentum=False),
        f"OneCycleLR fails before step {STEPS - 1}",
        f"steps={STEPS - 1} or fewer",
    ),
    "groups": (
        lambda o: schedulers.LambdaLR(o, [lambda k: 1.0, lambda k: 1.0 + (k == 3)]),
        r"groups 0 and 1 schedules of their own \(step 0\)",
        "one schedule",
    ),
    "counting": (lambda o: schedulers.LambdaLR(o, lambda k: 1.0 + next(TICKS)), "when it is asked again", "step alone"),
    "negative": (lambda o: schedulers.LambdaLR(o, lambda k: 1.0 - k), r"sets the rate \[-0.1", "0 or above"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_table_can_hold_is_refused_by_name(name: str):
    attach, words, remedy = REFUSED[name]
    with pytest.raises(UserError, match=words) as caught:
        followed(attach(linear()[1]), STEPS)
    assert caught.value.code == "UnfollowedScheduler"
    assert remedy in str(caught.value.remedy)


@pytest.mark.parametrize("steps", [0, (1 << 20) + 1])
def test_a_table_has_a_step_and_an_end(steps: int):
    with pytest.raises(UserError, match=f"A table of {steps} steps"):
        followed(schedulers.StepLR(linear()[1], 3), steps)


def test_a_scheduler_beside_the_followed_one_is_refused():
    module, optimizer = linear()
    first, second = schedulers.StepLR(optimizer, 3), schedulers.ExponentialLR(optimizer, 0.9)
    with pytest.raises(UserError, match="ExponentialLR is attached to SGD"):
        RecipeStep(Recipe(module, loss, optimizer, data(), 8, schedule=followed(first, 5)))
    assert second is not None


def test_a_scheduler_of_another_optimizer_is_refused():
    module, optimizer = linear()
    with pytest.raises(UserError, match="attached to another SGD"):
        RecipeStep(Recipe(module, loss, optimizer, data(), 8, schedule=followed(schedulers.StepLR(linear()[1], 3), 5)))


def test_a_scheduler_given_as_schedule_is_refused_with_what_to_give():
    module, optimizer = linear()
    with pytest.raises(UserError, match="schedule is a StepLR") as caught:
        Recipe(module, loss, optimizer, data(), 8, schedule=schedulers.StepLR(optimizer, 3))
    assert "followed(scheduler" in str(caught.value.remedy)
