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

from assay.demo.play import UNITS
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


def rounds_of(lines: list[str], name: str) -> tuple[int, dict[int, int]]:
    """From which round on somebody had a seat, and how many units it committed to which round, by the demo's lines."""
    seats = [found for line in lines if (found := re.search(rf"{name} takes seat \d+ from round (\d+) on", line))]
    works = [found for line in lines if (found := re.search(rf"{name} commits (\d+) units? to round (\d+)$", line))]
    (seat,) = seats
    return int(seat[1]), {int(work[2]): int(work[1]) for work in works}


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
        first, units = rounds_of(demo.lines, f"{address[:10]}…")
        assert first < ROUNDS, "the stranger came after the last round had opened"
        # From the round of its seat on it takes part in every one: the demo waited for its commitments.
        assert list(units) == list(range(first, ROUNDS))
        steps = sum(units.values()) * TINY.inner_steps // UNITS
        assert document["shares"][address] == steps * SHARES_PER_STEP
        put, got, lost, has = (document[c][address] for c in ("deposited", "earned", "lost", "stake"))
        assert (has, lost) == (put + got, 0)

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
