"""A recipe as a run trains it: one data tensor, moments that start anew in each round, and a rate that rises in it."""

from __future__ import annotations

from dataclasses import replace

from assay.protocol.errors import UserError
from assay.training.recipes.form import Recipe
from assay.training.recipes.side_by_side import side_by_side
from assay.training.schedules import RoundWarmup


def recipe_in_rounds(recipe: Recipe, seats: int, inner_steps: int) -> Recipe:
    """The recipe for so many seats and rounds of so many steps.

    The rate rises as `RoundWarmup.usual` says unless the recipe does. Raises UserError (BadRunRecipe, MixedData).
    """
    _check(recipe, seats, inner_steps)
    lasting = lasting_recipe(recipe)
    return replace(lasting, round_warmup=lasting.round_warmup or RoundWarmup.usual(inner_steps))


def lasting_recipe(recipe: Recipe) -> Recipe:
    """The recipe on one data tensor, its parameters as runs merge them. Raises UserError (MixedData)."""
    return side_by_side(replace(recipe, wide_parameters=True))


def _check(recipe: Recipe, seats: int, inner_steps: int) -> None:
    """What a run asks of a recipe beyond what capture does."""
    examples, least = recipe.data[0].shape[0], seats * (recipe.window or 1)
    if examples < least:
        raise bad_run_recipe(
            f"The data holds {examples} examples; the shards of {seats} seats need {least}.",
            "Give more data, fewer seats or a shorter window.",
        )
    rise = recipe.round_warmup
    if rise is not None and rise.round_length != inner_steps:
        # The rate would rise in the wrong places, of which no contract knows.
        raise bad_run_recipe(
            f"The recipe's rate rises in rounds of {rise.round_length} steps; a round has {inner_steps}.",
            "Give RoundWarmup the run's steps, or leave round_warmup out.",
        )


def bad_run_recipe(message: str, remedy: str) -> UserError:
    """What is wrong with a recipe for a run."""
    return UserError(message, code="BadRunRecipe", remedy=remedy)
