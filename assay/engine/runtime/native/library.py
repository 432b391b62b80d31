"""Loads the native kernels that fit this machine, or says why there are none.

Which instruction set: the best that the processor has, at most what `ATEN_CPU_CAPABILITY` allows torch (`avx512`,
`avx2`, `default` = SSE4.1), so that one setting limits both. `ASSAY_NATIVE=plain`, or another name, takes these kernels
and no others; `ASSAY_NATIVE=off` refuses all of them.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from assay.checkout import is_checkout
from assay.engine.runtime.native.build import INSTRUCTION_SETS, MACHINE, object_path

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
    """What the processor can do, by Linux's names; on ARM as the kernel tells this process (HWCAP)."""
    if MACHINE == "aarch64":
        try:
            function = ctypes.CDLL(None).getauxval
        except (OSError, AttributeError):
            return frozenset({"asimd"})  # NEON belongs to them all; of the rest only Linux tells
        function.argtypes, function.restype = [ctypes.c_ulong], ctypes.c_ulong
        return arm_flags(function)
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    line = next((x for x in text.splitlines() if x.startswith("flags")), "")
    return frozenset(line.partition(":")[2].split())


_HWCAP, _HWCAP2 = 16, 26
_ARM_FLAGS = {"asimd": (_HWCAP, 1), "atomics": (_HWCAP, 8), "asimddp": (_HWCAP, 20), "i8mm": (_HWCAP2, 13)}
"""Entry of the auxiliary vector and bit (Linux, arch/arm64/include/uapi/asm/hwcap.h)."""


def arm_flags(getauxval: Callable[[int], int]) -> frozenset[str]:
    """What a 64-bit ARM processor can do, by Linux's names, as the kernel tells a process (HWCAP)."""
    return frozenset(name for name, (entry, bit) in _ARM_FLAGS.items() if getauxval(entry) >> bit & 1)


def allowed_instruction_sets(environment: Mapping[str, str], flags: frozenset[str]) -> list[str]:
    """The instruction sets that may be used here, best first: `plain` at the end."""
    named = environment.get("ASSAY_NATIVE", "").lower()
    first = _LIMITS.get(environment.get("ATEN_CPU_CAPABILITY", "").lower(), 0)
    names = [named] if named in INSTRUCTION_SETS else list(INSTRUCTION_SETS)[first:]
    return [name for name in names if INSTRUCTION_SETS[name].needs <= flags]


@cache
def native(unit: str) -> Native:
    """The unit of this name, loaded once per process."""
    if os.environ.get("ASSAY_NATIVE", "").lower() in ("off", "0", "no"):
        return Native(None, "", f"ASSAY_NATIVE={os.environ['ASSAY_NATIVE']}")
    why = f"the processor does not have the instructions of ASSAY_NATIVE={os.environ.get('ASSAY_NATIVE', '')}"
    for n, instruction_set in enumerate(allowed_instruction_sets(os.environ, processor_flags())):
        try:
            return Native(load(unit, instruction_set), instruction_set, "")
        except OSError as error:
            why = why if n else str(error)
    return Native(None, "", why)


def load(unit: str, instruction_set: str) -> ctypes.CDLL:
    """A unit for one instruction set, whatever the environment says (for tests and conformance).

    Raises:
        OSError: it is not built, or cannot be loaded.
    """
    path = object_path(unit, instruction_set)
    if path is None or not path.exists():
        by = "make setup" if is_checkout() else "python -m assay.engine.runtime.native.build"
        raise OSError(f"the native kernels ({unit}) are not built: `{by}` does it where a C compiler is")
    return ctypes.CDLL(str(path))
