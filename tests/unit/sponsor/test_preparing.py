"""What a run of one's own model asks of a recipe, and how its rounds are cut."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from assay.engine.runtime.values.state_io import root_of
from assay.protocol.errors import UserError
from assay.sponsor.charters import HOUR, pace_of
from assay.sponsor.preparing import prepare_recipe_rounds
from assay.training.recipes.recipe import Recipe
from assay.training.schedules import RoundWarmup


def recipe_of(*data: torch.Tensor, window: int | None = None) -> Recipe:
    """A recipe over these tensors."""
    module = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    return Recipe(module, lambda m, rows, *_: m(rows).square().mean(), optimizer, data, batch_size=2, window=window)


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        (recipe_of(torch.ones(7, 1)), "7 examples"),
        (recipe_of(torch.ones(63), window=8), "63 examples"),
        (replace(recipe_of(torch.ones(64, 1)), round_warmup=RoundWarmup(2, 9)), "rounds of 9 steps"),
    ],
)
def test_what_no_run_can_train_is_refused_with_its_reason(recipe: Recipe, words: str) -> None:
    with pytest.raises(UserError, match=words) as refused:
        prepare_recipe_rounds(recipe, "own", 8, inner_steps=10)
    assert refused.value.code == "BadRunRecipe" and refused.value.remedy


def test_a_rate_rises_in_every_round_unless_the_recipe_says_how() -> None:
    plain, own = recipe_of(torch.ones(8, 1)), replace(recipe_of(torch.ones(8, 1)), round_warmup=RoundWarmup(4, 12))
    other = replace(plain, round_warmup=RoundWarmup(3, 12))
    roots = {
        name: prepare_recipe_rounds(recipe, "own", 8, inner_steps=12).programs[0].root
        for name, recipe in (("plain", plain), ("own", own), ("other", other))
    }
    assert roots["plain"] == roots["own"] != roots["other"]


def test_data_of_several_tensors_lies_side_by_side_in_the_runs_one() -> None:
    made = prepare_recipe_rounds(recipe_of(torch.ones(64, 1), torch.arange(64)), "own", 8, inner_steps=10)
    assert made.data.shape == (64, 2) and made.data[:, 1].tolist() == list(range(64))
    assert (made.genesis.data_length, made.genesis.data) == (64, root_of(made.data))


def test_names_that_no_card_can_hold_are_refused_before_anything_is_posted() -> None:
    with pytest.raises(UserError, match="names") as refused:
        prepare_recipe_rounds(recipe_of(torch.ones(64, 1)), "x" * 300, 8, inner_steps=10)
    assert refused.value.code == "BadRunRecipe"


@pytest.mark.parametrize(("units", "least", "code"), [(3, 2, "UnitsDoNotDivide"), (5, 6, "TooFewUnits")])
def test_rounds_that_cannot_be_cut_so_are_refused(units: int, least: int, code: str) -> None:
    with pytest.raises(UserError) as refused:
        pace_of(25, units, least)
    assert refused.value.code == code and refused.value.remedy


def test_slow_steps_lengthen_rounds_and_replays_unless_a_length_is_given() -> None:
    assert (pace_of(25, 5, 5).commit, pace_of(25, 5, 5).steps) == (600, 5)
    assert pace_of(25, 5, 2, step_seconds=6.0).commit == 600
    assert (pace_of(25, 5, 2, step_seconds=6.01).commit, pace_of(25, 5, 2, step_seconds=6.01).replay) == (601, HOUR)
    assert (pace_of(25, 5, 2, 900, step_seconds=40.0).commit, pace_of(25, 5, 2, 900, step_seconds=40.0).replay) == (
        900,
        4000,
    )
    assert pace_of(25, 5, 2, 3 * HOUR).replay == 3 * HOUR, "what is trained for all of a round must be trained again"
