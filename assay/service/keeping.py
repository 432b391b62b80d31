"""The children of a service: started, watched, started again, stopped in order. One thread does it all."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assay.protocol.errors import ConfigError
from assay.service.backoff import ChildState, Next, after_end, after_failed_start
from assay.service.config import RoleEntry, ServiceFile, arguments_of, environment_of
from assay_ledger.processes.children import spawn, stop

LOOK_S: Final = 0.2

_LOG = logging.getLogger("assay.agent")


@dataclass
class Child:
    """One role's process, and what became of those before it. `clock` times are seconds that never run back."""

    entry: RoleEntry
    argv: Sequence[str]
    environment: Mapping[str, str]
    state: ChildState = ChildState.WAITING
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_at: float = 0.0
    ends: int = 0
    starts: int = 0
    why: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it is not started again."""
        return self.state in (ChildState.DONE, ChildState.GIVEN_UP)


class Children:
    """All children of a service file. Raises ServiceFileInvalid before the first is started."""

    def __init__(
        self,
        file: ServiceFile,
        *,
        program: Sequence[str] = (sys.executable, "-m", "assay"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.all = [Child(entry, [*program, *arguments_of(entry)], environment_of(file, entry)) for entry in file.roles]
        self._stop_s, self._clock = file.stop_s, clock

    def run(self, stop_: threading.Event) -> None:
        """Until told to stop, or until no child will ever run again; then all are stopped in order."""
        try:
            while not stop_.is_set() and not all(child.is_over for child in self.all):
                self.look()
                stop_.wait(LOOK_S)
        finally:
            self.stop()

    def look(self) -> None:
        """Starts what is due, and notes what has ended."""
        for child in self.all:
            if child.state is ChildState.RUNNING:
                self._note_end(child)
            if child.state is ChildState.WAITING and self._clock() >= child.start_at:
                self._start(child)

    def stop(self) -> None:
        """The last of the file first: what shows and watches ends before what acts, and each has its seconds."""
        for child in reversed(self.all):
            if child.process is not None and child.process.poll() is None:
                _say(child, "is stopped")
                stop([child.process], self._stop_s)
                code = child.process.returncode
                _say(child, f"has ended (exit code {code})" if code >= 0 else f"was killed after {self._stop_s:g} s")
            if child.state is ChildState.RUNNING:
                child.state = ChildState.WAITING

    def _start(self, child: Child) -> None:
        try:
            process = spawn(list(child.argv), env=child.environment, stdout_to_stderr=True)
        # No fork, no memory, no file; no thread to fork from; no program while its release is being replaced.
        except (OSError, RuntimeError, ConfigError) as error:
            self._follow(child, after_failed_start(error, child.ends))
            _say(child, f"was not started: {child.why}")
            return
        child.process = process
        child.state, child.started_at, child.starts = ChildState.RUNNING, self._clock(), child.starts + 1
        _say(child, f"started as process {process.pid}")

    def _note_end(self, child: Child) -> None:
        assert child.process is not None
        code = child.process.poll()
        if code is None:
            return
        ran_s = self._clock() - child.started_at
        found = after_end(code, ran_s, child.ends, serves=child.entry.role == "explorer")
        self._follow(child, found)
        _say(child, f"ended: {found.why}")

    def _follow(self, child: Child, found: Next) -> None:
        child.state, child.ends, child.why = found.state, found.ends, found.why
        child.start_at = self._clock() + found.wait_s


def _say(child: Child, text: str) -> None:
    _LOG.info("%s %s", child.entry.name, text, extra={"child": child.entry.name})
