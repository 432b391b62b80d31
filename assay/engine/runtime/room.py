"""Whether this machine has room for the runs of a program, asked before anything is put at stake."""

from __future__ import annotations

from assay.engine.runtime import footprint
from assay.engine.runtime.executor import Executor, KernelVariant, usable_natives, usual_variant
from assay.engine.runtime.triton import backend
from assay.protocol.program.program import Program


def check_memory(program: Program, most: int | None = None) -> None:
    """Whether runs of a well-formed program fit this machine, by the usual kernels and by those that confirm an
    accusation, and the GPU that programs run on here.

    most: bytes of the machine, in place of `footprint.limit()`.

    Raises:
        UserError: ProgramTooLarge.
        ConfigError: NoDevice.
    """
    natives, _ = usable_natives()
    # Attack: a program that native kernels run in no memory, and stock torch in more than there is. Where no second
    # kernels are nobody honest can compute a claim again, as before every accusation; who colludes is never accused.
    for stock in (footprint.left_to_stock(program), None) if natives else (None,):
        footprint.check(program, stock=stock, most=most)
    if usual_variant() is KernelVariant.TRITON and backend.memory() is not None:
        Executor(program, memory=footprint.UNBOUNDED)
