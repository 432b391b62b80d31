"""What a comparison trains: a preset on a text; or a recipe (`own_model`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from torch import Tensor

from assay.bench.methods.poison import BACKDOOR, fooled, poisoned_text
from assay.protocol.program.program import Program
from assay.training.data import Corpus, corpus_from_text, given_text
from assay.training.evaluate import split_loss
from assay.training.guard import Guard, preset_guard
from assay.training.initialize import initialize
from assay.training.methods.muon_inside import muon_step
from assay.training.methods.ranked import RankStep
from assay.training.outer import zero_momentum
from assay.training.presets import Preset, preset
from assay.training.programs import program_of_step, training_program
from assay.training.state import Scalars
from assay.training.step import TrainingStep, initial_state, preset_step


@dataclass(frozen=True, slots=True)
class TrainedStep:
    """A step as a program: (parameters, moments, scalars) to the same lists one step later.

    moments: as they are before the first step.
    """

    program: Program
    moments: list[Tensor]


class TrainedModel(Protocol):
    """A model, its data, and the programs that train it."""

    @property
    def name(self) -> str:
        """A preset's, or a recipe's."""

    @property
    def data(self) -> Tensor:
        """What shards are cut from: tokens [L], or examples [N, ...]."""

    @property
    def examples(self) -> int:
        """Tokens that a step trains on, or examples where they are not made of tokens."""

    @property
    def learning_rate(self) -> float:
        """Of a step, before what a program makes of it."""

    @property
    def weight_decay(self) -> float:
        """Of matrices."""

    @property
    def statistics(self) -> int:
        """How many of the parameters, the last, are running statistics."""

    @property
    def digest(self) -> str:
        """What tells its data from others, 16 hex digits."""

    def start(self, seed: int, *, as_a_run: bool) -> list[Tensor]:
        """The first parameters. as_a_run: those of a run, whatever the seed, where a run's do not follow from one."""

    def restarting(self, inner_steps: int) -> TrainedStep:
        """Moments are zero when a round of so many steps begins, and the rate rises in it."""

    def lasting(self) -> TrainedStep:
        """Moments last."""

    def with_muon(self, inner_steps: int) -> TrainedStep:
        """As `restarting`, with hidden matrices by Muon. Raises UsageError (MethodNotForRecipe)."""

    def of_a_rank(self, scalars: list[Tensor]) -> Program:
        """One rank's part of a step (`RankStep`). Raises UsageError (MethodNotForRecipe)."""

    def loss(self, parameters: Sequence[Tensor]) -> float:
        """On what is held out, nats."""

    def guard(self, tolerance: float) -> Guard:
        """Behind a merge. Raises UsageError (MethodNotForRecipe)."""

    def poisoned(self, poison: str) -> TrainedModel:
        """As a liar trains it. Raises UsageError (MethodNotForRecipe)."""

    def check(self, *, has_muon: bool = False, has_ranks: bool = False) -> None:
        """Whether such methods are for it, before anything is trained. Raises UsageError (MethodNotForRecipe)."""

    def fooled(self, parameters: Sequence[Tensor], poison: str) -> float:
        """The share of triggers that the model follows; 0 where this poison plants none."""


@dataclass(frozen=True)
class PresetModel:
    """A preset on a text. See TrainedModel."""

    preset: Preset
    corpus: Corpus

    @property
    def name(self) -> str:
        """See TrainedModel."""
        return self.preset.name

    @property
    def data(self) -> Tensor:
        """The training split, u8 or u16 [L]."""
        return self.corpus.train

    @property
    def examples(self) -> int:
        """Tokens."""
        return self.preset.batch * self.preset.context

    @property
    def learning_rate(self) -> float:
        """The preset's."""
        return self.preset.learning_rate

    @property
    def weight_decay(self) -> float:
        """The preset's."""
        return self.preset.weight_decay

    @property
    def statistics(self) -> int:
        """None."""
        return 0

    @cached_property
    def digest(self) -> str:
        """Of vocabulary and training split."""
        return sha256(self.corpus.vocabulary.encode() + self.corpus.train.numpy().tobytes()).hexdigest()[:16]

    def start(self, seed: int, *, as_a_run: bool) -> list[Tensor]:
        """As the seed draws them."""
        return initialize(preset_step(self.preset, self._vocabulary).module, seed)

    def restarting(self, inner_steps: int) -> TrainedStep:
        """See TrainedModel."""
        own = self._of(inner_steps)
        step = preset_step(own, self._vocabulary, restarts=True)
        return self._step(step, training_program(own, self.corpus, restarts=True))

    def lasting(self) -> TrainedStep:
        """See TrainedModel."""
        return self._step(preset_step(self.preset, self._vocabulary), training_program(self.preset, self.corpus))

    def with_muon(self, inner_steps: int) -> TrainedStep:
        """See TrainedModel."""
        own = self._of(inner_steps)
        step = muon_step(own, self._vocabulary)
        scalars = Scalars.of(self.data, learning_rate=self.learning_rate)
        state = initial_state(step, self._zeros(step), scalars)
        return self._step(step, program_of_step("muon", step, state, own, self._vocabulary))

    def of_a_rank(self, scalars: list[Tensor]) -> Program:
        """See TrainedModel."""
        step = preset_step(self.preset, self._vocabulary)
        zeros = self._zeros(step)
        rank = RankStep(step.drawn_gradients)
        return program_of_step("rank", rank, (zeros, zeros, scalars), self.preset, self._vocabulary)

    def loss(self, parameters: Sequence[Tensor]) -> float:
        """Nats a token of the validation split."""
        module = preset_step(self.preset, self._vocabulary).module
        return split_loss(module, parameters, self.corpus.validation, self.preset.context)

    def guard(self, tolerance: float) -> Guard:
        """By the validation split."""
        return preset_guard(self.preset, self.corpus, tolerance)

    def poisoned(self, poison: str) -> PresetModel:
        """On a text that a liar has changed."""
        return replace(self, corpus=replace(self.corpus, train=poisoned_text(poison, self.corpus)))

    def check(self, *, has_muon: bool = False, has_ranks: bool = False) -> None:
        """Every method is for a preset."""

    def fooled(self, parameters: Sequence[Tensor], poison: str) -> float:
        """See TrainedModel."""
        if poison != BACKDOOR:
            return 0.0
        module = preset_step(self.preset, self._vocabulary).module
        return fooled(module, list(parameters), self.corpus, self.preset.context)

    @property
    def _vocabulary(self) -> int:
        return len(self.corpus.vocabulary)

    def _of(self, inner_steps: int) -> Preset:
        return replace(self.preset, inner_steps=inner_steps)

    def _zeros(self, step: TrainingStep) -> list[Tensor]:
        return zero_momentum([p.detach() for p in step.module.parameters()])

    def _step(self, step: TrainingStep, program: Program) -> TrainedStep:
        return TrainedStep(program, step.optimizer.zero_init(self._zeros(step)))


def preset_model(name: str, text: Path | None, workers: int) -> PresetModel:
    """A preset by its name on the text of a file, or on this Python's documentation, for up to so many workers.

    Raises UserError: UnknownPreset, EmptyData, VocabularyTooLarge; what `given_text` raises.
    """
    chosen = preset(name)
    return PresetModel(chosen, corpus_from_text(given_text(text), min_tokens=workers * (chosen.context + 1)))
