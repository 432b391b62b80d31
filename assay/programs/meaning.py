"""What a program means beside what the stock step means: both over real numbers, where rounding has no say (ADR 46).

The program's nodes are computed in float64 without their grids, and so is every operation that the stock step calls. A
program that means the stock step agrees with it however ill-conditioned a model is; one that means something else does
not. Beside that, every product and sum of an exact step is compared with its own real value: what is then left between
a program and stock PyTorch is rounding.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import _disable_current_modes

from assay.engine.compiler.as_traced import without_onednn
from assay.programs.own_rounding import first_off_grid
from assay.programs.real_program import RealProgram
from assay.programs.real_stock import RealNumbers
from assay.programs.stock_run import RunNoise, StockRun, rms
from assay.protocol.program.program import Program
from assay.training.recipes.recipe import RecipeStep

MEANT: Final = 2.0**-18
"""What a tensor may be off over the way that the stock run moves it: constants that capture computes have 24 bits."""

_NUDGE: Final = 2.0**-40
"""How much a second run is disturbed: far below what a program's constants round, far above what f64 rounds."""

_SPREAD: Final = 4.0
"""So many times what the nudge changes is rounding: it is one disturbance of many."""

_UNDETERMINED: Final = 2.0**-4
"""A nudge that changes a tensor by more than this share of its way: its gradient is zero but for rounding."""

FEWEST: Final = 3
"""Steps that are compared at least: the second is the first that moments of an optimizer have a say in."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What `steps` steps over real numbers showed.

    worst: the largest difference of a tensor over its way in any step, and worst_tensor, where. share: the largest
    part of what a tensor may be off: 2^-18, and four times what the disturbance changed. determined: of `tensors`
    tensors so many are moved by more than rounding in the last step. parts: whether the program means something else.
    off_grid: the first node that is no rounding of its own real value, if there is one.
    """

    steps: int
    worst: float
    worst_tensor: str
    share: float
    determined: int
    tensors: int
    off_grid: int | None

    @property
    def parts(self) -> bool:
        """Whether the program means something else than the stock step."""
        return not self.share <= 1.0 or not self.determined

    @property
    def is_rounding(self) -> bool:
        """Whether nothing but rounding is between the program and the stock step."""
        return not self.parts and self.off_grid is None


def meaning_of(program: Program, step: RecipeStep, count: int) -> Meaning:
    """`count` steps of the program and of the recipe's stock step over real numbers, each from where stock then is.

    Steps in a row would tell nothing of the later ones: after two or three steps a network of many layers has made of
    any disturbance what training makes in a step. What an optimizer remembers is each run's own.
    """
    run, names = StockRun(step), [*step.names, *step.buffers]
    stock = _stock(run, count)
    nudged = _stock(run, count, _NUDGE, stock)
    real = RealProgram(program)
    before = [t.double() if t.is_floating_point() else t for t in _slots(step, step.state())]
    state: Sequence[list[Tensor]] = step.state()
    worst, where, share, determined = 0.0, "", 0.0, 0
    for k in range(count):
        state = [list(part) for part in real.run(state)]
        determined = 0
        for place, (name, at, a, n, r) in enumerate(
            zip(names, before, stock[k], nudged[k], _slots(step, state), strict=True)
        ):
            difference, spread = _difference(at, a, n, r)
            if a.is_floating_point():
                _put(step, state, place, a)
            if spread > _UNDETERMINED:
                continue
            determined += 1
            share = max(share, difference / (MEANT + _SPREAD * spread))
            if not difference <= worst:
                worst, where = difference, name
        before = stock[k]
    return Meaning(count, worst, where, share, determined, len(names), first_off_grid(real, step.state()))


def _difference(begin: Tensor, stock: Tensor, nudged: Tensor, real: Tensor) -> tuple[float, float]:
    """The program's difference and the disturbed run's after one step, both over its way."""
    if not stock.is_floating_point():
        return float(bool((stock != real.to(stock.dtype)).any())), 0.0
    way = rms(stock - begin)
    if way == 0.0:
        return float(rms(real - begin) > 0.0), 0.0
    difference = rms(real - stock) / way
    return (difference if math.isfinite(difference) else math.inf), rms(nudged - stock) / way


def _slots(step: RecipeStep, state: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """Parameters and buffers of a state, in the types that the state has them in."""
    count, kept = len(step.names), len(step.buffers) - len(step.carried)
    return [*state[0][:count], *state[0][count:], *state[1][len(state[1]) - kept :]]


def _put(step: RecipeStep, state: Sequence[list[Tensor]], place: int, value: Tensor) -> None:
    """Sets one of `_slots`' tensors."""
    kept = len(step.buffers) - len(step.carried)
    if place < len(state[0]):
        state[0][place] = value
    else:
        state[1][len(state[1]) - kept + place - len(state[0])] = value


def _stock(run: StockRun, count: int, nudge: float = 0.0, back: Sequence[Sequence[Tensor]] = ()) -> list[list[Tensor]]:
    """After every stock step all tensors, f64 where they are floats; back: where it goes on from, by step."""
    tensors = []
    noise, numbers = RunNoise(nudge), RealNumbers(is_coarse=nudge > 0.0)
    with warnings.catch_warnings(), without_onednn(), sdpa_kernel(SDPBackend.MATH), numbers:
        warnings.simplefilter("ignore")
        for k, (_, parameters, buffers) in enumerate(run.steps(count, nudge, numbers.with_whole_numbers)):
            with _disable_current_modes():
                tensors.append([numbers.of(t).clone() for t in (*parameters, *buffers)])
            for t, value in zip((*parameters, *buffers), back[k] if back else (), strict=bool(back)):
                is_nudged = any(t is p for p in parameters) and value.is_floating_point()
                t.copy_(value + noise.like(value) * value if is_nudged else value)
    return tensors
