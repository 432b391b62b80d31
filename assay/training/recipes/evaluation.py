"""The loss of a recipe on held-out examples, as a program that anybody runs on the weights of any generation.

It is the recipe's own loss with its module in eval mode: dropout rests, running statistics are those of the weights.

Shapes: B examples that the program takes at once, W entries of a window, N examples in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from assay.engine.compiler.capture import capture
from assay.engine.compiler.lowering.registry import FIXED14, Precision
from assay.engine.compiler.randomness import Randomness
from assay.protocol.program.program import Program
from assay.training.recipes.form import Recipe
from assay.training.recipes.recipe import RecipeStep
from assay.training.recipes.storage import held, stored

KEY, STEP = torch.tensor((1, 2), dtype=torch.int32), torch.tensor((0, 1), dtype=torch.int32)
"""Of what a loss draws in eval mode too. Of unlike words: `random` reads nodes; a constant of one number is none."""


@dataclass(frozen=True)
class Validation:
    """program: (parameters as in a run, (examples [B, ...])) to ((loss f32 [])). examples: [N, ...], N a multiple of B,
    windows cut apart.
    """

    program: Program
    examples: Tensor


class RecipeEvaluation:
    """The loss of B examples: (parameters, (examples)) to ((loss)), for a recipe of one data tensor."""

    def __init__(self, recipe: Recipe) -> None:
        self.step = RecipeStep(recipe, merges_statistics=True)
        self.hidden = replace(self.step.hidden, calls_are_checked=False)
        self._type = recipe.data[0].dtype
        named, step = dict(recipe.module.named_buffers()), self.step
        self._kept = [stored(named[n].detach()) for n in step.buffers[len(step.carried) :]]

    def __call__(self, parameters: Sequence[Tensor], examples: Sequence[Tensor]) -> tuple[list[Tensor]]:
        """The mean loss; what is drawn in eval mode is drawn alike each time."""
        count = len(self.step.names)
        batch = [held(t, self._type) for t in examples]
        mode, module = Randomness(KEY.clone(), STEP.clone()), self.step.recipe.module
        with resting(module), torch.no_grad():
            buffers = [*parameters[count:], *self._kept]
            own, _ = self.step.tensors_of((parameters, self._kept))
            return ([self.step.loss_of(own, buffers, batch, mode)[0]],)

    def held_out_loss(self, parameters: Sequence[Tensor]) -> float:
        """The mean over the recipe's validation, by stock PyTorch; a rest smaller than a batch is left out."""
        examples, at_once = _held_out(self.step.recipe)
        losses = [self(parameters, [part])[0][0] for part in torch.split(examples, at_once)]
        return float(torch.stack(losses).double().mean())


def captured_validation(recipe: Recipe, precision: Precision = FIXED14) -> Validation | None:
    """The program of a recipe's validation, None where it has none; the recipe has one data tensor.

    Raises: as `capture`.
    """
    if not recipe.validation:
        return None
    examples, at_once = _held_out(recipe)
    return Validation(_captured(recipe, examples[:at_once], precision), examples)


def captured_loss(recipe: Recipe, precision: Precision = FIXED14) -> Program:
    """The same program for as many of the recipe's own examples as a batch has, or as there are.

    Raises: as `capture`.
    """
    examples = _cut_apart(recipe, recipe.data[0][: recipe.batch_size * (recipe.window or 1)])
    return _captured(recipe, examples.contiguous(), precision)


def _held_out(recipe: Recipe) -> tuple[Tensor, int]:
    """Examples [N, ...], N a multiple of how many are taken at once."""
    assert recipe.validation
    examples = _cut_apart(recipe, recipe.validation[0])
    at_once = min(recipe.batch_size, examples.shape[0])
    return examples[: examples.shape[0] // at_once * at_once].contiguous(), at_once


def _cut_apart(recipe: Recipe, t: Tensor) -> Tensor:
    """Examples [N, ...] as a state holds them; of a stream, windows that do not overlap."""
    examples = stored(t)
    if recipe.window is None:
        return examples
    count = examples.shape[0] // recipe.window
    return examples[: count * recipe.window].reshape(count, recipe.window, *examples.shape[1:])


def _captured(recipe: Recipe, examples: Tensor, precision: Precision) -> Program:
    evaluation = RecipeEvaluation(recipe)
    return capture(evaluation, [evaluation.step.state()[0], [examples]], precision).program


@contextmanager
def resting(module: nn.Module) -> Iterator[None]:
    """A block in which a module is in eval mode; afterwards each part is in the mode that it was in."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode
