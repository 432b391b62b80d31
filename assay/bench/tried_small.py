"""The step of a large model, tried on one example: on its whole batch trials take a CPU minutes before any is measured.

A trial finds which buffers a step changes, what the loss reaches and whether values decide what is computed. None of
that hangs on how many examples a batch has in the models that are measured here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.func import functional_call

from assay.engine.compiler.randomness import Randomness
from assay.training.recipes.recipe import Recipe, RecipeStep


class TriedSmall(RecipeStep):
    """A recipe's step, and what a trial of one example says of it. For programs that are measured, and never run by
    anyone with a stake: a trace of the whole batch is compared with nothing.
    """

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(replace(recipe, batch_size=1, micro_batches=1))
        self.recipe = recipe

    def _called(
        self, given: dict[str, Tensor], batch: Sequence[Tensor], wanted: Sequence[Tensor], mode: Randomness
    ) -> tuple[Tensor, list[Tensor | None]]:
        if not isinstance(batch[0], FakeTensor) or self._tied:
            return super()._called(given, batch, wanted, mode)
        lent = dict(given)
        found: tuple[Tensor, list[Tensor | None]] = functional_call(
            self._carrier, lent, (batch, wanted, mode), tie_weights=False
        )
        given.update(lent)
        return found
