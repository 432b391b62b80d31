"""A standby waits as long as it hears the first process, and no store makes it wait for ever or start at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from eth_account import Account

from assay.cli.standby import DARK_S, SILENT_S, stand_by
from assay.protocol.types import Address
from assay_ledger.agents.heartbeat import EVERY_S, Activity, HeartbeatWriter
from assay_ledger.chain.client import address_of
from assay_ledger.store.blobs import BlobStore, StoreUnreachable, open_store
from tests.harness.clocks import MovedClock

RUN = Address(b"r" * 20)
ACCOUNT = Account.create()


class Watched:
    """A standby whose waiting moves its clock; `during` happens at each look."""

    def __init__(self, during: Callable[[float], None] = lambda _: None) -> None:
        self.clock, self.stop, self.during = MovedClock(1000.0), threading.Event(), during

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        self.during(self.clock.now - 1000.0)

    def takes_over_after(self, store: object) -> float | None:
        """Seconds until it takes over; None where it was stopped."""
        went = stand_by(store, RUN, address_of(ACCOUNT), self.stop, self.clock, self.wait)  # type: ignore[arg-type]
        return self.clock.now - 1000.0 if went else None


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return open_store(tmp_path / "store")


def test_it_takes_over_once_the_first_process_has_been_silent(store: BlobStore) -> None:
    watched = Watched()
    writer = HeartbeatWriter(store, ACCOUNT, RUN, "solver", watched.clock)

    def speak(passed: float) -> None:
        if passed <= 100:
            writer.report(int(passed), Activity.BUSY, None, "training")
            writer.beat()

    watched.during = speak
    found = watched.takes_over_after(store)
    assert found is not None and 100 + SILENT_S <= found <= 100 + SILENT_S + 2 * EVERY_S


def test_a_store_that_repeats_an_old_heartbeat_keeps_it_from_nothing(store: BlobStore) -> None:
    watched = Watched()
    HeartbeatWriter(store, ACCOUNT, RUN, "solver", watched.clock).beat()
    kept = store.read_slot(f"actors/{address_of(ACCOUNT).hex()}", 4096)
    watched.during = lambda _: store.write_slot(f"actors/{address_of(ACCOUNT).hex()}", kept)
    assert watched.takes_over_after(store) == SILENT_S


def test_where_nobody_ever_spoke_it_takes_over_soon(store: BlobStore) -> None:
    assert Watched().takes_over_after(store) == SILENT_S


class Dark:
    """A store that answers nothing."""

    def __getattr__(self, name: str) -> object:
        raise StoreUnreachable("The store is dark.")


def test_a_dark_store_is_no_silence_and_holds_it_for_a_while_only() -> None:
    assert Watched().takes_over_after(Dark()) == DARK_S


def test_it_can_be_stopped_while_it_waits(store: BlobStore) -> None:
    watched = Watched()
    watched.during = lambda passed: watched.stop.set() if passed > 10 else None
    assert watched.takes_over_after(store) is None
