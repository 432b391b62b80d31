"""Chain time moves only while every actor is idle, and then to the earliest deadline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from eth_account import Account

from assay.demo.timekeeper import STRANGER_LIMIT_S, Timekeeper
from assay.protocol.types import Address
from assay_ledger.agents import heartbeat
from assay_ledger.agents.heartbeat import DEAD_AFTER_S, Activity, HeartbeatWriter, read_heartbeats
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.chain.node import Anvil
from assay_ledger.store.blobs import BlobStore, open_store
from tests.harness.buckets import eventually
from tests.harness.clocks import MovedClock

RUN = Address(b"\x07" * 20)
OWN, STRANGER = (Account.from_key(bytes([n]) * 32) for n in (1, 2))


class Loud(HeartbeatWriter):
    """Writes at once what it says."""

    def report(self, *reported: object) -> None:  # type: ignore[override]
        super().report(*reported)  # type: ignore[arg-type]
        self.beat()


@dataclass
class TimekeeperWorld:
    chain: Chain
    store: BlobStore
    clock: MovedClock = field(default_factory=MovedClock)

    def heartbeat_writer(self, account: object) -> HeartbeatWriter:
        return Loud(self.store, account, RUN, "solver", self.clock)  # type: ignore[arg-type]

    def keeper(self) -> Timekeeper:
        return Timekeeper(self.chain, self.store, RUN, frozenset({address_of(OWN)}), self.clock)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[TimekeeperWorld]:
    with Anvil() as node:
        yield TimekeeperWorld(Chain(node.url), open_store(tmp_path))


def test_time_waits_for_a_child_that_has_not_spoken_or_is_busy_or_is_behind(world: TimekeeperWorld) -> None:
    keeper, heartbeat_writer = world.keeper(), world.heartbeat_writer(OWN)
    assert keeper.tick() is None
    head = world.chain.head()
    heartbeat_writer.report(head.number, Activity.BUSY, None, "train")
    assert keeper.tick() is None
    world.chain.rpc("evm_mine")
    heartbeat_writer.report(head.number, Activity.IDLE, head.timestamp + 500)
    assert keeper.tick() is None
    heartbeat_writer.report(head.number + 1, Activity.IDLE, head.timestamp + 500)
    assert keeper.tick() == head.timestamp + 500
    assert world.chain.head().timestamp == head.timestamp + 500


def test_time_moves_to_the_earliest_deadline_of_anybody_and_not_without_one(world: TimekeeperWorld) -> None:
    keeper, heartbeat_writer, other = world.keeper(), world.heartbeat_writer(OWN), world.heartbeat_writer(STRANGER)
    head = world.chain.head()
    heartbeat_writer.report(head.number, Activity.IDLE)
    other.report(head.number, Activity.IDLE)
    assert keeper.tick() is None
    heartbeat_writer.report(head.number, Activity.IDLE, head.timestamp + 900)
    other.report(head.number, Activity.IDLE, head.timestamp + 700)
    assert keeper.tick() == head.timestamp + 700


def test_a_stranger_that_stays_busy_is_waited_for_and_then_given_up(world: TimekeeperWorld) -> None:
    keeper, heartbeat_writer, other = world.keeper(), world.heartbeat_writer(OWN), world.heartbeat_writer(STRANGER)
    head = world.chain.head()
    for second in range(0, int(STRANGER_LIMIT_S) + 1, 2):
        world.clock.now = float(second)
        heartbeat_writer.report(head.number, Activity.IDLE, head.timestamp + 900)
        other.report(head.number, Activity.BUSY, None, f"train {second}")
        assert keeper.tick() is None
        assert keeper.is_anyone_busy
    world.clock.now = STRANGER_LIMIT_S + 2
    heartbeat_writer.report(head.number, Activity.IDLE, head.timestamp + 900)
    other.report(head.number, Activity.BUSY, None, "train on")
    assert keeper.tick() == head.timestamp + 900
    assert not keeper.is_anyone_busy


def test_time_waits_where_heartbeats_could_not_be_read_in_time(
    world: TimekeeperWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, heartbeat_writer = world.keeper(), world.heartbeat_writer(OWN)
    head = world.chain.head()
    heartbeat_writer.report(head.number, Activity.IDLE, head.timestamp + 900)
    with monkeypatch.context() as slow:
        slow.setattr(heartbeat, "READ_S", 0.0)  # as on a machine that stood still for longer
        assert keeper.tick() is None
    assert world.chain.head() == head
    assert keeper.tick() == head.timestamp + 900


def test_a_silent_stranger_holds_nobody_up_but_a_silent_child_does(world: TimekeeperWorld) -> None:
    keeper, heartbeat_writer, other = world.keeper(), world.heartbeat_writer(OWN), world.heartbeat_writer(STRANGER)
    head = world.chain.head()
    heartbeat_writer.report(head.number, Activity.IDLE, head.timestamp + 900)
    other.report(head.number, Activity.BUSY, None, "train")
    assert keeper.tick() is None
    assert keeper.is_anyone_busy
    world.clock.now = 7.0
    assert keeper.tick() is None  # the child is silent as well
    assert not keeper.is_anyone_busy  # a message of the dead hides no standstill
    heartbeat_writer.report(head.number, Activity.IDLE, head.timestamp + 900)
    assert keeper.tick() == head.timestamp + 900


def test_time_goes_on_for_a_stranger_when_the_runners_own_actors_have_ended(world: TimekeeperWorld) -> None:
    keeper, heartbeat_writer, other = world.keeper(), world.heartbeat_writer(OWN), world.heartbeat_writer(STRANGER)
    head = world.chain.head()
    heartbeat_writer.report(head.number, Activity.DONE, None, "stopped")
    other.report(head.number, Activity.IDLE, head.timestamp + 900)
    assert keeper.tick() == head.timestamp + 900
    # Its process is gone, so no message is new any more; that is no silence to wait for.
    world.clock.now = DEAD_AFTER_S + 1
    other.report(world.chain.head().number, Activity.IDLE, head.timestamp + 1800)
    assert keeper.tick() == head.timestamp + 1800


@pytest.mark.parametrize(
    ("activity", "waits_s", "works"),
    [
        (Activity.BUSY, None, True),
        (Activity.IDLE, 900, True),
        (Activity.IDLE, None, False),
        (Activity.DONE, None, False),
    ],
)
def test_a_stranger_works_while_it_does_or_waits_for_something(
    world: TimekeeperWorld, activity: Activity, waits_s: int | None, works: bool
) -> None:
    keeper, heartbeat_writer, other = world.keeper(), world.heartbeat_writer(OWN), world.heartbeat_writer(STRANGER)
    head = world.chain.head()
    heartbeat_writer.report(head.number, Activity.IDLE)
    other.report(head.number, activity, None if waits_s is None else head.timestamp + waits_s)
    keeper.tick()
    assert keeper.strangers_work is works


def test_a_stranger_that_is_behind_works_and_one_that_died_does_not(world: TimekeeperWorld) -> None:
    keeper, heartbeat_writer, other = world.keeper(), world.heartbeat_writer(OWN), world.heartbeat_writer(STRANGER)
    head = world.chain.head()
    other.report(head.number, Activity.IDLE)
    world.chain.rpc("evm_mine")
    keeper.tick()
    assert keeper.strangers_work
    world.clock.now = DEAD_AFTER_S + 1
    heartbeat_writer.report(head.number + 1, Activity.IDLE)
    keeper.tick()
    assert not keeper.strangers_work


def test_time_waits_for_a_stranger_that_is_still_starting(world: TimekeeperWorld) -> None:
    keeper, heartbeat_writer, other = world.keeper(), world.heartbeat_writer(OWN), world.heartbeat_writer(STRANGER)
    head = world.chain.head()
    heartbeat_writer.report(head.number, Activity.IDLE, head.timestamp + 900)
    with other.beating():
        assert eventually(lambda: address_of(STRANGER) in read_heartbeats(world.store, RUN))
        assert keeper.tick() is None
        assert keeper.strangers_work
    world.heartbeat_writer(STRANGER).report(head.number, Activity.IDLE)
    assert keeper.tick() == head.timestamp + 900
