"""Shared objects for another machine, called through an emulator as `ctypes.CDLL` calls one of this machine's.

qemu runs `driver.c`, which fetches the pages of this process's memory that a call touches, at the same addresses, and
sends back what the call has changed. So whatever hands pointers to the kernels, plans and tables included, hands them
to emulated ones unchanged.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import struct
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from assay.engine.runtime.native import build

MACHINE = "aarch64"
CROSS, QEMU, SYSROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"

CPUS = {"i8mm": "max", "dotprod": "neoverse-n1", "neon": "cortex-a57", "plain": "cortex-a57"}
"""Per instruction set a processor that has it and none that is better: any other instruction ends the driver."""

_PAGE = 4096
_CALL, _TEXT, _CONTROL = 1, 2, 3
_FETCH, _CHANGED, _ANSWER, _STRING, _FAULT = range(1, 6)


def missing() -> str:
    """Why nothing can be emulated here; empty when it can."""
    lacking = [name for name in (CROSS, QEMU) if shutil.which(name) is None]
    if not lacking and not Path(SYSROOT, "lib", "libc.so.6").exists():
        lacking.append(f"{SYSROOT}/lib/libc.so.6")
    if not lacking:
        return ""
    return f"{', '.join(lacking)} not found: apt install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"


@cache
def built(instruction_set: str) -> str:
    """Why some unit is not built for an instruction set of the emulated machine; empty when all are."""
    return "; ".join(build.build(None, [instruction_set], machine=MACHINE, cc=CROSS))


@cache
def _driver() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    folder = tempfile.TemporaryDirectory(prefix="assay-emulator-")
    driver = Path(folder.name, "driver")
    source = Path(__file__).with_name("driver.c")
    subprocess.run([CROSS, "-O1", "-Wall", "-Wextra", "-Werror", "-o", driver, source, "-ldl"], check=True)
    return folder, driver


class EmulatedFunction:
    """A function of a shared object, as far as the project uses those of ctypes."""

    def __init__(self, library: EmulatedLibrary, name: str) -> None:
        self._library, self._name = library, name
        self.argtypes: list[type] = []
        self.restype: type | None = ctypes.c_int

    def __call__(self, *arguments: object) -> int | bytes | None:
        if self._name == "assay_set_team":  # threads of this process; the driver has one
            return None
        answer = self._library.call(self._name, [_word(each) for each in arguments])
        if self.restype is None:
            return None
        if self.restype is ctypes.c_char_p:
            return self._library.text(answer)
        return int(self.restype(answer).value)


def _word(argument: object) -> int:
    match argument:
        case None:
            return 0
        case int():
            return argument
        case bytes():
            return ctypes.cast(ctypes.c_char_p(argument), ctypes.c_void_p).value or 0
        case ctypes.Array():
            return ctypes.addressof(argument)
    raise TypeError(f"{argument!r} is no argument of an emulated function")


class EmulatedLibrary:
    """A unit of the native kernels for an instruction set of the emulated machine, on a processor that has it."""

    def __init__(self, unit: str, instruction_set: str, cpu: str | None = None) -> None:
        if reason := built(instruction_set):
            raise OSError(reason)
        path = build.object_path(unit, instruction_set, machine=MACHINE)
        command = [QEMU, "-cpu", cpu or CPUS[instruction_set], "-L", SYSROOT, str(_driver()[1]), str(path)]
        self._memory = os.open("/proc/self/mem", os.O_RDONLY)
        self._functions: dict[str, EmulatedFunction] = {}
        for _ in range(20):
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            assert self._process.stdin is not None and self._process.stdout is not None
            self._in, self._out = self._process.stdin, self._process.stdout
            self._read(24)
            if not self._overlaps():
                return
            self.close()
        raise OSError("the emulator's own memory always lies where this process has its own")

    def __getattr__(self, name: str) -> EmulatedFunction:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._functions.setdefault(name, EmulatedFunction(self, name))

    def close(self) -> None:
        """End the emulator."""
        self._process.kill()
        self._process.wait()

    def control(self, word: int) -> None:
        """The control word with which functions are called from now on."""
        self._in.write(struct.pack("<qq", _CONTROL, word))

    def call(self, name: str, arguments: list[int]) -> int:
        """Call a function of up to eight words; its answer as a word.

        Raises:
            OSError: it reads what is not mapped here, or the driver ends.
        """
        words = [a % (1 << 64) for a in arguments] + [0] * (8 - len(arguments))
        self._in.write(struct.pack("<qq", _CALL, len(name)) + name.encode() + struct.pack("<8Q", *words))
        while True:
            kind, a, b = struct.unpack("<qqq", self._read(24))
            if kind == _ANSWER:
                return int(a)
            if kind == _FETCH:
                self._give_page(a)
            elif kind == _CHANGED:
                ctypes.memmove(a, self._read(b), b)
            elif kind == _FAULT:
                raise OSError(f"{name} touches {a:#x}, where this process has no memory")
            else:
                raise OSError(f"{name} touches {a:#x}, where the emulator has memory of its own")

    def text(self, address: int) -> bytes:
        """A C string of the emulated process."""
        self._in.write(struct.pack("<qq", _TEXT, address))
        kind, _, length = struct.unpack("<qqq", self._read(24))
        assert kind == _STRING
        return self._read(length)

    def _give_page(self, address: int) -> None:
        try:
            page = os.pread(self._memory, _PAGE, address)
        except (OSError, OverflowError):
            page = b""
        whole = len(page) == _PAGE
        self._in.write(struct.pack("<q", whole) + page * whole)

    def _read(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            part = self._out.read(count - len(parts))
            if not part:
                raise OSError(f"the emulator ended with status {self._process.wait()}")
            parts += part
        return bytes(parts)

    def _overlaps(self) -> bool:
        """Whether the emulator has memory of its own where this process has some: a touch there would not be seen."""
        ours, theirs = _mapped("self"), _mapped(str(self._process.pid))
        return any(a < d and c < b for a, b in ours for c, d in theirs)


def _mapped(process: str) -> list[tuple[int, int]]:
    lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    found = [re.match(r"([0-9a-f]+)-([0-9a-f]+) .* (\S*)$", line) for line in lines]
    spans = [(int(m[1], 16), int(m[2], 16), m[3]) for m in found if m]
    return [(low, high) for low, high, name in spans if name not in ("[vsyscall]",)]
