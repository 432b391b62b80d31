"""A gateway or relay as a process, and what it said first."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parents[3]
ROOTS = os.pathsep.join(str(ROOT / part) for part in (".", "ledger", "solver", "verifier", "whistleblower"))


class Served:
    """A process that was started, and what it said first."""

    def __init__(self, words: list[str], log: Path, environment: dict[str, str] | None = None) -> None:
        self._log = log.open("a")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "assay", *words],
            cwd=ROOT,
            env=os.environ | {"ASSAY_CONFIG": "/dev/null", "PYTHONPATH": ROOTS} | (environment or {}),
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        assert first, log.read_text()
        self.said: dict[str, Any] = json.loads(first)
        self.client = httpx.Client(base_url=self.said["url"], timeout=60.0)

    def kill(self) -> None:
        """As a loss of power ends it, but for the disk."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As Ctrl-C does."""
        assert self._end(signal.SIGINT) in (0, 130)

    def _end(self, how: int) -> int:
        self.client.close()
        self.process.send_signal(how)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()
        return code
