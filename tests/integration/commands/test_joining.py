"""A stranger joins a running demo by the commands that the demo prints, works, is credited, and claims."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from assay.sponsor.charters import SHARES_PER_STEP
from assay.training.presets import TINY
from tests.harness.demo.demos import BIN, Demo, running, wait_for_nothing

ROOT = Path(__file__).parents[3]
ROUNDS = 5
INHERITED = ("ASSAY_ARTIFACTS", "ASSAY_CACHE", "PYTHONPATH")
"""What belongs to this installation and not to the demo."""


@dataclass(frozen=True)
class Stranger:
    """Somebody with a home, a password and a shell; knows of the demo only what it printed."""

    home: Path
    export: str

    def shell(self, command: str) -> subprocess.Popen[str]:
        """Starts a command line as typed."""
        environment = {
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "ETH_PASSWORD": str(self.home / "password"),
            "OMP_NUM_THREADS": "1",
        }
        environment |= {name: os.environ[name] for name in INHERITED if name in os.environ}
        words = ["bash", "-c", f"{self.export}; {command}"]
        log = (self.home / "log").open("a")
        return subprocess.Popen(words, cwd=self.home, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)

    def run(self, command: str) -> dict[str, Any]:
        """What a command prints as JSON."""
        output, _ = (process := self.shell(command)).communicate(timeout=120)
        assert process.returncode == 0, (command, output, (self.home / "log").read_text())
        document: dict[str, Any] = json.loads(output)
        return document


def make_stranger(home: Path, export: str) -> Stranger:
    home.mkdir()
    (home / "password").write_text("a stranger's own\n")
    return Stranger(home, export)


def rounds_of(lines: list[str], name: str) -> tuple[list[int], list[int]]:
    """Rounds that opened after somebody took a seat, and those that it committed to, from the demo's lines."""
    seated: list[int] = []
    is_seated = False
    for line in lines:
        is_seated |= f"{name} takes seat" in line
        if is_seated and (opened := re.search(r"round (\d+) opens", line)):
            seated.append(int(opened[1]))
    committed = [int(found[1]) for line in lines if (found := re.search(rf"{name} commits to round (\d+)", line))]
    return seated, committed


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_stranger_that_joins_a_running_demo_is_seated_next_credited_and_can_claim(tmp_path: Path) -> None:
    kept, temporary = tmp_path / "kept", tmp_path / "temporary"
    demo = Demo(temporary, "--rounds", str(ROUNDS), "--cheat", "none", "--json", "--keep", str(kept))
    with running(demo):
        demo.read_until("a stranger joins")
        export, new, faucet, stake, start = (demo.read_line().strip() for _ in range(5))
        stranger = make_stranger(tmp_path / "home", export)
        address = to_checksum_address(stranger.run(new)["address"])
        stranger.run(faucet.replace("ADDRESS", address) + " --json")
        stranger.run(stake + " --json")
        solver = stranger.shell(start)
        try:
            document = json.loads(demo.read_document())
            assert "error" not in document, document
            demo.read_until("explorer at")
            assert solver.wait(timeout=60) == 0, (tmp_path / "home" / "log").read_text()
        finally:
            solver.kill()
            solver.communicate()

        assert document["rounds"] == ROUNDS
        assert document["slashed"] == document["disputes"] == []
        assert document["conservation_difference"] == 0
        seated, committed = rounds_of(demo.lines, f"{address[:10]}…")
        assert seated, "the stranger came after the last round had opened"
        # At the next T0, and in every round from there on: the demo waited for its commitments.
        assert committed == seated == list(range(ROUNDS - len(seated), ROUNDS))
        assert document["shares"][address] == len(committed) * TINY.inner_steps * SHARES_PER_STEP

        # A script that knows nothing of the demo finds the same, and the stranger is paid as an owner.
        (tmp_path / "demo.json").write_text(json.dumps(document))
        script = [sys.executable, "-m", "tools.recompute", str(tmp_path / "demo.json")]
        checked = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        owned = stranger.run("assay ledger shares --key me --json")
        claimable = sum(owned["claimable"].values())
        assert owned["shares"] == document["shares"][address]
        assert claimable > 0
        stranger.run("assay ledger claim --key me --json")
        assert sum(stranger.run("assay ledger shares --key me --json")["claimable"].values()) == 0

        demo.process.send_signal(signal.SIGINT)
        demo.finish(limit_s=30)
        assert demo.process.returncode == 0
        assert wait_for_nothing(temporary) == []
    assert (kept / "chain" / "state.json").exists()
