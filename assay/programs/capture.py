"""From a recipe to a program with names, source lines and a rounding report.

captured = capture_recipe(recipe)
Executor(captured.program).repeat(captured.state, 100)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from assay.engine.compiler.calibrate import calibrated
from assay.engine.compiler.capture import Captured, capture
from assay.engine.compiler.losses import PrecisionLoss, losses
from assay.engine.compiler.lowering.registry import FIXED8, FIXED14, FIXED22, Precision
from assay.engine.runtime.executor import Executor
from assay.engine.runtime.values import state_io
from assay.protocol.errors import UsageError
from assay.protocol.program.program import Program
from assay.training.recipes.recipe import Recipe, RecipeStep
from assay.training.state import TensorLists

TIERS: Final = {"fixed8": FIXED8, "fixed14": FIXED14, "fixed22": FIXED22}


@dataclass(frozen=True)
class CapturedRecipe:
    """A program, the state that it starts from, and what is known of its nodes.

    slots: names of the tensors of X and Y, per list. sources: the user's line per node. rounding: what each product's
    operands lose on the first batch, the largest error first. after: root of the state one step later. unreached:
    parameters that the loss does not reach. mapped: sentences on what is 16 bits wide in the user's code. carried:
    running statistics at the end of the first list.
    """

    program: Program
    state: TensorLists
    slots: tuple[list[str], list[str], list[str]]
    sources: dict[int, str]
    rounding: list[PrecisionLoss]
    first_loss: float
    after: bytes
    tier: str
    unreached: list[str]
    mapped: list[str]
    carried: list[str]

    def report(self) -> dict[str, Any]:
        """What is written beside the program file, as plain JSON."""
        return {
            "program": "0x" + self.program.root.hex(),
            "tier": self.tier,
            "slots": [list(part) for part in self.slots],
            "sources": {str(k): line for k, line in sorted(self.sources.items()) if line},
            "rounding": [rounding_document(loss) for loss in self.rounding],
            "first_loss": self.first_loss,
            "unreached": self.unreached,
            "mapped": self.mapped,
            "state_root": "0x" + state_io.state_root(self.state).hex(),
            "state_root_after_one_step": "0x" + self.after.hex(),
        }


def capture_recipe(
    recipe: Recipe, tier: str = "fixed14", *, calibrate: bool = True, merges_statistics: bool = False
) -> CapturedRecipe:
    """The program of one step of a recipe.

    tier: fixed8, fixed14 or fixed22. calibrate: operands whose error on the first batch is above their limit get more
    bits, or their outlier columns a product of their own. merges_statistics: as in a run, running statistics are in the
    first list.

    Raises:
        UsageError: UnknownTier.
        CannotLowerError, UserError: the recipe has no exact form; all offenders are named with their lines.
    """
    step = RecipeStep(recipe, merges_statistics=merges_statistics)
    state = step.state()
    precision = tier_of(tier)
    if calibrate:
        captured, report = calibrated(step, state, precision)
    else:
        captured = capture(step, state, precision)
        report = losses(captured, state)
    return _finished(step, state, captured, report, tier)


def tier_of(name: str) -> Precision:
    """The precision of a tier's name. Raises UsageError (UnknownTier)."""
    if name not in TIERS:
        raise UsageError(f"There is no tier {name!r}.", code="UnknownTier", remedy=f"Choose one of {', '.join(TIERS)}.")
    return TIERS[name]


def _finished(
    step: RecipeStep, state: TensorLists, captured: Captured, report: list[PrecisionLoss], tier: str
) -> CapturedRecipe:
    after = state_io.state_root(Executor(captured.program).run(state))
    return CapturedRecipe(
        captured.program,
        state,
        step.slot_names,
        dict(captured.sources),
        report,
        step.first_loss,
        after,
        tier,
        step.unreached,
        step.mapped(captured.narrowed, tier),
        step.carried,
    )


def rounding_document(loss: PrecisionLoss) -> dict[str, Any]:
    """One operand's loss as plain JSON."""
    return {
        "node": loss.node,
        "side": loss.side,
        "bits": loss.bits,
        "error": loss.error,
        "zeroed": loss.zeroed,
        "worst_row": loss.worst,
        "above_limit": loss.is_above_limit,
        "whole": loss.whole,
        "source": loss.source,
    }
