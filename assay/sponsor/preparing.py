"""What a run starts from, before anything is posted: three programs, data, first lists, and their roots.

The model is a preset's or the sponsor's own (a recipe); nothing after this knows the difference.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.protocol.errors import UserError
from assay.protocol.run.charter import ProgramRef
from assay.sponsor.cards import ModelOrigin
from assay.sponsor.charters import INTERVALS, SHARDS, Genesis
from assay.sponsor.round_preparing import GENESIS_SEED as GENESIS_SEED
from assay.sponsor.round_preparing import check_names

if TYPE_CHECKING:
    from torch import Tensor

    from assay.protocol.program.program import Program
    from assay.training.presets import Preset
    from assay.training.recipes.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that a run starts from.

    programs: step, update, outer. parameters, optimizer: the first lists. data: the tensor that shards are cut from.
    step_seconds: of one exact step on this machine, 0 where it was not measured.
    """

    origin: ModelOrigin
    programs: tuple[Program, Program, Program]
    parameters: tuple[Tensor, ...]
    optimizer: tuple[Tensor, ...]
    data: Tensor
    genesis: Genesis
    step_seconds: float = 0.0


def prepare(preset: Preset, text: str, seed: int = GENESIS_SEED) -> Prepared:
    """Captures a preset's programs for a text and draws the first parameters.

    Raises UserError (EmptyData, VocabularyTooLarge), NumericsError (CannotLower).
    """
    from assay.training.data import corpus_from_text
    from assay.training.initialize import initialize
    from assay.training.programs import training_program
    from assay.training.state import Scalars
    from assay.training.step import initial_state, preset_step

    corpus = corpus_from_text(text, min_tokens=SHARDS * (preset.context + 1))
    step = preset_step(preset, len(corpus.vocabulary))
    scalars = Scalars.of(corpus.train, learning_rate=preset.learning_rate)
    state = initial_state(step, initialize(step.module, seed), scalars)
    program = training_program(preset, corpus)
    return _prepared(ModelOrigin(preset=preset.name, text=text.encode()), program, state, preset.inner_steps)


def prepare_recipe(recipe: Recipe, name: str, *, tier: str = "fixed14", inner_steps: int) -> Prepared:
    """Captures a model of one's own for a run in which every seat takes `inner_steps` steps per round.

    name: the recipe's, for people. The module's own values are the first parameters.

    Raises:
        UserError: BadRunRecipe; what capture raises.
    """
    from assay.engine.runtime.executor import Executor
    from assay.programs.capture import capture_recipe

    _check(recipe, inner_steps)
    captured = capture_recipe(recipe, tier)
    origin = ModelOrigin(recipe=name, names=tuple(captured.slots[0]))
    check_names(origin)
    executor = Executor(captured.program)
    begin = time.perf_counter()
    executor.run(captured.state)
    seconds = time.perf_counter() - begin
    return _prepared(origin, captured.program, captured.state, inner_steps, seconds)


def _check(recipe: Recipe, inner_steps: int) -> None:
    """What a run asks of a recipe beyond what capture does."""
    if len(recipe.data) != 1:
        raise UserError(
            f"The recipe has {len(recipe.data)} data tensors; a run has one.",
            code="BadRunRecipe",
            remedy="Lay what belongs together side by side in one tensor, and take it apart in the loss.",
        )
    if inner_steps < 1 or inner_steps % INTERVALS:
        raise UserError(
            f"{inner_steps} steps do not divide into {INTERVALS} intervals.",
            code="BadRunRecipe",
            remedy=f"Choose a multiple of {INTERVALS}.",
        )
    examples, least = recipe.data[0].shape[0], SHARDS * (recipe.window or 1)
    if examples < least:
        raise UserError(
            f"The data holds {examples} examples; {SHARDS} shards need {least}.",
            code="BadRunRecipe",
            remedy="Give more data or a shorter window.",
        )


def _prepared(
    origin: ModelOrigin, program: Program, state: Sequence[Sequence[Tensor]], inner_steps: int, seconds: float = 0.0
) -> Prepared:
    from assay.engine.runtime.values.state_io import list_roots, root_of, to_lists_of_bytes
    from assay.protocol.trees.state import TrainingList
    from assay.training.outer import zero_momentum
    from assay.training.programs import outer_program, update_program
    from assay.training.state import SCALAR_NAMES, Scalars

    parameters, optimizer, slots = state
    scalars = Scalars.from_list(slots[: len(SCALAR_NAMES)])
    programs = program, update_program(parameters), outer_program(parameters)
    roots = list_roots(state)
    zeros = list_roots([zero_momentum(parameters)])[0]
    genesis = Genesis(
        step=ProgramRef.of(programs[0]),
        update=ProgramRef.of(programs[1]),
        outer=ProgramRef.of(programs[2]),
        parameters=roots[TrainingList.PARAMETERS],
        momentum=zeros,
        zero_optimizer=roots[TrainingList.OPTIMIZER],
        zero_update=zeros,
        data=root_of(scalars.data),
        data_length=scalars.data.shape[0],
        inner_steps=inner_steps,
        learning_rate=int.from_bytes(to_lists_of_bytes([[scalars.learning_rate]])[0][0], "little"),
    )
    return Prepared(origin, programs, tuple(parameters), tuple(optimizer), scalars.data, genesis, seconds)


def pace_of(prepared: Prepared, commit_seconds: int) -> int:
    """By how much longer than usual the windows must be in which somebody computes: a round may take a quarter of one.

    Machines differ, and an auditor replays several duties in a window.
    """
    round_seconds = prepared.step_seconds * prepared.genesis.inner_steps
    return max(1, math.ceil(4 * round_seconds / commit_seconds))
