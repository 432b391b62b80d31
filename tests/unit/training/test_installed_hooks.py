"""Hooks that a module installs at its first call, as transformers' do: captured where they change nothing later."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor, nn
from torch.nn.modules import module as torch_modules
from torch.utils.hooks import RemovableHandle

from assay.protocol.errors import UserError
from tests.harness.training import own_code as own
from tests.unit.training.test_hidden_state import against_stock, attempt, recipe_of

COLLECTED: list[Tensor] = []


class Collects(own.Net):
    """Installs, at its first call, hooks that collect outputs while somebody asks for them; here nobody does."""

    def setup(self) -> None:
        self.is_hooked, self.is_asked = False, False

    def collect(self, _: nn.Module, __: Any, out: Tensor) -> None:
        if self.is_asked:
            COLLECTED.append(out)

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_hooked:
            for layer in (self.up, self.down):
                layer.register_forward_hook(self.collect)
            self.is_hooked = True
        return super().forward(x)


class Halves(Collects):
    """Its hook halves, from the first step on."""

    def collect(self, _: nn.Module, __: Any, out: Tensor) -> Tensor:
        return out * 0.5


class HalvesLater(own.Net):
    """Installs what halves a layer behind that layer's first call, so that it is the second step's."""

    def hidden(self, h: Tensor) -> Tensor:
        if not self.up._forward_hooks:
            self.up.register_forward_hook(lambda _, __, out: out * 0.5)
        return h


class HooksAgain(own.Net):
    """Installs one more hook in every step."""

    def hidden(self, h: Tensor) -> Tensor:
        self.up.register_forward_hook(lambda _, __, ___: None)
        return h


class HookCounts(Collects):
    """Its hook counts, and halves after a hundred steps."""

    def setup(self) -> None:
        super().setup()
        self.steps = 0

    def collect(self, _: nn.Module, __: Any, out: Tensor) -> Tensor:
        self.steps += 1
        return out * (0.5 if self.steps > 200 else 1.0)


class HooksAll(own.Net):
    """Installs one more hook of all modules in every step."""

    def hidden(self, h: Tensor) -> Tensor:
        torch_modules.register_module_forward_hook(lambda _, __, out: out * 0.5)
        return h


@pytest.mark.parametrize("habit", [Collects, Halves])
def test_hooks_that_are_the_same_in_every_step_are_captured(habit: type[own.Net]):
    recipe = recipe_of(habit)
    following = RemovableHandle.next_id
    against_stock(recipe)
    assert len(recipe.module.up._forward_hooks) == 1
    assert RemovableHandle.next_id == following + 2, "only the stock steps install hooks that stay"
    COLLECTED.clear()


@pytest.mark.parametrize(
    ("habit", "words"),
    [
        (HalvesLater, r"module\.?.*_forward_hooks"),
        (HooksAgain, r"module\.?.*_forward_hooks"),
        (HookCounts, "module.steps changes"),
        (HooksAll, "the table of hooks of all modules changes"),
    ],
)
def test_hooks_that_make_steps_differ_are_refused(habit: type[own.Net], words: str):
    with pytest.raises(UserError, match=words) as caught:
        attempt(recipe_of(habit))
    assert caught.value.code == "HiddenState"
    assert "test_installed_hooks.py:" in caught.value.message
    assert not torch_modules._global_forward_hooks
