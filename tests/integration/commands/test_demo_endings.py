"""How demos end: two at once from different folders, and Ctrl-C at every stage. Nothing is left of any of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from assay.cli.endings import INTERRUPTED
from assay.demo import scene
from assay.demo.scene import open_node
from assay.engine.runtime.executor import how_programs_run
from assay.protocol.errors import ExitCode
from assay_ledger.processes.children import spawn
from tests.harness.demo.demos import END_LIMIT_S, Demo, running, wait_for_nothing


def is_listening(url: str) -> bool:
    """Does anybody answer at this address?"""
    parts = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((str(parts.hostname), int(parts.port or 0))) == 0


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_two_demos_at_once_from_different_folders_both_end_well_and_leave_nothing(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("one", "a place with spaces")]
    homes = [tmp_path / f"home of {place.name}" for place in places]
    for home in homes:
        home.mkdir()
    demos = [Demo(place, "--json", cwd=home) for place, home in zip(places, homes, strict=True)]
    with running(*demos):
        documents = [json.loads(demo.finish(limit_s=900)) for demo in demos]
        assert [demo.process.returncode for demo in demos] == [0, 0]
        for document in documents:
            assert document["conservation_difference"] == 0
            assert len({entry["address"] for entry in document["slashed"]}) == 1
            assert not is_listening(document["rpc_url"])
        assert len({document["rpc_url"] for document in documents}) == len({d["store"] for d in documents}) == 2
        assert [wait_for_nothing(place) for place in places] == [[], []]
        assert [list(home.iterdir()) for home in homes] == [[], []]


ACTOR = """
import pathlib, signal, sys, time
def end(*_):
    if sys.argv[1] == "slow":
        time.sleep(600)
    pathlib.Path(sys.argv[2]).write_text("ended")
    sys.exit()
signal.signal(signal.SIGTERM, end)
print("here", flush=True)
time.sleep(600)
"""
"""A process that is slow to end, or quick."""


def ending(folder: Path | None, how: str, said: Path) -> float:
    """Seconds that a stage takes to end with its node and such a process."""
    with open_node(folder, None) as (node, _, processes):
        processes["actor"] = child = spawn([sys.executable, "-c", ACTOR, how, said], pipe_stdout=True)
        assert child.stdout is not None and child.stdout.readline() == b"here\n"
        begin = time.monotonic()
    assert child.poll() is not None and not node.is_running
    return time.monotonic() - begin


def test_what_vanishes_ends_at_once_and_what_is_kept_has_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene, "ACTOR_GRACE_S", 20.0)
    said = tmp_path / "said"
    assert ending(None, "slow", said) < 10.0, "it waits for whoever is slow to end"
    ending(tmp_path / "kept", "quick", said)
    assert said.read_text() == "ended"


def interrupt(demo: Demo, how: str) -> None:
    """Ctrl-C as a terminal sends it, to the whole group, or to the one process."""
    if how == "group":
        os.killpg(demo.process.pid, signal.SIGINT)
    else:
        demo.process.send_signal(signal.SIGINT)


def check_interrupted(folder: Path, moment: str, how: str) -> None:
    demo = Demo(folder, "-v")
    with running(demo):
        demo.read_until(moment)
        interrupt(demo, how)
        begin = time.monotonic()
        demo.finish(limit_s=60)
        left = wait_for_nothing(folder, max(0.0, END_LIMIT_S - (time.monotonic() - begin)))
        took = time.monotonic() - begin
    assert demo.process.returncode == ExitCode.INTERRUPTED
    assert [line for line in demo.lines if line.startswith("Programs run by")] == [how_programs_run()]
    # One sentence, and it is the last word: no traceback, no failure that only the interruption caused.
    after = demo.lines[next(k for k, line in enumerate(demo.lines) if moment in line) + 1 :]
    assert after[-1] == INTERRUPTED
    assert all(line.startswith(("$ assay ", "[", "  ", *TALK)) for line in after[:-1]), after
    assert left == [] and took <= END_LIMIT_S, f"{left} after {took:.1f} s"


TALK = (
    "posting the run",
    "3 rounds of up to ",
    "a seat locks ",
    "here each commitment ",
    "a stranger joins with these commands, ",
    "handing out test tokens",
    "starting the actors",
    "tickets count ",
    "paying revenue, and letting its four weeks pass",
)
"""How the lines begin that a demo says beside commands and what happens on its chain."""


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("how", ["group", "process"])
def test_ctrl_c_while_keys_are_made_ends_everything_within_seconds(tmp_path: Path, how: str) -> None:
    check_interrupted(tmp_path, "assay key new", how)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("moment", "how"),
    [
        ("assay run post", "group"),
        ("assay ledger faucet", "process"),
        ("assay whistleblower start", "group"),
        ("assay run open", "process"),
        ("round 0 opens", "process"),
        ("challenges", "group"),
        ("round 1 opens", "group"),
        ("assay ledger claim", "process"),
        ("claims", "group"),
    ],
)
def test_ctrl_c_at_any_later_stage_ends_everything_within_seconds(tmp_path: Path, moment: str, how: str) -> None:
    check_interrupted(tmp_path, moment, how)
