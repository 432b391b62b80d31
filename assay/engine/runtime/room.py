"""Whether this machine has room for the runs of a program, asked before anything is put at stake."""

from __future__ import annotations

from assay.engine.runtime import footprint
from assay.engine.runtime.executor import Executor, KernelVariant, usable_natives, usual_variant
from assay.engine.runtime.triton import backend
from assay.protocol.program.program import Program


def check_memory(program: Program, most: int | None = None) -> None:
    """Whether a run of a well-formed program fits this machine, and the GPU that programs run on here.

    most: bytes of the machine, in place of `footprint.limit()`.

    Raises:
        UserError: ProgramTooLarge.
        ConfigError: NoDevice.
    """
    natives, _ = usable_natives()
    footprint.check(program, stock=footprint.left_to_stock(program) if natives else None, most=most)
    if usual_variant() is KernelVariant.TRITON and backend.memory() is not None:
        Executor(program, memory=footprint.UNBOUNDED)
