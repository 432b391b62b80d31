"""Kept events as rows of a database: SQLite in a file of the actor's, or PostgreSQL by a URL.

A block and its logs come in one transaction, so a process that is killed leaves whole blocks behind. One process writes
a name's rows; a second one is refused. Any number may read them meanwhile. Source: docs/adr/0052-kept-events.md.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final, TextIO

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from assay.protocol.types import Address
from assay_ledger.index.kept_blocks import NO_CHECK, KeptBlock, KeptName, RowsDamaged, RowsUnusable

EMPTY_KEPT: Final = 256
"""Blocks without logs that are kept, the newest: where a reorganization began is searched among blocks kept."""

FROZEN_KEPT: Final = 2
"""States that are kept: a reorganization may reach behind the newest."""

ANSWER_S: Final = 10.0
"""For one answer of a server: as for one of a node."""

_AT_ONCE: Final = 2000
"""Blocks that are read together."""

_ONE_WRITER: Final = 0x61737361
"""First word of the lock that PostgreSQL keeps for a name's writer."""

_TABLES: Final = sa.MetaData()

_NAMES: Final = sa.Table(
    "assay_event_names",
    _TABLES,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("digest", sa.LargeBinary, nullable=False, unique=True),
    sa.Column("described", sa.Text, nullable=False),
)
_BLOCKS: Final = sa.Table(
    "assay_event_blocks",
    _TABLES,
    sa.Column("name", sa.Integer, primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    sa.Column("hash", sa.LargeBinary, nullable=False),
    sa.Column("time", sa.BigInteger, nullable=False),
    sa.Column("logs", sa.Integer, nullable=False),
    sa.Column("check", sa.LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
_EVENTS: Final = sa.Table(
    "assay_events",
    _TABLES,
    sa.Column("name", sa.Integer, primary_key=True),
    sa.Column("block", sa.BigInteger, primary_key=True),
    sa.Column("log_index", sa.Integer, primary_key=True),
    sa.Column("contract", sa.Integer, nullable=False),
    sa.Column("topics", sa.LargeBinary, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("tx", sa.LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
_FROZEN: Final = sa.Table(
    "assay_frozen_states",
    _TABLES,
    sa.Column("name", sa.Integer, primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    sa.Column("check", sa.LargeBinary, nullable=False),
    sa.Column("version", sa.LargeBinary, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)


@dataclass(frozen=True, slots=True)
class FrozenState:
    """A state after all events up to a block, in bytes that only the same `version` of the code understands."""

    number: int
    version: bytes
    body: bytes


@contextmanager
def _named() -> Iterator[None]:
    """What a database says, as RowsUnusable in one line."""
    try:
        yield
    except (SQLAlchemyError, OSError, ImportError) as error:
        why = str(getattr(error, "orig", None) or error).strip().splitlines() or [type(error).__name__]
        raise RowsUnusable(f"The database of kept events cannot be used ({why[0]}).") from error


class EventRows:
    """The rows of one name. Raises RowsUnusable (EventsNotKept), as every method does."""

    def __init__(self, url: str, name: KeptName, *, reads_only: bool = False) -> None:
        """`reads_only`: whoever writes them is not disturbed, and nothing here may write."""
        self._running, self.reads_only = NO_CHECK, reads_only
        self._lock: TextIO | None = None
        with _named():
            self._engine = _engine(url, reads_only=reads_only)
            try:
                self._db = self._engine.connect()
                self._name = self._find(name) if reads_only else self._open(url, name)
                self.top = self._find_top()
            except BaseException:
                self.close()
                raise

    def _find(self, name: KeptName) -> int:
        found = self._db.scalar(sa.select(_NAMES.c.id).where(_NAMES.c.digest == name.digest))
        if found is None:
            raise RowsUnusable("Nobody keeps these events here.")
        return int(found)

    def _open(self, url: str, name: KeptName) -> int:
        file = sa.make_url(url).database
        if self._engine.dialect.name == "sqlite" and file not in (None, "", ":memory:"):
            self._lock = _locked(Path(f"{file}-writer"))
        _TABLES.create_all(self._db)
        self._db.commit()
        mine = sa.select(_NAMES.c.id).where(_NAMES.c.digest == name.digest)
        if (found := self._db.scalar(mine)) is None:
            described = json.dumps({"chain": name.chain_id, "run": "0x" + name.run.hex(), "reader": name.reader})
            self._db.execute(sa.insert(_NAMES).values(digest=name.digest, described=described))
            self._db.commit()
            found = self._db.scalar(mine)
        assert found is not None
        if self._engine.dialect.name == "postgresql":
            lock = sa.func.pg_try_advisory_lock(_ONE_WRITER, int(found))
            if not self._db.scalar(sa.select(lock)):
                raise RowsUnusable("The kept events are in use by another process.")
            self._db.commit()
        return int(found)

    def close(self) -> None:
        """Lets another process have the rows; harmless when repeated."""
        with suppress(SQLAlchemyError, OSError, AttributeError):
            self._db.close()
        with suppress(SQLAlchemyError, OSError, AttributeError):
            self._engine.dispose()
        if self._lock is not None:
            self._lock.close()

    # --- reading

    def newest(self, upto: int, skipped: int = 0) -> tuple[int, bytes] | None:
        """Number and hash of the newest kept block up to a number, `skipped` newer ones left out."""
        chosen = self._mine(_BLOCKS, _BLOCKS.c.number, _BLOCKS.c.hash).where(_BLOCKS.c.number <= upto)
        with _named():
            row = self._db.execute(chosen.order_by(_BLOCKS.c.number.desc()).offset(skipped).limit(1)).first()
            self._db.rollback()
        return None if row is None else (int(row[0]), bytes(row[1]))

    def blocks(self, after: int, upto: int) -> Iterator[KeptBlock]:
        """Kept blocks behind number `after` up to number `upto`, in order, each checked first. Raises RowsDamaged."""
        with _named():
            running = self._check_before(after)
            while True:
                found = self._read(after, upto)
                for block, logs, check in found:
                    made = block.check(running)
                    if made != check or len(block.logs) != logs:
                        raise RowsDamaged(f"The kept events of block {block.number} are not what was written.")
                    running = made if logs else running
                    yield block
                if len(found) < _AT_ONCE:
                    return
                after = found[-1][0].number

    def _read(self, after: int, upto: int) -> list[tuple[KeptBlock, int, bytes]]:
        wanted = (_BLOCKS.c.number, _BLOCKS.c.hash, _BLOCKS.c.time, _BLOCKS.c.logs, _BLOCKS.c.check)
        chosen = self._mine(_BLOCKS, *wanted).where(_BLOCKS.c.number > after, _BLOCKS.c.number <= upto)
        rows = self._db.execute(chosen.order_by(_BLOCKS.c.number).limit(_AT_ONCE)).all()
        last = rows[-1][0] if rows else after
        c = _EVENTS.c
        events = self._mine(_EVENTS, c.block, c.log_index, c.contract, c.topics, c.data, c.tx)
        events = events.where(c.block > after, c.block <= last).order_by(c.block, c.log_index)
        kept = {n: tuple(tuple(e[1:]) for e in es) for n, es in groupby(self._db.execute(events), lambda e: e[0])}
        self._db.rollback()
        if strangers := kept.keys() - {row[0] for row in rows}:
            raise RowsDamaged(f"The block {min(strangers)} of kept events is not there.")
        return [(KeptBlock(n, bytes(h), t, kept.get(n, ())), logs, bytes(check)) for n, h, t, logs, check in rows]

    def frozen(self, version: bytes, upto: int) -> FrozenState | None:
        """The newest kept state of a version of the code, after a block up to a number whose rows are those it was
        made of; None where there is none that is whole."""
        c = _FROZEN.c
        chosen = self._mine(_FROZEN, c.number, c.check, c.digest).where(c.version == version, c.number <= upto)
        with _named():
            for number, check, digest in self._db.execute(chosen.order_by(c.number.desc())).all():
                # A body is read when it is wanted: it has a hundred megabytes after a million events.
                if bytes(check) != self._check_before(number):
                    continue
                body = self._db.scalar(self._mine(_FROZEN, c.body).where(c.number == number))
                if body is not None and bytes(digest) == _digest(body):
                    self._db.rollback()
                    return FrozenState(int(number), version, body)
            self._db.rollback()
        return None

    # --- writing

    def add(self, blocks: Sequence[KeptBlock]) -> None:
        """Keeps blocks that follow all that are kept, in order, in one transaction."""
        running, heads, events = self._running, [], []
        for block in blocks:
            check = block.check(running)
            running = check if block.logs else running
            heads.append((self._name, block.number, block.hash, block.time, len(block.logs), check))
            events += [(self._name, block.number, *log) for log in block.logs]
        top = blocks[-1].number
        old = sa.delete(_BLOCKS).where(
            _BLOCKS.c.name == self._name, _BLOCKS.c.logs == 0, _BLOCKS.c.number <= top - EMPTY_KEPT
        )
        with self._writing():
            self._insert(_BLOCKS, heads)
            self._insert(_EVENTS, events)
            self._db.execute(old)
        self._running, self.top = running, top

    def cut(self, above: int) -> None:
        """Forgets blocks above a number, with all that was made of them: others have taken their place."""
        with self._writing():
            for table, number in ((_BLOCKS, _BLOCKS.c.number), (_EVENTS, _EVENTS.c.block), (_FROZEN, _FROZEN.c.number)):
                self._db.execute(sa.delete(table).where(table.c.name == self._name, number > above))
        with _named():
            self.top = self._find_top()

    def freeze(self, state: FrozenState) -> None:
        """Keeps a state after block `number`, which is kept; the oldest of more than FROZEN_KEPT goes."""
        with self._writing():
            made = state.version, _digest(state.body), state.body
            values = (self._name, state.number, self._check_before(state.number), *made)
            mine = _FROZEN.c.name == self._name
            self._db.execute(sa.delete(_FROZEN).where(mine, _FROZEN.c.number == state.number))
            self._insert(_FROZEN, [values])
            numbers = self._db.scalars(self._mine(_FROZEN, _FROZEN.c.number).order_by(_FROZEN.c.number.desc())).all()
            for old in islice(numbers, FROZEN_KEPT, None):
                self._db.execute(sa.delete(_FROZEN).where(mine, _FROZEN.c.number == old))

    # --- inside

    def _mine(self, table: sa.Table, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
        return sa.select(*columns).where(table.c.name == self._name)

    def _find_top(self) -> int:
        """Number of the newest kept block, -1 if there is none; the digest up to it is known from then on."""
        newest = self.newest(1 << 62)
        self._running = NO_CHECK if newest is None else self._check_before(newest[0])
        return -1 if newest is None else newest[0]

    def _check_before(self, number: int) -> bytes:
        """The digest of the newest kept block with logs up to a number."""
        chosen = self._mine(_BLOCKS, _BLOCKS.c.check).where(_BLOCKS.c.number <= number, _BLOCKS.c.logs > 0)
        found = self._db.scalar(chosen.order_by(_BLOCKS.c.number.desc()).limit(1))
        return NO_CHECK if found is None else bytes(found)

    def _insert(self, table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Rows of all columns in order: as the driver takes them, at a third of what the layer above costs."""
        if rows:
            marks = {"sqlite": "?", "postgresql": "%s"}[self._engine.dialect.name]
            names = ", ".join(f'"{column.name}"' for column in table.columns)
            places = ", ".join([marks] * len(table.columns))
            self._db.exec_driver_sql(f"INSERT INTO {table.name} ({names}) VALUES ({places})", list(rows))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with _named():
            try:
                yield
                self._db.commit()
            except BaseException:
                with suppress(SQLAlchemyError):
                    self._db.rollback()
                raise


def kept_for(url: str, chain_id: int, run: Address) -> list[str]:
    """The readers for whom a database keeps events of a run. Raises RowsUnusable."""
    with _named():
        engine = _engine(url, reads_only=True)
        try:
            with engine.connect() as db:
                told = [dict(json.loads(described)) for described in db.scalars(sa.select(_NAMES.c.described))]
        except (ValueError, TypeError):
            raise RowsUnusable("The names of kept events cannot be read.") from None
        finally:
            engine.dispose()
    wanted = chain_id, "0x" + run.hex()
    return [str(one.get("reader")) for one in told if (one.get("chain"), one.get("run")) == wanted]


def _locked(path: Path) -> TextIO:
    """A file that one process at a time holds: SQLite's own locks would keep readers out, too."""
    held = path.open("a")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        held.close()
        raise RowsUnusable("The kept events are locked by another process.") from None
    return held


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=32).digest()


def _engine(url: str, *, reads_only: bool = False) -> sa.Engine:
    """Raises RowsUnusable for a URL that is none, or of a database that is neither."""
    try:
        place = sa.make_url(url)
    except SQLAlchemyError:
        raise RowsUnusable("The URL of the database of kept events cannot be read.") from None
    kind = place.get_backend_name()
    if kind == "postgresql":
        place = place.set(drivername="postgresql+psycopg") if place.drivername == "postgresql" else place
        told = {"options": "-c default_transaction_read_only=on"} if reads_only else {}
        engine = sa.create_engine(place, poolclass=sa.NullPool, connect_args={"connect_timeout": 5} | told)
        sa.event.listen(engine, "do_connect", _connected_for_seconds)
        return engine
    if kind != "sqlite":
        raise RowsUnusable(f"Events are kept in SQLite or PostgreSQL, not in {kind}.")
    if reads_only:
        file = Path(place.database or "").absolute().as_uri() + "?mode=ro"
        return sa.create_engine(
            "sqlite://",
            poolclass=sa.StaticPool,
            creator=lambda: sqlite3.connect(file, uri=True, timeout=0.5, check_same_thread=False),
        )
    engine = sa.create_engine(place, poolclass=sa.StaticPool, connect_args={"timeout": 0.5, "check_same_thread": False})
    sa.event.listen(engine, "connect", _prepare)
    return engine


def _connected_for_seconds(_dialect: Any, _record: Any, words: Any, options: Any) -> Any:
    """A connection whose every answer comes within ANSWER_S.

    Attack: a server that stops, or a network that loses what is under way, holds an actor up in its game for ever.
    """
    base: Any = import_module("psycopg").Connection

    def wait(connection: Any, *arguments: Any, **more: Any) -> Any:
        clock = threading.Timer(ANSWER_S, _shut_down, (connection,))
        clock.daemon = True
        clock.start()
        try:
            return base.wait(connection, *arguments, **more)
        finally:
            clock.cancel()

    # Made so, since who checks types need not have psycopg.
    timed: Any = type("TimedConnection", (base,), {"wait": wait})
    return timed.connect(*words, **options)


def _shut_down(connection: Any) -> None:
    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as found:
        found.shutdown(socket.SHUT_RDWR)  # its reader finds the end


def _prepare(connection: Any, _: object) -> None:
    """A commit is whole after a crash, and after a power cut the last ones may be gone; readers wait for nobody."""
    for setting in ("journal_mode=WAL", "synchronous=NORMAL", "trusted_schema=OFF"):
        connection.execute(f"PRAGMA {setting}")
