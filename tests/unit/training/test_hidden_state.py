"""What a step keeps or reads beside its state is captured right or refused by name, and the user's objects stay."""

from __future__ import annotations

import itertools
import logging
import mmap
import random
import types
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import structlog
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from assay.engine.compiler.capture import capture
from assay.engine.compiler.lowering.registry import FIXED22
from assay.engine.runtime.executor import Executor
from assay.observing import logs
from assay.protocol.errors import UserError
from assay.training.recipes.recipe import Recipe, RecipeStep
from assay.training.state import Scalars
from tests.harness.engine.helpers import captured, relative
from tests.harness.training import own_captured as right
from tests.harness.training import own_code as own
from tests.harness.training import own_inputs as inputs
from tests.unit.training.test_recipe import points

FILES = (Path(own.__file__), Path(inputs.__file__))
LINES = [(f"{f.name}:{k}", line) for f in FILES for k, line in enumerate(f.read_text().splitlines(), 1)]


def line_of(name: str) -> str:
    """Where the habit stands in the users' code."""
    (place,) = (place for place, line in LINES if line.endswith(f"# HERE {name}"))
    return place


def adamw(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(module.parameters(), lr=0.02)


def recipe_of(habit: Any, optimizer: Callable[[nn.Module], Any] = adamw) -> Recipe:
    """A recipe with a module or loss of this habit."""
    is_module = isinstance(habit, type) and issubclass(habit, nn.Module)
    module = habit() if is_module else own.Net()
    loss = own.base_loss if is_module else habit() if habit in (own.closure_loss, own.OwnLoss) else habit
    return Recipe(module, loss, optimizer(module), data=points(), batch_size=8)


def copied(value: Any, seen: dict[int, int] | None = None) -> object:
    """Everything in a value as plain data: types, bits, flags, gradients; objects that have no parts by identity."""
    seen = {} if seen is None else seen
    if isinstance(value, bool | int | str | bytes | type(None)):
        return type(value), value
    if isinstance(value, float):
        return float, value.hex()
    if id(value) in seen:
        return "again", seen[id(value)]
    seen[id(value)] = len(seen)
    if isinstance(value, Tensor):
        facts = type(value), value.dtype, tuple(value.shape), value.requires_grad, id(value)
        return facts, value.detach().numpy().tobytes(), copied(value.grad if value.is_leaf else None, seen)
    if isinstance(value, np.ndarray):
        return value.dtype, value.tobytes()
    if isinstance(value, dict):
        return type(value), [(copied(k, seen), copied(v, seen)) for k, v in value.items()]
    if isinstance(value, list | tuple | deque):
        return type(value), [copied(v, seen) for v in value]
    if isinstance(value, types.FunctionType):
        cells = [copied(c.cell_contents, seen) for c in value.__closure__ or ()]
        return id(value), cells, copied(value.__defaults__, seen), copied(vars(value), seen)
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, own._Holder):
        return _slots(value, seen)
    if hasattr(value, "__dict__") and not isinstance(value, type | types.ModuleType):
        return type(value), copied(vars(value), seen)
    return id(value)


def _slots(value: own._Holder, seen: dict[int, int]) -> object:
    return copied(value.value, seen)


def everything(recipe: Recipe) -> object:
    """The user's objects, what their code reaches, and the generators of the process."""
    reached = [own.CALLS, own.SEEN, own.TABLE, own.HOUSE.visits, own.ClassCounter.made, own.attribute_loss.calls]
    generators = random.getstate(), repr(np.random.get_state()), torch.get_rng_state().numpy().tobytes()
    modes = torch.is_grad_enabled(), torch.get_default_dtype()
    parts = [recipe.module, recipe.loss, recipe.optimizer, recipe.data, inputs.OWN_RANDOM, inputs.OWN_GENERATOR]
    counted = repr(getattr(recipe.module, "numbers", None))
    return copied([*parts, *reached]), generators, modes, counted, recipe.optimizer.state_dict()["param_groups"]


def attempt(recipe: Recipe) -> RecipeStep:
    """Make the step and capture it; everything must be as before, however it ends."""
    before = everything(recipe)
    try:
        step = RecipeStep(recipe)
        capture(step, step.state(), FIXED22)
    finally:
        assert everything(recipe) == before
    return step


REFUSED = {
    "HiddenState": [
        *(own.Counter, own.CounterDecides, own.CounterScales, own.FirstCall, own.Toggle, own.ClassCounter),
        *(own.GlobalCounter, own.GlobalList, own.GlobalTable, own.OwnModule, own.KeepsLosses, own.Queue, own.Average),
        *(own.AverageInPlace, own.AverageInATable, own.AverageInAnObject, own.AverageNeverUsed, own.Numbers),
        *(own.Restless, own.Thaws, own.counting_loss, own.attribute_loss, own.closure_loss, own.OwnLoss),
        *(inputs.numpy_random, inputs.own_generator, inputs.reseeded),
    ],
    "HiddenInput": [
        *(inputs.python_random, inputs.python_branch, inputs.own_random, inputs.fresh_generator, inputs.swallowed),
        *(inputs.clock, inputs.calendar, inputs.dated, inputs.entropy, inputs.identity, inputs.a_file),
    ],
    "ParameterWritten": [own.Clips, own.ClipsData],
    "NotCapturable": [inputs.Item, inputs.Number, inputs.Numpy, inputs.Listed],
}


@pytest.mark.parametrize(("code", "habit"), [(code, habit) for code, habits in REFUSED.items() for habit in habits])
@pytest.mark.gate_takes(8)
def test_what_no_state_holds_is_refused_with_the_users_line(code: str, habit: Any):
    with pytest.raises(UserError) as caught:
        attempt(recipe_of(habit))
    assert caught.value.code == code
    assert line_of(habit.__name__) in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("habit", "words"),
    [
        (inputs.Yields, "module.factors is an iterator"),
        (inputs.Counts, "module.numbers is an iterator"),
        (own.ReadsTheLast, r"module.last \(written at .*\) is read before a step writes it"),
        (own.Average, "module.mean changes"),
        (own.AverageInATable, r"module.means\['h'\]\[0\] changes"),
        (own.AverageInAnObject, "module.holder.value changes"),
        (own.Counter, "module.steps changes"),
        (own.GlobalCounter, "global CALLS changes"),
        (own.OwnModule, "HOUSE.visits changes"),
        (own.closure_loss, r"loss \(variable calls\) changes"),
        (own.ClassCounter, r"module \(class ClassCounter\).made changes"),
    ],
)
def test_the_refusal_names_what_changes(habit: Any, words: str):
    with pytest.raises(UserError, match=words):
        attempt(recipe_of(habit))


def against_stock(recipe: Recipe, count: int = 5) -> None:
    """The captured step and the user's own loop in plain PyTorch end in the same parameters."""
    step = attempt(recipe)
    state = step.state(key=(5, 6))
    exact = Executor(capture(step, state, FIXED22).program)
    module = recipe.module
    for _ in range(count):
        batch = step.batch(state[2])
        recipe.optimizer.zero_grad()
        recipe.loss(module, *batch).backward()
        recipe.optimizer.step()
        state = exact.run(state)
    assert int(Scalars.from_list(state[2][:8]).step[0]) == count
    for ours, theirs in zip(state[0], module.parameters(), strict=True):
        assert relative(ours, theirs.detach()) < 1e-4


RIGHT = [
    *(right.LastOutput, right.Rewritten, right.Cache, right.CachedProperty, right.Memoized, right.ByShape, right.Inner),
    *(right.Constant, right.OwnFunction, right.Recurrent, right.NamesAType),
]


@pytest.mark.parametrize("habit", RIGHT)
@pytest.mark.gate_takes(3)
def test_what_no_later_step_reads_is_captured_as_stock_pytorch_computes_it(habit: Any):
    against_stock(recipe_of(habit))


def test_a_first_call_of_a_checkpoint_leaves_what_is_pytorchs_own(monkeypatch: pytest.MonkeyPatch):
    def loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(checkpoint(module, x, use_reentrant=False), y)

    monkeypatch.delattr(checkpoint.__wrapped__, "__dynamo_disable", raising=False)
    module, data = nn.Linear(2, 2), (torch.ones(8, 2), torch.zeros(8, 2))
    against_stock(Recipe(module, loss, torch.optim.SGD(module.parameters(), lr=0.1), data, batch_size=4))


HOOKS = {
    "forward": lambda m: m.up.register_forward_hook(lambda _, __, out: out * 0.5),
    "before forward": lambda m: m.down.register_forward_pre_hook(lambda _, args: (args[0] + 1.0,)),
    "backward": lambda m: m.down.register_full_backward_hook(lambda _, given, __: (given[0] * 0.1,)),
    "before backward": lambda m: m.down.register_full_backward_pre_hook(lambda _, given: (given[0] * 0.1,)),
}


@pytest.mark.parametrize("kind", HOOKS)
def test_hooks_of_modules_are_captured(kind: str):
    recipe = recipe_of(own.Net)
    plain = recipe_of(own.Net)
    HOOKS[kind](recipe.module)
    x, y = points()
    grads = [torch.autograd.grad(own.base_loss(r.module, x, y), list(r.module.parameters())) for r in (recipe, plain)]
    assert any(not torch.equal(a, b) for a, b in zip(*grads, strict=True)), "the hook does nothing"
    against_stock(recipe)


def test_a_hook_on_a_parameters_gradient_is_refused():
    for attach in (
        lambda m: m.up.weight.register_hook(lambda g: g * 0.5),
        lambda m: m.up.weight.register_post_accumulate_grad_hook(lambda p: None),
    ):
        recipe = recipe_of(own.Net)
        attach(recipe.module)
        with pytest.raises(
            UserError, match=r"up.weight has a hook on its gradient \(.*test_hidden_state.py:\d+\)"
        ) as caught:
            attempt(recipe)
        assert caught.value.code == "AttachedHook"


SCHEDULERS = {
    "LambdaLR": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda k: min(1.0, k / 100)),
    "CosineAnnealingLR": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 10),
    "OneCycleLR": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=20),
    "ReduceLROnPlateau": lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o),
}


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_an_attached_scheduler_is_refused_by_name(kind: str):
    recipe = recipe_of(own.Net)
    scheduler = SCHEDULERS[kind](recipe.optimizer)
    with pytest.raises(UserError, match=f"{kind} is attached to AdamW") as caught:
        attempt(recipe)
    assert caught.value.code == "AttachedScheduler"
    assert "schedule=" in caught.value.remedy
    assert scheduler is not None


def test_an_optimizer_set_by_a_scheduler_is_refused_after_the_scheduler_is_gone():
    module = own.Net()
    optimizer = adamw(module)
    optimizer.param_groups[0]["initial_lr"] = 0.02
    with pytest.raises(UserError, match="A scheduler is attached to AdamW"):
        attempt(Recipe(module, own.base_loss, optimizer, data=points(), batch_size=8))


def test_hooks_and_replaced_steps_of_optimizers_are_refused():
    for attach in (
        lambda o: o.register_step_pre_hook(lambda *_: None),
        lambda o: o.register_step_post_hook(lambda *_: None),
        lambda o: setattr(o, "step", lambda: None),
    ):
        recipe = recipe_of(own.Net)
        attach(recipe.optimizer)
        with pytest.raises(UserError) as caught:
            attempt(recipe)
        assert caught.value.code == "AttachedHook"


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.Adagrad])  # Adagrad's memory is there from the start
def test_an_optimizer_that_remembers_steps_is_refused(kind: type[torch.optim.Optimizer]):
    recipe = recipe_of(own.Net, lambda module: kind(module.parameters()))
    recipe.loss(recipe.module, *recipe.data).backward()
    recipe.optimizer.step()
    with pytest.raises(UserError, match="has taken steps") as caught:
        attempt(recipe)
    assert caught.value.code == "OptimizerInUse"


def test_wrappers_and_lazy_parameters_are_refused_with_what_to_give_instead():
    x, y = points()
    wrapped = nn.DataParallel(own.Net())
    compiled = torch.compile(own.Net())
    lazy = nn.Sequential(nn.LazyLinear(8), nn.Linear(8, 2))
    for module, words in (
        (wrapped, "module is a DataParallel. Give the module inside it: module.module."),
        (compiled, "module is a OptimizedModule. Give the module inside it: module._orig_mod."),
        (lazy, "0.weight has no shape yet."),
    ):
        with pytest.raises(UserError) as caught:
            RecipeStep(Recipe(module, own.base_loss, torch.optim.SGD(module.parameters(), lr=0.1), (x, y), 8))
        assert words in caught.value.explain()


@pytest.mark.parametrize("form", [None, logs.PLAIN, logs.JSON])
def test_a_log_may_date_its_records(form: str | None):
    written: list[str] = []
    before = logs.is_json(), list(logging.getLogger().handlers)
    try:
        if form is not None:
            logs.configure(form, written.append)
        attempt(recipe_of(inputs.logs))
        assert form is None or written, "the step's records reach our own log"
    finally:
        logs.configure(logs.JSON if before[0] else logs.PLAIN, lambda _: None)
        logging.getLogger().handlers[:] = before[1]


def test_who_has_a_log_s_clock_read_for_itself_is_refused_at_its_own_line():
    def dated(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        told = structlog.processors.TimeStamper(fmt=None)(None, "", {})
        return F.cross_entropy(module(x), y) * told["timestamp"]

    with pytest.raises(UserError) as caught:
        attempt(recipe_of(dated))
    assert caught.value.code == "HiddenInput"
    assert Path(__file__).name in caught.value.message


def test_a_schedule_that_counts_or_draws_is_refused():
    calls = itertools.count()
    seen: list[int] = []

    def counting(step: Tensor) -> Tensor:
        seen.append(1)
        return step * 0.0 + float(len(seen))

    for schedule, code in (
        (lambda step: step * 0.0 + next(calls), "HiddenState"),
        (counting, "HiddenState"),
        (lambda step: step * 0.0 + random.random(), "HiddenInput"),
    ):
        module = own.Net()
        recipe = Recipe(module, own.base_loss, adamw(module), points(), 8, schedule=schedule)
        with pytest.raises(UserError) as caught:
            attempt(recipe)
        assert caught.value.code == code
    assert seen == []


def test_functions_that_are_captured_alone_are_held_to_the_same():
    kept = {"mean": torch.zeros(6)}

    def average(x: Tensor) -> tuple[Tensor, ...]:
        kept["mean"] = kept["mean"] * 0.5 + x.mean(0)
        return (x - kept["mean"],)

    def drawn(x: Tensor) -> tuple[Tensor, ...]:
        return (x * random.random(),)

    start = kept["mean"]
    for function, code, offset in ((average, "HiddenState", 1), (drawn, "HiddenInput", 1)):
        with pytest.raises(UserError) as caught:
            captured(function, torch.zeros(4, 6))
        assert caught.value.code == code
        assert f"test_hidden_state.py:{function.__code__.co_firstlineno + offset}" in caught.value.message
    assert kept["mean"] is start


def test_two_traces_that_differ_are_refused_at_the_first_operation_that_does():
    turns = mmap.mmap(-1, 1)  # counts where no record looks

    def f(x: Tensor) -> tuple[Tensor, ...]:
        turns[0] += 1
        y = x + 1.0
        return (y * float(turns[0]),)

    with pytest.raises(UserError, match=r"aten.mul.Tensor\(..., 1.0\) in one, aten.mul.Tensor\(..., 2.0\)") as caught:
        captured(f, torch.zeros(4, 6))
    assert caught.value.code == "TracesDiffer"
    assert f"test_hidden_state.py:{f.__code__.co_firstlineno + 3}" in caught.value.message


def test_an_error_inside_a_step_leaves_everything_as_it_was_and_names_its_line():
    class Breaks(own.Net):
        def hidden(self, h: Tensor) -> Tensor:
            self.extra = h
            self.up.bias.requires_grad_(False)
            raise RuntimeError("broken")

    recipe = recipe_of(Breaks)
    with pytest.raises(UserError, match=r"broken at .*test_hidden_state.py:\d+") as caught:
        attempt(recipe)
    assert caught.value.code == "LossFails"
    assert not hasattr(recipe.module, "extra")


def test_the_trial_and_both_traces_leave_gradients_flags_and_generators():
    recipe = recipe_of(own.Net)
    recipe.module.up.weight.grad = torch.full((8, 2), 0.5)
    recipe.module.down.eval()
    F.dropout(torch.ones(3))
    attempt(recipe)
    assert torch.equal(recipe.module.up.weight.grad, torch.full((8, 2), 0.5))
    assert not recipe.module.down.training
