"""The vouchers that a gateway has accepted: the highest of each payer and token, on disk before an answer leaves.

One SQLite file in a folder that one process has at a time, and one thread that writes it. What was asked for is done
when its row is synced; those that ask while the disk is at work share the next sync. Nothing is ever compacted, since
there is one row a payer and token. What is charged before its answer's cost is known is unsettled until then: where the
disk does not take a settlement, it is tried again until it does; a start gives back what it finds unsettled, and reads
nothing else. Never restore an old copy of the file: a gateway that lost it begins with none, and what the chain says
was redeemed is then where each payer begins. Source: docs/adr/0063-vouchers.md.
"""

from __future__ import annotations

import fcntl
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from assay.protocol.errors import ConfigError, RejectedError, UnavailableError
from assay.protocol.payments.voucher import PayerDeposit, Voucher, VoucherDomain, check_terms
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.new_file import sync_folder
from assay_ledger.vouchers.signed import SignedVoucher

FILE: Final = "vouchers.sqlite"
_LAYOUT: Final = """
CREATE TABLE IF NOT EXISTS gateway (
  one INTEGER PRIMARY KEY CHECK (one = 1), chain TEXT NOT NULL, contract BLOB NOT NULL, gateway BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS vouchers (
  token BLOB, payer BLOB, amount BLOB NOT NULL, signature BLOB NOT NULL, spent BLOB NOT NULL, request BLOB NOT NULL,
  PRIMARY KEY (token, payer)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS unsettled (
  token BLOB, payer BLOB, amount BLOB, charged BLOB NOT NULL, PRIMARY KEY (token, payer, amount)
) WITHOUT ROWID;
"""
"""Amounts are 32 bytes, big-endian: SQLite's integers have 64 bits."""


class VouchersInUse(ConfigError):
    """Another process keeps vouchers in this folder."""

    remedy = "Stop the other process, or give each gateway a folder of its own."


class VouchersOfAnother(ConfigError):
    """The folder keeps the vouchers of another gateway, contract or chain."""

    remedy = "Name that gateway's folder, or an empty one."


class VouchersDamaged(ConfigError):
    """The disk has altered the file of vouchers."""

    remedy = "Redeem what can be read (`assay gateway redeem`) and move the file away; put no old copy in its place."


class VouchersFolderUnusable(ConfigError):
    """The disk of the vouchers takes or gives nothing; what is in their file is not known to be wrong."""

    remedy = (
        "Check the path, its permissions and the room on its disk, and leave the file where it is: it has what was not "
        "redeemed yet."
    )


class VouchersNoFile(ConfigError):
    """No gateway has kept vouchers in this folder."""

    remedy = "Name the folder of the gateway's vouchers."


class VouchersNotKept(UnavailableError):
    """The disk does not take a voucher; what it pays for may not be served."""

    remedy = "Make room on the disk of the folder; nothing was charged."


class SettledLater(UnavailableError):
    """The disk does not take what an answer cost; it will, and until then the most that it may cost is charged."""

    remedy = "Ask again with this very voucher: it pays for the same answer, and nothing more is charged."


@dataclass(frozen=True, slots=True)
class Accepted:
    """What was accepted, and is on disk. `is_repeat`: this voucher was accepted for this very request before, and pays
    for nothing else; whoever kept the answer may send it once more."""

    spent: Wei
    highest: Wei
    is_repeat: bool


_DISK_ERRORS: Final = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY),
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN),
)
"""Primary codes of SQLite's errors that say nothing of what is in a file."""

AGAIN_S: Final = 5.0
"""Seconds until what the disk did not take, and must, is tried again; sooner where something else is asked."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _AskedWork:
    """Something to be done with the rows, and who waits for it. `settles`: it is tried again until it is done."""

    work: Callable[[], Any]
    told: Future[Any]
    settles: Voucher | None = None


class KeptVouchers:
    """The accepted vouchers of one gateway; safe for threads, none of which has to wait.

    Raises VouchersInUse, VouchersOfAnother, VouchersDamaged, VouchersFolderUnusable.
    """

    def __init__(self, folder: Path, domain: VoucherDomain, gateway: Address) -> None:
        self.path = folder / FILE
        self.domain, self.gateway = domain, gateway
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._guard = (folder / f"{FILE}.lock").open("a")
        except OSError as error:
            raise VouchersFolderUnusable(f"{folder} cannot be used: {error.strerror}.") from None
        try:
            fcntl.flock(self._guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._guard.close()
            if not isinstance(error, BlockingIOError):
                raise VouchersFolderUnusable(f"{folder} cannot be locked: {error.strerror}.") from None
            raise VouchersInUse(f"{self.path} is held by another process.") from None
        try:
            self._base = self._open()
        except sqlite3.DatabaseError as error:
            self._guard.close()
            raise _unread(self.path, error) from None
        except ConfigError:
            self._guard.close()
            raise
        sync_folder(folder)
        self._asked = SimpleQueue[_AskedWork | None]()
        self._late: dict[Voucher, _AskedWork] = {}
        self._is_closed, self._closing = False, threading.Lock()
        self._thread = threading.Thread(target=self._run, name="vouchers", daemon=True)
        self._thread.start()

    def _open(self) -> sqlite3.Connection:
        base = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=1.0)
        base.execute("PRAGMA journal_mode = WAL")
        # The log is synced at every commit: what was accepted is there after a loss of power.
        base.execute("PRAGMA synchronous = FULL")
        base.executescript(_LAYOUT)
        mine = (str(self.domain.chain_id), self.domain.contract, self.gateway)
        base.execute("INSERT OR IGNORE INTO gateway VALUES (1, ?, ?, ?)", mine)
        found = base.execute("SELECT chain, contract, gateway FROM gateway").fetchone()
        if found != mine:
            base.close()
            raise VouchersOfAnother(
                f"{self.path} belongs to the gateway 0x{found[2].hex()} at 0x{found[1].hex()}, chain {found[0]}."
            )
        _give_back(base)
        return base

    def accept(
        self,
        signed: SignedVoucher,
        price: Wei,
        request: Digest,
        deposit: PayerDeposit,
        *,
        is_most: bool = False,
        goes_on: bool = False,
    ) -> Future[Accepted]:
        """Charges a price and keeps the voucher; done once that is on disk. Whose signature it is was checked.

        `request` names what is paid for. `is_most`: the price is the most that it may cost, and `settle` says what it
        did; what is not settled when the process ends is given back at the next start. `goes_on`: what was accepted
        for this very request was settled before its answer's end, and the price is the rest's. Raises, by the future,
        RejectedError (VoucherUsed, VoucherTooLow, VoucherUncovered), VouchersNotKept.
        """
        return self._ask(lambda: self._accepted(signed, price, request, deposit, is_most, goes_on))

    def settle(self, voucher: Voucher, cost: Wei) -> Future[Wei]:
        """What an answer cost in the end, never above what was charged; done once that is on disk, with what its
        payer has spent in all. Harmless when repeated. Raises SettledLater, by the future."""
        return self._ask(lambda: self._settled(voucher, cost), settles=voucher)

    def spent(self, token: Address, payer: Address) -> tuple[Wei, Wei] | None:
        """What a payer has spent, and its highest voucher; None if none was accepted. Waits for what was asked before.

        Raises VouchersNotKept.
        """
        row = self._ask(lambda: self._row(token, payer)).result()
        return None if row is None else (row[1], row[0])

    def __iter__(self) -> Iterator[SignedVoucher]:
        """The highest voucher of each payer and token, by token and payer. Raises VouchersNotKept."""
        wanted = "SELECT token, payer, amount, signature FROM vouchers ORDER BY token, payer"
        rows = self._ask(lambda: self._base.execute(wanted).fetchall()).result()
        yield from (_signed(self.gateway, row) for row in rows)

    def close(self) -> None:
        """Lets another process have the folder, once what was asked for is done; harmless when repeated."""
        with self._closing:
            if not self._is_closed:
                self._is_closed = True
                self._asked.put(None)
        self._thread.join()
        self._guard.close()

    # --- from any thread

    def _ask(self, work: Callable[[], T], *, settles: Voucher | None = None) -> Future[T]:
        told = Future[T]()
        # From now on nobody can take it back: what was charged must be settled, whoever has hung up.
        told.set_running_or_notify_cancel()
        with self._closing:
            if self._is_closed:
                told.set_exception(VouchersNotKept(f"{self.path} is closed."))
            else:
                self._asked.put(_AskedWork(work, told, settles))
        return told

    # --- in the thread

    def _run(self) -> None:
        """Does what is asked, all that waits at once, until the end."""
        group: list[_AskedWork] = []
        is_open = True
        try:
            while is_open:
                group, is_open = self._waited_for()
                self._do(group)
        finally:
            # However it ended: nobody waits for a thread that is gone.
            with self._closing:
                self._is_closed = True
            left = list(group)
            with suppress(Empty):
                while True:
                    left += [one for one in (self._asked.get_nowait(),) if one is not None]
            for one in left:
                if not one.told.done():
                    one.told.set_exception(VouchersNotKept(f"{self.path} is closed."))
            with suppress(Exception):
                self._base.close()

    def _waited_for(self) -> tuple[list[_AskedWork], bool]:
        """What is late and whatever waits, in this order; and whether more may come."""
        found: list[_AskedWork | None] = []
        with suppress(Empty):
            found.append(self._asked.get(timeout=AGAIN_S if self._late else None))
            while found[-1] is not None:
                found.append(self._asked.get_nowait())
        late = list(self._late.values())
        self._late.clear()
        return [*late, *(one for one in found if one is not None)], None not in found

    def _do(self, group: list[_AskedWork]) -> None:
        """One sync for all of a group. Whoever's row is lost with the others' is told so."""
        done: list[tuple[_AskedWork, Any]] = []
        for asked in group:
            try:
                done.append((asked, asked.work()))
            except RejectedError as error:  # before anything of it was written
                asked.told.set_exception(error)
            except Exception as error:
                # A full disk ends the transaction, and with it what others of the group have written.
                self._fail([*(one for one, _ in done), asked], error)
                done = []
        try:
            if self._base.in_transaction:
                self._base.execute("COMMIT")
        except Exception as error:
            self._fail([one for one, _ in done], error)
            return
        for one, result in done:
            one.told.set_result(result)

    def _fail(self, group: list[_AskedWork], error: Exception) -> None:
        """Nobody of the group was answered, and nothing of it is kept."""
        with suppress(Exception):
            self._base.execute("ROLLBACK")
        for one in group:
            if one.settles is None:
                one.told.set_exception(VouchersNotKept(f"{self.path} cannot be written: {error}."))
                continue
            # Otherwise its payer's credit stays taken until the next start, and the answer is the gateway's loss.
            # Attack: the same answer, asked for again and again meanwhile.
            self._late.setdefault(one.settles, replace(one, told=Future()))
            one.told.set_exception(SettledLater(f"{self.path} cannot be written: {error}."))

    def _accepted(
        self, signed: SignedVoucher, price: Wei, request: Digest, deposit: PayerDeposit, is_most: bool, goes_on: bool
    ) -> Accepted:
        voucher = signed.voucher
        row = self._row(voucher.token, voucher.payer)
        # Who lost the file begins with what the chain says was used up. Attack: old vouchers once more after that.
        highest, spent, last = row or (deposit.redeemed, deposit.redeemed, b"")
        if row and voucher.amount == highest and last == request:
            if not goes_on:
                return Accepted(spent, highest, True)
            highest = Wei(highest - 1)  # it was the highest itself
        check_terms(voucher, spent, highest, price, deposit)
        spent = Wei(spent + price)
        values = (voucher.token, voucher.payer, _word(voucher.amount), signed.signature, _word(spent), request)
        self._write("INSERT OR REPLACE INTO vouchers VALUES (?, ?, ?, ?, ?, ?)", values)
        if is_most:
            self._write("INSERT INTO unsettled VALUES (?, ?, ?, ?)", (*_place(voucher), _word(price)))
        return Accepted(spent, voucher.amount, False)

    def _settled(self, voucher: Voucher, cost: Wei) -> Wei:
        row = self._row(voucher.token, voucher.payer)
        wanted = "SELECT charged FROM unsettled WHERE token = ? AND payer = ? AND amount = ?"
        found = self._base.execute(wanted, _place(voucher)).fetchone()
        if row is None or found is None:
            return Wei(0) if row is None else row[1]
        charged = int.from_bytes(found[0], "big")
        spent = Wei(row[1] - charged + min(max(cost, 0), charged))
        values = (_word(spent), voucher.token, voucher.payer)
        self._write("UPDATE vouchers SET spent = ? WHERE token = ? AND payer = ?", values)
        self._write("DELETE FROM unsettled WHERE token = ? AND payer = ? AND amount = ?", _place(voucher))
        return spent

    def _row(self, token: Address, payer: Address) -> tuple[Wei, Wei, bytes] | None:
        """Highest amount, spent, last request."""
        wanted = "SELECT amount, spent, request FROM vouchers WHERE token = ? AND payer = ?"
        row = self._base.execute(wanted, (token, payer)).fetchone()
        if row is None:
            return None
        return Wei(int.from_bytes(row[0], "big")), Wei(int.from_bytes(row[1], "big")), row[2]

    def _write(self, statement: str, values: tuple[bytes, ...]) -> None:
        if not self._base.in_transaction:
            self._base.execute("BEGIN IMMEDIATE")
        self._base.execute(statement, values)


def _give_back(base: sqlite3.Connection) -> None:
    """What was charged for answers that a process did not end: the gateway's loss, never its payers'."""
    base.execute("BEGIN IMMEDIATE")
    for token, payer, charged in base.execute("SELECT token, payer, charged FROM unsettled").fetchall():
        own = (token, payer)
        (spent,) = base.execute("SELECT spent FROM vouchers WHERE token = ? AND payer = ?", own).fetchone()
        left = int.from_bytes(spent, "big") - int.from_bytes(charged, "big")
        base.execute("UPDATE vouchers SET spent = ? WHERE token = ? AND payer = ?", (_word(left), *own))
    base.execute("DELETE FROM unsettled")
    base.execute("COMMIT")


def read_vouchers(folder: Path) -> tuple[VoucherDomain, list[SignedVoucher]]:
    """What is kept in a folder, whoever has it: to redeem it harms nobody.

    Raises VouchersNoFile, VouchersDamaged, VouchersFolderUnusable.
    """
    path = folder / FILE
    if not path.is_file():
        raise VouchersNoFile(f"There is no {path}.")
    try:
        base = sqlite3.connect(path, timeout=5.0)
        try:
            chain, contract, gateway = base.execute("SELECT chain, contract, gateway FROM gateway").fetchone()
            rows = base.execute("SELECT token, payer, amount, signature FROM vouchers ORDER BY token, payer").fetchall()
        finally:
            base.close()
        domain = VoucherDomain(int(chain), Address(contract))
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise _unread(path, error) from None
    return domain, [_signed(Address(gateway), row) for row in rows]


def _unread(path: Path, error: Exception) -> ConfigError:
    """Why a file cannot be read. Who is told that it is damaged moves it away, and what is in it is lost."""
    is_the_disk = getattr(error, "sqlite_errorcode", 0) & 0xFF in _DISK_ERRORS
    return (VouchersFolderUnusable if is_the_disk else VouchersDamaged)(f"{path} cannot be read: {error}.")


def _signed(gateway: Address, row: tuple[bytes, bytes, bytes, bytes]) -> SignedVoucher:
    token, payer, amount, signature = row
    voucher = Voucher(Address(payer), gateway, Address(token), Wei(int.from_bytes(amount, "big")))
    return SignedVoucher(voucher, signature)


def _place(voucher: Voucher) -> tuple[bytes, bytes, bytes]:
    return voucher.token, voucher.payer, _word(voucher.amount)


def _word(amount: int) -> bytes:
    return amount.to_bytes(32, "big")
