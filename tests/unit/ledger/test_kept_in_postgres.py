"""The same rows in PostgreSQL, where one is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from assay_ledger.index import event_rows, kept_events
from assay_ledger.index.event_rows import EventRows
from assay_ledger.index.kept_events import SETTLED
from tests.harness.block_chain import Remembers, kept_at, truth
from tests.harness.postgres import postgres, why_not
from tests.unit.ledger.test_kept_events import DEEP, check_again, grown, name, read_once

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres(tmp_path_factory.mktemp("pg")) as url:
        yield url


@pytest.fixture
def url(server: str) -> str:
    rows = EventRows(server, name())
    rows.cut(-1)
    rows.close()
    return server


def test_postgres_keeps_what_sqlite_keeps(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_events, "FREEZE_EVENTS", 20)
    chain = grown()
    read_once(chain, url)
    assert check_again(chain, url).thawed == 1
    assert min(first for first, _ in chain.asked) > DEEP - SETTLED - 5
    chain.replace(SETTLED * 2, [(7,)] * SETTLED * 3)
    check_again(chain, url)


def test_postgres_lets_one_process_write(url: str, caplog: pytest.LogCaptureFixture) -> None:
    chain = grown()
    first = Remembers(chain, kept_at(url))
    first.follow()
    check_again(chain, url)
    assert "in use by another process" in caplog.text and len(caplog.records) == 1
    first.close()
    other = Remembers(chain, kept_at(url, reader="somebody else"))
    other.follow()
    assert other.found == truth(chain)
    other.close()


def test_rows_changed_in_postgres_mislead_nobody(url: str, caplog: pytest.LogCaptureFixture) -> None:
    from sqlalchemy import create_engine, text

    chain = grown()
    read_once(chain, url)
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as db:
        assert db.execute(text("UPDATE assay_events SET data = 'x' WHERE block = 31")).rowcount >= 1
    engine.dispose()
    check_again(chain, url)
    assert len(caplog.records) == 1


def test_a_postgres_that_goes_away_stops_nobody(tmp_path_factory: pytest.TempPathFactory) -> None:
    chain = grown()
    with postgres(tmp_path_factory.mktemp("gone")) as url:
        follower = Remembers(chain, kept_at(url))
        follower.follow()
    for k in range(3 * SETTLED):
        chain.mine([(k,)])
        follower.follow()
    assert follower.found == truth(chain)
    follower.close()


def test_a_server_that_stops_in_the_middle_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Attack: a database that takes the connection and answers no more, while the clock of a game runs."""
    monkeypatch.setattr(event_rows, "ANSWER_S", 0.5)
    chain = grown()
    with postgres(tmp_path) as url:
        read_once(chain, url)
        reader = Remembers(chain, kept_at(url))
        server = psutil.Process(int((tmp_path / "postgres" / "data" / "postmaster.pid").read_text().split()[0]))
        stopped = [server, *server.children(recursive=True)]
        for process in stopped:
            process.suspend()
        try:
            began = time.monotonic()
            reader.follow()
            assert time.monotonic() - began < 5 and reader.found == truth(chain)
            assert "Goes on from the chain alone" in caplog.text
        finally:
            for process in stopped:
                process.resume()
            reader.close()
