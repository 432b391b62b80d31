"""Long turns: asked for where there is a kernel that gives them, and nothing else of the process changes."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable

import pytest

from assay_ledger.processes import turns
from assay_ledger.processes.turns import TURN_NS, take_long_turns, turn_ns


def in_a_thread(work: Callable[[], object]) -> object:
    """What it gives in a thread of its own, whose turns end with it."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def is_given() -> bool:
    """Whether this kernel has turns of any length."""
    release = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2])
    return platform.system() == "Linux" and release >= (6, 12) and platform.machine() in ("x86_64", "aarch64")


def test_a_thread_that_asks_has_long_turns_and_keeps_its_priority() -> None:
    def asks() -> object:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 3)
        asked = take_long_turns()
        return asked, turn_ns() == TURN_NS, os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)

    before = turn_ns()
    asked, *after = in_a_thread(asks)  # type: ignore[misc]
    assert after == [is_given(), os.SCHED_OTHER, 3]
    assert asked or not is_given()
    assert turn_ns() == before


@pytest.mark.parametrize(("platform_", "machine"), [("darwin", "x86_64"), ("linux", "riscv64")])
def test_where_there_is_no_such_call_nothing_is_asked(
    platform_: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns.sys, "platform", platform_)
    monkeypatch.setattr(turns.platform, "machine", lambda: machine)
    assert (in_a_thread(take_long_turns), turn_ns()) == (False, None)
