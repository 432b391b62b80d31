"""What capture makes of a model: captured or refused, in what time, and whether it trains what stock PyTorch trains.

`report_of` looks at one recipe in this process; `assay/programs/report_process.py` gives each model a process of its
own, so that one that crashes, hangs or takes all memory ends nothing but its own row.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final

import torch

from assay.engine.runtime.executor import Executor, KernelVariant, usable_natives
from assay.engine.runtime.values import state_io
from assay.programs.against_eager import beside_eager, steps_that_fit
from assay.programs.capture import CapturedRecipe, capture_recipe
from assay.programs.frozen_state import frozen_state
from assay.protocol.errors import AssayError, UserError
from assay.training.recipes.recipe import Recipe, RecipeStep

STOCK_STEPS: Final = 2
"""Steps that stock kernels run too, to be compared with native ones bit by bit."""

_FAILED_BEFORE: Final = frozenset({"FactoryFails", "ModuleFails", "LossFails"})
"""There was nothing to capture: the factory or its loss does not run here."""


class CaptureEnd(StrEnum):
    """What became of a model."""

    RIGHT = "right"
    REFUSED = "refused"
    UNCOMPARED = "not compared"
    CRASHED = "crashed"
    WRONG = "silently wrong"


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """One model's row.

    captured: whether there is a program. refusals: what has no exact form, each with the user's line. nodes: of the
    program. seconds: processor time of capture. equal_bits: whether stock and native kernels agree on every bit after
    some steps (None where there are no native ones). loss_eager, loss_exact: of the last step compared.
    frozen_state: what the stock steps change and the program does not. steps: compared. difference: the largest of a
    tensor that training moves, over its way. parting: where the two parted for more than a disturbance explains, if
    they did. meaning: what then was found without rounding. undetermined: tensors that rounding alone moves. mapped:
    what has 16 bits in the user's code. error: code and words of a refusal or crash.
    """

    outcome: CaptureEnd
    captured: bool = False
    refusals: list[str] = field(default_factory=list)
    nodes: int = 0
    seconds: float = 0.0
    equal_bits: bool | None = None
    loss_eager: float | None = None
    loss_exact: float | None = None
    frozen_state: list[str] = field(default_factory=list)
    steps: int = 0
    difference: float | None = None
    parting: dict[str, Any] | None = None
    meaning: dict[str, Any] | None = None
    undetermined: list[str] = field(default_factory=list)
    tensors: int = 0
    mapped: list[str] = field(default_factory=list)
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self) | {"outcome": self.outcome.value}


def report_of(factory: Callable[[], Recipe], steps: int, tier: str) -> CaptureReport:
    """The row of what a factory returns; nothing that goes wrong on the way is raised."""
    begin = time.process_time()
    try:
        torch.manual_seed(0)
        recipe = factory()
        begin = time.process_time()
        captured = capture_recipe(recipe, tier)
    except UserError as error:
        if error.code in _FAILED_BEFORE:
            return _ended(CaptureEnd.CRASHED, error, time.process_time() - begin)
        return _refused(error, time.process_time() - begin)
    except Exception as error:  # whatever a stranger's model meets is a row of the report
        return _ended(CaptureEnd.CRASHED, error, time.process_time() - begin)
    seconds = time.process_time() - begin
    try:
        return beside_stock(captured, RecipeStep(recipe), steps, seconds)
    except Exception as error:
        end = CaptureEnd.UNCOMPARED if _code(error) == "TooMuchToCompare" else CaptureEnd.CRASHED
        return _ended(end, error, seconds, nodes=len(captured.program.nodes), captured=True)


def _refused(error: UserError, seconds: float) -> CaptureReport:
    offenders = error.details.get("offenders")
    refusals = [str(line) for line in offenders] if isinstance(offenders, list) else [error.message]
    return CaptureReport(CaptureEnd.REFUSED, refusals=refusals, seconds=round(seconds, 2), error=_words(error))


def _ended(
    end: CaptureEnd, error: Exception, seconds: float, nodes: int = 0, *, captured: bool = False
) -> CaptureReport:
    return CaptureReport(end, captured=captured, nodes=nodes, seconds=round(seconds, 2), error=_words(error))


def _code(error: Exception) -> str:
    return error.code if isinstance(error, AssayError) else ""


def _words(error: Exception) -> str:
    if isinstance(error, AssayError):
        return f"{error.code}: {error.explain()}"
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"


def beside_stock(captured: CapturedRecipe, step: RecipeStep, steps: int, seconds: float) -> CaptureReport:
    """The row of a program: its bits on all kernels, and its steps beside those of `step`'s stock objects.

    Raises:
        As `beside_eager`.
    """
    equal = _equal_bits(captured)
    frozen = frozen_state(step)
    count = max(1, min(steps, steps_that_fit(step)))  # of a large model fewer, and the row says how many
    beside = beside_eager(captured.program, step, count, captured.tier, mapped=bool(captured.mapped))
    is_right = beside.is_right and not frozen and equal is not False
    return CaptureReport(
        CaptureEnd.RIGHT if is_right else CaptureEnd.WRONG,
        captured=True,
        nodes=len(captured.program.nodes),
        seconds=round(seconds, 2),
        equal_bits=equal,
        loss_eager=beside.loss_eager[-1],
        loss_exact=beside.loss_exact[-1],
        frozen_state=frozen,
        steps=beside.steps,
        difference=beside.difference,
        parting=None if beside.parting is None else asdict(beside.parting),
        meaning=None if beside.meaning is None else asdict(beside.meaning),
        undetermined=beside.undetermined,
        tensors=len(step.names) + len(step.buffers),
        mapped=captured.mapped,
    )


def _equal_bits(captured: CapturedRecipe) -> bool | None:
    if usable_natives()[0] is None:
        return None
    roots = []
    for variant in (KernelVariant.STOCK, KernelVariant.FUSED):
        state: Any = captured.state
        executor = Executor(captured.program, variant=variant)
        for _ in range(STOCK_STEPS):
            state = executor.run(state)
        roots.append(state_io.state_root(state))
    return roots[0] == roots[1]
