"""Recipes of which no state holds the tensors, numbers or buffers are refused by name, before anybody trains them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import checkpoint

from assay.programs.capture import capture_recipe
from assay.protocol.errors import AssayError, UserError
from assay.training.optimizer import SGD
from assay.training.recipes.recipe import Recipe, RecipeStep


class Doubled(Tensor):
    """A tensor without memory of its own: its numbers lie in another, and it multiplies by rules of its own."""

    @staticmethod
    def __new__(cls, inner: Tensor) -> Doubled:
        """Around another tensor."""
        made = Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype, requires_grad=inner.requires_grad)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Computes on what lies inside."""
        plain = tree_map(lambda a: a.inner if isinstance(a, Doubled) else a, (args, kwargs or {}))
        return tree_map(lambda a: Doubled(a) if isinstance(a, Tensor) else a, func(*plain[0], **plain[1]))


class OddNet(nn.Module):
    """Two layers, and what a test puts into it and does between them."""

    def __init__(self, prepare: Callable[[OddNet], object], middle: Callable[[OddNet, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b, self.middle = nn.Linear(4, 8), nn.Linear(8, 3), middle
        prepare(self)

    def forward(self, x: Tensor) -> Tensor:
        """Scores [B, 3]."""
        return self.b(self.middle(self, torch.tanh(self.a(x))))


def net(
    prepare: Callable[[OddNet], object] = lambda _: None, middle: Callable[[OddNet, Tensor], Tensor] = lambda _, h: h
) -> OddNet:
    return OddNet(prepare, middle)


def loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.mse_loss(module(x), y)


def recipe(module: nn.Module | None = None, **more: Any) -> Recipe:
    torch.manual_seed(1)
    module = net() if module is None else module
    given = {"optimizer": torch.optim.SGD(module.parameters(), lr=0.1), "loss": loss, "batch_size": 8}
    return Recipe(module, **(given | {"data": (torch.randn(32, 4), torch.randn(32, 3))} | more))


def refused(make: Callable[[], Recipe]) -> AssayError:
    with pytest.raises(AssayError) as caught:
        RecipeStep(make())
    return caught.value


def set_weight(module: OddNet, weight: Tensor) -> None:
    module.a.weight = nn.Parameter(weight)


PLAIN = torch.zeros(32, 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: recipe(net(lambda n: set_weight(n, Doubled(torch.ones(8, 4))))), "Parameter a.weight is a Doubled"),
        (lambda: recipe(net(lambda n: n.register_buffer("m", Doubled(torch.ones(8))))), "Buffer m is a Doubled"),
        (lambda: recipe(data=(Doubled(torch.ones(32, 4)), PLAIN)), "Data tensor 0 is a Doubled"),
        (lambda: recipe(data=(torch.ones(32, 4).to_sparse(), PLAIN)), "Data tensor 0 has the layout torch.sparse_coo"),
        (lambda: recipe(data=(torch.ones(32, 4, device="meta"), PLAIN)), "Data tensor 0 is on the device meta"),
        (lambda: recipe(data=(torch.ones(32, 4, dtype=torch.cfloat).conj().imag, PLAIN)), "Data tensor 0 is a view"),
        (lambda: recipe(batch_size=16 / 2), "batch_size is 8.0"),
        (lambda: recipe(micro_batches=2.0), "micro_batches is 2.0"),
        (lambda: recipe(window=4.0), "window is 4.0"),
        (lambda: recipe(learning_rate=0.5), "learning_rate is 0.5, and SGD has a rate of its own"),
        (lambda: recipe(optimizer=SGD(), learning_rate=float("nan")), "learning_rate is nan"),
        (lambda: recipe(optimizer=SGD(), learning_rate=-1.0), "learning_rate is -1.0"),
        (lambda: recipe(optimizer=SGD(), learning_rate=1e300), "learning_rate is 1e+300"),
    ],
)
def test_what_no_state_holds_is_refused_by_name(make: Callable[[], Recipe], words: str) -> None:
    error = refused(make)
    assert error.code == "BadRecipe"
    assert error.message.startswith(words)


def test_a_parameter_whose_elements_share_memory_is_refused() -> None:
    error = refused(lambda: recipe(net(lambda n: set_weight(n, torch.ones(8, 1).expand(8, 4)))))
    assert error.code == "SharedMemory" and error.message.startswith("a.weight has elements that share memory")


def overlapping(module: OddNet) -> None:
    memory = torch.zeros(12)
    module.register_buffer("one", memory[:8])
    module.register_buffer("two", memory[4:])


def writing(module: OddNet, h: Tensor) -> Tensor:
    module.one.add_(1.0)
    return h + module.two


def test_a_buffer_that_a_step_writes_may_show_in_no_other() -> None:
    """Stock PyTorch changes both; a state would keep them apart. Where no step writes them, tables may overlap."""
    error = refused(lambda: recipe(net(overlapping, writing)))
    assert error.code == "SharedMemory" and error.message.startswith("one shares memory with two")
    assert RecipeStep(recipe(net(overlapping, lambda n, h: h + n.one * n.two))).buffers == []


def grows(module: OddNet, h: Tensor) -> Tensor:
    module.kept = torch.cat([module.kept, h[:1].detach()])
    return h + module.kept.mean(0)


def changes_type(module: OddNet, h: Tensor) -> Tensor:
    module.kept = module.kept + 0.5
    return h + module.kept.mean()


@pytest.mark.parametrize(
    ("start", "middle", "words"),
    [
        (torch.zeros(1, 8), grows, "torch.float32 [1, 8] before a step, and torch.float32 [2, 8] after it"),
        (torch.zeros(8, dtype=torch.int32), changes_type, "torch.int32 [8] before a step, and torch.float32 [8] after"),
    ],
)
def test_a_buffer_that_a_step_leaves_in_another_form_is_refused(
    start: Tensor, middle: Callable[[OddNet, Tensor], Tensor], words: str
) -> None:
    error = refused(lambda: recipe(net(lambda n: n.register_buffer("kept", start), middle)))
    assert error.code == "BufferReshaped"
    assert f"Buffer kept is {words}" in error.message


def test_what_is_checkpointed_the_old_way_is_refused_where_it_looks_unreached() -> None:
    """`backward()` trains such a layer; asked for gradients, autograd passes it by, and it stayed as it was."""

    def checkpointed(module: OddNet, x: Tensor, y: Tensor) -> Tensor:
        hidden = checkpoint(module.a, x.requires_grad_(), use_reentrant=True)
        return F.mse_loss(module.b(torch.tanh(hidden)), y)

    error = refused(lambda: recipe(loss=checkpointed))
    assert error.code == "LossFails" and "use_reentrant=True" in error.message


def test_a_loss_that_is_another_one_when_it_is_traced_is_refused() -> None:
    def asks(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return loss(module, x, y) * (2.0 if torch.fx._symbolic_trace.is_fx_tracing() else 3.0)

    with pytest.raises(UserError, match="when it is told that it is traced") as caught:
        capture_recipe(recipe(loss=asks), calibrate=False)
    assert caught.value.code == "ValuesDecide"


def test_a_source_of_entropy_may_be_held_and_not_be_asked() -> None:
    source = random.SystemRandom()

    def asks(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return loss(module, x, y) * source.random()

    def holds(module: nn.Module, x: Tensor, y: Tensor, of: Any = source) -> Tensor:
        return loss(module, x, y)

    assert refused(lambda: recipe(loss=asks)).code == "HiddenInput"
    RecipeStep(recipe(loss=holds))


def test_data_that_need_gradients_are_data() -> None:
    step = RecipeStep(recipe(data=(torch.randn(32, 4, requires_grad=True), PLAIN)))
    assert not any(t.requires_grad for part in step.state() for t in part)
