"""Loads the native kernels that fit this machine, or says why there are none.

Which instruction set: the best that the processor has, at most what `ATEN_CPU_CAPABILITY` allows torch (`avx512`,
`avx2`, `default` = SSE4.1), so that one setting limits both. `ASSAY_NATIVE=off` refuses all of them.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from assay.engine.runtime.native.build import INSTRUCTION_SETS, object_path

_LIMITS = {"avx2": 2, "default": 3}
"""The first of INSTRUCTION_SETS that a value of `ATEN_CPU_CAPABILITY` allows; all others allow every one."""


@dataclass(frozen=True, slots=True)
class Native:
    """A unit as loaded. handle: None when `reason` says why. instruction_set: what it was compiled for."""

    handle: ctypes.CDLL | None
    instruction_set: str
    reason: str


@cache
def processor_flags() -> frozenset[str]:
    """What the processor can do, by Linux's names."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    line = next((x for x in text.splitlines() if x.startswith("flags")), "")
    return frozenset(line.partition(":")[2].split())


def allowed_instruction_sets(environment: Mapping[str, str], flags: frozenset[str]) -> list[str]:
    """The instruction sets that may be used here, best first."""
    first = _LIMITS.get(environment.get("ATEN_CPU_CAPABILITY", "").lower(), 0)
    return [name for name in list(INSTRUCTION_SETS)[first:] if INSTRUCTION_SETS[name][1] <= flags]


@cache
def native(unit: str) -> Native:
    """The unit of this name, loaded once per process."""
    if os.environ.get("ASSAY_NATIVE", "").lower() in ("off", "0", "no"):
        return Native(None, "", f"ASSAY_NATIVE={os.environ['ASSAY_NATIVE']}")
    instruction_sets = allowed_instruction_sets(os.environ, processor_flags())
    why = "" if instruction_sets else "the processor does not say that it has SSE4.1"
    for instruction_set in instruction_sets:
        try:
            return Native(load(unit, instruction_set), instruction_set, "")
        except OSError as error:
            why = why or str(error)
    return Native(None, "", why)


def load(unit: str, instruction_set: str) -> ctypes.CDLL:
    """A unit for one instruction set, whatever the environment says (for tests and conformance).

    Raises:
        OSError: it is not built, or cannot be loaded.
    """
    path = object_path(unit, instruction_set)
    if path is None or not path.exists():
        raise OSError(f"the native kernels ({unit}) are not built: `make setup` does it where a C compiler is")
    return ctypes.CDLL(str(path))
