"""Schedulers of `torch.optim.lr_scheduler` as a recipe's schedule: a table of the rates that they set, step by step.

optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)
Recipe(module, loss, optimizer, data, 32, schedule=followed(scheduler, steps=1000))
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose, isfinite
from typing import Any, Final

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from assay.engine import ops
from assay.protocol.errors import UserError

MOST_STEPS: Final = 1 << 20
"""Steps of a table: 4 MB of a program."""

_EQUAL: Final = 1e-9
"""Relative: rates of two groups that stay so near to one proportion have one schedule."""


@dataclass(frozen=True, eq=False)
class FollowedSchedule:
    """What a scheduler makes of the rate when it is called once after each step: a schedule as recipes take them.

    factors: f32 [steps], the rate of each step over the largest. peaks: the largest rate of each group of the
    optimizer. schedulers: the one that is followed, and those inside it. After the table the last rate stays.
    """

    optimizer: torch.optim.Optimizer
    schedulers: tuple[LRScheduler, ...]
    factors: Tensor
    peaks: tuple[float, ...]

    def __call__(self, step: Tensor) -> Tensor:
        """The factor, f32 [], of a step, f32 []."""
        last = self.factors.shape[0] - 1
        return ops.take(self.factors, step.to(torch.int32).clamp(0, last))


def followed(scheduler: LRScheduler, steps: int) -> FollowedSchedule:
    """The schedule of a scheduler that is called once after each of `steps` steps; it and its optimizer are not moved.

    Raises:
        UserError: UnfollowedScheduler, where its rates depend on losses or chance, or it moves more than the rate.
    """
    name = type(scheduler).__name__
    if isinstance(scheduler, ReduceLROnPlateau):
        raise _refused(f"{name} sets rates by losses, which no table knows.", "Use one that counts steps alone.")
    if not 1 <= steps <= MOST_STEPS:
        raise _refused(f"A table of {steps} steps cannot be made.", f"Give from 1 to {MOST_STEPS} steps.")
    rates = _rates(scheduler, steps)
    if rates != _rates(scheduler, steps):
        raise _refused(
            f"{name} sets other rates when it is asked again.", "Make its function depend on the step alone."
        )
    peaks = tuple(max(column) for column in zip(*rates, strict=True))
    leading = next((k for k, peak in enumerate(peaks) if peak), 0)
    factors = [row[leading] / peaks[leading] if peaks[leading] else 0.0 for row in rates]
    for number, peak in enumerate(peaks):
        wrong = [k for k, f in enumerate(factors) if not isclose(rates[k][number], f * peak, rel_tol=_EQUAL)]
        if wrong:
            raise _refused(
                f"{name} gives parameter groups {leading} and {number} schedules of their own (step {wrong[0]}).",
                "Give all groups one schedule; their rates may differ by a factor.",
            )
    table = torch.tensor(factors, dtype=torch.float32)
    return FollowedSchedule(scheduler.optimizer, tuple(_inside(scheduler)), table, peaks)


def _rates(scheduler: LRScheduler, steps: int) -> list[list[float]]:
    """The rate of each group in each step, by a copy. Raises UserError (UnfollowedScheduler)."""
    name = type(scheduler).__name__
    kept = {id(p): p for group in scheduler.optimizer.param_groups for p in group["params"]}
    try:
        twin = copy.deepcopy(scheduler, dict(kept))
    except TypeError as error:
        raise _refused(f"{name} cannot be copied: {error}.", _BY_FUNCTION) from None
    groups = twin.optimizer.param_groups
    before = [_others(group) for group in groups]
    rates: list[list[float]] = []
    with warnings.catch_warnings():
        # It says that the optimizer has taken no step, which is so.
        warnings.simplefilter("ignore")
        for step in range(steps):
            if step:
                _advance(twin, name, step)
            rates.append([float(group["lr"]) for group in groups])
            moved = [key for group, was in zip(groups, before, strict=True) for key in was if group[key] != was[key]]
            if moved:
                raise _refused(
                    f"{name} moves {moved[0]} as well as the rate, which is a constant of a program.",
                    "Give it cycle_momentum=False.",
                )
            if not all(isfinite(rate) and rate >= 0.0 for rate in rates[-1]):
                raise _refused(f"{name} sets the rate {rates[-1]} in step {step}.", "Keep rates at 0 or above.")
    return rates


def _advance(twin: LRScheduler, name: str, step: int) -> None:
    try:
        twin.step()
    except Exception as error:
        raise _refused(f"{name} fails before step {step}: {error}", f"Give steps={step} or fewer.") from None


def _others(group: Mapping[str, Any]) -> dict[str, Any]:
    """What a group says beside its parameters and rates."""
    rates = ("params", "lr", "initial_lr", "max_lr", "min_lr")
    return {key: value for key, value in group.items() if key not in rates and not isinstance(value, Tensor)}


def _inside(scheduler: LRScheduler) -> list[LRScheduler]:
    """The scheduler and all that it calls."""
    return [scheduler, *(s for part in getattr(scheduler, "_schedulers", ()) for s in _inside(part))]


_BY_FUNCTION: Final = "Give the recipe schedule=, a function of the step (assay/training/schedules.py)."


def _refused(what: str, remedy: str) -> UserError:
    return UserError(what, code="UnfollowedScheduler", remedy=remedy)
