"""A count that decides a late step is found wherever Python keeps it, and wrappers of a training loop are refused."""

from __future__ import annotations

import functools
import os
import queue
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.protocol.errors import UserError
from assay.training.recipes.recipe import Recipe, RecipeStep
from tests.harness.training import own_code as own
from tests.harness.training import own_places as places
from tests.unit.training.test_hidden_state import adamw, against_stock, attempt, recipe_of
from tests.unit.training.test_recipe import points


def refused(module: nn.Module, loss: Any = own.base_loss, optimizer: Any = None) -> UserError:
    """What making the step says."""
    with pytest.raises(UserError) as caught:
        RecipeStep(Recipe(module, loss, optimizer or adamw(module), data=points(), batch_size=8))
    return caught.value


@pytest.mark.gate_takes(8)
@pytest.mark.parametrize("name", places.PLACES)
def test_a_count_is_found_where_python_keeps_it_and_is_put_back(name: str):
    module = places.Counts(places.PLACES[name])
    before = module.place.read(module.count)
    error = refused(module)
    assert error.code == "HiddenState"
    assert "changes during a step at" in error.message and "own_places.py:" in error.message
    assert module.place.read(module.count) == before


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (places.CountsInAModule, "own_package.part.STEPS"),
        (places.CountsByName, "global BY_NAME"),
        (places.CountsInTheEnvironment, "os.environ['ASSAY_TEST_STEPS']"),
    ],
)
def test_a_count_outside_the_module_is_named(kind: Any, path: str):
    error = refused(kind())
    assert error.code == "HiddenState"
    assert error.message.startswith(f"{path} changes during a step at ")
    assert (places.own_package.part.STEPS, places.BY_NAME, os.environ.pop("ASSAY_TEST_STEPS", "0")) == (0, 0, "0")


def test_arguments_of_a_loss_that_it_changes_are_found():
    def counting(seen: list[int], module: nn.Module, x: Tensor, y: Tensor, *, more: Any = None) -> Tensor:
        seen.append(1)
        return own.base_loss(module, x, y) * (0.5 if len(seen) > 100 else 1.0)

    bound: list[int] = []
    assert "loss[0][0] changes" in refused(own.Net(), functools.partial(counting, bound)).message
    assert bound == []


def test_an_optimizer_that_the_loss_sets_is_found():
    module = own.Net()
    optimizer = adamw(module)

    def cooling(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        optimizer.param_groups[0]["lr"] *= 0.99
        return own.base_loss(module, x, y)

    assert "param_groups[0]['lr'] changes" in refused(module, cooling, optimizer).message
    assert optimizer.param_groups[0]["lr"] == 0.02


def test_averages_of_another_module_are_found():
    shadow, module = own.Net(), own.Net()
    swa = torch.optim.swa_utils.AveragedModel(module)

    @torch.no_grad()
    def averaged(module: nn.Module) -> None:
        for mean, p in zip(shadow.parameters(), module.parameters(), strict=True):
            mean.data.mul_(0.9).add_(p, alpha=0.1)

    def by_hand(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        averaged(module)
        return own.base_loss(module, x, y) + F.mse_loss(module(x), shadow(x).detach())

    def by_torch(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        swa.update_parameters(module)
        return own.base_loss(module, x, y)

    start = shadow.up.weight.detach().clone()
    for loss in (by_hand, by_torch):
        assert refused(module, loss).code == "HiddenState"
    assert torch.equal(shadow.up.weight, start)
    assert int(swa.n_averaged) == 0


def test_a_loss_that_is_scaled_is_refused_and_one_whose_scaler_is_off_is_not():
    def scaled(scaler: torch.amp.GradScaler) -> Any:
        return lambda module, x, y: scaler.scale(own.base_loss(module, x, y))

    error = refused(own.Net(), scaled(torch.amp.GradScaler("cpu")))
    assert "loss (variable scaler) is a GradScaler" in error.message
    assert "Return the loss as it is" in error.remedy
    off = own.Net()
    attempt(Recipe(off, scaled(torch.amp.GradScaler("cpu", enabled=False)), adamw(off), points(), 8))


def test_a_loss_that_calls_backward_is_refused_with_its_line():
    def backward(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        loss = own.base_loss(module, x, y)
        loss.backward(retain_graph=True)
        return loss

    error = refused(own.Net(), backward)
    assert f"calls backward itself at {_file()}:{backward.__code__.co_firstlineno + 2}" in error.message
    assert error.code == "LossFails"


def test_a_buffer_that_forward_registers_is_refused():
    class Late(own.Net):
        def hidden(self, h: Tensor) -> Tensor:
            if not hasattr(self, "seen"):
                self.register_buffer("seen", torch.zeros(()))
            self.seen = self.seen + 1.0
            return h * self.seen

    module = Late()
    assert "module['seen'] changes" in refused(module).message
    assert not hasattr(module, "seen")


class WritesData(own.Net):
    """Writes a buffer behind autograd's back."""

    def setup(self) -> None:
        self.register_buffer("mean", torch.zeros(8))

    def hidden(self, h: Tensor) -> Tensor:
        self.mean.data.mul_(0.5).add_(h.mean(0).detach(), alpha=0.5)
        return h - self.mean


def spectral() -> nn.Module:
    """A net whose first layer divides by its norm, which it estimates from step to step."""
    module = own.Net()
    nn.utils.parametrizations.spectral_norm(module.up)
    return module


def compiled(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return own.base_loss(module, x, y)


@pytest.mark.parametrize("kind", [WritesData, spectral])
def test_registered_buffers_are_honoured_however_they_are_written(kind: Any):
    module = kind()
    against_stock(Recipe(module, own.base_loss, adamw(module), points(), 8))


def test_a_buffer_that_is_given_other_memory_is_refused_with_its_line():
    class Exchanges(WritesData):
        def hidden(self, h: Tensor) -> Tensor:
            self.mean.data = self.mean * 0.5 + h.mean(0).detach() * 0.5
            return h - self.mean

    with pytest.raises(UserError, match="The data of a tensor is exchanged") as caught:
        attempt(recipe_of(Exchanges))
    assert caught.value.code == "NotCapturable"
    assert f"{_file()}:{Exchanges.hidden.__code__.co_firstlineno + 1}" in caught.value.message


def test_the_state_is_no_part_of_the_module():
    module = WritesData()
    step = RecipeStep(Recipe(module, own.base_loss, adamw(module), points(), 8))
    state = step.state()
    own.base_loss(module, *step.batch(state[2]))
    assert module.mean.abs().max() > 0.0
    assert not state[1][-1].any()


def test_a_function_that_torch_compile_made_is_captured_as_what_it_was_made_of():
    recipe = recipe_of(torch.compile(compiled, backend="eager"))
    against_stock(recipe)


def test_a_loss_of_another_shape_is_refused_with_where_it_is_written():
    def many(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return module(x)

    line = f"{_file()}:{many.__code__.co_firstlineno}"
    assert f"The loss ({line}) is torch.float32 [8, 2]." in refused(own.Net(), many).message


class TakesFromAQueue(own.Net):
    """Puts itself a note per step into a queue of C, and reads how many there are."""

    def setup(self) -> None:
        self.notes: Any = queue.SimpleQueue()

    def hidden(self, h: Tensor) -> Tensor:
        self.notes.put(1)
        return h * (0.5 if self.notes.qsize() > 100 else 1.0)


class AsksADatabase(own.Net):
    """Counts in a database in memory."""

    def setup(self) -> None:
        self.base = sqlite3.connect(":memory:")
        self.base.execute("create table steps (n)")

    def hidden(self, h: Tensor) -> Tensor:
        self.base.execute("insert into steps values (1)")
        return h * (0.5 if len(list(self.base.execute("select n from steps"))) > 100 else 1.0)


@pytest.mark.parametrize(
    ("kind", "words"), [(TakesFromAQueue, "SimpleQueue.qsize is called"), (AsksADatabase, "Connection.execute is call")]
)
def test_what_holds_things_in_c_is_refused_where_it_is_asked(kind: Any, words: str):
    error = refused(kind())
    assert error.code == "HiddenInput"
    assert words in error.message
    assert f"at {_file()}:" in error.message


def test_a_file_that_a_module_reads_on_is_refused(tmp_path: Path):
    path = tmp_path / "factors"
    path.write_text("1.0\n" * 100)
    module = own.Net()
    with path.open() as file:
        module.factors = file
        assert "module.factors is an iterator" in refused(module).message
    with path.open("a") as file:  # what is only written decides nothing
        module.factors = file
        attempt(Recipe(module, own.base_loss, adamw(module), data=points(), batch_size=8))


def _file() -> str:
    return "tests/unit/training/test_hidden_places.py"
