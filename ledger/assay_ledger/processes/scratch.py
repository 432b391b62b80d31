"""Private folders that vanish with the process that made them, however it ends."""

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from assay_ledger.processes import reap


class ScratchDir:
    """A private folder (mode 0700) that is removed on exit, on error, and when this process is killed.

    A small reaper process stands beside it and ends with it. `keep()` calls the reaper off and leaves the folder.
    """

    def __init__(self, name: str = "scratch") -> None:
        self.path = Path(tempfile.gettempdir()) / f"assay-{name}-{secrets.token_hex(8)}"
        # First the reaper, then the folder: a kill between the two leaves nothing.
        self._reaper = subprocess.Popen(
            [sys.executable, "-I", "-S", reap.__file__, str(os.getpid()), str(self.path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Ctrl-C reaches a whole process group; the reaper must outlive it.
            start_new_session=True,
        )
        self.path.mkdir(mode=0o700)

    def keep(self) -> Path:
        """Leave the folder in place for good, and say where it is."""
        self._call_off()
        return self.path

    def remove(self) -> None:
        """Remove the folder now; harmless when repeated."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._call_off()

    def _call_off(self) -> None:
        if self._reaper.poll() is None:
            self._reaper.kill()
        self._reaper.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._reaper.poll() is None:
            self.remove()
