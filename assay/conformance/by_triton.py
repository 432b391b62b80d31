"""Known answers by Triton's kernels: on a GPU those of all programs are compiled side by side, before any of them runs.

There are some four hundred, for programs of a few nodes: one after another they take longer than all that they compute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING

from assay.protocol.errors import InvariantError
from assay.protocol.program.program import Program
from assay.protocol.types import Digest

if TYPE_CHECKING:
    from assay.engine.runtime.executor import Executor


class ByTriton:
    """Runs programs on the bytes of X; one that was rehearsed has its executor."""

    def __init__(self) -> None:
        self._made: dict[Digest, Executor] = {}

    def __call__(self, program: Program, x: Sequence[Sequence[bytes]]) -> list[list[bytes]]:
        """The bytes of Y; on a GPU also of a run that is captured and of one that is replayed.

        Raises:
            InvariantError: RunsDiffer, one of these gives other bytes than the first.
        """
        from assay.engine.runtime.values.state_io import from_lists_of_bytes, input_specs, to_lists_of_bytes

        executor, inputs = self._executor(program), from_lists_of_bytes(input_specs(program), x)
        first, *others = (to_lists_of_bytes(executor.run(inputs)) for _ in range(_runs()))
        if any(other != first for other in others):
            raise InvariantError("A run that is captured gives other bytes than the one before it.", code="RunsDiffer")
        return [list(part) for part in first]

    def rehearsed(self, program: Program, _: Sequence[Sequence[bytes]]) -> list[list[bytes]]:
        """Nothing is computed: zeros for Y, and the program's executor is made."""
        self._executor(program)
        return [[bytes(program.specs[k].nbytes) for k in nodes] for nodes in program.output_nodes]

    def rehearse(self, cases: Iterable[Iterable[object]]) -> None:
        """Goes through all that will be asked, as asked of `rehearsed`; then every kernel is compiled."""
        from assay.engine.runtime.triton import ahead

        for group in cases:
            with suppress(Exception):  # whoever is asked meets it again, and counts it
                for _ in group:
                    pass
        runs = [executor.whole for executor in self._made.values() if executor.whole is not None]
        ahead.compile_ahead(lambda: list(chain.from_iterable(run.launches() for run in runs)))

    def _executor(self, program: Program) -> Executor:
        from assay.engine.runtime.executor import Executor, KernelVariant

        if program.root not in self._made:
            self._made[program.root] = Executor(program, variant=KernelVariant.TRITON)
        return self._made[program.root]


def _runs() -> int:
    """Of each program: on a GPU the second one is captured, and the third is the first that is replayed."""
    from assay.engine.runtime.triton.backend import is_interpreted

    return 1 if is_interpreted() else 3
