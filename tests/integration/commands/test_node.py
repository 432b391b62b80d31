"""`assay node`: it keeps the time of a local chain, is stopped and resumed, and gives coins, tokens and time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from eth_account import Account

from assay.durations import duration, parse_duration
from assay.node.keeper import BLOCK_EVERY_S, IDLE_BLOCK_S, SETTLES_S, JumpKeeper, WallKeeper
from assay.node.local import NotALocalChain, check_local, is_local
from assay.protocol.errors import ConfigError, UsageError
from assay.protocol.types import Address
from assay_ledger.agents.heartbeat import Activity, HeartbeatWriter
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.store.blobs import open_store
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.clocks import MovedClock

ETHER = 10**18


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as found:
        yield found


def test_by_the_wall_clock_a_block_comes_every_two_seconds_and_time_keeps_step(desk: Desk) -> None:
    chain, clock = desk.stage.chain, MovedClock()
    keeper, first = WallKeeper(chain, clock), chain.head()
    clock.now += BLOCK_EVERY_S - 0.01
    assert keeper.tick() is None and chain.head() == first
    clock.now += 0.01
    assert keeper.tick() is not None
    assert chain.head().timestamp == first.timestamp + 2
    clock.now += 100
    keeper.tick()
    assert (chain.head().number, chain.head().timestamp) == (first.number + 2, first.timestamp + 102)
    # After a skip time goes on from there as on the wall.
    chain.rpc("evm_mine", {"timestamp": first.timestamp + 1000})
    clock.now += 2
    keeper.tick()
    clock.now += 10
    keeper.tick()
    assert chain.head().timestamp == first.timestamp + 1001 + 10


class Actors:
    """What actors of a run say, by a clock that is moved."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        self.run = new_whole_run(desk.stage, folder)
        self.chain, self.store, self.clock = self.run.chain, self.run.store, MovedClock()
        self.keeper = JumpKeeper(self.chain, self.store, self.clock)

    def say(self, account: Any, activity: Activity, deadline: int | None, run: Address | None = None) -> None:
        where = self.run.run.address if run is None else run
        writer = HeartbeatWriter(self.store, account, where, "verifier", self.clock)
        writer.report(self.chain.head().number, activity, deadline, "as told")
        writer.beat()

    def settled(self) -> Any:
        """A tick once the head has stood for long enough."""
        self.keeper.tick()
        self.clock.now += SETTLES_S
        return self.keeper.tick()


def test_by_jumps_time_moves_to_the_next_deadline_where_only_time_helps(desk: Desk, tmp_path: Path) -> None:
    actors = Actors(desk, tmp_path)
    made, chain = actors.run, actors.chain
    vera = made.auditor("vera", tickets=1)
    account, now = vera.account, chain.head().timestamp
    actors.say(account, Activity.IDLE, now + 900)
    assert actors.settled() is None, "no ticket is on its way: only people bring the run on"
    assert list(actors.keeper.held) == [made.run.address]
    while not made.view.books.registry.tickets:
        assert made.sweep()
    actors.say(account, Activity.BUSY, None)
    assert actors.settled() is None
    chain.rpc("evm_mine")
    now = chain.head().timestamp
    actors.say(account, Activity.IDLE, now + 900)
    assert actors.keeper.tick() is None
    actors.clock.now += SETTLES_S / 2
    assert actors.keeper.tick() is None, "another may have published something just now"
    actors.clock.now += SETTLES_S / 2
    moved = actors.keeper.tick()
    assert moved is not None
    assert (moved.by, chain.head().timestamp) == (900, now + 900) and not actors.keeper.held


def test_by_jumps_a_block_comes_after_ten_seconds_though_nobody_sends_anything(desk: Desk, tmp_path: Path) -> None:
    actors = Actors(desk, tmp_path)
    actors.keeper.tick()
    first = actors.chain.head()
    actors.clock.now += IDLE_BLOCK_S - 0.01
    assert actors.keeper.tick() is None
    actors.clock.now += 0.01
    assert actors.keeper.tick() is not None
    assert (actors.chain.head().number, actors.chain.head().timestamp) == (first.number + 1, first.timestamp + 1)


def test_actors_of_runs_that_are_not_on_this_chain_move_nothing(desk: Desk, tmp_path: Path) -> None:
    actors = Actors(desk, tmp_path)
    actors.say(Account.create(), Activity.IDLE, actors.chain.head().timestamp + 900, Address(b"\x07" * 20))
    assert actors.settled() is None and not actors.keeper.held


def test_coins_and_test_tokens_are_given_by_name_or_address_without_any_key(desk: Desk, tmp_path: Path) -> None:
    made = new_whole_run(desk.stage, tmp_path)
    chain, who, nobody = made.chain, Account.create(), "0x" + "77" * 20
    at = ("--rpc-url", chain.url, "--keys-dir", str(desk.folder / "keys"))
    before = int(chain.w3.eth.get_balance(who.address))
    (row,) = desk.json("node", "fund", who.address, "--coins", "2.5", *at)
    assert row["coins"] == 5 * ETHER // 2 == int(chain.w3.eth.get_balance(who.address)) - before
    most = chain.ask(made.run.token.max_mint())
    wanted = 2 * most + 1
    words = ("--tokens", f"{wanted // ETHER}.{wanted % ETHER:018d}", "--run", "0x" + made.run.address.hex())
    rows = desk.json("node", "fund", who.address, "sponsor", *words, *at)
    assert [r["name"] for r in rows] == [who.address, "sponsor"]
    assert chain.ask(made.run.token.balance_of(address_of(who))) == wanted
    assert desk.refused("node", "fund", nobody, "--tokens", "1", *at).code == "RunMissing"
    assert desk.refused("node", "fund", "nobody-here", *at).code == "KeyMissing"
    assert desk.refused("node", "fund", "0x1234", *at).code == "AddressInvalid"


def test_time_is_skipped_by_so_much_as_is_typed(desk: Desk) -> None:
    before = desk.stage.chain.head().timestamp
    assert desk.json("node", "skip", "2d", *desk.chain_words)["now"] == before + 2 * 86_400
    assert desk.refused("node", "skip", "soon", *desk.chain_words).code == "DurationInvalid"
    # A nought too many would leave a chain on which no page shows a date any more, and whose time never goes back.
    assert desk.refused("node", "skip", "521w", *desk.chain_words).code == "SkipTooLong"
    assert desk.stage.chain.head().timestamp < before + 3 * 86_400


def test_a_chain_that_is_not_local_gives_neither_coins_nor_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_local(desk.stage.chain)
    monkeypatch.setattr(desk.stage.chain, "rpc", lambda *_: "Geth/v1.16.1-stable/linux-amd64/go1.24")
    with pytest.raises(NotALocalChain, match="Geth"):
        check_local(desk.stage.chain)


def test_a_node_of_another_chain_that_calls_itself_local_is_none(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sponsor suggests a node: what it says of itself must not keep a joiner from being asked about the sponsor."""
    monkeypatch.setattr(desk.stage.chain, "chain_id", 1)
    assert not is_local(desk.stage.chain)
    with pytest.raises(NotALocalChain, match="number 1"):
        check_local(desk.stage.chain)


@pytest.mark.parametrize(
    ("text", "seconds"), [("1", 1), ("90s", 90), ("15min", 900), ("2h", 7200), ("3 d", 259_200), ("4w", 2_419_200)]
)
def test_lengths_are_read_as_typed(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5h", "2m", "d"])
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration(text)


def test_lengths_are_said_in_their_two_largest_units() -> None:
    assert [duration(s) for s in (0, 59, 60, 3661, 219_600)] == ["0 s", "59 s", "1 min", "1 h 1 min", "2 d 13 h"]


@contextlib.contextmanager
def node(state: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`assay node start` as a person starts it, and what it said."""
    process = subprocess.Popen(
        [sys.executable, "-m", "assay", "node", "start", "--state", str(state), "--json", *words],
        env=os.environ | {"ASSAY_CONFIG": "/dev/null"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield process, json.loads(line) if line else {}
    finally:
        process.kill()
        process.communicate()


def test_a_node_ends_by_ctrl_c_with_its_children_and_goes_on_from_its_state(tmp_path: Path) -> None:
    with node(tmp_path, "--port", "0") as (process, said):
        chain = Chain(said["rpc_url"])
        assert is_local(chain) and said["store"] == str(tmp_path / "store")
        chain.rpc("evm_mine", {"timestamp": said["now"] + 5000})
        head, children = chain.head(), psutil.Process(process.pid).children(recursive=True)
        assert children
        port = said["rpc_url"].rpartition(":")[2]
        with node(tmp_path / "other", "--port", port) as (second, nothing):
            assert second.wait(timeout=60) == int(ConfigError.exit_code) and nothing["error"]["code"] == "PortInUse"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)
    with node(tmp_path, "--port", "0", "--for-demo") as (process, said):
        now = Chain(said["rpc_url"]).head()
        assert now.number >= head.number and now.timestamp >= head.timestamp
        open_store(said["store"]).put(b"the store is there")
