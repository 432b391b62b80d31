"""What a gateway has accepted is on disk before it answers, counts once, and is there after a kill."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from assay.protocol.errors import AssayError, RejectedError
from assay.protocol.payments.voucher import PayerDeposit, VoucherDomain
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.vouchers import kept as vouchers_kept
from assay_ledger.vouchers.kept import (
    FILE,
    KeptVouchers,
    SettledLater,
    VouchersDamaged,
    VouchersFolderUnusable,
    VouchersInUse,
    VouchersNoFile,
    VouchersNotKept,
    VouchersOfAnother,
    read_vouchers,
)
from tests.harness.payments.kept_samples import DOMAIN, FULL, GATEWAY, TOKEN, payer, request, signed

PRICE = Wei(10)


def opened(folder: Path) -> KeptVouchers:
    return KeptVouchers(folder, DOMAIN, GATEWAY)


def refused(
    kept: KeptVouchers, amount: int, price: int = PRICE, deposit: PayerDeposit = FULL, what: Digest | None = None
) -> str:
    with pytest.raises(AssayError) as error:
        kept.accept(signed(0, amount), Wei(price), request(amount) if what is None else what, deposit).result()
    return error.value.code


def test_a_voucher_pays_once_and_only_higher_ones_follow(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    assert kept.accept(signed(0, 10), PRICE, request("a"), FULL).result().spent == 10
    assert refused(kept, 10) == refused(kept, 9) == "VoucherUsed"
    assert refused(kept, 19) == "VoucherTooLow"
    assert kept.accept(signed(0, 25), PRICE, request("b"), FULL).result().spent == 20
    # What was signed and not spent counts for the next one, which is signed anew all the same.
    assert kept.accept(signed(0, 30), PRICE, request("c"), FULL).result().spent == 30
    assert kept.accept(signed(1, 10), PRICE, request("a"), FULL).result().spent == 10
    kept.close()


def test_the_log_is_synced_at_every_acceptance(tmp_path: Path) -> None:
    """A process that is killed leaves what it wrote to the system; a loss of power leaves what was synced."""
    kept = opened(tmp_path)
    assert kept._base.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert kept._base.execute("PRAGMA synchronous").fetchone() == (2,)
    kept.close()


def test_the_same_voucher_for_the_same_request_is_known_again_and_charged_once(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    kept.accept(signed(0, 10), PRICE, request("a"), FULL).result()
    again = kept.accept(signed(0, 10), PRICE, request("a"), FULL).result()
    assert again.is_repeat and again.spent == 10
    assert refused(kept, 10, what=request("b")) == "VoucherUsed"
    kept.close()


def test_a_voucher_above_its_deposit_is_not_taken(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    asking = PayerDeposit(balance=Wei(100), asked=Wei(60), redeemed=Wei(5))
    assert refused(kept, 46, deposit=asking) == "VoucherUncovered"
    assert kept.accept(signed(0, 45), PRICE, request("a"), asking).result().highest == 45
    kept.close()


def test_what_costs_less_than_was_charged_is_given_back_once(tmp_path: Path) -> None:
    kept, one = opened(tmp_path), signed(0, 10)
    kept.accept(one, PRICE, request("a"), FULL, is_most=True).result()
    assert [kept.settle(one.voucher, Wei(cost)).result() for cost in (6, 0)] == [6, 6]
    assert kept.accept(signed(0, 16), PRICE, request("b"), FULL, is_most=True).result().spent == 16
    assert kept.settle(signed(0, 16).voucher, Wei(11)).result() == 16, "never above what was charged"
    kept.close()
    kept = opened(tmp_path)
    assert kept.spent(TOKEN, payer(0).address) == (16, 16)
    assert kept.accept(signed(0, 26), PRICE, request("c"), FULL).result().spent == 26
    assert kept.settle(signed(0, 26).voucher, Wei(0)).result() == 26, "a price is not the most"
    kept.close()


def test_what_no_answer_was_given_for_is_given_back_at_the_next_start(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    for amount in (10, 20, 30):
        kept.accept(signed(0, amount), PRICE, request(amount), FULL, is_most=True).result()
    kept.accept(signed(1, 10), PRICE, request("a"), FULL, is_most=True).result()
    kept.settle(signed(0, 20).voucher, Wei(7)).result()
    assert kept.spent(TOKEN, payer(0).address) == (27, 30)
    kept.close()
    kept = opened(tmp_path)
    assert [kept.spent(TOKEN, payer(k).address) for k in (0, 1)] == [(7, 30), (0, 10)]
    # The vouchers are used up all the same: the next one is a higher one.
    assert refused(kept, 30, what=request("another")) == "VoucherUsed"
    assert kept.accept(signed(0, 31), PRICE, request("b"), FULL).result().spent == 17
    kept.close()


def test_who_lost_the_file_takes_no_voucher_that_the_chain_has_used_up(tmp_path: Path) -> None:
    redeemed = PayerDeposit(balance=Wei(1000), redeemed=Wei(500))
    kept = opened(tmp_path)
    assert refused(kept, 500, deposit=redeemed) == "VoucherUsed"
    assert refused(kept, 505, deposit=redeemed) == "VoucherTooLow"
    assert kept.accept(signed(0, 510), PRICE, request("a"), redeemed).result().spent == 510
    kept.close()


def test_a_folder_is_one_process_and_one_gateways(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    with pytest.raises(VouchersInUse):
        opened(tmp_path)
    kept.close()
    with pytest.raises(VouchersOfAnother):
        KeptVouchers(tmp_path, VoucherDomain(1, DOMAIN.contract), GATEWAY)
    with pytest.raises(VouchersOfAnother):
        KeptVouchers(tmp_path, DOMAIN, Address(b"\x62" * 20))
    opened(tmp_path).close()


def test_what_is_kept_is_read_beside_the_process_that_keeps_it(tmp_path: Path) -> None:
    with pytest.raises(VouchersNoFile):
        read_vouchers(tmp_path)
    kept = opened(tmp_path)
    wanted = [signed(k, 10 + k) for k in range(3)]
    for one in wanted:
        kept.accept(one, PRICE, request(1), FULL).result()
    assert sorted(kept, key=repr) == sorted(wanted, key=repr)
    domain, found = read_vouchers(tmp_path)
    assert domain == DOMAIN and sorted(found, key=repr) == sorted(wanted, key=repr)
    kept.close()
    (tmp_path / FILE).write_bytes(b"no database" * 1000)
    with pytest.raises(VouchersDamaged):
        read_vouchers(tmp_path)
    with pytest.raises(VouchersDamaged):
        opened(tmp_path)


@pytest.mark.parametrize("look", [opened, read_vouchers])
def test_a_disk_that_refuses_at_a_start_has_nobody_move_the_file_away(tmp_path: Path, look: Any) -> None:
    """Bad luck: a full disk, on which SQLite cannot make the files that it has beside its own."""
    opened(tmp_path).close()
    for beside in ("-shm", "-wal"):
        (tmp_path / f"{FILE}{beside}").mkdir()
    with pytest.raises(VouchersFolderUnusable, match="cannot be read"):
        look(tmp_path)
    with pytest.raises(VouchersFolderUnusable, match="cannot be used"):
        opened(tmp_path / FILE)


def test_a_full_disk_charges_nobody_of_those_that_waited_together(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    kept.accept(signed(0, 10), PRICE, request("a"), FULL).result()
    pages = kept._base.execute("PRAGMA page_count").fetchone()[0]
    kept._base.execute(f"PRAGMA max_page_count = {pages}")
    failed = 0
    for number in range(1, 200):
        try:
            kept.accept(signed(number, 10), PRICE, request("a"), FULL).result()
        except VouchersNotKept:
            failed += 1
            assert kept.spent(TOKEN, payer(number).address) is None
    assert failed > 0
    kept._base.execute("PRAGMA max_page_count = 100000")
    assert kept.accept(signed(199, 10), PRICE, request("a"), FULL).result().spent == 10
    kept.close()


@pytest.mark.parametrize("ends_by", ["the clock", "another's voucher", "closing"])
def test_a_settlement_that_the_disk_did_not_take_is_tried_again_until_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_by: str
) -> None:
    monkeypatch.setattr(vouchers_kept, "AGAIN_S", 0.05 if ends_by == "the clock" else 600.0)
    kept = opened(tmp_path)
    charged = signed(0, 10)
    assert kept.accept(charged, PRICE, request("a"), FULL, is_most=True).result(20).spent == 10
    held = HeldBase(kept, "UPDATE")
    held.free.set()
    with pytest.raises(SettledLater, match="full"):
        kept.settle(charged.voucher, Wei(3)).result(20)
    if ends_by == "the clock":
        limit = time.monotonic() + 60
        while held._base.execute("SELECT count(*) FROM unsettled").fetchone()[0]:
            assert time.monotonic() < limit, "not tried again"
            time.sleep(0.01)
    if ends_by == "another's voucher":
        kept.accept(signed(1, 10), PRICE, request("b"), FULL).result(20)
        assert kept.spent(TOKEN, payer(0).address) == (3, 10)
    kept.close()
    again = opened(tmp_path)
    assert again.spent(TOKEN, payer(0).address) == (3, 10)
    again.close()


def test_on_a_disk_that_stays_full_nothing_is_taken_twice_and_a_start_gives_back(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    charged = signed(0, 10)
    kept.accept(charged, PRICE, request("a"), FULL, is_most=True).result(20)
    kept._base.execute("PRAGMA query_only = 1")
    for _ in range(3):
        with pytest.raises(SettledLater):
            kept.settle(charged.voucher, Wei(3)).result(20)
    assert len(kept._late) == 1, "asked for thrice, late once"
    kept.close()
    again = opened(tmp_path)
    assert again.spent(TOKEN, payer(0).address) == (0, 10)
    again.close()


class HeldBase:
    """The rows, to which the thread comes only when it may, and which the disk takes until some statement."""

    def __init__(self, kept: KeptVouchers, fails: str, after: int = 0, error: Exception | None = None) -> None:
        self.came, self.free = threading.Event(), threading.Event()
        self._error = error or sqlite3.OperationalError("database or disk is full")
        self._base, self._fails, self._left = kept._base, fails, after
        kept._base = cast(sqlite3.Connection, self)

    def execute(self, statement: str, *values: Any) -> Any:
        self.came.set()
        assert self.free.wait(60)
        if statement.startswith(self._fails):
            if not self._left:
                self._base.execute("ROLLBACK")  # as SQLITE_FULL does
                self._left = -1
                raise self._error
            self._left -= 1
        return self._base.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)


def test_those_who_ask_while_the_disk_is_at_work_share_one_sync(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    held, syncs = HeldBase(kept, "nothing fails"), list[str]()
    kept._base.set_trace_callback(lambda statement: syncs.append(statement) if statement == "COMMIT" else None)
    first = kept.accept(signed(0, 10), PRICE, request("a"), FULL)
    assert held.came.wait(60)
    # The thread has the first and waits; these come meanwhile, one of them to be refused.
    others = [kept.accept(signed(k, 10), PRICE, request("a"), FULL) for k in range(1, 6)]
    twice = kept.accept(signed(1, 10), PRICE, request("b"), FULL)
    held.free.set()
    assert [taken.result(20).spent for taken in (first, *others)] == [10] * 6
    with pytest.raises(RejectedError):
        twice.result(20)
    assert len(syncs) == 2
    kept.close()


@pytest.mark.parametrize(("fails", "after"), [("INSERT OR REPLACE", 1), ("COMMIT", 1)], ids=["row", "sync"])
def test_a_failure_in_the_middle_of_a_group_fails_what_was_written_before(
    tmp_path: Path, fails: str, after: int
) -> None:
    """SQLite ends a transaction when the disk is full: who wrote before in it must not be answered by a later one."""
    kept = opened(tmp_path)
    held = HeldBase(kept, fails, after + (fails != "COMMIT"))
    alone = kept.accept(signed(0, 10), PRICE, request("a"), FULL)
    assert held.came.wait(60)
    group = [kept.accept(signed(k, 10), PRICE, request("a"), FULL) for k in (1, 2, 3)]
    held.free.set()
    assert alone.result(20).spent == 10
    lost = [k for k, taken in enumerate(group, 1) if isinstance(taken.exception(20), VouchersNotKept)]
    # The row that fails and the one before it; the sync fails for all.
    assert lost == ([1, 2] if fails != "COMMIT" else [1, 2, 3])
    _, found = read_vouchers(tmp_path)
    assert {one.voucher.payer for one in found} == {payer(k).address for k in range(4) if k not in lost}
    kept.close()


def test_a_commit_that_fails_in_any_way_is_told_and_the_next_is_taken(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    held = HeldBase(kept, "COMMIT", error=MemoryError())
    held.free.set()
    with pytest.raises(VouchersNotKept):
        kept.accept(signed(0, 10), PRICE, request("a"), FULL).result(20)
    assert kept.accept(signed(0, 10), PRICE, request("b"), FULL).result(20).spent == 10
    kept.close()


def test_nobody_waits_for_a_thread_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    kept = opened(tmp_path)

    def dies(_group: object) -> None:
        raise SystemExit

    kept._do = dies  # type: ignore[method-assign]
    for amount in (10, 20):
        with pytest.raises(VouchersNotKept, match="closed"):
            kept.accept(signed(0, amount), PRICE, request("a"), FULL).result(20)
    kept.close()
    opened(tmp_path).close()


def test_what_was_asked_is_done_though_nobody_waits_and_before_it_is_closed(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    held = HeldBase(kept, "nothing fails")
    taken = kept.accept(signed(0, 10), PRICE, request("a"), FULL, is_most=True)
    settled = kept.settle(signed(0, 10).voucher, Wei(4))
    assert not taken.cancel() and not settled.cancel()
    held.free.set()
    kept.close()
    kept.close()
    assert settled.result(0) == 4
    with pytest.raises(VouchersNotKept, match="closed"):
        kept.accept(signed(0, 20), PRICE, request("b"), FULL).result(20)
    _, found = read_vouchers(tmp_path)
    assert [one.voucher.amount for one in found] == [10]


def test_many_at_once_are_all_on_disk_and_none_counts_twice(tmp_path: Path) -> None:
    kept = opened(tmp_path)
    work = [(number, amount) for amount in range(10, 60, 10) for number in range(8)] * 2

    def one(job: tuple[int, int]) -> bool:
        try:
            return not kept.accept(signed(*job), PRICE, request(os.urandom(8)), FULL).result().is_repeat
        except RejectedError:
            return False

    with ThreadPoolExecutor(8) as pool:
        taken = [job for job, was in zip(work, pool.map(one, work), strict=True) if was]
    assert len(taken) == len(set(taken))
    _, found = read_vouchers(tmp_path)
    kept.close()
    assert {one.voucher.payer: one.voucher.amount for one in found} == {payer(k).address: 50 for k in range(8)}


@pytest.mark.long
def test_killed_under_load_it_loses_no_answered_voucher_and_serves_none_twice(tmp_path: Path) -> None:
    """A process that serves is killed again and again amid its answers; payers send again what had no answer."""
    amounts = dict.fromkeys(range(6), 0)
    answered: dict[bytes, int] = defaultdict(int)
    waits = []
    for kill in range(6):
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.harness.payments.till", str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        waits.append(time.monotonic() - began)
        sent: dict[str, tuple[int, int]] = {}
        for step in range(1, 60):
            for number in amounts:
                # Every voucher twice, for two requests: only one of them may be served.
                amount = (kill * 60 + step) * 10
                for turn in range(2):
                    name = f"{kill}.{step}.{number}.{turn}"
                    sent[name] = (number, amount)
                    process.stdin.write(f"{name} {signed(number, amount).to_text()}\n")
        process.stdin.flush()
        for _ in range(80 + 40 * kill):
            name, _, said = process.stdout.readline().strip().partition(" ")
            if said.startswith("served"):
                number, amount = sent[name]
                me = payer(number).address
                answered[me] = max(answered[me], amount)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()
        # Nothing that was answered is missing.
        _, found = read_vouchers(tmp_path)
        kept = {one.voucher.payer: one.voucher.amount for one in found}
        assert all(kept[me] >= amount for me, amount in answered.items())
    served = (tmp_path / "served").read_text().splitlines()
    assert len(served) > 100
    assert len(served) == len(set(served)), "one voucher bought two answers"
    # An answer that left is never above what is on disk.
    last = {one.voucher.payer.hex(): one.voucher.amount for one in found}
    assert all(int(line.split()[1]) <= last[line.split()[0]] for line in served)
    print("seconds to start:", [round(wait, 2) for wait in waits])
