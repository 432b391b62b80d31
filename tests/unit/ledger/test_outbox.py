"""Transactions before a pool that holds, replaces, refuses and loses them: none stays stuck, none counts twice."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount

from assay.protocol.errors import AssayError, FundsError, UnavailableError
from assay_ledger.chain.client import Chain
from assay_ledger.chain.outbox import IN_FLIGHT, SEND_AGAIN_BLOCKS, Outbox, Result
from assay_ledger.chain.sent import Payload, SentFile
from tests.harness.full_disks import writing_nothing
from tests.harness.mempool import GWEI, Held, Mempool

ETHER = 10**18
PATIENT_S = 120.0
"""For what is mined: a test must not end because a machine is slow."""


class Payer:
    """A fresh account with coin, and payees that no other test pays."""

    def __init__(self, pool: Mempool, path: Path | None = None, wei: int = ETHER) -> None:
        self.pool, self.path = pool, path
        self.account: LocalAccount = Account.create()
        pool.node.rpc("anvil_setBalance", self.account.address, hex(wei))
        self.payees: list[str] = []
        self.box = self.process()

    def process(self, path: Path | None = None, receipt_for_s: float = PATIENT_S) -> Outbox:
        """What a process of its own has: a connection and an outbox."""
        return Outbox(Chain(self.pool.url), self.account, path or self.path, receipt_for_s=receipt_for_s)

    def call(self) -> Payload:
        """A payment of 1 wei to somebody new."""
        self.payees.append(Account.create().address.lower())
        return Payload(self.payees[-1], b"", 1)

    def received(self) -> list[int]:
        """What each payee has."""
        return [int(str(self.pool.node.rpc("eth_getBalance", who, "latest")), 16) for who in self.payees]


def rise_to(pool: Mempool, base: int) -> None:
    """From now on there are blocks, at another base fee."""
    pool.base, pool.is_mining, pool.mines_empty = base, True, True


def refusal(results: list[Result]) -> str:
    """The code of the one error."""
    (error,) = results
    assert isinstance(error, AssayError)
    return error.code


def mined(results: list[Result]) -> bool:
    """Was everything mined?"""
    return all(not isinstance(r, AssayError) and r["status"] == 1 for r in results)


@pytest.mark.parametrize("factor", (2.5, 8))
def test_a_base_fee_that_rises_while_a_transaction_waits_strands_nothing(pool: Mempool, factor: float) -> None:
    payer = Payer(pool)

    def rise(_: Held) -> None:
        pool.base = int(factor * GWEI)

    pool.on_taken = rise
    assert mined(payer.box.send([payer.call()]))
    assert len(pool.taken) > 1
    assert mined(payer.box.send([payer.call()]))
    assert payer.received() == [1, 1] and not payer.box.in_flight


def test_every_replacement_offers_an_eighth_more_of_both(pool: Mempool) -> None:
    payer = Payer(pool)
    pool.on_taken = lambda held: setattr(pool, "base", held.most + 1 if len(pool.taken) < 6 else held.most)
    assert mined(payer.box.send([payer.call()]))
    for old, new in zip(pool.taken, pool.taken[1:], strict=False):
        assert new.nonce == old.nonce
        assert 8 * new.most >= 9 * old.most and 8 * new.tip >= 9 * old.tip
    assert len(pool.taken) == 6 and payer.received() == [1]


def test_a_tip_that_nobody_takes_is_raised_though_the_base_fee_is_paid(pool: Mempool) -> None:
    payer = Payer(pool)
    wanted = 5 * 10**6
    choose = pool._choose
    pool._choose = lambda base: [h for h in choose(base) if h.tip >= wanted]  # type: ignore[method-assign]
    assert mined(payer.box.send([payer.call()]))
    assert pool.blocks[-1][0].tip >= wanted > pool.taken[0].tip


def test_a_tip_that_changes_nothing_is_not_raised_to_all_that_its_owner_has(pool: Mempool) -> None:
    """A sequencer that keeps a transaction out long enough would be paid the whole balance for letting it in."""
    pool.base, pool.is_mining = GWEI // 1000, False
    pool._choose = lambda _: []  # type: ignore[method-assign]
    pool.mine()
    for part, wei in ((8 * pool.base, 10**12), (10**12 // 21_000, 10**14)):  # eight base fees, a hundredth of it
        payer, begun = Payer(pool, wei=wei), len(pool.blocks)
        chain = Chain(pool.url)
        # A block for each reading of the clock, which is all that passes: a slow machine would see some of them only.
        chain.pace.wait = lambda *_: None  # type: ignore[method-assign, assignment]
        box = Outbox(chain, payer.account, receipt_for_s=300, clock=lambda: len(pool.blocks) + len(pool.mine()))
        assert refusal(box.send([payer.call()])) == "TransactionPending"
        assert len(pool.blocks) - begun >= 300
        tips = [held.tip for held in pool.taken if held.sender.lower() == payer.account.address.lower()]
        assert part < 9 * max(tips) / 8 and max(tips) < 9 * part / 8 + 2


@pytest.mark.parametrize("between", [False, True], ids=["later", "between"])
def test_nothing_is_sent_above_the_limit_and_what_was_sent_is_mined_once(pool: Mempool, between: bool) -> None:
    """Bad luck: a deposit that waited for a lower fee was mined while nobody waited, and was made again."""
    payer = Payer(pool)
    limit, call = 2 * GWEI, payer.call()
    pool.base = limit + 1
    pool.mine()
    assert refusal(payer.box.send([call], limit)) == "FeeAboveLimit" and not pool.taken
    pool.base, pool.is_mining = limit, False
    pool.mine()
    pool.on_taken = lambda _: rise_to(pool, 2 * limit)
    assert refusal(payer.box.send([call], limit)) == "FeeAboveLimit"
    assert list(payer.box.in_flight.values()) == [call]
    pool.base, pool.is_mining = limit, True
    if between:
        pool.mine()
    assert mined(payer.box.send([call], limit))
    assert payer.received() == [1] and len(pool.taken) == 1


def test_what_matters_takes_the_place_of_what_is_stuck(pool: Mempool) -> None:
    payer = Payer(pool)
    stuck, urgent = payer.call(), payer.call()
    pool.is_mining = False
    pool.on_taken = lambda _: rise_to(pool, 9 * GWEI)
    assert refusal(payer.box.send([stuck], 2 * GWEI)) == "FeeAboveLimit"
    pool.on_taken = lambda _: None
    assert mined(payer.box.send([urgent]))
    assert payer.received() == [0, 1]
    assert {held.nonce for held in pool.taken} == {0}


def test_what_matters_no_more_is_cancelled(pool: Mempool) -> None:
    payer = Payer(pool)
    box = payer.process(receipt_for_s=0.2)
    pool.is_mining = False
    assert refusal(box.send([payer.call()])) == "TransactionPending"
    assert box.cancel()
    pool.mine()
    assert not box.cancel() and payer.received() == [0]
    pool.is_mining, box._receipt_for_s = True, PATIENT_S
    assert mined(box.send([payer.call()])) and payer.received() == [0, 1]


@pytest.mark.parametrize("is_down", (False, True))
def test_what_a_node_loses_is_sent_to_it_again(pool: Mempool, is_down: bool) -> None:
    payer = Payer(pool)

    def lose(_: Held) -> None:
        pool.on_taken = lambda _: None
        pool.lose_everything()
        pool.is_down, pool.mines_empty = is_down, True
        threading.Timer(0.3, lambda: setattr(pool, "is_down", False)).start()

    pool.on_taken = lose
    assert mined(payer.box.send([payer.call()]))
    assert payer.received() == [1] and len(pool.taken) == 2


def test_what_a_node_lost_is_sent_again_by_whoever_waits_less_than_a_block_at_a_time(pool: Mempool) -> None:
    payer = Payer(pool)
    call, short = payer.call(), payer.process(payer.path, receipt_for_s=0.3)
    pool.is_mining = False
    assert refusal(short.send([call])) == "TransactionPending"
    pool.lose_everything()
    for blocks in range(1, SEND_AGAIN_BLOCKS):
        pool.mine()
        assert refusal(short.send([call])) == "TransactionPending"
        assert len(pool.taken) == 1, blocks
    pool.mine()
    pool.is_mining = True
    assert any(mined(short.send([call])) for _ in range(200)), "sent again, and mined"
    assert payer.received() == [1] and len({held.hash for held in pool.taken}) == 1 and len(pool.taken) == 2


def test_all_that_a_node_loses_is_sent_again_as_it_was(pool: Mempool) -> None:
    payer = Payer(pool)
    calls = [payer.call() for _ in range(10)]

    def lose(held: Held) -> None:
        if held.nonce == 9:
            pool.on_taken = lambda _: None
            pool.lose_everything()
            pool.is_mining = pool.mines_empty = True

    pool.is_mining, pool.every_s = False, 0.1
    pool.on_taken = lose
    assert mined(payer.box.send(calls)) and payer.received() == [1] * 10
    # The first is offered for more, since nothing moves; the others wait for nothing but it.
    assert len({held.hash for held in pool.taken if held.nonce}) == 9


@pytest.mark.parametrize("keeps_record", (True, False))
def test_a_restarted_process_is_not_stuck_behind_its_former_self(
    pool: Mempool, tmp_path: Path, keeps_record: bool
) -> None:
    payer = Payer(pool, tmp_path / "outbox.jsonl")
    old, new = payer.call(), payer.call()
    pool.is_mining = False
    assert refusal(payer.process(receipt_for_s=0.2).send([old])) == "TransactionPending"
    pool.base, pool.is_mining = 20 * GWEI, True
    again = payer.process(tmp_path / ("outbox.jsonl" if keeps_record else "lost"))
    assert list(again.in_flight.values()) == ([old] if keeps_record else [])
    assert mined(again.send([new]))
    assert payer.received() == [0, 1]
    assert (tmp_path / "outbox.jsonl").read_bytes() == b"" or not keeps_record


@pytest.mark.parametrize("base", (6, 2))
def test_a_lost_transaction_offered_at_the_limit_holds_up_none_sent_below_it(
    pool: Mempool, tmp_path: Path, base: int
) -> None:
    """A deferral that was signed at a high fee, and never arrived, kept back the move until its clock had run out."""
    payer = Payer(pool, tmp_path / "outbox.jsonl")
    lost, due = payer.call(), payer.call()
    pool.base, pool.is_mining = base * GWEI, False
    pool.mine()
    limit = 2 * GWEI if base <= 2 else None
    assert refusal(payer.process(receipt_for_s=0.2).send([lost], limit)) == "TransactionPending"
    pool.lose_everything()
    pool.base, pool.is_mining = 2 * GWEI, True
    pool.mine()
    assert mined(payer.process().send([due], 2 * GWEI))
    assert payer.received() == [1, 1]
    assert all(held.most <= 2 * GWEI + held.tip for held in pool.taken if held.nonce)


def test_a_record_is_kept_also_for_an_account_that_has_sent_before(pool: Mempool, tmp_path: Path) -> None:
    payer, path = Payer(pool), tmp_path / "outbox.jsonl"
    pool.is_mining = False
    payer.process(path, receipt_for_s=0.1).send([payer.call()])
    chain = Chain(pool.url, receipt_for_s=0.1)
    assert not chain.outbox(payer.account).in_flight
    assert list(chain.outbox(payer.account, path).in_flight) == [0]
    chain.outbox(payer.account).send([payer.call(), payer.call()])
    assert list(payer.process(path).in_flight) == [0, 1]


def test_a_record_of_anything_else_is_nothing(pool: Mempool, tmp_path: Path) -> None:
    path = tmp_path / "outbox.jsonl"
    other = Payer(pool, path)
    pool.is_mining = False
    other.process(receipt_for_s=0.1).send([other.call()])
    lines = path.read_bytes()
    # The last 32 bytes are the s of a signature: no curve has such a one.
    broken = lines.rstrip()[:-66] + b"f" * 64 + b'"}\n'
    path.write_bytes(lines + b'{"raw": "02"}\n{"raw": 7}\n[]\n\xff\n' + broken + lines[:50])
    assert len(other.process().in_flight) == 1
    assert not Payer(pool, path).box.in_flight


def test_two_processes_with_one_key_pay_everybody_once(pool: Mempool) -> None:
    payer = Payer(pool)
    one, two = payer.process(), payer.process()
    calls = [payer.call() for _ in range(8)]
    results: list[Result] = []

    def pay(box: Outbox, mine: list[Payload]) -> None:
        for call in mine:
            results.extend(box.send([call]))

    threads = [threading.Thread(target=pay, args=a) for a in ((one, calls[::2]), (two, calls[1::2]))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and mined(results)
    assert payer.received() == [1] * 8


def test_many_calls_share_blocks_and_keep_their_order(pool: Mempool) -> None:
    payer = Payer(pool)
    calls = [payer.call() for _ in range(70)]
    pool.is_mining = False
    pool.on_taken = lambda _: setattr(pool, "is_mining", len(pool.taken) >= IN_FLIGHT)
    results = payer.box.send(calls)
    assert mined(results) and payer.received() == [1] * 70
    places = [(r["blockNumber"], r["transactionIndex"]) for r in results if not isinstance(r, AssayError)]
    assert places == sorted(places)
    assert len({block for block, _ in places[:IN_FLIGHT]}) == 1


def test_a_call_that_cannot_be_paid_leaves_no_gap_for_the_others(pool: Mempool) -> None:
    payer = Payer(pool)
    expensive = Payload(payer.call().to, b"", 2 * ETHER)
    results = payer.box.send([payer.call(), expensive, payer.call()])
    assert isinstance(results[1], FundsError) and results[1].code == "GasShort"
    assert mined([results[0], results[2]]) and payer.received() == [0, 1, 1]


def test_a_short_balance_offers_less_than_usual_and_not_nothing(pool: Mempool) -> None:
    gas = 21_000
    payer = Payer(pool, wei=gas * (GWEI + 2 * 10**6) + 1)
    assert mined(payer.box.send([payer.call()]))
    assert payer.received() == [1] and GWEI < pool.taken[0].most < 2 * GWEI


def test_a_node_that_is_gone_is_named_and_what_was_sent_counts(pool: Mempool) -> None:
    payer = Payer(pool)
    box = Outbox(Chain(pool.url, retry_for_s=0.2), payer.account, receipt_for_s=PATIENT_S)
    call = payer.call()
    pool.on_taken = lambda _: setattr(pool, "is_down", True)
    (error,) = box.send([call])
    assert isinstance(error, UnavailableError) and error.code == "NodeUnreachable"
    pool.is_down, pool.on_taken = False, lambda _: None
    pool.mine()
    assert payer.received() == [1]
    # The chain was not looked at, so it is paid again; a player looks first.
    assert mined(box.send([payer.call()])) and payer.received() == [1, 1]


def signed(account: LocalAccount, nonce: int) -> bytes:
    """A transaction as the file keeps it."""
    fields = {"chainId": 1, "nonce": nonce, "to": account.address, "value": 1, "gas": 21_000, "type": 2}
    return bytes(account.sign_transaction(fields | {"maxFeePerGas": 9, "maxPriorityFeePerGas": 1}).raw_transaction)


@pytest.mark.parametrize("room", range(0, 250, 50))
def test_a_disk_that_took_half_a_line_costs_no_other_transaction(tmp_path: Path, room: int) -> None:
    account: LocalAccount = Account.create()
    file = SentFile(account, 1, tmp_path / "outbox.jsonl")
    file.add(signed(account, 0))
    with writing_nothing((tmp_path / "outbox.jsonl").stat().st_size + room):
        file.add(signed(account, 1))
    file.add(signed(account, 2))
    assert list(file.load()) == [0, 2]
    assert len((tmp_path / "outbox.jsonl").read_bytes().splitlines()) == 2


def test_half_a_line_that_a_crash_left_does_not_take_the_next_one_along(tmp_path: Path) -> None:
    account: LocalAccount = Account.create()
    file = SentFile(account, 1, tmp_path / "outbox.jsonl")
    file.add(signed(account, 0))
    with (tmp_path / "outbox.jsonl").open("ab") as torn:
        torn.write(b'{"raw": "02f8')
    file.add(signed(account, 2))
    assert list(file.load()) == [0, 2]


def test_a_call_that_follows_from_what_was_seen_is_not_sent_after_another(pool: Mempool) -> None:
    payer = Payer(pool)
    first, second = payer.process(), payer.process()
    # Both processes of the key saw the same chain.
    calls = [replace(payer.call(), nonce=0), replace(payer.call(), nonce=0)]
    assert mined(first.send([calls[0]]))
    assert refusal(second.send([calls[1]])) == "AccountMoved"
    assert payer.received() == [1, 0] and not second.in_flight
    assert mined(second.send([replace(payer.call(), nonce=1)]))


def test_the_same_call_after_what_was_mined_before_it_is_another_one(pool: Mempool) -> None:
    """An actor that calls the same again in a later round has seen the first of both mined."""
    payer = Payer(pool)
    pool.is_mining = False
    box, call = payer.process(receipt_for_s=0.5), payer.call()
    assert refusal(box.send([replace(call, nonce=0)])) == "TransactionPending"
    pool.mine()
    pool.is_mining, box._receipt_for_s = True, PATIENT_S
    assert mined(box.send([replace(call, nonce=1)])) and payer.received() == [2]
    # It saw less than that: what is mined is what it waits for.
    pool.is_mining, box._receipt_for_s = False, 0.5
    assert refusal(box.send([replace(call, nonce=2)])) == "TransactionPending"
    pool.mine()
    pool.is_mining, box._receipt_for_s = True, PATIENT_S
    assert mined(box.send([replace(call, nonce=2)])) and payer.received() == [3]


def test_of_two_such_calls_in_the_pool_at_once_one_is_mined(pool: Mempool) -> None:
    payer = Payer(pool)
    pool.is_mining = False
    first, second = payer.process(receipt_for_s=0.5), payer.process()
    calls = [replace(payer.call(), nonce=0), replace(payer.call(), nonce=0)]
    assert refusal(first.send([calls[0]])) == "TransactionPending"
    pool.on_taken = lambda _: setattr(pool, "is_mining", True)
    assert mined(second.send([calls[1]]))
    assert refusal(first.send([replace(payer.call(), nonce=0)])) == "AccountMoved"
    assert payer.received() == [0, 1, 0]
