"""What a run starts from, before anything is posted: four programs, data, first lists, their roots.

Moments are zero when a round begins, so the rate rises anew in each; the witnessed step follows from the plain one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from assay.protocol.digests import ZERO
from assay.protocol.errors import AssayError, UserError
from assay.protocol.program.witness import witnessed_program
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import NO_PROGRAM, ONE_LEVEL
from assay.sponsor.cards import MAX_NAME, MAX_NAMES, NO_MORE, Card, ModelOrigin
from assay.sponsor.charters import Genesis
from assay.sponsor.model_files import MAX_CONSTANTS, ModelFile, is_tokenizer
from assay.sponsor.starting import StartValues, check_letters, first_lists, load_start

if TYPE_CHECKING:
    from torch import Tensor

    from assay.engine.compiler.lowering.registry import Precision
    from assay.protocol.program.program import Program
    from assay.training.guard import Guard
    from assay.training.presets import Preset
    from assay.training.recipes.recipe import Recipe
    from assay.training.robust import MergeKind
    from assay.training.updates import UpdateWire

GENESIS_SEED: Final = 1

MOST_GROUPS: Final = 64
"""One bit each in a word of the contract."""


@dataclass(frozen=True, slots=True)
class PreparedRounds:
    """All that a run starts from. programs: step, update, merge, witness, above 64 seats the sum of a group.

    data: the tensor that shards are cut from. inner_steps: H, the steps of a whole commitment, at which the rate begins
    to rise anew. step_seconds: of one exact step on this machine, 0 where it was not measured.
    """

    origin: ModelOrigin
    programs: tuple[Program, ...]
    parameters: tuple[Tensor, ...]
    optimizer: tuple[Tensor, ...]
    data: Tensor
    genesis: Genesis
    inner_steps: int
    step_seconds: float = 0.0
    momentum: tuple[Tensor, ...] = ()
    """The first outer momentum; empty where it is zero, as in a run that goes on from none."""
    mapped: tuple[str, ...] = ()
    """What was called or typed otherwise where the first parameters come from, as sentences."""


def prepare_rounds(
    preset: Preset,
    text: str,
    seats: int,
    seed: int = GENESIS_SEED,
    wire: UpdateWire | None = None,
    group_size: int | None = None,
    start: StartValues | None = None,
    kind: MergeKind | None = None,
    guard: float | None = None,
    sums: UpdateWire | None = None,
) -> PreparedRounds:
    """Captures a preset's programs for a text and a number of seats, and draws the first parameters unless given.

    wire: how updates travel, f32 unless given. kind: what a merge makes of them, the mean unless given. guard: the
    share by which a merge may raise the loss on held-out text; no guard unless given. group_size: as `group_size_of`.
    sums: how sums of groups travel, f32 unless given. start: what the run starts from.

    Raises UserError (EmptyData, VocabularyTooLarge, BadGuard, and what `load_start` raises), NumericsError
    (CannotLower), RejectedError (NoWitness).
    """
    from assay.training.data import corpus_from_text
    from assay.training.guard import preset_guard
    from assay.training.initialize import initialize
    from assay.training.programs import training_program
    from assay.training.state import Scalars
    from assay.training.step import initial_state, preset_step

    corpus = corpus_from_text(text, min_tokens=seats * (preset.context + 1))
    step = preset_step(preset, len(corpus.vocabulary), restarts=True)
    scalars = Scalars.of(corpus.train, learning_rate=preset.learning_rate)
    drawn, momentum = initialize(step.module, seed), None
    mapped: tuple[str, ...] = ()
    if start is not None:
        check_letters(start, corpus.vocabulary)
        fitted = load_start(step.module, start)
        (drawn, momentum), mapped = first_lists(step.names, drawn, fitted), fitted.mapped
    state = initial_state(step, drawn, scalars)
    program = training_program(preset, corpus, restarts=True)
    origin = ModelOrigin(preset=preset.name, text=text.encode())
    made = prepared_rounds(
        origin,
        program,
        state,
        seats,
        preset.inner_steps,
        wire,
        group_size,
        momentum=momentum,
        kind=kind,
        guard=None if guard is None else preset_guard(preset, corpus, guard),
        sums=sums,
    )
    return replace(made, mapped=mapped)


def prepare_recipe_rounds(
    recipe: Recipe,
    name: str,
    seats: int,
    *,
    inner_steps: int,
    tier: str = "fixed14",
    wire: UpdateWire | None = None,
    group_size: int | None = None,
    start: StartValues | None = None,
    kind: MergeKind | None = None,
    sums: UpdateWire | None = None,
) -> PreparedRounds:
    """Captures a model of one's own for a run in which a whole commitment is `inner_steps` steps.

    name: the recipe's, for people. The module's own values are the first parameters, unless `start` names others, which
    are put into it; its running statistics stand behind them and are merged with them. Moments start anew in each
    round, so the rate rises in each, as `RoundWarmup.usual` says unless the recipe does.

    Raises:
        UserError: BadRunRecipe, MixedData, StartLossNotFinite; what `load_start` and capture raise. RejectedError:
        NoWitness.
    """
    from assay.engine.runtime.executor import Executor
    from assay.programs.capture import capture_recipe, tier_of
    from assay.training.recipes.evaluation import captured_validation
    from assay.training.recipes.in_rounds import recipe_in_rounds

    recipe = recipe_in_rounds(recipe, seats, inner_steps)
    fitted = None if start is None else load_start(recipe.module, start)
    captured = capture_recipe(recipe, tier, merges_statistics=True)
    state, momentum = captured.state, None
    if fitted is not None:
        check_first_loss(captured.first_loss, fitted.source)
        first, momentum = first_lists(captured.slots[0], state[0], fitted)
        state = (first, *state[1:])
    validation = captured_validation(recipe, tier_of(tier))
    loss = _loss_program(recipe, tier_of(tier)) if validation is None else validation.program
    origin = replace(_origin(recipe, name, captured.slots[0]), validation=validation, loss=loss)
    check_names(origin)
    executor = Executor(captured.program)
    begin = time.perf_counter()
    executor.run(state)
    seconds = time.perf_counter() - begin
    made = prepared_rounds(
        origin,
        captured.program,
        state,
        seats,
        inner_steps,
        wire,
        group_size,
        statistics=len(captured.carried),
        momentum=momentum,
        kind=kind,
        sums=sums,
    )
    return replace(made, step_seconds=seconds, mapped=() if fitted is None else fitted.mapped)


def check_first_loss(loss: float, source: str) -> None:
    """Whether a model that starts from given values can learn. Raises UserError (StartLossNotFinite)."""
    if not math.isfinite(loss):
        raise UserError(
            f"Started from {source}, the model's loss on its first examples is {loss}.",
            code="StartLossNotFinite",
            remedy="Check that the values are of this very model; ones as large as these overflow in float32.",
        )


def check_names(origin: ModelOrigin) -> None:
    """Readers refuse cards that hold more than people would write, and say so only when the run stands on chain.

    Raises UserError (BadRunRecipe).
    """
    from assay.training.recipes.in_rounds import bad_run_recipe

    try:
        outline = origin.outline
        file = NO_MORE if outline is None else ModelFile(outline.tied, outline.wide)
        Card.decode(Card(None, None, 0, origin.recipe, origin.names, file).encode())
    except ValueError as error:
        raise bad_run_recipe(
            "The run's card cannot hold the recipe's name and its parameters' names.",
            f"Use at most {MAX_NAMES} printable names of at most {MAX_NAME} characters.",
        ) from error


def group_size_of(seats: int, wanted: int | None = None) -> int:
    """Seats of a group: their square root unless one is wanted, so that both levels fetch alike; 0 up to 64 seats.

    Raises UserError (WrongGroups).
    """
    if seats <= ONE_LEVEL:
        return 0
    size = math.ceil(math.sqrt(seats)) if wanted is None else wanted
    if not -(-seats // MOST_GROUPS) <= size <= ONE_LEVEL:
        raise UserError(
            f"Groups of {size} do not fit {seats} seats: there are at most {MOST_GROUPS} of at most {ONE_LEVEL}.",
            code="WrongGroups",
            remedy="Leave --group-size out, or give one that fits.",
        )
    return size


def check_sums(sums: UpdateWire, group_size: int) -> None:
    """Whether there are groups whose sums travel so. Raises UserError (SumsOfNoGroups)."""
    if sums.value != "f32" and not group_size:
        raise UserError(
            f"There are no groups, whose sums could travel as {sums.value}: a run of up to {ONE_LEVEL} seats has none.",
            code="SumsOfNoGroups",
            remedy="Leave --sums out, or give more seats (or, to compare, a --group-size).",
        )


# --- inside


def _loss_program(recipe: Recipe, precision: Precision) -> Program | None:
    """The program by which those who train see their loss; None where the loss has no exact form in eval mode.

    Nothing but a line on their screens needs it.
    """
    from assay.training.recipes.evaluation import captured_loss

    try:
        return captured_loss(recipe, precision)
    except AssayError:
        return None


def _origin(recipe: Recipe, name: str, names: Sequence[str]) -> ModelOrigin:
    """What the card will say of a recipe's model. Raises UserError (BadRunRecipe)."""
    from assay.training.recipes.in_rounds import bad_run_recipe
    from assay.training.recipes.outline import outline_of

    outline = replace(outline_of(recipe.module, names), tokenizer=recipe.tokenizer or b"")
    size = sum(t.nbytes for t in outline.constants.values())
    if size > MAX_CONSTANTS // 2:
        raise bad_run_recipe(
            f"The module keeps {size} bytes of buffers that no step changes; a run takes {MAX_CONSTANTS // 2}.",
            "Register them with persistent=False, and make them when the module is made.",
        )
    if outline.tokenizer and not is_tokenizer(outline.tokenizer):
        # Readers would refuse the card, and say so only when the run stands on chain.
        raise bad_run_recipe(
            "The recipe's tokenizer is no JSON object of a run's size.", "Give the bytes of a tokenizer.json."
        )
    return ModelOrigin(recipe=name, names=tuple(names), outline=outline)


def prepared_rounds(
    origin: ModelOrigin,
    program: Program,
    state: Sequence[Sequence[Tensor]],
    seats: int,
    inner_steps: int,
    wire: UpdateWire | None = None,
    group_size: int | None = None,
    *,
    statistics: int = 0,
    momentum: Sequence[Tensor] | None = None,
    kind: MergeKind | None = None,
    guard: Guard | None = None,
    sums: UpdateWire | None = None,
) -> PreparedRounds:
    """What a run of any captured step starts from; state: its first lists. Raises as `prepare_rounds`.

    statistics: how many tensors at the end of the parameters are running statistics. momentum: the first outer
    momentum, laid out as the parameters; zeros unless given. kind: of a merge, the mean unless given. guard: behind
    the merge. sums: how sums of groups travel, f32 unless given.
    """
    from assay.engine.runtime.values.state_io import list_roots, root_of, to_lists_of_bytes
    from assay.protocol.trees.state import TrainingList
    from assay.training.merge import MergeRule, usual_limit
    from assay.training.outer import zero_momentum
    from assay.training.programs import generation_program, merge_program, partial_program, update_program
    from assay.training.robust import MergeKind
    from assay.training.state import SCALAR_NAMES, Scalars
    from assay.training.updates import UpdateWire, zero_update

    wire, sums = wire or UpdateWire.F32, sums or UpdateWire.F32
    parameters, optimizer, slots = state
    scalars = Scalars.from_list(slots[: len(SCALAR_NAMES)])
    limit = usual_limit(inner_steps, float(scalars.learning_rate))
    rule = MergeRule(limit=limit, statistics=statistics, kind=kind or MergeKind.MEAN)
    size = group_size_of(seats, group_size)
    check_sums(sums, size)
    if size:
        merge_of_all = generation_program(parameters, -(-seats // size), rule, guard, sums)
    else:
        merge_of_all = merge_program(parameters, seats, rule, wire, guard)
    plain = (program, update_program(parameters, wire, statistics=statistics), merge_of_all, witnessed_program(program))
    programs = (*plain, partial_program(parameters, size, rule, wire, sums)) if size else plain
    roots = list_roots(state)
    zeros = zero_momentum(parameters)
    nothing = [zero_update(parameters, one, statistics=statistics) for one in (wire, sums)]
    still, absent, no_sum = list_roots([zeros, *nothing])
    step, update, merge, witness = (ProgramRef.of(p) for p in plain)
    genesis = Genesis(
        step=step,
        update=update,
        merge=merge,
        witness=witness,
        parameters=roots[TrainingList.PARAMETERS],
        momentum=still if momentum is None else list_roots([list(momentum)])[0],
        zero_optimizer=roots[TrainingList.OPTIMIZER],
        zero_update=absent,
        data=root_of(scalars.data),
        data_length=scalars.data.shape[0],
        group_size=size,
        partial_sum=ProgramRef.of(programs[-1]) if size else NO_PROGRAM,
        zero_partial=no_sum if size else ZERO,
        learning_rate=int.from_bytes(to_lists_of_bytes([[scalars.learning_rate]])[0][0], "little"),
    )
    first = tuple(parameters), tuple(optimizer)
    return PreparedRounds(origin, programs, *first, scalars.data, genesis, inner_steps, momentum=tuple(momentum or ()))
