"""Start and stop child processes that never outlive this one.

Linux sends the parent-death signal when the *thread* that forked ends, not the process. Every child is therefore
started from one thread that lives as long as this process, so `spawn` may be called from any thread, even a brief one.
Source: prctl(2), PR_SET_PDEATHSIG.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue

from assay.protocol.errors import ConfigError
from assay_ledger.processes import launch

GRACE_S = 5.0

_STDERR = 2
"""Its descriptor."""

_Request = tuple[Future[subprocess.Popen[bytes]], list[str], dict[str, object]]
_requests: SimpleQueue[_Request] = SimpleQueue()
_lock = threading.Lock()
_forker: tuple[int, threading.Thread] | None = None


def spawn(
    argv: Sequence[str | Path],
    *,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    pipe_stdout: bool = False,
    stdout_to_stderr: bool = False,
) -> subprocess.Popen[bytes]:
    """Start `argv` as a child that is killed when this process ends, however it ends.

    The child gets its own session, so a Ctrl-C at the terminal reaches only us and we decide the order of stopping.
    stdin is empty; stdout and stderr are appended to `log`, or inherited without one; `pipe_stdout` gives
    `Popen.stdout` instead, with stderr still as said, and `stdout_to_stderr` writes both to our stderr, where our
    stdout is a document's. `env` replaces the whole environment where given.
    Raises ConfigError (ToolMissing) when the program does not exist.
    """
    words = [str(word) for word in argv]
    if shutil.which(words[0]) is None:
        raise ConfigError(
            f"The program {words[0]} does not exist or cannot be run.", code="ToolMissing", remedy="Run `make setup`."
        )
    command = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), *words]
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(log.open("ab")) if log is not None else None
        options: dict[str, object] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE if pipe_stdout else _STDERR if stdout_to_stderr else sink,
            "stderr": sink if pipe_stdout or sink is None else subprocess.STDOUT,
            "env": None if env is None else dict(env),
            "cwd": cwd,
            "start_new_session": True,
        }
        answer: Future[subprocess.Popen[bytes]] = Future()
        _ensure_forker()
        _requests.put((answer, command, options))
        return answer.result()


def stop(children: Sequence[subprocess.Popen[bytes]], grace_s: float = GRACE_S) -> None:
    """Ask all children to end (SIGTERM), wait `grace_s` seconds in all, then kill what remains."""
    for child in children:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
    timer = threading.Event()
    clock = threading.Timer(grace_s, timer.set)
    clock.start()
    try:
        for child in children:
            while child.poll() is None and not timer.is_set():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(timeout=0.05)
        # All at once: one that has much memory to give back holds up no other's end.
        for child in children:
            if child.poll() is None:
                child.kill()
        for child in children:
            child.wait()
            if child.stdout is not None:
                child.stdout.close()
    finally:
        clock.cancel()


def _ensure_forker() -> None:
    global _forker, _requests
    with _lock:
        # After a plain fork the thread of the parent does not exist here.
        if _forker is None or _forker[0] != os.getpid():
            _requests = SimpleQueue()
            thread = threading.Thread(target=_fork_on_request, args=(_requests,), name="assay-forker", daemon=True)
            _forker = (os.getpid(), thread)
            thread.start()


def _fork_on_request(requests: SimpleQueue[_Request]) -> None:
    while True:
        answer, command, options = requests.get()
        try:
            answer.set_result(subprocess.Popen(command, **options))  # type: ignore[call-overload]
        except BaseException as error:
            answer.set_exception(error)
