"""An actor's ranks, started by torchrun as an operator starts them: the bits of one rank alone, and no silence."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import random
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

import pytest
import torch
from torch import Tensor
from torch.distributed.run import get_args_parser

from assay.cli import ranks as places
from assay.engine.runtime.parallel.group import RankGroup
from assay.engine.runtime.products.freivalds import fault
from assay.protocol.errors import AssayError, InvariantError, UnavailableError, UserError
from assay.protocol.program.programfile import encode_program
from assay.protocol.trees.state import TrainingList
from assay.protocol.trees.tensors import TensorSizeError
from assay.training import ranked_compute
from assay.training.ranked_compute import Channel, RankedCompute, Ranks, RankThreads
from assay.training.rounds import TorchCompute
from tests.harness.engine.ranked_training import root_of, with_mapped_data, work

ROOT = Path(__file__).resolve().parents[3]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
RUNS, STEPS = 2, 2
pytestmark = pytest.mark.usefixtures("own_cache")


def start(*options: str, fails: str = "") -> subprocess.Popen[str]:
    """One torchrun, which is one machine's."""
    return process([*TORCHRUN, *options], fails, {})


def bare_rank(rank: int, port: int, fails: str) -> subprocess.Popen[str]:
    """One of two ranks that nobody watches over: torchrun would end the other where one has ended."""
    place = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2"}
    return process([sys.executable], fails, {**place, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})


def process(starter: list[str], fails: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    """A rank's program, or what starts several of them."""
    words = ["-m", "tests.harness.engine.ranked_training", str(RUNS), str(STEPS), *([fails] if fails else [])]
    return subprocess.Popen(
        [*starter, *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
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


def said(process: subprocess.Popen[str], within_s: float = 240) -> tuple[int, str]:
    """How it ended, and what its ranks printed."""
    try:
        out, _ = process.communicate(timeout=within_s)
    finally:
        process.kill()
        process.wait()
    return process.returncode, out


@cache
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
    assert leader["exchanges"] == 2 * (2 * RUNS) * STEPS


def check_left(out: str) -> None:
    """Both ranks ended their connections, and what works on them, before their processes ended."""
    assert all(f"rank {rank}: 0 threads of Gloo's" in out for rank in range(2)), out


@pytest.mark.long
def test_ranks_of_one_machine_train_with_the_bits_of_one_process() -> None:
    expected()  # captured once, for all
    code, out = said(start("--standalone", "--nproc-per-node", "2"))
    assert code == 0, out
    check(out)
    check_left(out)
    assert f"rank 1 of 2: rank 0 has ended; computed {2 * RUNS} times with it" in out


def test_ranks_of_two_machines_train_with_the_bits_of_one_process() -> None:
    expected()
    meeting = ["--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    machines = [start("--nnodes", "2", "--nproc-per-node", "1", "--node-rank", str(n), *meeting) for n in range(2)]
    ends = [said(machine) for machine in machines]
    assert [code for code, _ in ends] == [0, 0], ends
    check(ends[0][1] + ends[1][1])


def check_alone(code: int, out: str) -> None:
    """The leader said that it has lost the others, and has the bits of one process."""
    assert code == 0 and "the others are lost" in out and "goes on alone" in out, out
    (line,) = [line for line in out.splitlines() if line.startswith("{")]
    assert json.loads(line)["root"] == expected()


@pytest.mark.long
def test_a_leader_that_dies_ends_the_others_at_once() -> None:
    """Nobody waits for ever, and nobody goes on with a part of the sums, also where no torchrun ends the others."""
    expected()
    port = free_port()
    ends = [said(rank) for rank in [bare_rank(number, port, "0") for number in range(2)]]
    assert [code for code, _ in ends] == [9, 7], ends
    assert ends[1][1].splitlines()[-1] == "RanksLost"
    assert all("root" not in out and "rank 0 has ended" not in out for _, out in ends)


@pytest.mark.long
def test_a_leader_whose_other_rank_dies_goes_on_alone_with_the_same_bits() -> None:
    """It has the key: games, calls and rounds wait for no operator who starts all ranks again."""
    expected()
    port = free_port()
    leader, other = [said(rank) for rank in [bare_rank(number, port, "1") for number in range(2)]]
    assert other[0] == 9, other
    check_alone(*leader)


@pytest.mark.long
@pytest.mark.parametrize("at", ["works", "waits"])
def test_a_rank_that_is_stopped_holds_the_leader_up_for_no_game(at: str) -> None:
    """Its connections are there, and nothing comes of them: as when its machine is gone without a word."""
    expected()
    port = free_port()
    leader, other = (bare_rank(number, port, at) for number in range(2))
    try:
        check_alone(*said(leader, 120))
    finally:
        other.kill()
        other.communicate()


@pytest.mark.long
def test_torchrun_starts_ranks_again_where_it_may() -> None:
    """Its store holds the addresses of those that died."""
    expected()
    code, out = said(start("--standalone", "--nproc-per-node", "2", "--max-restarts", "1", fails="1"))
    assert code == 0, out
    check(out)


@pytest.mark.long
def test_a_leader_that_leaves_a_run_shares_no_other_and_the_rest_end_with_it() -> None:
    """In a run that began while the others are within the one that was left, its sums would meet those of that one."""
    expected()
    port = free_port()
    ranks = [bare_rank(rank, port, "leaves") for rank in range(2)]
    ends = [said(rank) for rank in ranks]
    assert [code for code, _ in ends] == [0, 7]
    check(ends[0][1])
    assert ends[1][1].splitlines()[-1] == "RanksLost"


class ChannelToNobody:
    """A leader's channel to nobody: what it was given to send."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_closed = False

    def send(self, message: bytes | memoryview) -> None:
        """See Channel."""
        self.sent.append(bytes(message))

    def close(self) -> None:
        """See Channel."""
        self.is_closed = True


@dataclass
class Leads:
    """The first of two ranks, of which the other is not there: nothing is exchanged."""

    rank: int = 0
    size: int = 2

    def maximum(self, t: Tensor) -> None:
        """Nothing."""

    def total(self, t: Tensor) -> None:
        """Nothing."""


def lone_leader(threads: RankThreads | None = None) -> tuple[RankedCompute, ChannelToNobody]:
    """A leader, and what it sends."""
    channel = ChannelToNobody()
    return RankedCompute(Ranks(cast(RankGroup, Leads()), cast(Channel, channel)), threads), channel


@pytest.fixture
def own_threads() -> Iterator[None]:
    """The number of threads of this process is put back."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def raising(error: BaseException) -> Callable[[int], None]:
    """What is told of a step, and fails."""

    def tell(_: int) -> None:
        raise error

    return tell


@pytest.mark.parametrize("error", [UnavailableError("no store"), RuntimeError("no disk")], ids=["store", "disk"])
def test_what_telling_of_steps_raises_is_raised_when_the_ranks_are_done(error: Exception) -> None:
    program, lists = work()
    compute, channel = lone_leader()
    with pytest.raises(type(error)) as caught:
        compute.run(program, lists, STEPS, on_step=raising(error))
    assert caught.value is error
    done = compute.ranks.executor(program).traffic.calls
    assert done == 2 * STEPS, "the other ranks would wait in the middle of their run"
    compute.run(program, lists, STEPS)
    compute.end()
    assert [message == b"" for message in channel.sent] == [False, False, True] and channel.is_closed


def test_ranks_that_a_leader_left_in_a_run_are_told_nothing_more() -> None:
    program, lists = work()
    compute, channel = lone_leader()
    with pytest.raises(KeyboardInterrupt):
        compute.run(program, lists, STEPS, on_step=raising(KeyboardInterrupt()))
    compute.run(program, lists, STEPS)  # alone
    compute.end()
    assert len(channel.sent) == 1 and not channel.is_closed


def test_a_program_is_named_by_its_root_only_to_ranks_that_were_sent_it() -> None:
    """Lists that do not fit are refused before anybody is told, and nobody has got the program by then."""
    program, lists = work()
    compute, channel = lone_leader()
    with pytest.raises(TensorSizeError):
        compute.run(program, (*lists[:-1], tuple(b"" for _ in lists[-1])), STEPS)
    assert not channel.sent
    compute.run(program, lists, STEPS)
    compute.run(program, lists, STEPS)
    file = encode_program(program)
    assert [file in message for message in channel.sent] == [True, False]


def test_data_in_a_file_is_sent_once_and_nowhere_else(tmp_path: Path) -> None:
    """Joined to each message all of a run's data would be in memory several times, and on the wire each unit."""
    program, lists = work()
    compute, channel = lone_leader()
    lists = with_mapped_data(lists, tmp_path / "data")
    data = bytes(lists[TrainingList.SCALARS][-1])
    for _ in range(2):
        lists = compute.run(program, lists, 1)
    assert [message == data for message in channel.sent] == [False, True, False]
    assert all(data not in message for message in channel.sent[::2])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), "MemoryExceeded"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"), "MemoryExceeded"),
        (RuntimeError("Connection closed by peer [127.0.0.1]:1"), "RanksLost"),
    ],
)
def test_a_rank_that_has_no_memory_blames_no_other(error: Exception, code: str) -> None:
    class Fails(ChannelToNobody):
        def receive(self) -> memoryview:
            raise error

    with pytest.raises(AssayError) as caught:
        ranked_compute.serve(Ranks(cast(RankGroup, Leads()), cast(Channel, Fails())))
    assert caught.value.code == code


@pytest.mark.usefixtures("own_threads")
def test_a_leader_by_itself_has_the_threads_of_all_ranks() -> None:
    """It merges and plays its games while the others wait."""
    program, lists = work()
    compute, _ = lone_leader(RankThreads(alone=3, beside_others=1))
    seen: list[int] = []
    compute.run(program, lists, 1, on_step=lambda _: seen.append(torch.get_num_threads()))
    assert [*seen, torch.get_num_threads()] == [1, 3]


@pytest.mark.usefixtures("own_threads")
def test_the_one_thread_that_torchrun_sets_is_no_wish_of_an_operators(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(16))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found = [RankThreads.usual(local, tmp_path) for local in (2, 3, 32)]
    assert found == [RankThreads(16, 8), RankThreads(16, 5), RankThreads(16, 1)]
    (quota := tmp_path / "sys/fs/cgroup/cpu.max").parent.mkdir(parents=True)
    for text, threads in (("400000 100000", RankThreads(4, 2)), ("max 100000", RankThreads(16, 8))):
        quota.write_text(text + "\n")
        assert RankThreads.usual(2, tmp_path) == threads, "a container has a part of what it sees"
    torch.set_num_threads(4)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert RankThreads.usual(2, tmp_path) == RankThreads(4, 4)


def test_an_error_names_its_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    def miscalculates() -> Ranks:
        raise fault(3)

    monkeypatch.setattr(ranked_compute, "join", miscalculates)
    monkeypatch.setattr(ranked_compute, "ignore_signals", lambda: None)
    with pytest.raises(InvariantError) as followers:
        places.follow(places.RankPlace(1, 2))
    with pytest.raises(InvariantError) as leaders, places.leading(places.RankPlace(0, 2)):
        raise AssertionError("leads although its processor miscalculates")
    assert [error.value.code for error in (followers, leaders)] == ["HardwareFault"] * 2
    assert followers.value.explain().startswith(f"Rank 1 of 2, on {platform.node()}: The product of node 3")
    assert leaders.value.explain().startswith("Rank 0 of 2, on ")


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


def test_torchrun_passes_the_lines_of_the_guide_on_as_they_are() -> None:
    """It takes what could be short for an option of its own, wherever it stands: `--run` for its `--run-path`."""
    text = (ROOT / "docs" / "several-gpus.md").read_text(encoding="utf-8")
    lines = [shlex.split(line) for line in text.splitlines() if line.startswith("torchrun ")]
    assert len(lines) == 3
    for line in lines:
        words = [*line[line.index("assay") + 1 :], "--run", "0xabc", "--tickets", "5", "--rpc-url", "http://node"]
        found = get_args_parser().parse_args([*line[1 : line.index("assay") + 1], *words])
        assert (found.training_script, found.training_script_args, found.no_python) == ("assay", words, True)
