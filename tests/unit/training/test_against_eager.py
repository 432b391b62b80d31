"""A program beside the stock step that it was captured from: right ones stay, wrong ones part by name and step."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.programs.against_eager import LIMITS, UNDETERMINED, Beside, beside_eager, check_beside, difference_of
from assay.programs.capture import capture_recipe
from assay.programs.stock_run import StockRun
from assay.protocol.errors import ExitCode, PartedError, UserError
from assay.training.optimizer import SGD
from assay.training.recipes.recipe import Recipe, RecipeStep
from assay.training.recipes.schedulers import followed
from assay.training.schedules import warmup_cosine

torch.set_num_threads(1)
STEPS = 6


def loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(module(x), y)


def recipe(module: nn.Module | None = None, rate: float = 1e-2, decay: float = 0.0, **more: object) -> Recipe:
    torch.manual_seed(3)
    made = nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
    module = made if module is None else module
    given: dict[str, object] = {"optimizer": torch.optim.AdamW(module.parameters(), lr=rate, weight_decay=decay)}
    given |= {"data": (torch.randn(24, 4), torch.randint(0, 3, (24,))), "batch_size": 8}
    return Recipe(module, **({"loss": loss} | given | more))  # type: ignore[arg-type]


def beside(given: Recipe, other: Recipe | None = None, tier: str = "fixed22") -> Beside:
    """`given`'s stock steps beside the program of `other`, which is its own unless another is given."""
    program = capture_recipe(given if other is None else other, tier, calibrate=False).program
    return beside_eager(program, RecipeStep(given), STEPS, tier)


@pytest.mark.parametrize("tier", ["fixed8", "fixed22"])
def test_a_program_trains_what_stock_pytorch_trains_in_every_tier(tier: str) -> None:
    found = beside(recipe(), tier=tier)
    assert found.parting is None and found.worst <= 1.0 and not found.undetermined
    assert found.loss_exact == pytest.approx(found.loss_eager, abs=LIMITS[tier])
    assert len(found.loss_eager) == len(found.loss_exact) == STEPS


def test_micro_batches_clipping_and_a_schedule_are_run_by_stock_pytorch_too() -> None:
    found = beside(recipe(micro_batches=2, clip_norm=0.05, clip_value=0.02, schedule=warmup_cosine(3, 6)))
    assert found.parting is None and found.difference < LIMITS["fixed22"]


def test_a_loss_that_differentiates_is_compared_like_any_other() -> None:
    def curved(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        x = x.requires_grad_()
        (slope,) = torch.autograd.grad(module(x).sum(), x, create_graph=True)
        return (slope**2).mean() + loss(module, x, y)

    torch.manual_seed(5)
    assert beside(recipe(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), loss=curved)).parting is None


def test_a_loss_may_hang_hooks_on_what_it_computes_and_ask_what_is_trained() -> None:
    def hooked(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        scores = module(x) * (1.0 if module[0].weight.requires_grad else 2.0)  # type: ignore[index,union-attr]
        scores.register_hook(lambda gradient: gradient * 0.5)
        return F.cross_entropy(scores, y)

    assert beside(recipe(loss=hooked)).parting is None


def test_a_scheduler_is_called_after_each_stock_step() -> None:
    given = recipe()
    scheduler = torch.optim.lr_scheduler.StepLR(given.optimizer, 2, 0.1)  # type: ignore[arg-type]
    given = replace(given, schedule=followed(scheduler, steps=STEPS))
    assert beside(given).parting is None
    assert beside(given, recipe()).parting is not None
    assert scheduler.last_epoch == 0 and given.optimizer.param_groups[0]["lr"] == 1e-2  # type: ignore[union-attr]


def test_an_optimizer_that_begins_with_accumulators_keeps_them() -> None:
    module = recipe().module
    given = recipe(module, optimizer=torch.optim.Adagrad(module.parameters(), 1e-2, initial_accumulator_value=0.5))
    assert beside(given).parting is None
    kept = given.optimizer.state  # type: ignore[union-attr]
    assert all(float(kept[p]["sum"].min()) == 0.5 and float(kept[p]["step"]) == 0.0 for p in module.parameters())


def test_an_optimizer_of_ones_own_takes_its_steps_beside_the_program() -> None:
    found = beside(recipe(optimizer=SGD(momentum=0.9), learning_rate=1e-2))
    assert found.parting is None and found.difference < LIMITS["fixed22"]


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize(
    ("wrong", "step"),
    [
        (recipe(decay=5.0), 1),
        # Bias correction makes all first steps of Adam alike.
        (
            replace(
                r := recipe(), optimizer=torch.optim.AdamW(r.module.parameters(), 1e-2, (0.5, 0.9), weight_decay=0)
            ),
            2,
        ),
    ],
    ids=["decay", "betas"],
)
def test_a_program_of_another_step_parts_from_stock_by_name(wrong: Recipe, step: int) -> None:
    found = beside(recipe(), wrong)
    assert found.parting is not None and found.worst > 1.0
    assert found.parting.step == step and found.parting.difference > found.parting.limit
    with pytest.raises(PartedError, match=f"After step {step} ") as caught:
        check_beside(found)
    assert caught.value.code == "PartsFromStock" and caught.value.exit_code is ExitCode.PARTED
    assert caught.value.message.split(" is off")[0].split()[-1] == found.parting.tensor


def test_running_statistics_are_compared_like_parameters() -> None:
    slow = recipe()
    slow.module[1].momentum = 0.2  # type: ignore[index, union-attr]
    found = beside(recipe(), slow)
    assert found.parting is not None and found.parting.tensor == "1.running_mean"


class Shifted(nn.Module):
    """Logits with a shift of all of them together, whose gradient is nothing but rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.shift = nn.Linear(4, 3), nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) + self.shift


def test_what_rounding_alone_moves_is_named_and_not_held_against_the_program() -> None:
    found = beside(recipe(Shifted()))
    # Where stock's own rounding leaves it at zero, the program's still does not.
    assert found.undetermined == ["shift"] and found.is_right


def test_a_stock_run_that_does_not_repeat_itself_is_refused() -> None:
    calls: list[int] = []
    is_counting: list[int] = []

    def counted(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        if is_counting:
            calls.append(1)
        return loss(module, x, y) * (1.0 + 0.01 * len(calls))

    step = RecipeStep(replace(recipe(), loss=counted))
    program = capture_recipe(recipe(), calibrate=False).program
    is_counting.append(1)
    with pytest.raises(PartedError, match="in step 0 of one run") as caught:
        beside_eager(program, step, 2, "fixed22")
    assert caught.value.code == "StockNotRepeatable"


def test_module_and_optimizer_are_afterwards_as_before() -> None:
    given = recipe()
    first = next(given.module.parameters())
    first.grad = kept = torch.ones_like(first)
    given.module.eval()
    before = {n: t.clone() for n, t in given.module.state_dict().items()}
    for _ in StockRun(RecipeStep(given)).steps(2, nudge=0.1):
        pass
    after = given.module.state_dict()
    assert all(torch.equal(before[n], after[n]) for n in before)
    assert not given.optimizer.state and first.grad is kept and not given.module.training  # type: ignore[union-attr]


@pytest.mark.parametrize(("share", "is_within"), [(1.0, True), (1.001, False)])
def test_a_tensor_may_be_off_by_its_limit_of_the_way_and_no_more(share: float, is_within: bool) -> None:
    start, stock = torch.zeros(4), torch.full((4,), 2.0**-3)
    size = 2.0**-21  # what float32 does not tell apart
    exact = stock.double() * (1 + (0.25 + size) * share)
    difference, allowed, spread = difference_of(start, stock, stock, exact, 0.25)
    assert spread == 0.0 and (difference <= allowed * (1 + 1e-9)) is is_within


def test_a_tensor_that_stock_does_not_move_must_not_move_at_all() -> None:
    start = torch.ones(3)
    assert difference_of(start, start, start, start, 0.1)[:2] == (0.0, 0.0)
    moved = torch.tensor([1.0, 1.0, 1.0 + 2.0**-23])
    assert difference_of(start, start, start, moved, 0.1)[:2] == (1.0, 0.0)


def test_integers_and_what_is_not_finite_must_be_the_same() -> None:
    one, two = torch.tensor([1]), torch.tensor([2])
    assert difference_of(one, two, two, two.int(), 0.1)[0] == 0.0
    assert difference_of(one, two, two, one.int(), 0.1)[0] == 1.0
    bad, good = torch.tensor([math.nan, 1.0]), torch.tensor([1.0, 1.0])
    assert difference_of(good, bad, bad, bad, 0.1)[0] == 0.0
    assert difference_of(good, bad, bad, good, 0.1)[0] == math.inf
    assert difference_of(good, good * 2, good * 2, bad, 0.1)[0] == math.inf


def test_a_nudge_that_changes_half_a_tensors_way_leaves_it_undetermined() -> None:
    start, stock = torch.zeros(2), torch.ones(2)
    assert difference_of(start, stock, stock * (1 + UNDETERMINED), stock, 0.1)[2] == UNDETERMINED


def test_more_than_memory_should_hold_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    given = recipe()
    program = capture_recipe(given, calibrate=False).program
    step = RecipeStep(given)
    size = sum(t.nbytes for part in step.state()[:2] for t in part)
    monkeypatch.setattr("assay.programs.against_eager.MOST", 3 * 2 * size)
    assert beside_eager(program, step, 2, "fixed14").parting is None
    with pytest.raises(UserError, match="too much to hold") as caught:
        beside_eager(program, step, 3, "fixed14")
    assert caught.value.code == "TooMuchToCompare"


def test_a_label_that_is_no_class_is_named_where_the_first_batch_has_none() -> None:
    """A program has no bounds to leave: it would train on what stock PyTorch does not take."""
    numbered = RecipeStep(recipe(data=(torch.randn(24, 4), torch.arange(24)), loss=lambda m, x, y: m(x).mean()))
    labels = torch.full((24,), -1)
    labels[numbered.batch(numbered.state()[2])[1]] = 1
    run = StockRun(RecipeStep(recipe(data=(torch.randn(24, 4), labels))))
    with pytest.raises(UserError, match=r"In step \d the loss fails in stock PyTorch") as caught:
        list(run.steps(STEPS))
    assert caught.value.code == "LossFails"


def test_whole_numbers_among_parameters_are_not_nudged() -> None:
    module = nn.Sequential(nn.Linear(4, 3))
    module.register_parameter("count", nn.Parameter(torch.zeros(3, dtype=torch.int64), requires_grad=False))
    assert beside(recipe(module)).parting is None
