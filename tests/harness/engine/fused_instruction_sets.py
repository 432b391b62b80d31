"""Shared by the tests of the fused executor: every instruction set that this processor has, and maps over edges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from assay.engine.runtime import executor
from assay.engine.runtime.fused import layout
from assay.engine.runtime.native.build import INSTRUCTION_SETS
from assay.engine.runtime.native.library import allowed_instruction_sets, load, processor_flags
from assay.engine.runtime.products import native_dot

needs_kernels = pytest.mark.skipif(layout.kernels()[0] is None, reason=layout.kernels()[1] or "-")

PRESENT = [name for name in INSTRUCTION_SETS if name in allowed_instruction_sets({}, processor_flags())]
"""The instruction sets of this processor."""


@contextmanager
def at_instruction_set(name: str) -> Iterator[layout.NodeKernels]:
    """New executors take the kernels of this instruction set."""
    kernels = layout.NodeKernels(load("nodes", name), name)
    with pytest.MonkeyPatch.context() as patch:
        natives = executor.Natives(kernels, native_dot.kernels())
        patch.setattr(executor, "usable_natives", lambda: (natives, ""))
        yield kernels
