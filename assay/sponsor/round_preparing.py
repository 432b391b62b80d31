"""What a run of the second round starts from, before anything is posted: four programs, data, first lists, their roots.

Moments are zero when a round begins, so the rate rises anew in each; the witnessed step follows from the plain one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.protocol.program.witness import witnessed_program
from assay.protocol.run.charter import ProgramRef
from assay.sponsor.preparing import GENESIS_SEED, ModelOrigin
from assay.sponsor.round_charters import RoundGenesis

if TYPE_CHECKING:
    from torch import Tensor

    from assay.protocol.program.program import Program
    from assay.training.presets import Preset
    from assay.training.updates import UpdateWire


@dataclass(frozen=True, slots=True)
class PreparedRounds:
    """All that a run starts from. programs: step, update, merge, witness. data: the tensor that shards are cut from.

    inner_steps: H, the steps of a whole commitment, at which the rate begins to rise anew.
    """

    origin: ModelOrigin
    programs: tuple[Program, Program, Program, Program]
    parameters: tuple[Tensor, ...]
    optimizer: tuple[Tensor, ...]
    data: Tensor
    genesis: RoundGenesis
    inner_steps: int


def prepare_rounds(
    preset: Preset, text: str, seats: int, seed: int = GENESIS_SEED, wire: UpdateWire | None = None
) -> PreparedRounds:
    """Captures a preset's programs for a text and a number of seats, at most 64, and draws the first parameters.

    wire: how updates travel, f32 unless given.

    Raises UserError (EmptyData, VocabularyTooLarge), NumericsError (CannotLower), RejectedError (NoWitness).
    """
    from assay.training.data import corpus_from_text
    from assay.training.initialize import initialize
    from assay.training.programs import training_program
    from assay.training.state import Scalars
    from assay.training.step import initial_state, preset_step

    corpus = corpus_from_text(text, min_tokens=seats * (preset.context + 1))
    step = preset_step(preset, len(corpus.vocabulary), restarts=True)
    scalars = Scalars.of(corpus.train, learning_rate=preset.learning_rate)
    state = initial_state(step, initialize(step.module, seed), scalars)
    program = training_program(preset, corpus, restarts=True)
    origin = ModelOrigin(preset=preset.name, text=text.encode())
    return _prepared(origin, program, state, seats, preset.inner_steps, wire)


def _prepared(
    origin: ModelOrigin,
    program: Program,
    state: Sequence[Sequence[Tensor]],
    seats: int,
    inner_steps: int,
    wire: UpdateWire | None,
) -> PreparedRounds:
    from assay.engine.runtime.values.state_io import list_roots, root_of, to_lists_of_bytes
    from assay.protocol.trees.state import TrainingList
    from assay.training.merge import MergeRule, usual_limit
    from assay.training.outer import zero_momentum
    from assay.training.programs import merge_program, update_program
    from assay.training.state import SCALAR_NAMES, Scalars
    from assay.training.updates import UpdateWire, zero_update

    wire = wire or UpdateWire.F32
    parameters, optimizer, slots = state
    scalars = Scalars.from_list(slots[: len(SCALAR_NAMES)])
    rate = float(scalars.learning_rate)
    programs = (
        program,
        update_program(parameters, wire),
        merge_program(parameters, seats, MergeRule(limit=usual_limit(inner_steps, rate)), wire),
        witnessed_program(program),
    )
    roots = list_roots(state)
    momentum, absent = list_roots([zero_momentum(parameters), zero_update(parameters, wire)])
    step, update, merge, witness = (ProgramRef.of(p) for p in programs)
    genesis = RoundGenesis(
        step=step,
        update=update,
        merge=merge,
        witness=witness,
        parameters=roots[TrainingList.PARAMETERS],
        momentum=momentum,
        zero_optimizer=roots[TrainingList.OPTIMIZER],
        zero_update=absent,
        data=root_of(scalars.data),
        data_length=scalars.data.shape[0],
        learning_rate=int.from_bytes(to_lists_of_bytes([[scalars.learning_rate]])[0][0], "little"),
    )
    return PreparedRounds(origin, programs, tuple(parameters), tuple(optimizer), scalars.data, genesis, inner_steps)
