"""A service whose machine can make no process for a while: it goes on, and starts what is due later."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from assay.service import keeping
from assay.service.backoff import FIRST_S, MOST_S, ChildState, after_failed_start
from assay.service.config import read_service_file
from assay.service.keeping import Children

FILE = """
[service]
status = "127.0.0.1:0"
stop_s = 5

[[role]]
role = "explorer"
run = "0x00000000000000000000000000000000000000b0"
port = 0
"""
NO_FORK = BlockingIOError(11, "Resource temporarily unavailable")
NO_MEMORY = OSError(12, "Cannot allocate memory")
NO_THREAD = RuntimeError("can't start new thread")


def test_a_machine_that_can_make_no_process_for_a_while_ends_no_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "service.toml"
    path.write_text(FILE)
    now = [1000.0]
    children = Children(read_service_file(path), program=(sys.executable, "-c", "input()"), clock=lambda: now[0])
    (child,) = children.all
    failures, spawn = [NO_FORK, NO_MEMORY, NO_THREAD], keeping.spawn

    def failing(*words: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop(0)
        return spawn(*words, **options)

    monkeypatch.setattr(keeping, "spawn", failing)
    with caplog.at_level(logging.INFO, logger="assay.agent"):
        for wait in (1.0, 2.0, 4.0):
            children.look()
            assert child.state is ChildState.WAITING and child.start_at == now[0] + wait
            children.look()
            now[0] += wait
        assert not failures, "nothing was tried before its time"
        children.look()
    try:
        assert (child.state, child.starts) == (ChildState.RUNNING, 1)
    finally:
        children.stop()
    assert "explorer was not started: no process could be made" in caplog.text
    assert "Cannot allocate memory" in caplog.text


def test_a_release_that_is_replaced_under_a_service_ends_none_of_its_roles(tmp_path: Path) -> None:
    """Bad luck: one role ends while its environment is made anew, and the service took all others with it."""
    path, program, now = tmp_path / "service.toml", tmp_path / "python", [1000.0]
    path.write_text(FILE)
    children = Children(read_service_file(path), program=(str(program), "-c", "input()"), clock=lambda: now[0])
    (child,) = children.all
    children.look()
    assert child.state is ChildState.WAITING and "does not exist" in child.why
    program.symlink_to(sys.executable)
    now[0] += FIRST_S
    children.look()
    try:
        assert (child.state, child.starts) == (ChildState.RUNNING, 1)
    finally:
        children.stop()


def test_a_service_that_never_starts_anything_is_stopped_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, stop = tmp_path / "service.toml", threading.Event()
    path.write_text(FILE)

    def failing(*_: Any, **__: Any) -> Any:
        stop.set()
        raise NO_FORK

    monkeypatch.setattr(keeping, "spawn", failing)
    children = Children(read_service_file(path))
    children.run(stop)
    assert children.all[0].process is None


def test_failed_starts_wait_twice_as_long_each_time_up_to_a_minute() -> None:
    waits = [after_failed_start(NO_FORK, ends).wait_s for ends in range(8)]
    assert waits == [min(FIRST_S * 2**k, MOST_S) for k in range(8)]
