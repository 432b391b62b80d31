"""Kernels for AVX-512 on a processor that has AVX2 alone: `avx512.h` stands for the instructions they use.

What is compiled is the kernels' own text with its widest vectors, so a wrong lane, mask, order or place shows; how GCC
turns the real instructions into machine code does not.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from assay.engine.runtime.native import build
from assay.engine.runtime.native.library import processor_flags

SETS = {"avx512": (), "vnni": ("-DEMULATED_VNNI",)}
"""Per instruction set what the header is told."""

_KERNELS = Path(build.__file__).with_name("kernels")
_FLAGS = (*build.FLAGS, "-O0", "-mavx2", "-w", "-include", str(Path(__file__).with_name("avx512.h")))


def missing() -> str:
    """Why nothing is emulated here; empty when it is."""
    if build.MACHINE != "x86_64" or "avx2" not in processor_flags():
        return "only a processor with AVX2 can stand for one with AVX-512"
    return "" if build.compiler() else "no C compiler was found"


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="assay-avx512-")


@cache
def library(unit: str, instruction_set: str) -> ctypes.CDLL:
    """A unit of the native kernels as it is for an instruction set that this processor lacks."""
    path = Path(_folder().name, f"{unit}-{instruction_set}.so")
    source = str(_KERNELS / f"{unit}.c")
    command = [build.compiler() or "", *_FLAGS, *SETS[instruction_set], "-o", str(path), source, "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(path))
