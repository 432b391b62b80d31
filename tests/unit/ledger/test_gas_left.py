"""An account that runs out of coins is told of in time, and not at every transaction."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from eth_account import Account

from assay.protocol.errors import AssayError
from assay_ledger.chain.client import Chain
from assay_ledger.chain.gas_left import COUNTED, LASTS, GasLeft
from assay_ledger.chain.node import Anvil
from assay_ledger.chain.outbox import BALANCE_S, Outbox
from assay_ledger.chain.sent import Payload
from tests.harness.clocks import MovedClock


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    with Anvil() as running:
        yield running


def test_coins_are_counted_in_the_dearest_of_the_latest_transactions() -> None:
    gauge = GasLeft()
    assert gauge.lasts(10**18) is None and gauge.alarm(0) is None
    gauge.paid(7)
    gauge.paid(5)
    assert gauge.lasts(20) == 2
    for _ in range(COUNTED):
        gauge.paid(5)
    assert gauge.lasts(20) == 4


def test_it_is_said_below_the_bound_at_each_half_and_anew_after_a_refill() -> None:
    gauge = GasLeft()
    gauge.paid(10)
    said = [gauge.alarm(10 * left) for left in (LASTS, LASTS - 1, 98, 50, 49, 48, 24, 1, 0, 0, LASTS, 99)]
    assert said == [None, 99, None, None, 49, None, 24, 1, 0, 0, None, 99]


def test_an_outbox_warns_once_a_minute_at_most(node: Anvil, caplog: pytest.LogCaptureFixture) -> None:
    account, clock = Account.create(), MovedClock(1000.0)
    chain = Chain(node.url)
    node.rpc("anvil_setBalance", account.address, hex(10**18))
    box = Outbox(chain, account, clock=clock)
    pay = [Payload("0x" + "44" * 20, b"", 1)]
    with caplog.at_level(logging.WARNING, "assay.outbox"):
        (first,) = box.send(pay)
        assert not isinstance(first, AssayError) and not caplog.records
        cost = int(first["gasUsed"]) * int(first["effectiveGasPrice"])
        node.rpc("anvil_setBalance", account.address, hex(20 * cost))
        box.send([Payload("0x" + "45" * 20, b"", 1)])
        assert not caplog.records
        clock.now += BALANCE_S
        box.send([Payload("0x" + "46" * 20, b"", 1)])
    (record,) = caplog.records
    assert account.address.lower() in record.getMessage()
