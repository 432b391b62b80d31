"""Several data tensors travel as one, and a step of them is the step that it was."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.engine.compiler.capture import capture
from assay.engine.runtime.executor import Executor
from assay.protocol.errors import UserError
from assay.training.recipes.recipe import Recipe, RecipeStep
from assay.training.recipes.side_by_side import EXACT, ApartLoss, common_type, side_by_side
from tests.harness.engine.helpers import same_lists

torch.set_num_threads(1)


def recipe_of(*data: Tensor, window: int | None = None) -> Recipe:
    torch.manual_seed(0)
    module = nn.Linear(6, 3)

    def loss(m: nn.Module, x: Tensor, y: Tensor, keep: Tensor) -> Tensor:
        assert (x.dtype, y.dtype, keep.dtype) == (torch.float32, torch.int64, torch.bool)
        losses = F.cross_entropy(m(x.flatten(1)), y, reduction="none")
        return torch.where(keep, losses, 0.0).mean()

    return Recipe(module, loss, torch.optim.SGD(module.parameters(), lr=0.1), data, batch_size=8, window=window)


def three() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    images = torch.randn(32, 2, 3, generator=generator)
    return images, torch.randint(0, 3, (32,), generator=generator), torch.rand(32, generator=generator) > 0.3


def test_a_step_of_data_side_by_side_has_the_bits_of_the_step_of_several_tensors() -> None:
    apart = recipe_of(*three())
    together = side_by_side(apart)
    assert [t.shape for t in together.data] == [(32, 8)] and together.data[0].dtype is torch.float32
    ends = []
    for recipe in (apart, together):
        step = RecipeStep(recipe)
        state = step.state(key=(3, 4))
        ends.append(Executor(capture(step, state).program).repeat(state, 3))
    assert same_lists([ends[0][0]], [ends[1][0]])


def test_windows_of_several_streams_are_taken_apart_again() -> None:
    tokens, marks = torch.arange(40, dtype=torch.uint8), torch.arange(40) % 2 == 0
    loss = ApartLoss(lambda m, a, b: (a, b), ((), ()), (torch.uint8, torch.bool))
    both = side_by_side(replace(recipe_of(*three()), data=(tokens, marks), window=5, loss=loss.loss))
    assert both.data[0].shape == (40, 2) and both.data[0].dtype is torch.uint8
    a, b = loss.apart(both.data[0][torch.tensor([[0, 1, 2], [7, 8, 9]])])
    assert a.tolist() == [[0, 1, 2], [7, 8, 9]] and b.tolist() == [[True, False, True], [False, True, False]]
    assert (a.dtype, b.dtype) == (torch.uint8, torch.bool)


def ints(*values: int, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.tensor(values, dtype=dtype)


@pytest.mark.parametrize(
    ("tensors", "dtype"),
    [
        ((ints(0, 255), ints(1, dtype=torch.uint8)), torch.uint8),
        ((ints(0, 256), ints(1, dtype=torch.uint8)), torch.int32),
        ((ints(-1), ints(1, dtype=torch.uint8)), torch.int32),
        ((ints(2**31 - 1), ints(-(2**31))), torch.int32),
        ((ints(65535, dtype=torch.uint16), ints(1, dtype=torch.uint16)), torch.uint16),
        ((ints(65535, dtype=torch.uint16), torch.tensor([True])), torch.int32),
        ((torch.tensor([0.5]), torch.tensor([0.25])), torch.float32),
        ((torch.tensor([0.5]), ints(EXACT, -EXACT)), torch.float32),
    ],
)
def test_the_type_of_all_holds_every_number(tensors: tuple[Tensor, ...], dtype: torch.dtype) -> None:
    assert common_type(tensors) is dtype
    for t in tensors:
        assert torch.equal(t.to(dtype).to(t.dtype), t)


@pytest.mark.parametrize("number", [EXACT + 1, -EXACT - 1])
def test_fractions_beside_integers_that_f32_would_round_are_refused(number: int) -> None:
    with pytest.raises(UserError, match=str(EXACT + 1)) as refused:
        common_type((torch.tensor([0.5]), ints(number)))
    assert refused.value.code == "MixedData" and refused.value.remedy


def test_one_tensor_stays_as_it_is() -> None:
    recipe = recipe_of(three()[0])
    assert side_by_side(recipe) is recipe
