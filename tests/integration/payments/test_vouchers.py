"""What payers, gateways and strangers try with vouchers, and what they get by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_hash.auto import keccak

from assay.protocol.errors import RejectedError
from assay.protocol.payments.voucher import Voucher
from assay.protocol.payments.voucher_books import VoucherBooks
from assay.protocol.types import Address, Wei
from tests.harness.contracts.harness import Reverted
from tests.harness.payments.voucher_stage import (
    CHAIN_ID,
    DELAY,
    GATEWAYS,
    KEYS,
    PPM,
    Fault,
    Mood,
    VoucherStage,
    address_of,
    deployed,
)
from tests.harness.rounds.stage import refused, text

WALLET = 3
"""The payer that is a contract."""


@pytest.fixture
def stage() -> Iterator[VoucherStage]:
    made = VoucherStage()
    yield made
    made.compare()
    made.end()


# --- what is paid


def test_a_batch_pays_the_gateway_and_the_owners_and_each_voucher_once(stage: VoucherStage) -> None:
    for payer in range(3):
        stage.deposit(payer, payer, 0, 10_000_000)
    batch = [(0, 5_000_001, Fault.NONE), (1, 7, Fault.NONE), (2, 10_000_000, Fault.NONE)]
    assert stage.redeem(0, batch) == 15_000_008
    assert refused(stage.redeem, 0, batch) == "NothingToRedeem"
    # Cumulative: of a higher voucher the difference, of a lower one nothing, of the same twice once.
    assert stage.redeem(0, [(0, 5_000_003, Fault.NONE)] * 2 + [(0, 4, Fault.NONE)]) == 2
    assert stage.books.owed == {stage.tokens[0]: -(-15_000_008 * PPM // 10**6) + 1}


def test_the_owners_part_reaches_the_runs_revenue_by_anybodys_call(stage: VoucherStage) -> None:
    stage.deposit(0, 0, 0, 100_000_000)
    stage.redeem(0, [(0, 100_000_000, Fault.NONE)])
    owed = stage.books.owed[stage.tokens[0]]
    # Revenue streams no less than this; redeeming did not wait for it.
    with pytest.raises(Reverted):
        stage.contract.call("payOwners", text(stage.tokens[0]), 999_999)
    assert refused(stage.pay_owners, owed + 1) == "OwedTooLittle"
    stage.pay_owners(owed)
    assert stage.chain.revenue.call("depositedOf", text(stage.tokens[0])) == owed


def test_rounding_is_up_for_the_owners_and_splitting_gains_nothing(stage: VoucherStage) -> None:
    stage.deposit(0, 0, 0, 10)
    for amount in range(1, 11):
        stage.redeem(0, [(0, amount, Fault.NONE)])
    assert stage.books.owed[stage.tokens[0]] == 10, "ten calls of a wei each left the gateway nothing"


def test_of_more_than_was_deposited_the_rest_can_be_taken_later(stage: VoucherStage) -> None:
    stage.deposit(0, 0, 0, 60)
    assert stage.redeem(0, [(0, 100, Fault.NONE)]) == 60
    assert refused(stage.redeem, 0, [(0, 100, Fault.NONE)]) == "NothingToRedeem"
    stage.deposit(1, 0, 0, 1000)
    assert stage.redeem(0, [(0, 100, Fault.NONE)]) == 40
    assert stage.shown(0, 0).balance == 960


# --- what does not count


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.NONE], ids=lambda f: f.name)
def test_a_false_voucher_takes_nothing_and_stops_no_batch(stage: VoucherStage, fault: Fault) -> None:
    for payer in (0, 1):
        stage.deposit(payer, payer, 0, 1000)
    assert refused(stage.redeem, 0, [(0, 500, fault)]) == "NothingToRedeem"
    assert stage.redeem(0, [(0, 500, fault), (1, 400, Fault.NONE)]) == 400


def test_a_deposit_stands_for_one_gateway_and_one_token(stage: VoucherStage) -> None:
    stage.deposit(0, 0, 0, 1000, token=0)
    assert refused(stage.redeem, 1, [(0, 500, Fault.NONE)]) == "NothingToRedeem"
    assert refused(stage.redeem, 0, [(0, 500, Fault.NONE)], 1) == "NothingToRedeem"


def test_what_is_signed_is_what_eip_712_says(stage: VoucherStage) -> None:
    """By eth-account's reading of the standard, and by the contract's."""
    voucher = Voucher(stage.payers[0], GATEWAYS[0], stage.tokens[0], Wei(123_456))
    fields = {"payer": "address", "gateway": "address", "token": "address", "amount": "uint256"}
    domain = {
        "name": "Assay vouchers",
        "version": "1",
        "chainId": CHAIN_ID,
        "verifyingContract": text(stage.domain.contract),
    }
    types = {"Voucher": [{"name": name, "type": kind} for name, kind in fields.items()]}
    message = {name: getattr(voucher, name) for name in fields}
    message |= {name: text(message[name]) for name in ("payer", "gateway", "token")}
    signable = encode_typed_data(domain, types, message)
    digest = voucher.digest(stage.domain)
    assert keccak(b"\x19\x01" + signable.header + signable.body) == digest
    shown = stage.contract.call("digestOf", *(message[name] for name in fields))
    assert shown == digest
    signature = KEYS[0].sign_message(signable).signature
    assert Account.recover_message(signable, signature=signature) == KEYS[0].address
    assert stage.contract.call("isSigned", text(stage.payers[0]), digest, bytes(signature))


# --- refunds


def test_a_refund_waits_and_a_redemption_in_time_takes_of_it(stage: VoucherStage) -> None:
    stage.deposit(0, 0, 0, 1000)
    stage.ask_refund(0, 0, 1000)
    stage.pass_time(DELAY - 1)
    assert refused(stage.withdraw, 0, 0) == "RefundTooEarly"
    assert stage.redeem(0, [(0, 300, Fault.NONE)]) == 300
    stage.pass_time(1)
    assert stage.withdraw(0, 0) == 700
    assert refused(stage.withdraw, 0, 0) == "NothingAsked"
    assert refused(stage.redeem, 0, [(0, 400, Fault.NONE)]) == "NothingToRedeem"


def test_what_was_not_asked_for_is_taken_first(stage: VoucherStage) -> None:
    stage.deposit(0, 0, 0, 1000)
    stage.ask_refund(0, 0, 400)
    stage.redeem(0, [(0, 500, Fault.NONE)])
    assert stage.shown(0, 0).asked == 400
    stage.redeem(0, [(0, 700, Fault.NONE)])
    assert stage.shown(0, 0).asked == 300
    stage.pass_time(DELAY)
    assert stage.withdraw(0, 0) == 300


def test_a_request_that_lies_ready_grows_by_nothing_without_waiting_anew(stage: VoucherStage) -> None:
    """Else a payer keeps one ready, is served on a new deposit, and takes that back before it is redeemed."""
    stage.deposit(0, 0, 0, 1000)
    stage.ask_refund(0, 0, 1000)
    stage.pass_time(DELAY)
    stage.deposit(0, 0, 0, 5000)
    assert stage.shown(0, 0).covered == 5000
    stage.ask_refund(0, 0, 6000)
    assert stage.shown(0, 0).covered == 0
    assert refused(stage.withdraw, 0, 0) == "RefundTooEarly"
    # What was served while it was covered is redeemed in time.
    stage.pass_time(DELAY - 1)
    assert stage.redeem(0, [(0, 5000, Fault.NONE)]) == 5000
    stage.pass_time(1)
    assert stage.withdraw(0, 0) == 1000


def test_a_covered_voucher_is_redeemed_in_full_whatever_its_payer_does(stage: VoucherStage) -> None:
    stage.deposit(0, 0, 0, 1000)
    stage.ask_refund(0, 0, 200)
    covered = stage.shown(0, 0).covered
    stage.pass_time(DELAY)
    stage.withdraw(0, 0)
    stage.ask_refund(0, 0, 800)
    stage.ask_refund(0, 0, 1)
    stage.ask_refund(0, 0, 800)
    stage.pass_time(DELAY - 1)
    assert stage.redeem(0, [(0, covered, Fault.NONE)]) == covered == 800


def test_a_strangers_deposit_holds_no_refund_up(stage: VoucherStage) -> None:
    stage.deposit(0, 0, 0, 1000)
    stage.ask_refund(0, 0, 1000)
    stage.pass_time(DELAY - 1)
    stage.deposit(1, 0, 0, 1)
    stage.pass_time(1)
    assert stage.withdraw(0, 0) == 1000
    assert stage.shown(0, 0).balance == 1


def test_zero_takes_a_request_back(stage: VoucherStage) -> None:
    stage.deposit(0, 0, 0, 1000)
    assert refused(stage.ask_refund, 0, 0, 1001) == "RefundTooLarge"
    stage.ask_refund(0, 0, 1000)
    stage.ask_refund(0, 0, 0)
    stage.pass_time(DELAY)
    assert refused(stage.withdraw, 0, 0) == "NothingAsked"
    assert stage.shown(0, 0).covered == 1000


# --- payers that are contracts


@pytest.mark.parametrize("mood", [mood for mood in Mood if mood is not Mood.HONEST], ids=lambda m: m.name)
def test_a_wallet_that_changes_its_mind_stops_no_batch(stage: VoucherStage, mood: Mood) -> None:
    """It burns gas, or answers nonsense, or denies: its voucher is passed over, the others of the batch are paid."""
    for payer in (0, WALLET, 1):
        stage.deposit(payer, payer, 0, 1000)
    assert stage.redeem(0, [(WALLET, 100, Fault.NONE)]) == 100
    stage.behave(mood)
    assert stage.redeem(0, [(0, 300, Fault.NONE), (WALLET, 300, Fault.NONE), (1, 300, Fault.NONE)]) == 600
    assert stage.contract.gas < 1_000_000
    stage.behave(Mood.HONEST)
    assert stage.redeem(0, [(WALLET, 300, Fault.NONE)]) == 200


# --- tokens and terms


def test_a_token_that_keeps_a_fee_is_refused_as_a_deposit() -> None:
    chain = deployed("FeeToken")
    names = [text(stage_name) for stage_name in (GATEWAYS[1], GATEWAYS[0], address_of(chain.tokens[0]))]
    with pytest.raises(Reverted) as reverted:
        chain.vouchers.call("deposit", *names, 100_000, caller=KEYS[0].address)
    assert (reverted.value.name, reverted.value.values) == ("FeeOnTransfer", (99_000, 100_000))


@pytest.mark.parametrize("back", ["deposit", "withdraw", "redeem", "payOwners"])
@pytest.mark.parametrize("during", ["deposit", "withdraw", "redeem", "payOwners"])
def test_a_token_that_calls_back_moves_nothing_twice(stage: VoucherStage, during: str, back: str) -> None:
    stage.deposit(0, 0, 0, 50_000_000)
    stage.redeem(0, [(0, 20_000_000, Fault.NONE)])
    stage.ask_refund(0, 0, 1000)
    stage.pass_time(DELAY)
    token, of, to = stage.chain.tokens[0], text(stage.tokens[0]), text(GATEWAYS[0])
    voucher = (text(stage.payers[0]), 20_000_500, stage.signed(0, 0, 20_000_500))
    args: dict[str, tuple[Any, ...]] = {
        "deposit": (text(stage.payers[0]), to, of, 1),
        "withdraw": (to, of),
        "redeem": (to, of, [voucher]),
        "payOwners": (of, 1_000_000),
    }
    token.call("arm", stage.contract.address, stage.contract.calldata(back, *args[back]))
    calls = {
        "deposit": lambda: stage.deposit(0, 0, 0, 1),
        "withdraw": lambda: stage.withdraw(0, 0),
        "redeem": lambda: stage.redeem(0, [(0, 20_000_700, Fault.NONE)]),
        "payOwners": lambda: stage.pay_owners(1_000_000),
    }
    calls[during]()
    assert token.call("succeeded") == 0
    assert token.call("refusal")[:4] == keccak(b"ReentrancyGuardReentrantCall()")[:4]


def test_nothing_is_deposited_where_it_would_be_lost(stage: VoucherStage) -> None:
    nobody, itself = text(bytes(20)), stage.contract.address
    of, to, me = text(stage.tokens[0]), text(GATEWAYS[0]), text(stage.payers[0])
    for args, name in (
        ((me, nobody, of, 1), "AccountUnusable"),
        ((me, itself, of, 1), "AccountUnusable"),
        ((nobody, to, of, 1), "AccountUnusable"),
        ((itself, to, of, 1), "AccountUnusable"),
        ((me, to, me, 1), "TokenNotListed"),
        ((me, to, of, 0), "AmountZero"),
        ((me, to, of, 1 << 128), "DepositTooLarge"),
    ):
        with pytest.raises(Reverted) as reverted:
            stage.contract.call("deposit", *args, caller=me)
        assert reverted.value.name == name
        accounts = [Address(bytes.fromhex(account[2:])) for account in args[:3]]
        assert refused(stage.books.deposit, *accounts, args[3]) == name


@pytest.mark.parametrize(
    ("ppm", "delay", "name"),
    [
        pytest.param(1_000_001, DELAY, "PartTooLarge", id="part"),
        pytest.param(0, 3599, "DelayOutOfBounds", id="short"),
        pytest.param(0, 90 * 86_400 + 1, "DelayOutOfBounds", id="long"),
        pytest.param(1_000_000, 3600, "", id="least"),
        pytest.param(0, 90 * 86_400, "", id="most"),
    ],
)
def test_terms_out_of_bounds_are_refused(stage: VoucherStage, ppm: int, delay: int, name: str) -> None:
    error = ""
    try:
        stage.chain.evm.deploy("Vouchers", stage.contract.call("charter"), ppm, delay)
    except RuntimeError as refusal:
        error = Reverted(_output(str(refusal)), stage.contract.artifact.abi).name
    assert error == name
    if name:
        with pytest.raises(RejectedError, match=name):
            VoucherBooks(stage.books.address, frozenset(), ppm, delay)


def _output(message: str) -> bytes:
    found = message.partition("output: ")[2].removeprefix("Bytes(").partition(")")[0]
    digits = found.removeprefix("0x").split(",")[0].split(" ")[0]
    return bytes.fromhex("".join(c for c in digits if c in "0123456789abcdef"))
