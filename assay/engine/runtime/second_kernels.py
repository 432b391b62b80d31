"""Kernels that compute a claim a second time, before somebody is accused of it: other instructions than the first's.

What a processor's widest instructions get wrong, or a fault of the machine, must not look like another's fraud. The
kernels of a narrower instruction set are other code for other circuits and take 2 to 10 times as long; stock torch on
one thread takes up to 50 times as long, and a commitment that comes without marks would not be confirmed before its
call is over. Stock torch stays where nothing else is left.
Source: docs/adr/0034-second-round-wired.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

import torch

from assay.engine.runtime import footprint
from assay.engine.runtime.executor import Executor, KernelVariant, Natives, usable_natives, usual_variant
from assay.engine.runtime.fused import layout, selftest
from assay.engine.runtime.native.library import allowed_instruction_sets, load, processor_flags
from assay.engine.runtime.products import native_dot
from assay.protocol.program.program import Program

NARROW: Final = ("sse41", "neon", "plain")
"""Instruction sets that multiply and add by other instructions than wider ones; the first that is there is taken."""


def second_executor(program: Program) -> Executor:
    """An executor by other kernels than the usual ones; whatever memory it takes, since it has to be tried.

    Raises what `Executor` raises.
    """
    natives = second_natives()
    if natives is None:
        return Executor(program, cross_check=True)
    return Executor(program, variant=KernelVariant.FUSED, natives=natives, memory=footprint.UNBOUNDED)


def second_natives() -> Natives | None:
    """The native kernels of second calculations here: the CPU's best beside a GPU; None where stock torch has to do."""
    usual, _ = usable_natives()
    if usual is None or usual_variant() is KernelVariant.TRITON:
        return usual
    return second_to(usual.nodes.instruction_set)


@cache
def second_to(instruction_set: str) -> Natives | None:
    """The kernels of a narrower instruction set that prove themselves; None where there are none."""
    for narrower in _narrower(instruction_set):
        try:
            found = natives_of(narrower, tiles=False)
        except OSError:
            continue
        if not _wrong(found):
            return found
    return None


@cache
def natives_of(instruction_set: str, *, tiles: bool) -> Natives:
    """The kernels of an instruction set, once per process: they prove themselves once. Raises OSError: not built."""
    return Natives(
        layout.NodeKernels(load("nodes", instruction_set), instruction_set),
        native_dot.kernels_of(instruction_set, tiles=tiles),
    )


def _narrower(instruction_set: str) -> Iterator[str]:
    present = allowed_instruction_sets({}, processor_flags())
    after = present[present.index(instruction_set) + 1 :] if instruction_set in present else []
    return (name for name in after if name in NARROW)


def _wrong(natives: Natives) -> str:
    with torch.device("cpu"):
        return selftest.failure(
            lambda program, lists: Executor(program, variant=KernelVariant.STOCK).run(lists),
            lambda program, lists: Executor(program, variant=KernelVariant.FUSED, natives=natives).run(lists),
        )
