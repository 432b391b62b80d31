"""Compiles the native kernels: every C file of this folder into one shared object per instruction set.

    python -m assay.engine.runtime.native.build [UNIT ...]

A unit is one C file with the headers that it includes. Its objects lie in a folder under `.build/native/` named after
those sources, the flags and the machine, so a stale one is never loaded, and one unit that fails leaves the others
alone.
Rounding is IEEE's in all of them: no contraction, no reassociation, nothing of -ffast-math. The two relaxed flags say
that no exception flag and no `errno` is read, which changes no value.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from assay.checkout import ROOT, is_checkout, user_cache

FLAGS = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-shared",
    "-pthread",
    "-ffp-contract=off",
    "-fno-fast-math",
    "-frounding-math",
    "-fno-trapping-math",
    "-fno-math-errno",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Werror=implicit-function-declaration",
)

SANITIZED = (
    "-O1",
    "-g1",
    "-fsanitize=address,undefined,float-cast-overflow",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)
"""What is added for `make sanitize`: any read or write outside its memory, and anything undefined, ends the process."""

MACHINE = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
"""This machine's processor, by Linux's name."""


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """What a unit is compiled for. machine: whose instructions these are; empty: any machine's.

    flags: the compiler's. needs: what the processor must have, by Linux's names.
    """

    machine: str
    flags: tuple[str, ...]
    needs: frozenset[str]


_AVX512 = ("-mavx2", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mprefer-vector-width=512")
_HAS_AVX512 = frozenset({"avx2", "avx512f", "avx512bw", "avx512dq", "avx512vl"})

INSTRUCTION_SETS: dict[str, InstructionSet] = {
    "vnni": InstructionSet("x86_64", (*_AVX512, "-mavx512vnni"), _HAS_AVX512 | {"avx512_vnni"}),
    "avx512": InstructionSet("x86_64", _AVX512, _HAS_AVX512),
    "avx2": InstructionSet("x86_64", ("-mavx2",), frozenset({"avx2"})),
    "sse41": InstructionSet("x86_64", ("-msse4.1",), frozenset({"sse4_1"})),
    "i8mm": InstructionSet(
        "aarch64", ("-march=armv8.2-a+dotprod+i8mm",), frozenset({"asimd", "atomics", "asimddp", "i8mm"})
    ),
    "dotprod": InstructionSet("aarch64", ("-march=armv8.2-a+dotprod",), frozenset({"asimd", "atomics", "asimddp"})),
    "neon": InstructionSet("aarch64", ("-march=armv8-a",), frozenset({"asimd"})),
    "plain": InstructionSet("", ("-DPLAIN",), frozenset()),
}
"""By name, the best of a machine first; `plain` is C alone, for whatever the compiler compiles for."""

_FOLDER = Path(__file__).resolve().parent / "kernels"
_OBJECTS = (ROOT / ".build" if is_checkout() else user_cache()) / "native"
_INCLUDE = re.compile(rb'^#include "([^"]+)"', re.MULTILINE)


def units() -> list[str]:
    """The names of all units; none where the C files are not at hand (a wheel)."""
    return sorted(path.stem for path in _FOLDER.glob("*.c"))


def flags(instruction_set: str, *, sanitized: bool = False) -> tuple[str, ...]:
    """The compiler's flags for an instruction set."""
    return (*FLAGS, *INSTRUCTION_SETS[instruction_set].flags, *(SANITIZED if sanitized else ()))


def of_machine(machine: str = MACHINE) -> list[str]:
    """The instruction sets that a machine's compiler knows, best first."""
    return [name for name, found in INSTRUCTION_SETS.items() if found.machine in ("", machine)]


@cache
def object_path(unit: str, instruction_set: str, *, sanitized: bool = False, machine: str = MACHINE) -> Path | None:
    """Where the shared object of a unit belongs, built or not; None when its sources are not at hand."""
    digest = sha256(repr((machine, flags(instruction_set, sanitized=sanitized))).encode())
    try:
        for path in _sources(_FOLDER / f"{unit}.c"):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    except OSError:
        return None
    name = f"{unit}-{instruction_set}{'-sanitized' if sanitized else ''}-{digest.hexdigest()[:16]}.so"
    return _OBJECTS / name


def _sources(start: Path) -> Iterable[Path]:
    """A C file and what it includes, at any depth, in the order of the names."""
    found: set[Path] = set()
    ahead = [start]
    while ahead:
        path = ahead.pop()
        if path not in found:
            found.add(path)
            ahead += [_FOLDER / name.decode() for name in _INCLUDE.findall(path.read_bytes())]
    return sorted(found)


def compiler() -> str | None:
    """The C compiler: `$CC`, else the first of gcc, cc and clang that is there."""
    named = os.environ.get("CC")
    names = [named] if named else ["gcc", "cc", "clang"]
    return next((found for name in names if (found := shutil.which(name))), None)


def build(
    names: Iterable[str] | None = None,
    instruction_sets: Iterable[str] | None = None,
    *,
    sanitized: bool = False,
    machine: str = MACHINE,
    cc: str | None = None,
) -> list[str]:
    """Compile what is missing of these units (all by default); returns why each that is still missing is.

    machine: whom the compiler `cc` compiles for; its instruction sets are the default.
    """
    sets = of_machine(machine) if instruction_sets is None else list(instruction_sets)
    wanted = [(unit, name) for unit in names or units() for name in sets]
    paths = ((u, v, object_path(u, v, sanitized=sanitized, machine=machine)) for u, v in wanted)
    missing = [(flags(v, sanitized=sanitized), u, v, p) for u, v, p in paths if p is not None and not p.exists()]
    if not missing:
        return [] if wanted else ["the C files are not part of this installation"]
    cc = cc or compiler()
    if cc is None:
        return ["no C compiler was found"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        reasons = list(pool.map(lambda job: _compile(cc, *job), missing))
    return [reason for reason in reasons if reason]


def _compile(cc: str, options: tuple[str, ...], unit: str, instruction_set: str, target: Path) -> str:
    """One object, put there whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=target.parent, suffix=".part")
    os.close(descriptor)
    command = [cc, *options, "-o", name, str(_FOLDER / f"{unit}.c"), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        Path(name).unlink()
        first = next((line for line in done.stderr.splitlines() if "error" in line), "no error is named")
        return f"{unit} does not compile for {instruction_set}: {first.strip()}"
    Path(name).chmod(0o755)
    Path(name).replace(target)
    return ""


def main() -> None:
    """Build, and say what is not possible: everything works without, more slowly."""
    for reason in build(sys.argv[1:] or None):
        sys.stderr.write(f"native kernels: programs run by stock torch where these are missing: {reason}\n")


if __name__ == "__main__":
    main()
