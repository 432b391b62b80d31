"""Demos as a person starts them: the installed command, in a session of its own, with a folder that all of it is in."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil

BIN: Final = Path(sys.executable).parent
"""Where the `assay` command lies."""

END_LIMIT_S: Final = 5.0
"""Nothing is left so long after an end."""


class Demo:
    """One `assay demo --preset tiny`. Whatever it starts has `folder` as its place for temporary files."""

    def __init__(self, folder: Path, *words: str, cwd: Path | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.lines: list[str] = []
        """What it said on stderr so far."""
        self.process = subprocess.Popen(
            [BIN / "assay", "demo", "--preset", "tiny", *words],
            env=os.environ | {"TMPDIR": str(folder)},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # A shell's background jobs ignore Ctrl-C and pass that on; a terminal's do not.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def read_line(self) -> str:
        """The next line that it says. Fails when it ends instead."""
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        assert line, f"the demo ended: {self.lines[-5:]}"
        self.lines.append(line.rstrip("\n"))
        return self.lines[-1]

    def read_until(self, text: str) -> str:
        """Reads on to the line that contains a text."""
        while text not in (line := self.read_line()):
            pass
        return line

    def read_document(self) -> str:
        """The line that it prints on stdout."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def finish(self, limit_s: float = 300.0) -> str:
        """Reads to the end; what it printed on stdout."""
        output, rest = self.process.communicate(timeout=limit_s)
        self.lines += rest.splitlines()
        return output


@contextlib.contextmanager
def running(*demos: Demo) -> Iterator[None]:
    """Demos that end with the block, however that ends."""
    try:
        yield
    finally:
        for demo in demos:
            if demo.process.poll() is None:
                demo.process.kill()
            demo.process.communicate()


def remains(folder: Path) -> list[str]:
    """Processes that work in a folder, and what lies in it."""
    mark = str(folder)
    found = [name.name for name in folder.iterdir()]
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and mark in process.environ().get("TMPDIR", ""):
                found.append(" ".join(process.cmdline()))
    return found


def wait_for_nothing(folder: Path, limit_s: float = END_LIMIT_S) -> list[str]:
    """What still remains of a demo after so many seconds, empty as soon as nothing does."""
    end = time.monotonic() + limit_s
    while (left := remains(folder)) and time.monotonic() < end:
        time.sleep(0.1)
    return left
