"""What is said and logged while stderr is full, gone or never read: nobody waits for it, and nobody ends by it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.observing.unhurried import UnhurriedStream
from tests.harness.actors.shells import SOURCE

ACTS = """
import logging, sys
from assay.cli.acting import TellsStanding, _Progress
from assay.cli.common import configure_log, never_waiting
from assay.settings import Settings

configure_log(Settings(log_format=sys.argv[1]))
with never_waiting():
    progress = _Progress()
    for number in range(3000):
        progress(f"round {number} " + "x" * 400, 0, 1)
        logging.getLogger("assay.agent").warning("step %d %s", number, "y" * 400)
    print("acted", flush=True)
"""


def full(_: Path) -> int:
    return os.open("/dev/full", os.O_WRONLY)


def gone(_: Path) -> int:
    read, write = os.pipe()
    os.close(read)
    return write


def never_read(_: Path) -> int:
    return os.pipe()[1]


@pytest.mark.parametrize("form", ["plain", "json"])
@pytest.mark.parametrize("stderr", [full, gone, never_read], ids=["full disk", "gone pipe", "unread pipe"])
@pytest.mark.gate_takes(1)
def test_who_acts_goes_on_whatever_became_of_its_stderr(
    tmp_path: Path, stderr: Callable[[Path], int], form: str
) -> None:
    """Attacks: a log file on a full disk, a reader that was killed, a terminal that is stopped, in a game."""
    place = stderr(tmp_path)
    environment = os.environ | {"PYTHONPATH": SOURCE}
    acts = [sys.executable, "-c", ACTS, form]
    done = subprocess.run(acts, stdout=subprocess.PIPE, stderr=place, env=environment, timeout=60, check=False)
    os.close(place)
    assert done.stdout == b"acted\n" and done.returncode in (0, 120)


def test_what_is_read_in_time_is_written_whole_and_in_order() -> None:
    out = io.StringIO()
    stream = UnhurriedStream(out)
    for number in range(1000):
        stream.write(f"{number}\n")
    assert stream.finish()
    assert out.getvalue().split() == [str(number) for number in range(1000)]


def test_what_nobody_reads_is_dropped_beyond_a_bound_and_that_is_said() -> None:
    gate = threading.Event()

    class HeldUpText(io.StringIO):
        def write(self, text: str) -> int:
            gate.wait()
            return super().write(text)

    out = HeldUpText()
    stream = UnhurriedStream(out, kept=100)
    for _ in range(1000):
        stream.write("0123456789")
    began = time.monotonic()
    assert not stream.finish(0.05) and time.monotonic() - began < 1
    gate.set()
    time.sleep(0.2)
    assert len(out.getvalue()) < 400 and "were not written" in out.getvalue()
