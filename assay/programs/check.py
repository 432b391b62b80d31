"""Whether a program is one to take part in: the predicate, then one step on the calibration batch."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.engine.compiler.capture import Captured
from assay.engine.compiler.losses import PrecisionLoss, losses
from assay.engine.compiler.lowering.registry import Product
from assay.engine.runtime.executor import Executor
from assay.engine.runtime.values import state_io
from assay.engine.runtime.values.state_io import Lists
from assay.protocol.errors import InvariantError, MismatchError, RejectedError
from assay.protocol.program.program import Program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.program.wellformed import violations


@dataclass(frozen=True, slots=True)
class Checked:
    """What one step on the calibration batch showed; seconds is processor time."""

    rounding: list[PrecisionLoss]
    after: bytes
    not_finite: list[str]
    seconds: float
    reference_nodes: int


def check_well_formed(program: Program) -> None:
    """Raises RejectedError (IllFormedProgram) with all rules that the program breaks."""
    found = violations(program)
    if found:
        shown = "; ".join(str(v) for v in found[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise RejectedError(
            f"The program is ill-formed: {shown}{more}.",
            code="IllFormedProgram",
            remedy="Take no part in a run that names it.",
            violations=[str(v) for v in found],
        )


def check_on_batch(
    program: Program, state: Lists, report: Mapping[str, Any] | None = None, *, reference: bool = False
) -> Checked:
    """One step of a well-formed program, and what its products lose.

    report: the state roots before and after that were found at capture; they are compared. reference: every node is
    also computed by the slow reference (small programs only).

    Raises:
        MismatchError: StateDiffers, ReferenceDiffers.
    """
    begin = time.process_time()
    ends = Executor(program).run(state)
    seconds = time.process_time() - begin
    after = state_io.state_root(ends)
    started = "0x" + state_io.state_root(state).hex()
    if report is not None and report.get("state_root") == started:
        expected = report.get("state_root_after_one_step")
        if expected != "0x" + after.hex():
            raise MismatchError(
                f"One step ends in the state 0x{after.hex()}, not in {expected}, which was found at capture.",
                code="StateDiffers",
                remedy="One of the two machines computes wrongly: run `assay conformance` on both.",
            )
    nodes = _compare_reference(program, state, ends) if reference else 0
    names = report["slots"] if report is not None else None
    found = losses(Captured(program, _sources(report), _sensitive(report)), state)
    return Checked(found, after, _not_finite(ends, names), seconds, nodes)


def above_limit(rounding: Sequence[PrecisionLoss]) -> list[PrecisionLoss]:
    """The operands whose error is above their limit."""
    return [loss for loss in rounding if loss.is_above_limit]


def _sources(report: Mapping[str, Any] | None) -> dict[int, str]:
    lines = report["sources"].items() if report is not None else ()
    return {int(k): str(line) for k, line in lines if re.fullmatch("[0-9]{1,7}", k)}


def _sensitive(report: Mapping[str, Any] | None) -> dict[int, tuple[Product, ...]]:
    """The products that were held against all of themselves at capture, and so are here."""
    rounding = report["rounding"] if report is not None else []
    nodes = (r.get("node") for r in rounding if r.get("whole") is True)
    return {k: (Product(0, (), (), sensitive=True),) for k in nodes if isinstance(k, int)}


def _not_finite(ends: Lists, names: Sequence[Sequence[str]] | None) -> list[str]:
    """Slots of Y that hold NaN or infinity."""
    found = []
    for i, part in enumerate(ends):
        for k, t in enumerate(part):
            if t.is_floating_point() and not bool(t.isfinite().all()):
                named = names is not None and i < len(names) and k < len(names[i])
                found.append(str(names[i][k]) if named and names is not None else f"list {i} slot {k}")
    return found


def _compare_reference(program: Program, state: Lists, ends: Lists) -> int:
    """Compute every node by the reference and compare the ends. Raises MismatchError (ReferenceDiffers)."""
    values, found = ReferenceExecutor(program).run(state_io.to_lists_of_bytes(state)), state_io.to_lists_of_bytes(ends)
    if len(values) != len(program.nodes):
        raise InvariantError("The reference computed another number of nodes.")
    for i, nodes in enumerate(program.output_nodes):
        for k, node in enumerate(nodes):
            if values[node] != found[i][k]:
                raise MismatchError(
                    f"Slot {k} of list {i} differs from the reference.",
                    code="ReferenceDiffers",
                    remedy="Do not take part with this machine: what it computes would be refuted.",
                )
    return len(values)
