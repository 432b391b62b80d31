"""A program beside the stock step that it was captured from: N steps of each, and where they part.

Two right runs part too, because float32 and exact arithmetic round differently, and some tensors are moved by nothing
but rounding (the bias of an attention's keys has no gradient; Adam makes steps of full size of what rounding leaves).
So the stock run is repeated with disturbances of the size of rounding: what these change says how much it decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import torch
from torch import Tensor

from assay.engine.compiler.randomness import Randomness
from assay.engine.runtime.executor import Executor
from assay.programs.meaning import FEWEST, Meaning, meaning_of
from assay.programs.stock_run import StockRun, rms
from assay.protocol.errors import PartedError, UserError
from assay.protocol.program.program import Program
from assay.training.recipes.recipe import RecipeStep
from assay.training.state import SCALAR_NAMES, Scalars

LIMITS: Final = {"fixed8": 0.1, "fixed14": 5e-3, "fixed22": 1e-3}
"""What a tensor's difference may be over the way that the stock run moved it, by tier."""

NUDGES: Final = {"fixed8": 2.0**-8, "fixed14": 2.0**-14, "fixed22": 2.0**-22}
"""How much the second stock run is disturbed: what a tier's rounding is, over the largest of a row."""

_SPREAD: Final = 8.0
"""So many times what a nudge changes is still rounding: it hits parameters and gradients, rounding every operation."""

_RESOLUTION: Final = 2.0**-21
"""Of a tensor's own size: float32 tells no less apart after some additions."""

MOST: Final = 4 << 30
"""Bytes of tensors that a comparison may hold."""

UNDETERMINED: Final = 0.5
"""A nudge that changes a tensor by more than this share of its way: rounding alone decides where it goes."""


@dataclass(frozen=True, slots=True)
class Parting:
    """Where a program leaves the stock run: after how many steps, in which tensor, by what share of its way."""

    step: int
    tensor: str
    difference: float
    limit: float


@dataclass(frozen=True, slots=True)
class Beside:
    """What N steps beside stock showed. Losses: one per step, each before that step's update.

    worst: the largest difference over its limit among tensors and losses after any step. undetermined: tensors that
    rounding alone moves. meaning: of a program that parted, what it means beside stock up to there; None where
    nothing parted, or where the module computes in 16 bits, which the program does not mean to.
    """

    steps: int
    loss_eager: list[float]
    loss_exact: list[float]
    parting: Parting | None
    worst: float
    worst_tensor: str
    difference: float
    undetermined: list[str]
    meaning: Meaning | None = None

    @property
    def is_right(self) -> bool:
        """Whether the program trains what stock trains: it did not part, or rounding is all that parted it."""
        return self.parting is None or (self.meaning is not None and self.meaning.is_rounding)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Track:
    """Losses, and tensors after every step."""

    losses: list[float]
    tensors: list[list[Tensor]]


def steps_that_fit(step: RecipeStep) -> int:
    """Of how many steps the states of three runs may be held beside each other."""
    return MOST // max(3 * _state_size(step), 1)


def _state_size(step: RecipeStep) -> int:
    return sum(t.nbytes for part in step.state()[:2] for t in part)


def beside_eager(program: Program, step: RecipeStep, count: int, tier: str, *, mapped: bool = False) -> Beside:
    """`count` steps of the program of a recipe's step, and as many of the stock module and optimizer.

    mapped: the stock step rounds to 16 bits where the program does not, which fixed8 comes next to.

    Raises:
        PartedError: StockNotRepeatable, when two stock runs from one start differ: something besides the state has a
            say, which a program cannot honour. UserError: TooMuchToCompare.
    """
    size = _state_size(step)
    if count > (most := steps_that_fit(step)):
        fewer = f"Compare at most {most} steps, or a smaller model" if most else "Compare a smaller model"
        raise UserError(
            f"{count} steps of {size / 1e6:.0f} MB of state are too much to hold beside each other.",
            code="TooMuchToCompare",
            remedy=f"{fewer} of the same layers.",
        )
    tier = "fixed8" if mapped else tier
    run = StockRun(step)
    stock = _stock(run, count)
    _check_repeats(stock, _stock(run, count))
    nudged = _stock(run, count, NUDGES[tier])
    exact = _exact(program, step, count)
    found = _compared(step, stock, nudged, exact, LIMITS[tier])
    if found.parting is None or mapped:
        return found
    return replace(found, meaning=meaning_of(program, step, min(count, max(FEWEST, found.parting.step))))


def check_beside(found: Beside) -> None:
    """Raises PartedError (PartsFromStock) with the first tensor that leaves the stock run."""
    if found.parting is not None and not found.is_right:
        p = found.parting
        raise PartedError(
            f"After step {p.step} {p.tensor} is off the stock run by {p.difference:.2g} of its way; rounding explains"
            f" {p.limit:.2g}.{said_of(found.meaning)}",
            code="PartsFromStock",
            remedy="Do not train it: report the module, or find what its step keeps outside of buffers.",
        )


def said_of(meaning: Meaning | None) -> str:
    """A sentence on what parts: meaning, or rounding; empty where that was not looked at."""
    if meaning is None:
        return ""
    if meaning.parts:
        what = f"{meaning.worst:.2g} of its way in {meaning.worst_tensor}" if meaning.determined else "everything"
        return f" It means something else: without any rounding it is off by {what}."
    if meaning.off_grid is not None:
        return f" It means the stock step, but node {meaning.off_grid} rounds by more than its grid."
    return f" Rounding parts them: without it the program is off by {meaning.worst:.1g} at most."


def _stock(run: StockRun, count: int, nudge: float = 0.0) -> _Track:
    losses, tensors = [], []
    for loss, parameters, buffers in run.steps(count, nudge):
        losses.append(loss)
        tensors.append([t.clone() for t in (*parameters, *buffers)])
    return _Track(losses, tensors)


def _exact(program: Program, step: RecipeStep, count: int) -> _Track:
    """The program's steps; its losses are the stock loss at the parameters that it reached."""
    executor = Executor(program)
    state: Sequence[Sequence[Tensor]] = step.state()
    losses, tensors = [], []
    for _ in range(count):
        losses.append(_loss_at(step, state))
        state = executor.run(state)
        tensors.append([t for part in step.tensors_of(state) for t in part])
    return _Track(losses, tensors)


def _loss_at(step: RecipeStep, state: Sequence[Sequence[Tensor]]) -> float:
    """The stock loss of a state, on the batches that its next step draws."""
    (parameters, buffers), scalars = step.tensors_of(state), state[2]
    now = Scalars.from_list(scalars[: len(SCALAR_NAMES)])
    mode, pieces = Randomness(now.key, now.step), step.recipe.micro_batches
    batch = step.batch(scalars)
    size, total = step.recipe.batch_size // pieces, 0.0
    # A loss may differentiate what it computes, hang hooks on it, and ask what is trained.
    flags = [p.requires_grad for p in step.recipe.module.parameters()]
    leaves = [t.detach().requires_grad_(is_trained) for t, is_trained in zip(parameters, flags, strict=True)]
    for m in range(pieces):
        piece = [t[m * size : (m + 1) * size] for t in batch]
        with torch.enable_grad():
            loss, _, buffers = step.loss_of(leaves, buffers, piece, mode)
        total += float(loss.detach()) / pieces
    return total


def _check_repeats(first: _Track, second: _Track) -> None:
    for k, (a, b) in enumerate(zip(first.losses, second.losses, strict=True)):
        if a != b and not (math.isnan(a) and math.isnan(b)) and abs(a - b) > 1e-5 * max(1.0, abs(a)):
            raise PartedError(
                f"Stock PyTorch itself gives the loss {a:.6g} in step {k} of one run and {b:.6g} in the next.",
                code="StockNotRepeatable",
                remedy="Something besides parameters, buffers, data and step has a say: make it a buffer.",
            )


def _compared(step: RecipeStep, stock: _Track, nudged: _Track, exact: _Track, limit: float) -> Beside:
    begin = [t for part in step.tensors_of(step.state()) for t in part]
    names = [*step.names, *step.buffers]
    parting: Parting | None = None
    worst, worst_tensor, largest, undetermined = 0.0, "", 0.0, set()
    for k in range(len(stock.losses)):
        found = [("loss", _loss_difference(stock.losses[k], nudged.losses[k], exact.losses[k], limit))]
        for name, at, a, n, e in zip(names, begin, stock.tensors[k], nudged.tensors[k], exact.tensors[k], strict=True):
            difference, allowed, spread = difference_of(at, a, n, e, limit)
            found.append((name, (difference, allowed)))
            if spread > UNDETERMINED:
                undetermined.add(name)
        for name, (difference, allowed) in found:
            over = difference / allowed if allowed else (math.inf if difference else 0.0)
            if not over <= worst:
                worst, worst_tensor = over, name
            if name not in undetermined:
                largest = max(largest, difference)
            if parting is None and not over <= 1.0:
                parting = Parting(k + 1, name, difference, allowed)
    return Beside(
        len(stock.losses), stock.losses, exact.losses, parting, worst, worst_tensor, largest, sorted(undetermined)
    )


def _loss_difference(stock: float, nudged: float, exact: float, limit: float) -> tuple[float, float]:
    """A loss's difference over its size (at least 1), and what it may be."""
    if math.isnan(stock) or math.isnan(exact):
        return (0.0 if math.isnan(stock) and math.isnan(exact) else math.inf), limit
    size = max(1.0, abs(stock))
    return abs(exact - stock) / size, limit + _SPREAD * abs(nudged - stock) / size


def difference_of(
    start: Tensor, stock: Tensor, nudged: Tensor, exact: Tensor, limit: float
) -> tuple[float, float, float]:
    """(difference, what it may be, what a nudge changes), each over the way that the stock run moved the tensor."""
    if not stock.is_floating_point():
        return float(not torch.equal(stock.to(torch.int64), exact.to(torch.int64))), 0.0, 0.0
    # A tensor of 16 bits is rounded in other places by stock: one unit in the last place is no difference.
    resolution = torch.finfo(stock.dtype).eps if stock.element_size() == 2 else _RESOLUTION
    at, a, n, e = (t.to(torch.float64) for t in (start, stock, nudged, exact))
    if not bool(a.isfinite().all() and e.isfinite().all()):
        return (0.0 if bool((a.isfinite() == e.isfinite()).all()) else math.inf), limit, 0.0
    way, size = rms(a - at), rms(a)
    if way == 0.0:
        is_near = stock.element_size() == 2 and rms(e - at) <= resolution * size
        return float(not (is_near or torch.equal(at, e))), 0.0, 0.0
    spread = max(0.0, rms(n - a) / way)
    return rms(e - a) / way, limit + _SPREAD * spread + resolution * size / way, spread
