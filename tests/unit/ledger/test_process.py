"""Nothing that was started outlives the one who started it, however it ends."""

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from assay.protocol.errors import ConfigError
from assay_ledger.processes.children import spawn, stop
from assay_ledger.processes.scratch import ScratchDir

# A runner as a person might write one: a node and an actor-like child that has a child of its own, all started from a
# brief thread. It prints one line per thing it starts, so that a test can stop it at any moment.
PATIENT_S = 60.0
"""For what is to happen: a test must not end because a machine is slow."""

RUNNER = """
import sys, threading, time
from assay_ledger.chain.node import Anvil
from assay_ledger.processes.children import spawn
from assay_ledger.processes.scratch import ScratchDir

def say(*words):
    print(*words, flush=True)

GRANDCHILD = '''
import time
from assay_ledger.processes.children import spawn
import sys
spawn([sys.executable, "-c", "import time; time.sleep(600)"])
time.sleep(600)
'''

def start():
    global scratch, node
    say("begin")
    scratch = ScratchDir("test")
    say("folder", scratch.path)
    (scratch.path / "data").write_text("x")
    say("child", spawn([sys.executable, "-c", GRANDCHILD]).pid)
    node = Anvil()
    say("node", node.process.pid, node.port, node.data_dir)

thread = threading.Thread(target=start)
thread.start()
thread.join()
say("ready")
time.sleep(600)
"""


class Runner:
    """The runner under test, with all that it left in a temporary folder and a process tree of its own."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / f"tmp-{time.monotonic_ns()}"
        self.folder.mkdir()
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUNNER],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"TMPDIR": str(self.folder)},
        )
        self._seen: set[psutil.Process] = set()
        self._watch = threading.Thread(target=self._read, daemon=True)
        self.ready = threading.Event()
        self._watch.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.strip())
            if line.startswith("ready"):
                self.ready.set()

    def look(self) -> None:
        try:
            self._seen.update(psutil.Process(self.process.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return

    def end(self, how: signal.Signals) -> None:
        """End the runner at once and fail unless all that it started is gone soon."""
        self.look()
        self.process.send_signal(how)
        deadline = time.monotonic() + PATIENT_S
        self.process.wait(timeout=PATIENT_S)
        while left := self._left():
            assert time.monotonic() < deadline, f"left after {how.name}: {left}; runner said {self.lines}"
            threading.Event().wait(0.02)
        self._watch.join(timeout=PATIENT_S)

    def _left(self) -> list[str]:
        alive = [str(p) for p in self._seen if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
        folders = [str(path) for path in self.folder.iterdir()]
        ports = [line for line in self.lines if line.startswith("node") and _is_open(int(line.split()[2]))]
        return alive + folders + ports


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_a_runner_that_is_ended_leaves_no_process_port_or_folder(how: signal.Signals, tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    assert runner.ready.wait(PATIENT_S), runner.lines
    runner.look()
    # node, child, grandchild, and a reaper for each of the two private folders
    assert len(runner._seen) >= 4
    assert len(list(runner.folder.iterdir())) == 2
    runner.end(how)


@pytest.mark.long
def test_a_runner_killed_at_ten_random_moments_leaves_nothing(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    for _ in range(10):
        runner = Runner(tmp_path)
        wait = moments.uniform(0.0, 1.5)
        end = time.monotonic() + wait
        while time.monotonic() < end:
            runner.look()
            threading.Event().wait(0.005)
        runner.end(signal.SIGKILL)


def test_a_child_lives_on_when_the_thread_that_asked_for_it_has_ended() -> None:
    children: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        child = spawn([sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"], pipe_stdout=True)
        children.append(child)
        # Only a child that has asked for the signal by the end of the thread can be hit by it.
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    # A whole other process starts and ends meanwhile: time enough for a signal that the thread's end would send.
    assert spawn([sys.executable, "-c", "pass"]).wait(timeout=PATIENT_S) == 0
    assert children[0].poll() is None
    stop(children)
    assert children[0].returncode == -signal.SIGTERM


def test_stdin_is_empty_and_stdout_can_be_read() -> None:
    child = spawn([sys.executable, "-c", "import sys; print(repr(sys.stdin.read()))"], pipe_stdout=True)
    assert child.stdout is not None
    assert child.stdout.read() == b"''\n"
    stop([child])
    assert child.returncode == 0


def test_a_child_that_ignores_sigterm_is_killed_after_the_grace_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    )
    child = spawn([sys.executable, "-c", code], log=log)
    while "deaf" not in log.read_text():
        assert child.poll() is None
    stop([child], grace_s=0.2)
    assert child.returncode == -signal.SIGKILL


def test_the_exit_code_and_output_of_a_child_are_its_own(tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = spawn(
        [sys.executable, "-c", "import os, sys; print(os.environ['A'], os.getcwd()); sys.exit(7)"],
        log=log,
        env={"A": "seen"},
        cwd=tmp_path,
    )
    assert child.wait(timeout=PATIENT_S) == 7
    assert log.read_text() == f"seen {tmp_path}\n"


def test_a_program_that_does_not_exist_is_named() -> None:
    with pytest.raises(ConfigError, match="no-such-program") as raised:
        spawn(["no-such-program"])
    assert raised.value.code == "ToolMissing"


def test_a_private_folder_goes_on_exit_and_stays_when_kept() -> None:
    with ScratchDir() as gone:
        assert (gone.path.stat().st_mode & 0o777) == 0o700
    assert not gone.path.exists()
    with ScratchDir() as kept:
        path = kept.keep()
    assert path.exists()
    path.rmdir()
