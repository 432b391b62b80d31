"""Events that are kept over restarts: the state is that of the chain, whatever blocks, nodes and databases do."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.types import Address
from assay_ledger.index import kept_events
from assay_ledger.index.event_rows import EventRows, FrozenState
from assay_ledger.index.kept_blocks import KeptBlock, KeptName, RowsUnusable
from assay_ledger.index.kept_events import SETTLED
from tests.harness.block_chain import BlockChain, Remembers, kept_at, truth

DEEP = 3 * SETTLED
"""Blocks after which what was read once lies deep."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'events.sqlite'}"


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def grown(blocks: int = DEEP) -> BlockChain:
    """A chain with an event in every third block."""
    chain = BlockChain()
    chain.mine([(k,) if k % 3 == 0 else () for k in range(blocks)])
    return chain


def read_once(chain: BlockChain, url: str) -> None:
    """Somebody follows the chain and stops."""
    follower = Remembers(chain, kept_at(url))
    follower.follow()
    assert follower.found == truth(chain)
    follower.close()
    chain.asked.clear()


def check_again(chain: BlockChain, url: str) -> Remembers:
    """Somebody starts again and has the chain's state."""
    follower = Remembers(chain, kept_at(url))
    follower.follow()
    assert follower.found == truth(chain)
    assert follower.head == len(chain._seen) - 1
    follower.close()
    return follower


def test_a_start_asks_the_node_only_for_what_is_not_kept(url: str) -> None:
    chain = grown()
    read_once(chain, url)
    check_again(chain, url)
    assert chain.asked and min(first for first, _ in chain.asked) > DEEP - SETTLED - 5


def test_blocks_read_by_hash_are_kept_at_once_behind_deep_ones(url: str) -> None:
    chain = grown(SETTLED)
    follower = Remembers(chain, kept_at(url))
    for k in range(DEEP):
        chain.mine([(k,)])
        follower.follow()
    follower.close()
    chain.asked.clear()
    check_again(chain, url)
    assert chain.asked == []


@given(st.data())
def test_any_blocks_reorganizations_and_restarts_leave_the_state_of_the_chain(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    url = f"sqlite:///{tmp_path_factory.mktemp('rows') / 'events.sqlite'}"
    chain, follower = BlockChain(), None
    contents = st.lists(st.lists(st.integers(0, 9), max_size=2), min_size=1, max_size=90)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kept_events, "FREEZE_EVENTS", data.draw(st.sampled_from([1, 20, 1 << 30])))
        for _ in range(data.draw(st.integers(1, 12))):
            match data.draw(st.sampled_from(["mine", "replace", "behind", "level", "restart", "short"])):
                case "mine":
                    chain.mine(data.draw(contents))
                case "replace":
                    chain.replace(data.draw(st.integers(1, 100)), data.draw(contents))
                case "behind":
                    chain.behind = data.draw(st.integers(1, 80))
                case "level":
                    chain.behind = 0
                case "short":
                    # Ranges that end below the blocks that are asked for by hash are cut short, once.
                    chain.short_by = data.draw(st.integers(4, SETTLED - 1))
                case "restart" if follower is not None:
                    follower.close()
                    follower = None
            follower = follower or Remembers(chain, kept_at(url))
            try:
                follower.follow()
            finally:
                chain.short_by = 0
        chain.behind = 0
        # What a node that was behind had left out is asked for again once it lies deep.
        for _ in range(3):
            chain.mine([()] * SETTLED)
            follower = follower or Remembers(chain, kept_at(url))
            follower.follow()
        assert follower is not None and follower.found == truth(chain)
        follower.close()
        check_again(chain, url)


def test_a_node_that_is_behind_erases_nothing(url: str) -> None:
    chain = grown()
    for k in range(SETTLED * 2):
        chain.mine([(k,)])
    read_once(chain, url)
    rows = EventRows(url, name())
    top = rows.top
    rows.close()
    chain.behind = DEEP
    check_again(chain, url)
    rows = EventRows(url, name())
    assert rows.top == top
    rows.close()
    chain.behind = 0
    chain.asked.clear()
    check_again(chain, url)
    assert min(first for first, _ in chain.asked) > top


def test_what_a_node_left_out_near_the_head_is_not_kept(url: str) -> None:
    chain = grown(DEEP)
    chain.mine([(k,) for k in range(20)])
    chain.short_by = 12
    follower = Remembers(chain, kept_at(url))
    follower.follow()
    assert follower.found != truth(chain)
    follower.close()
    chain.short_by = 0
    check_again(chain, url)
    # And one that stays reads it again once it lies deep.
    chain.short_by = 12
    follower = Remembers(chain, kept_at(url))
    follower.follow()
    chain.short_by = 0
    for _ in range(3):
        chain.mine([()] * SETTLED)
        follower.follow()
    assert follower.found == truth(chain)
    follower.close()


def test_a_reorganization_costs_the_blocks_it_replaced(url: str) -> None:
    chain = grown(10 * SETTLED)
    read_once(chain, url)
    chain.replace(SETTLED // 2, [(7,)] * SETTLED)
    check_again(chain, url)
    assert min(first for first, _ in chain.asked) > 8 * SETTLED


def test_another_chain_under_the_same_name_takes_the_place_of_all_rows(url: str) -> None:
    read_once(grown(), url)
    other = BlockChain()
    other.mine([(5,)] * DEEP)
    check_again(other, url)


def test_another_chains_number_has_rows_of_its_own(url: str) -> None:
    chain = grown()
    read_once(chain, url)
    follower = Remembers(chain, kept_at(url, chain_id=2))
    follower.follow()
    assert follower.found == truth(chain) and chain.asked[0][0] == 0
    follower.close()


def name() -> KeptName:
    from tests.harness.block_chain import CONTRACT

    return KeptName.of(1, Address(b"\x01" * 20), 0, {"generations": CONTRACT}, "tests")


def sql(statement: str) -> Callable[[Path], None]:
    """Changes the database behind everybody's back."""

    def damage(path: Path) -> None:
        with sqlite3.connect(path) as db:
            assert db.execute(statement).rowcount != 0
        db.close()

    return damage


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def filled(path: Path) -> None:
    path.write_bytes(b"not a database at all, but as long as one\n" * 500)


def overwritten(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[4096 : 3 * 4096] = b"\xa5" * (2 * 4096)
    path.write_bytes(body)


DAMAGE = {
    "a changed topic": sql("UPDATE assay_events SET topics = zeroblob(64) WHERE block = 31"),
    "a changed time": sql("UPDATE assay_event_blocks SET time = 1 WHERE number = 31"),
    "an event lost": sql("DELETE FROM assay_events WHERE block = 61"),
    "a block lost": sql("DELETE FROM assay_event_blocks WHERE number = 61"),
    "a block and its events lost": sql("DELETE FROM assay_event_blocks WHERE number < 50"),
    "an event twice": sql(
        "INSERT INTO assay_events SELECT name, block, 1, contract, topics, data, tx FROM assay_events"
    ),
    "no table": sql("DROP TABLE assay_events"),
    "another table": sql("ALTER TABLE assay_events RENAME COLUMN topics TO words"),
    "cut short": cut_short,
    "no database": filled,
    "pages overwritten": overwritten,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=[k.replace(" ", "-") for k in DAMAGE])
def test_a_damaged_database_misleads_and_stops_nobody(
    url: str, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    chain = grown()
    read_once(chain, url)
    damage(file_of(url))
    check_again(chain, url)
    said = [record.getMessage() for record in caplog.records if record.name == "assay.agent"]
    assert len(said) <= 1 and all("\n" not in line for line in said)
    chain.mine([(8,)] * 3)
    check_again(chain, url)


def test_a_database_in_use_is_left_to_its_user_and_said_in_one_line(url: str, caplog: pytest.LogCaptureFixture) -> None:
    chain = grown()
    first = Remembers(chain, kept_at(url))
    first.follow()
    check_again(chain, url)
    assert len(caplog.records) == 1 and "locked" in caplog.text
    chain.mine([(1,)])
    first.follow()
    assert first.found == truth(chain)
    first.close()


@pytest.fixture
def small_files() -> Iterator[Callable[[int], None]]:
    """Lets no file grow beyond so many bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_stops_nobody(
    url: str, caplog: pytest.LogCaptureFixture, small_files: Callable[[int], None]
) -> None:
    chain = grown()
    follower = Remembers(chain, kept_at(url))
    follower.follow()
    small_files(file_of(url).stat().st_size)
    for k in range(200):
        chain.mine([(k,) * 50])
        follower.follow()
    assert follower.found == truth(chain)
    assert len(caplog.records) == 1
    follower.close()
    small_files(resource.RLIM_INFINITY)
    check_again(chain, url)


@pytest.mark.parametrize(
    "place",
    [
        "sqlite:////proc/nowhere/events.sqlite",
        "sqlite:////",
        "mysql://u@h/d",
        "postgresql://127.0.0.1:1/none",
        "nonsense",
    ],
    ids=["no folder", "a folder", "another kind", "nobody there", "no URL"],
)
def test_a_place_that_cannot_be_used_is_said_in_one_line(place: str, caplog: pytest.LogCaptureFixture) -> None:
    chain = grown()
    check_again(chain, place)
    (record,) = caplog.records
    assert "\n" not in record.getMessage() and "Goes on from the chain alone" in record.getMessage()


def test_a_state_is_kept_and_read_instead_of_events(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_events, "FREEZE_EVENTS", 10)
    chain = grown(10 * SETTLED)
    read_once(chain, url)
    assert check_again(chain, url).thawed == 1
    sql("UPDATE assay_frozen_states SET body = zeroblob(3)")(file_of(url))
    assert check_again(chain, url).thawed == 0


def test_listeners_are_told_every_event_that_they_need(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_events, "FREEZE_EVENTS", 10)
    chain = grown(10 * SETTLED)
    read_once(chain, url)
    for told_from, is_thawed in ((0, False), (3 * SETTLED, False), (10 * SETTLED, True)):
        heard: list[int] = []
        follower = Remembers(chain, kept_at(url), [lambda _, found: heard.append(found.block)], told_from)  # noqa: B023
        follower.follow()
        assert bool(follower.thawed) is is_thawed
        assert [b for b in heard if b >= told_from] == [b for b, _ in truth(chain) if b >= told_from]
        follower.close()


def test_rows_that_a_lie_went_into_are_read_again_at_the_second_failure(url: str) -> None:
    class Strict(Remembers):
        def apply(self, found, log):  # type: ignore[no-untyped-def]
            super().apply(found, log)
            if found.event.generation == 99:
                raise ValueError("out of order")

    chain = grown()
    chain.replace(DEEP - 5, [(99,)] * DEEP)
    read_once(chain, url)
    honest = grown()
    honest.blocks[30:] = chain.blocks[30:]
    honest.blocks[10:] = [b.__class__(b.number, b.hash, b.parent, ()) for b in honest.blocks[10:]]
    follower = Strict(honest, kept_at(url))
    for _ in range(2):
        with pytest.raises(Exception, match="make no sense together"):
            follower.follow()
    follower.follow()
    assert follower.found == truth(honest)
    follower.close()


def test_rows_are_whole_blocks_in_order(url: str) -> None:
    rows = EventRows(url, name())
    made = [KeptBlock(k, bytes([k]) * 32, k, ((0, 0, b"t" * 32, b"d", b"x" * 32),) * (k % 2)) for k in range(1, 9)]
    rows.add(made[:4])
    rows.add(made[4:])
    assert list(rows.blocks(0, 100)) == made
    assert list(rows.blocks(3, 6)) == made[3:6]
    with pytest.raises(RowsUnusable):
        rows.add(made[:1])
    assert list(rows.blocks(0, 100)) == made
    rows.freeze(FrozenState(8, b"v", b"body"))
    rows.cut(5)
    assert rows.top == 5 and rows.frozen(b"v", 100) is None
    rows.close()
