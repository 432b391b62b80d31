"""Computation that counts what it is asked for."""

from __future__ import annotations

from assay.protocol.program.program import Program
from assay.protocol.program.trace import OnStep, Tamper, Trace
from assay.protocol.trees.state import ListBytes
from assay.training.rounds import TorchCompute


class CountingCompute(TorchCompute):
    """Counts the steps that it runs, and those of traces by their length."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.traced: list[int] = []

    def run(
        self,
        program: Program,
        lists: ListBytes,
        steps: int = 1,
        tamper: Tamper | None = None,
        on_step: OnStep | None = None,
    ) -> ListBytes:
        self.steps += steps
        return super().run(program, lists, steps, tamper, on_step)

    def trace(
        self, program: Program, lists: ListBytes, steps: int = 1, tamper: Tamper | None = None, tamper_slot: None = None
    ) -> Trace:
        self.traced.append(steps)
        return super().trace(program, lists, steps, tamper, tamper_slot)
