"""What a witnessed step samples: every product that depends on what is trained, in rows (rules WT-1 to WT-3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from assay.protocol.errors import RejectedError
from assay.protocol.program.nodes import Dot, reads
from assay.protocol.program.program import Program
from assay.protocol.trees.state import SCALAR_SPECS, Scalar, TrainingList
from assay.protocol.types import DType

LANES: Final = 8
"""Words of the accumulator, and words that each row samples in a step."""

LEAST_ROWS: Final = 8
"""With fewer rows a step would sample fewer than 64 words."""

MOST_ROWS: Final = ((1 << 24) - 1) // 255
"""With more rows the sum of their bytes would leave what an f32 holds exactly."""

WINDOW: Final = 1 << 30
"""Elements that one row draws from; with more the position would leave an i32."""


class NoWitness(RejectedError):
    """No witnessed program follows from a step program; `rule` says why."""

    remedy = "Offer a step that trains f32 parameters by products, in the layout of a training state."

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{message} ({rule})", rule=rule)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class WitnessRow:
    """A part of a product that is sampled LANES times a step: elements [start, start + size) of a node's value."""

    node: int
    start: int
    size: int


def sampled_products(plain: Program) -> tuple[int, ...]:
    """The dot nodes with elements that depend on an f32 slot which a step computes anew (WT-2); Y is laid out as X.

    Attack: what depends on data and constants alone is known before the run, and is the same for every auditor.
    """
    behind = {
        k
        for ins, outs in zip(plain.input_nodes, plain.output_nodes, strict=True)
        for k, end in zip(ins, outs, strict=True)
        if plain.specs[k].dtype is DType.F32 and reads(plain.nodes[end]) != (k,)
    }
    for k, node in enumerate(plain.nodes):
        if not behind.isdisjoint(reads(node)):
            behind.add(k)
    return tuple(k for k in sorted(behind) if isinstance(plain.nodes[k], Dot) and plain.specs[k].numel)


def witness_rows(plain: Program) -> tuple[WitnessRow, ...]:
    """What each step samples, in the order of the nodes (WT-3).

    Raises:
        NoWitness: the program is no training step, or has no product to sample, or too many.
    """
    lists = plain.input_nodes
    if not plain.is_iterable() or len(lists) < len(TrainingList):
        raise NoWitness("WT-1", "The program does not lead from a training state to the next one.")
    scalars = [plain.specs[k] for k in lists[TrainingList.SCALARS]]
    if scalars[: Scalar.STEP + 1] != [SCALAR_SPECS[Scalar.STEP]]:
        raise NoWitness("WT-1", "The program's third list does not begin with the step, i32[2].")
    windows = [
        WitnessRow(k, start, min(WINDOW, plain.specs[k].numel - start))
        for k in sampled_products(plain)
        for start in range(0, plain.specs[k].numel, WINDOW)
    ]
    if not windows:
        raise NoWitness("WT-2", "No product of the program depends on an f32 slot that it computes.")
    times = -(-LEAST_ROWS // len(windows))
    if len(windows) * times > MOST_ROWS:
        raise NoWitness("WT-3", f"The program has {len(windows)} products to sample, above {MOST_ROWS}.")
    return tuple(row for row in windows for _ in range(times))
