"""An actor's ranks, started by torchrun as an operator starts them: the bits of one rank alone, and no silence."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from assay.cli import ranks as places
from assay.protocol.errors import UserError
from assay.training.rounds import TorchCompute
from tests.harness.engine.ranked_training import root_of, work

ROOT = Path(__file__).resolve().parents[3]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
RUNS, STEPS = 2, 2


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One capture for all processes of a test."""
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))


def start(*options: str, fails: str = "") -> subprocess.Popen[str]:
    """One torchrun, which is one machine's."""
    words = ["-m", "tests.harness.engine.ranked_training", str(RUNS), str(STEPS), *([fails] if fails else [])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*TORCHRUN, *options, *words],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def free_port() -> int:
    """A port below those that connections get by themselves: who asks such a one too early is connected to itself."""
    for port in random.Random().sample(range(20_000, 30_000), 50):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def said(process: subprocess.Popen[str]) -> tuple[int, str]:
    """How it ended, and what its ranks printed."""
    try:
        out, _ = process.communicate(timeout=240)
    finally:
        process.kill()
        process.wait()
    return process.returncode, out


def expected() -> str:
    """The root that one process alone comes to."""
    program, lists = work()
    for _ in range(RUNS):
        lists = TorchCompute().run(program, lists, STEPS)
    return root_of(program, lists)


def check(out: str) -> None:
    """The leader has the bits of one process and shared its work; the other rank served every run of it."""
    (line,) = [line for line in out.splitlines() if line.startswith("{")]
    leader = json.loads(line)
    assert leader["root"] == expected()
    assert leader["told"] == [*range(1, STEPS + 1)] * RUNS
    assert leader["exchanges"] == 2 * RUNS * STEPS


def test_ranks_of_one_machine_train_with_the_bits_of_one_process() -> None:
    expected()  # captured once, for all
    code, out = said(start("--standalone", "--nproc-per-node", "2"))
    assert code == 0
    check(out)
    assert f"rank 1 of 2: rank 0 has ended; computed {RUNS} times with it" in out


def test_ranks_of_two_machines_train_with_the_bits_of_one_process() -> None:
    expected()
    meeting = ["--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    machines = [start("--nnodes", "2", "--nproc-per-node", "1", "--node-rank", str(n), *meeting) for n in range(2)]
    ends = [said(machine) for machine in machines]
    assert [code for code, _ in ends] == [0, 0]
    check(ends[0][1] + ends[1][1])


@pytest.mark.parametrize("rank", [pytest.param("0", marks=pytest.mark.long), "1"])
def test_a_rank_that_dies_ends_the_others_at_once(rank: str) -> None:
    """Nobody waits for ever, and nobody goes on with a part of the sums."""
    expected()
    code, out = said(start("--standalone", "--nproc-per-node", "2", fails=rank))
    assert code != 0
    assert "root" not in out and "rank 0 has ended" not in out
    assert "RanksLost" in out


def test_a_process_alone_is_no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert places.place() is None
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert places.place() is None
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert places.place() == places.RankPlace(1, 2)


@pytest.mark.parametrize(("rank", "size"), [("2", "2"), ("-1", "2"), ("0", "0"), ("one", "2"), ("0", "two")])
def test_a_place_that_is_none_among_the_ranks_is_refused(monkeypatch: pytest.MonkeyPatch, rank: str, size: str) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", size)
    with pytest.raises(UserError, match="no rank"):
        places.place()
