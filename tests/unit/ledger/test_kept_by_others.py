"""Events that another process keeps, read while it goes on; and how much of an actor's time keeping states takes."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path

import pytest

from assay.protocol.types import Address
from assay_ledger.index import kept_events
from assay_ledger.index.event_rows import EventRows, FrozenState
from assay_ledger.index.kept_blocks import KeptBlock, KeptName, RowsUnusable
from assay_ledger.index.kept_events import FREEZE_SHARE, SETTLED, KeptEvents, read_kept
from tests.harness.block_chain import CONTRACT, BlockChain, Remembers, kept_at, truth

RUN = Address(b"\x01" * 20)
DEEP = 3 * SETTLED
NAME_OF = partial(KeptName.of, 1, RUN, 0, {"generations": CONTRACT})


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'events.sqlite'}"


def grown() -> BlockChain:
    chain = BlockChain()
    chain.mine([(k,) if k % 3 == 0 else () for k in range(DEEP)])
    return chain


def contents(url: str) -> list[tuple[object, ...]]:
    """All rows of all tables."""
    with sqlite3.connect(url.removeprefix("sqlite:///")) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        found = [(table, *row) for table in tables for row in db.execute(f"SELECT * FROM {table}")]
    db.close()
    return found


def read_beside(chain: BlockChain, *urls: str) -> Remembers:
    """Somebody looks once."""
    follower = Remembers(chain, read_kept(urls, 1, RUN, NAME_OF))
    follower.follow()
    assert follower.found == truth(chain)
    follower.close()
    return follower


def test_kept_events_are_read_beside_whoever_writes_them_and_stay_as_they_are(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_events, "FREEZE_EVENTS", 10)
    chain = grown()
    writer = Remembers(chain, kept_at(url))
    writer.follow()
    chain.mine([(7,)] * 9)
    before = contents(url)
    chain.asked.clear()
    reader = read_beside(chain, url)
    assert reader.thawed == 1 and min(first for first, _ in chain.asked) > DEEP - SETTLED - 5
    assert contents(url) == before
    # The chain goes another way: who only reads follows it, and leaves the rows to their owner.
    chain.replace(SETTLED, [(5,)] * (SETTLED + 3))
    read_beside(chain, url)
    assert contents(url) == before
    writer.follow()
    assert writer.found == truth(chain)
    writer.close()
    read_beside(chain, url)


def test_of_several_databases_the_rows_that_reach_farthest_are_read(url: str, tmp_path: Path) -> None:
    chain, other = grown(), f"sqlite:///{tmp_path / 'other.sqlite'}"
    for place in (url, other):
        follower = Remembers(chain, kept_at(place))
        follower.follow()
        follower.close()
        chain.mine([(k,) for k in range(DEEP)])
    chain.asked.clear()
    read_beside(chain, url, f"sqlite:///{tmp_path / 'none.sqlite'}", other)
    assert min(first for first, _ in chain.asked) > 2 * DEEP - SETTLED - 5
    assert not (tmp_path / "none.sqlite").exists()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE assay_events SET topics = zeroblob(64) WHERE block = 31",
        "DELETE FROM assay_events WHERE block = 61",
        "DROP TABLE assay_events",
        "UPDATE assay_event_names SET described = 'no JSON'",
        "UPDATE assay_event_names SET described = '[]'",
    ],
    ids=["changed", "lost", "no-table", "no-name", "another-name"],
)
def test_damaged_rows_of_others_are_passed_over_and_not_mended(url: str, damage: str) -> None:
    chain = grown()
    follower = Remembers(chain, kept_at(url))
    follower.follow()
    follower.close()
    with sqlite3.connect(url.removeprefix("sqlite:///")) as db:
        db.execute(damage)
    db.close()
    before = contents(url)
    read_beside(chain, url)
    assert contents(url) == before


def test_rows_that_are_only_read_cannot_be_written(url: str) -> None:
    made = KeptBlock(1, bytes(32), 1, ((0, 0, b"t" * 32, b"d", b"x" * 32),))
    writer = EventRows(url, NAME_OF("tests"))
    writer.add([made])
    rows = EventRows(url, NAME_OF("tests"), reads_only=True)
    for write in (
        partial(rows.add, [KeptBlock(2, bytes(32))]),
        partial(rows.cut, -1),
        partial(rows.freeze, FrozenState(1, b"v", b"")),
    ):
        with pytest.raises(RowsUnusable, match="readonly"):
            write()
    assert list(rows.blocks(-1, 9)) == [made]
    rows.close()
    with pytest.raises(RowsUnusable, match="Nobody keeps"):
        EventRows(url, NAME_OF("nobody"), reads_only=True)
    writer.close()


def test_keeping_states_takes_a_hundredth_of_an_actors_time_however_large_they_are(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_events, "FREEZE_EVENTS", 4)
    now, takes = [0.0], [0.0]

    def make() -> bytes:
        now[0] += takes[0]
        return b"state"

    kept = KeptEvents(EventRows(url, NAME_OF("tests")), lambda: now[0])
    spent = 0.0
    for number in range(1, 400):
        now[0] += 1
        kept.hold([KeptBlock(number, bytes(32), number, ((0, 0, b"t" * 32, b"", b"x" * 32),))])
        takes[0] = 0.0025 * number
        if kept.is_freezing_due(number, at_head=True):
            kept.freeze(b"v", make)
            spent += takes[0]
            # What the last one cost is made up for before the next.
            assert (spent - takes[0]) / now[0] <= FREEZE_SHARE
    assert spent / now[0] > 0.2 * FREEZE_SHARE
    kept.close()


def test_while_history_is_read_at_full_speed_no_state_is_kept(url: str) -> None:
    now = [0.0]
    kept = KeptEvents(EventRows(url, NAME_OF("tests")), lambda: now[0])
    logs = tuple((k, 0, b"t" * 32, b"", b"x" * 32) for k in range(kept_events.FREEZE_EVENTS))
    for number in range(1, 6):
        now[0] += 1
        kept.hold([KeptBlock(number, bytes(32), number, logs)])
        assert not kept.is_freezing_due(number, at_head=False)
    now[0] += 100  # A node that is slow leaves time for it.
    assert kept.is_freezing_due(5, at_head=False)
    kept.freeze(b"v", lambda: b"state")
    kept.hold([KeptBlock(6, bytes(32), 6, logs)])
    # At the head the next start shall be quick, whatever was kept on the way.
    assert not kept.is_freezing_due(6, at_head=False) and kept.is_freezing_due(6, at_head=True)
    kept.close()
