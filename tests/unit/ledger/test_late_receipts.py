"""Receipts that lag behind what a node counts: nothing is sent twice, and what went to others is noticed."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from hexbytes import HexBytes

from assay.protocol.errors import AssayError, RejectedError
from assay.protocol.types import Address
from assay_ledger.chain import outbox as outbox_module
from assay_ledger.chain.client import Chain
from assay_ledger.chain.nonces import Nonces
from assay_ledger.chain.outbox import IN_FLIGHT, Outbox, Result
from assay_ledger.chain.sent import Payload
from tests.harness.mempool import GWEI, Mempool

PAYEE = Account.create().address.lower()
CALL = Payload(PAYEE, b"", 1)
REFUSING = bytes.fromhex("60006000fd")
"""PUSH 0, PUSH 0, REVERT."""


@pytest.fixture
def account(pool: Mempool) -> LocalAccount:
    made: LocalAccount = Account.create()
    pool.node.rpc("anvil_setBalance", made.address, hex(10**18))
    return made


def sent(pool: Mempool, account: LocalAccount) -> int:
    """Transactions of an account that were mined."""
    return int(str(pool.node.rpc("eth_getTransactionCount", account.address, "latest")), 16)


def code_of(result: Result) -> str:
    assert isinstance(result, AssayError)
    return result.code


def while_mined(pool: Mempool) -> Callable[[], float]:
    """A clock that goes on by a tenth of a second at each reading, but not while something waits to be mined."""
    now = [0.0]

    def clock() -> float:
        with pool._lock:  # a block that is being made is waited for as well
            now[0] += 0.0 if pool.pool else 0.1
        return now[0]

    return clock


@pytest.mark.parametrize("forgets", (False, True))
def test_a_receipt_that_comes_late_sends_nothing_twice(pool: Mempool, account: LocalAccount, forgets: bool) -> None:
    pool.late_s, pool.forgets_states = 2.0, forgets
    (result,) = Outbox(Chain(pool.url, retry_for_s=0.2), account, receipt_for_s=120).send([CALL])
    assert not isinstance(result, AssayError) and result["status"] == 1
    assert sent(pool, account) == 1


def test_what_was_not_waited_for_is_not_sent_again_either(pool: Mempool, account: LocalAccount) -> None:
    pool.late_s = 1e9
    box = Outbox(Chain(pool.url), account, receipt_for_s=1.5, clock=while_mined(pool))
    assert code_of(box.send([CALL])[0]) == "TransactionPending"
    assert code_of(box.send([CALL])[0]) == "TransactionPending"
    pool.late_s = 0.0
    (result,) = box.send([CALL])
    assert not isinstance(result, AssayError) and sent(pool, account) == 1
    # The same again is another payment, once the first is known to be made.
    box.send([CALL])
    assert sent(pool, account) == 2


def test_what_was_not_waited_for_is_remembered_beside_other_calls(pool: Mempool, account: LocalAccount) -> None:
    pool.late_s = 1e9
    clock, other = while_mined(pool), Payload(PAYEE, b"", 2)
    box = Outbox(Chain(pool.url), account, receipt_for_s=1.2, clock=clock)
    box.send([CALL])
    assert not box.in_flight and not box.cancel()
    assert code_of(box.send([other])[0]) == code_of(box.send([CALL])[0]) == "TransactionPending"
    assert sent(pool, account) == 2
    pool.late_s = 0.0
    results = box.send([CALL, other])
    assert not any(isinstance(result, AssayError) for result in results) and sent(pool, account) == 2


def test_a_batch_without_receipts_asks_for_its_block_once(pool: Mempool, account: LocalAccount) -> None:
    calls = [Payload(PAYEE, b"", wei) for wei in range(IN_FLIGHT)]
    pool.is_mining = False
    pool.on_taken = lambda _: pool.mine() if len(pool.pool) == IN_FLIGHT else None
    box = Outbox(Chain(pool.url), account, receipt_for_s=120)
    pool.late_s = 2.5
    assert not any(isinstance(result, AssayError) for result in box.send(calls))
    whole_blocks = pool.asked["eth_getBlockByNumber"]
    assert sent(pool, account) == IN_FLIGHT and whole_blocks < 20, "one by one it is asked for 64 times and more"


def use_nonce(pool: Mempool, account: LocalAccount, to: str) -> None:
    """Another process of the key uses its next nonce, in a block of its own; the node drops what it held for it."""
    pool.lose_everything()
    fields = {"chainId": 31337, "nonce": sent(pool, account), "to": to, "value": 7, "gas": 21_000}
    fees = {"maxFeePerGas": 9 * GWEI, "maxPriorityFeePerGas": 9 * GWEI, "type": 2}
    raw = bytes(account.sign_transaction(fields | fees).raw_transaction)
    pool.node.rpc("eth_sendRawTransaction", HexBytes(raw).to_0x_hex())
    pool.mine()


def test_a_nonce_that_another_process_used_is_known_by_its_block(pool: Mempool, account: LocalAccount) -> None:
    pool.is_mining = False
    box = Outbox(Chain(pool.url), account, receipt_for_s=120)
    taken: list[str] = []

    def outrun(_: object) -> None:
        if not taken:
            taken.append("once")
            other = Account.create().address
            use_nonce(pool, account, other)
            for _block in range(5):
                pool.mine()
            pool.is_mining = True

    pool.on_taken = outrun
    (result,) = box.send([CALL])
    assert not isinstance(result, AssayError)
    assert sent(pool, account) == 2 and len(pool.taken) == 2


def test_where_no_block_tells_a_missing_receipt_is_given_up(
    pool: Mempool, account: LocalAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "FOREIGN_AFTER_BLOCKS", 8)
    pool.is_mining, pool.forgets_states = False, True
    box = Outbox(Chain(pool.url, retry_for_s=0.1), account, receipt_for_s=120)

    def outrun(_: object) -> None:
        pool.on_taken = lambda _: None
        use_nonce(pool, account, Account.create().address)
        pool.is_mining = pool.mines_empty = True

    pool.on_taken = outrun
    (result,) = box.send([CALL])
    assert not isinstance(result, AssayError) and sent(pool, account) == 2


def after(seen: Callable[[], bool], act: Callable[[], object]) -> Callable[[], float]:
    """A clock; at its first reading after something was seen something is done, once."""
    done: list[object] = []

    def clock() -> float:
        if not done and seen():
            done.append(act())
        return time.monotonic()

    return clock


def test_what_a_reorganization_takes_back_is_sent_again_within_blocks(pool: Mempool, account: LocalAccount) -> None:
    pool.late_s, before = 1e9, pool.node.rpc("evm_snapshot")

    def take_back() -> None:
        pool.is_mining = False
        pool.node.rpc("evm_revert", before)
        pool.lose_everything()
        assert sent(pool, account) == 0
        pool.late_s, pool.is_mining, pool.mines_empty = 0.0, True, True

    clock = after(lambda: pool.asked["eth_getTransactionReceipt"] > 0, take_back)
    box = Outbox(Chain(pool.url, retry_for_s=0.2), account, receipt_for_s=120, clock=clock)
    (result,) = box.send([CALL])
    assert not isinstance(result, AssayError) and result["status"] == 1
    assert sent(pool, account) == 1 and len({held.nonce for held in pool.taken}) == 1


def test_a_nonce_that_others_use_after_a_reorganization_is_theirs(
    pool: Mempool, account: LocalAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool.late_s, before = 1e9, pool.node.rpc("evm_snapshot")
    looked: list[int] = []
    asks = Nonces.mined_with

    def mined_with(nonces: Nonces, nonce: int) -> dict[int, bytes]:
        looked.append(nonce)
        return asks(nonces, nonce)

    monkeypatch.setattr(Nonces, "mined_with", mined_with)
    counts: list[int] = []

    def take_back() -> None:
        pool.is_mining = False
        pool.node.rpc("evm_revert", before)
        pool.lose_everything()
        counts.append(pool.asked["eth_getTransactionCount"])

    def give_away() -> None:
        use_nonce(pool, account, Account.create().address)
        pool.late_s, pool.is_mining = 0.0, True

    first = after(lambda: bool(looked), take_back)
    second = after(lambda: bool(counts) and pool.asked["eth_getTransactionCount"] > counts[0], give_away)
    box = Outbox(Chain(pool.url), account, receipt_for_s=120, clock=lambda: (second(), first())[1])
    (result,) = box.send([CALL])
    assert not isinstance(result, AssayError) and result["status"] == 1
    assert sent(pool, account) == 2 and looked == [0, 0]


OPENS_ONCE_CALLED = "0x36600957" + "60015f5500" + "5b5f54601257" + "5f5ffd" + "5b00"
"""With calldata it reverts until it was called without: JUMPI; SSTORE; SLOAD, JUMPI; REVERT; STOP."""


def test_a_node_without_the_last_block_does_not_refuse_what_follows(pool: Mempool, account: LocalAccount) -> None:
    target = Address(b"\x5b" * 20)
    pool.node.rpc("anvil_setCode", "0x" + target.hex(), OPENS_ONCE_CALLED)
    pool.mine()
    chain = Chain(pool.url)
    with pytest.raises(RejectedError):
        chain.send_data(account, target, b"\1\2\3\4")
    chain.send_data(account, target, b"")
    pool.lags = 1
    assert chain.send_data(account, target, b"\1\2\3\4")["status"] == 1 and pool.lags == 0


def test_a_node_that_estimates_at_no_block_hides_no_refusal(pool: Mempool, account: LocalAccount) -> None:
    target, chain = Address(b"\x5c" * 20), Chain(pool.url)
    pool.node.rpc("anvil_setCode", "0x" + target.hex(), "0x" + REFUSING.hex())
    chain.transfer(account, PAYEE, 1)
    pool.names_no_blocks = True
    with pytest.raises(RejectedError):
        chain.send_data(account, target, b"\1\2\3\4")


def test_a_call_that_others_made_pointless_is_refused_before_it_is_sent(pool: Mempool, account: LocalAccount) -> None:
    target = "0x" + "5a" * 20
    pool.is_mining = False
    box = Outbox(Chain(pool.url), account, receipt_for_s=120)

    def outrun(_: object) -> None:
        pool.on_taken = lambda _: None
        use_nonce(pool, account, Account.create().address)
        pool.node.rpc("anvil_setCode", target, "0x" + REFUSING.hex())

    pool.on_taken = outrun
    (result,) = box.send([Payload(target, b"\1\2\3\4", 0, 60_000)])
    assert isinstance(result, RejectedError)
    assert sent(pool, account) == 1 and len(pool.taken) == 1 and not box.in_flight
