"""A recipe in a comparison, trained by the very programs of a run of it (`assay run post --recipe`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Final

from torch import Tensor, nn

from assay.bench.methods.poison import ATTACKS, NO_POISON
from assay.bench.methods.trained import TrainedStep
from assay.engine.compiler.capture import capture
from assay.engine.compiler.lowering.registry import FIXED14
from assay.engine.compiler.randomness import Randomness
from assay.engine.runtime.values.dtypes import to_bytes
from assay.engine.runtime.values.state_io import list_roots
from assay.programs.capture import CapturedRecipe, capture_recipe
from assay.programs.factory import load_recipe, takes_seed
from assay.protocol.errors import UsageError
from assay.protocol.program.program import Program
from assay.training.guard import Guard
from assay.training.methods.ranked import RankStep
from assay.training.optimizer import AdamW, Grouped, Muon, ParameterGroup
from assay.training.outer import zero_momentum
from assay.training.recipes.evaluation import RecipeEvaluation
from assay.training.recipes.in_rounds import bad_run_recipe, lasting_recipe, recipe_in_rounds
from assay.training.recipes.recipe import Recipe, RecipeStep
from assay.training.state import SCALAR_NAMES, Scalars

_RATE: Final = SCALAR_NAMES.index("learning_rate")


@dataclass(frozen=True)
class RecipeModel:
    """A recipe by its factory's name, for up to so many workers. See TrainedModel."""

    name: str
    workers: int

    @cached_property
    def recipe(self) -> Recipe:
        """As the factory makes it for a run. Raises what `load_recipe` does; UserError (BadRunRecipe)."""
        found = load_recipe(self.name)
        if not found.validation:
            raise bad_run_recipe(f"{self.name} holds no example out.", "Give it validation=, which losses are read on.")
        return found

    @property
    def data(self) -> Tensor:
        """Examples [N, ...] as a state holds them."""
        return self._step.state()[2][len(SCALAR_NAMES) - 1]

    @property
    def examples(self) -> int:
        """Examples of a batch; of windows, their entries."""
        return self.recipe.batch_size * (self.recipe.window or 1)

    @cached_property
    def learning_rate(self) -> float:
        """The optimizer's."""
        return float(Scalars.from_list(self._step.state()[2]).learning_rate)

    @property
    def weight_decay(self) -> float:
        """The optimizer's. Raises UsageError (MethodNotForRecipe)."""
        return self._adamw.weight_decay

    @property
    def statistics(self) -> int:
        """Those that a run merges."""
        return len(self._step.carried)

    @cached_property
    def digest(self) -> str:
        """Of what is trained on and what is held out, the step, its rate and where it starts: a recipe's name stays
        while its code changes.
        """
        held_out, state = lasting_recipe(self.recipe).validation or (), self._step.state()
        parts = [self._lasting.program.root, *(to_bytes(t) for t in (state[2][_RATE], self.data, *held_out))]
        return sha256(b"".join([*parts, *list_roots([state[0]])])).hexdigest()[:16]

    def start(self, seed: int, *, as_a_run: bool) -> list[Tensor]:
        """The module's own values, as a run has them, or, of a factory that takes a `seed`, those of this one."""
        is_the_runs = as_a_run or not takes_seed(self.name)
        made = self.recipe if is_the_runs else load_recipe(self.name, seed)
        return RecipeStep(lasting_recipe(made), merges_statistics=True).state()[0]

    def restarting(self, inner_steps: int) -> TrainedStep:
        """See TrainedModel. Raises what capture does; UserError (BadRunRecipe, MixedData)."""
        return _trained(_captured(recipe_in_rounds(self.recipe, self.workers, inner_steps)))

    def lasting(self) -> TrainedStep:
        """See TrainedModel."""
        return self._lasting

    def with_muon(self, inner_steps: int) -> TrainedStep:
        """Muon for matrices but tables, the first and the last, AdamW as it is for all else."""
        adamw, inside = self._adamw, self._hidden_matrices()
        outside = tuple(k for k in range(len(self._step.names)) if k not in inside)
        muon = Muon(weight_decay=adamw.weight_decay, adjust="match_rms_adamw")
        both = Grouped((ParameterGroup(inside, muon), ParameterGroup(outside, adamw)))
        changed = replace(self.recipe, optimizer=both, learning_rate=self.learning_rate)
        return _trained(_captured(recipe_in_rounds(changed, self.workers, inner_steps)))

    def of_a_rank(self, scalars: list[Tensor]) -> Program:
        """See TrainedModel."""
        zeros = zero_momentum(self._step.state()[0])
        return capture(RankStep(_BatchGradients(self._step)), (zeros, zeros, scalars), FIXED14).program

    def loss(self, parameters: Sequence[Tensor]) -> float:
        """The mean of the recipe's own loss on what is held out, in eval mode, by stock PyTorch."""
        return self._evaluation.held_out_loss(parameters)

    def guard(self, tolerance: float) -> Guard:
        """There is none behind merges of recipes."""
        raise self._refused("A guard", "a text")

    def poisoned(self, poison: str) -> RecipeModel:
        """Poisons of what is sent are for every model; those of texts are not."""
        if poison != NO_POISON and poison not in ATTACKS:
            raise self._refused(f"The poison {poison}", "a text")
        return self

    def fooled(self, parameters: Sequence[Tensor], poison: str) -> float:
        """No trigger is planted."""
        return 0.0

    def check(self, *, has_muon: bool = False, has_ranks: bool = False) -> None:
        """See TrainedModel."""
        if has_muon or has_ranks:
            _ = self._adamw
        if has_muon:
            self._hidden_matrices()
        if has_ranks and self._step.buffers:
            raise self._refused("A seat of ranks", "no buffers that a step changes")

    @cached_property
    def _lasting(self) -> TrainedStep:
        return _trained(_captured(lasting_recipe(self.recipe)))

    @cached_property
    def _step(self) -> RecipeStep:
        return RecipeStep(lasting_recipe(self.recipe), merges_statistics=True)

    @cached_property
    def _evaluation(self) -> RecipeEvaluation:
        return RecipeEvaluation(lasting_recipe(self.recipe))

    @property
    def _adamw(self) -> AdamW:
        """The one optimizer of every parameter. Raises UsageError (MethodNotForRecipe)."""
        optimizer, every = self._step.optimizer, tuple(range(len(self._step.names)))
        groups = optimizer.groups if isinstance(optimizer, Grouped) else ()
        if len(groups) == 1 and groups[0].positions == every and isinstance(groups[0].optimizer, AdamW):
            return groups[0].optimizer
        raise self._refused("A method with an optimizer of its own", "one AdamW for all of its parameters")

    def _hidden_matrices(self) -> tuple[int, ...]:
        """Positions of what Muon turns. Raises UsageError (MethodNotForRecipe)."""
        tables = {id(part.weight) for part in self.recipe.module.modules() if isinstance(part, nn.Embedding)}
        own = enumerate(self.recipe.module.parameters())
        matrices = [k for k, p in own if p.ndim == 2 and id(p) not in tables]
        if len(matrices) < 3:
            raise self._refused("Muon", "a matrix between its first and its last")
        return tuple(matrices[1:-1])

    def _refused(self, what: str, lacking: str) -> UsageError:
        return UsageError(
            f"{what} is not compared on {self.name}: it is for models with {lacking}.",
            code="MethodNotForRecipe",
            remedy="Leave it out, or train a preset: --preset.",
        )


class _BatchGradients:
    """Gradients of the recipe's loss on the batch that scalars draw."""

    def __init__(self, step: RecipeStep) -> None:
        self._step, self.hidden = step, step.hidden

    def __call__(self, parameters: Sequence[Tensor], scalars: Sequence[Tensor]) -> list[Tensor]:
        now = Scalars.from_list(scalars[: len(SCALAR_NAMES)])
        mode = Randomness(now.key, now.step)
        own, _ = self._step.tensors_of((parameters, ()))
        return [g.float() for g in self._step.gradients(own, [], self._step.batch(scalars), mode)[0]]


def _captured(recipe: Recipe) -> CapturedRecipe:
    return capture_recipe(recipe, merges_statistics=True)


def _trained(captured: CapturedRecipe) -> TrainedStep:
    return TrainedStep(captured.program, captured.state[1])
