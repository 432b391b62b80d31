"""Users deposit, sign and take back; a gateway takes vouchers and redeems them; by commands, on a node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.digests import keccak
from assay.protocol.errors import AssayError, ExitCode
from assay.protocol.payments.voucher import owners_part
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.deployment.vouchers import TERMS, VoucherTerms, deploy_vouchers
from assay_ledger.vouchers import redeeming
from assay_ledger.vouchers.cashier import FRESH_S, Cashier, ChainDark
from assay_ledger.vouchers.kept import Accepted, KeptVouchers
from assay_ledger.vouchers.redeeming import due_vouchers, redeem_vouchers, worth_redeeming
from assay_ledger.vouchers.signed import SignedVoucher
from tests.harness.commands import assay_on
from tests.harness.payments.paid_run import PaidRun, paid_run
from tests.harness.rounds.samples import ETHER
from tests.harness.tcp_relay import TcpRelay

PAYERS = 3
IERC1271 = bytes.fromhex("1626ba7e")
"""The selector of isValidSignature."""


@pytest.fixture(scope="module")
def paid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidRun]:
    with paid_run(tmp_path_factory.mktemp("paid"), PAYERS) as made:
        yield made


@pytest.fixture(autouse=True)
def _as_before(paid: PaidRun) -> Iterator[None]:
    """Every test begins with the contract deployed and no deposit."""
    if not paid.chain.code_at(paid.contract.address):
        made = paid.done(*paid.words(0, "deploy"))
        terms = {"owners_ppm": TERMS.owners_ppm, "refund_delay": TERMS.refund_delay}
        assert made == {"contract": "0x" + paid.contract.address.hex(), **terms}
        # Whoever comes second finds it.
        assert paid.done(*paid.words(1, "deploy")) == made
    snapshot = paid.chain.rpc("evm_snapshot")
    yield
    height = paid.chain.head().number
    paid.chain.rpc("evm_revert", snapshot)
    # Who sent something asks at the block that had it.
    paid.chain.rpc("anvil_mine", height - paid.chain.head().number)


def accepted(cashier: Cashier, signed: SignedVoucher, price: Wei, request: Digest) -> Accepted:
    """Taken as a gateway does that does not know the deposit, and on disk."""
    return cashier.accept(signed, price, request, cashier.look(signed)).result()


def test_a_user_pays_a_gateway_and_the_owners_and_takes_the_rest_back(paid: PaidRun, tmp_path: Path) -> None:
    """Deposit, voucher, redemption, refund, by commands; nothing is lost to the last unit."""
    me, gateway = address_of(paid.keys[0]), address_of(paid.gateway)
    before = paid.held(me)
    assert paid.done(*paid.words(0, "deposit", "50", *paid.at(), "--yes"))["balance"] == 50 * ETHER
    line = assay_on(paid.run, *paid.words(0, "voucher", "12.5", *paid.at())).stdout
    kept = KeptVouchers(tmp_path, paid.domain, gateway)
    cashier = Cashier(paid.chain, paid.contract, kept, [paid.token])
    taken = accepted(cashier, SignedVoucher.of_text(line.strip()), Wei(12 * ETHER), keccak(b"a question"))
    assert (taken.spent, taken.highest) == (12 * ETHER, 12 * ETHER + ETHER // 2)
    # Another pays for the gas, while the gateway's process has the folder.
    redeemed = paid.done(*paid.words(1, "redeem", "--from", str(tmp_path)))
    kept.close()
    part = owners_part(taken.highest, TERMS.owners_ppm)
    named = "0x" + paid.token.hex()
    assert redeemed.pop("transactions")
    assert redeemed == {
        "kept": 1,
        "vouchers": 1,
        "paid": {named: taken.highest - part},
        "to_owners": {named: part},
        "sent_on": {named: part},
        "errors": [],
    }
    assert paid.held(gateway) == taken.highest - part
    assert paid.held(paid.run.modules.revenue) == part
    assert paid.done(*paid.words(1, "redeem", "--from", str(tmp_path)))["vouchers"] == 0
    rest = 50 * ETHER - taken.highest
    asked = paid.done(*paid.words(0, "refund", "37.5", *paid.at()))
    assert asked["asked"] == rest
    early = paid.refused(*paid.words(0, "withdraw", *paid.at()))
    assert (early.code, early.exit_code) == ("RefundTooEarly", ExitCode.REJECTED)
    paid.chain.rpc("evm_setNextBlockTimestamp", asked["not_before"])
    paid.chain.rpc("evm_mine")
    assert paid.done(*paid.words(0, "withdraw", *paid.at()))["withdrawn"] == rest
    assert paid.held(me) == before - taken.highest
    assert paid.held(paid.contract.address) == 0


def test_nothing_is_signed_beyond_what_the_deposit_covers(paid: PaidRun) -> None:
    """A voucher of a nought too many would be redeemed for all that is there, and for what is deposited later."""
    paid.done(*paid.words(0, "deposit", "50", *paid.at(), "--yes"))
    paid.done(*paid.words(0, "refund", "10", *paid.at()))
    typed = assay_on(paid.run, *paid.words(0, "voucher", "40.5", *paid.at()))
    assert typed.exit_code != 0 and typed.stdout == ""
    refused = paid.refused(*paid.words(0, "voucher", "405", *paid.at()))
    assert (refused.code, refused.exit_code) == ("VoucherUncovered", ExitCode.REJECTED)
    assert paid.done(*paid.words(0, "voucher", "40", *paid.at()))["amount"] == 40 * ETHER


def test_who_asks_anew_is_told_what_of_a_refund_waits_anew(paid: PaidRun) -> None:
    """A week, for money that could have been taken out at once."""
    refund = paid.words(0, "refund"), paid.at()
    paid.done(*paid.words(0, "deposit", "50", *paid.at(), "--yes"))
    assert "can be withdrawn" not in assay_on(paid.run, *refund[0], "60", *refund[1]).stderr
    paid.done(*refund[0], "10", *refund[1])
    assert "10 tokens (10000000000000000000wei) were asked for before" in " ".join(
        assay_on(paid.run, *refund[0], "20", *refund[1]).stderr.split()
    )
    taken_back = assay_on(paid.run, *refund[0], "0", *refund[1]).stderr
    assert "20 tokens" in taken_back and "can be withdrawn" not in taken_back
    asked = paid.done(*refund[0], "10", *refund[1])
    early = assay_on(paid.run, *paid.words(0, "withdraw", *paid.at()))
    assert "can be withdrawn in 7 d" in " ".join(early.stderr.split()) and early.exit_code
    paid.chain.rpc("evm_mine", {"timestamp": asked["not_before"]})
    assert paid.refused(*refund[0], "20", *refund[1]).code == "ConfirmationNeeded"
    shown = assay_on(paid.run, "gateway", "show", *paid.at(), "--key", str(paid.folder / "payer-0.json")).stdout
    assert shown.split()[shown.split().index("not_before") + 1] == "now"
    assert paid.done(*paid.words(0, "withdraw", *paid.at()))["withdrawn"] == 10 * ETHER


def test_a_request_for_a_refund_is_redeemed_first_and_covers_nothing(paid: PaidRun, tmp_path: Path) -> None:
    now = [0.0]
    kept = KeptVouchers(tmp_path, paid.domain, address_of(paid.gateway))
    cashier = Cashier(paid.chain, paid.contract, kept, [paid.token], clock=lambda: now[0])
    for who in range(PAYERS):
        paid.done(*paid.words(who, "deposit", "10", *paid.at(), "--yes"))
        accepted(cashier, paid.signed(who, ETHER), Wei(ETHER), keccak(b"first"))
    paid.done(*paid.words(2, "refund", "10", *paid.at()))
    # The last look is good for a minute, and what it covered can be redeemed for the whole delay.
    accepted(cashier, paid.signed(2, 2 * ETHER), Wei(ETHER), keccak(b"second"))
    now[0] = FRESH_S + 1
    with pytest.raises(AssayError, match="covers") as refused:
        accepted(cashier, paid.signed(2, 3 * ETHER), Wei(ETHER), keccak(b"third"))
    assert refused.value.code == "VoucherUncovered"
    due = due_vouchers(paid.chain, paid.contract, kept)
    assert [one.worth // ETHER for one in due] == [2, 1, 1] and due[0].before is not None
    assert worth_redeeming(due, {due[0].signed.voucher.token: Wei(5 * ETHER)}) == due[:1]
    assert list(worth_redeeming(due, {due[0].signed.voucher.token: Wei(4 * ETHER)})) == due
    kept.close()
    # In batches; one of them was redeemed by somebody else before, which pays the gateway all the same.
    first = redeem_vouchers(paid.chain, paid.gateway, paid.contract, due[:1])
    assert first.vouchers == 1 and not first.errors
    done = redeem_vouchers(paid.chain, paid.gateway, paid.contract, due, batch=1)
    assert done.vouchers == 2 and not done.errors
    assert paid.held(address_of(paid.gateway)) == 4 * ETHER - owners_part(Wei(4 * ETHER), TERMS.owners_ppm)


def keep(paid: PaidRun, signed: SignedVoucher, folder: Path) -> None:
    """A voucher that the gateway took."""
    kept = KeptVouchers(folder, paid.domain, address_of(paid.gateway))
    accepted(Cashier(paid.chain, paid.contract, kept, [paid.token]), signed, Wei(1), keccak(signed.signature))
    kept.close()


def owe_owners(paid: PaidRun, amount: int, folder: Path) -> SignedVoucher:
    """A voucher of the first payer, kept in a folder, which the payer redeems itself: the owners' part waits."""
    paid.done(*paid.words(0, "deposit", "50", *paid.at(), "--yes"))
    signed = paid.signed(0, amount)
    keep(paid, signed, folder)
    due = due_vouchers(paid.chain, paid.contract, [signed])
    assert redeem_vouchers(paid.chain, paid.keys[0], paid.contract, due).vouchers == 1
    return signed


def test_owners_have_their_part_of_what_a_payer_redeemed_itself(paid: PaidRun, tmp_path: Path) -> None:
    """Nothing is due any more, and whoever redeems for the gateway sends the part on."""
    signed = owe_owners(paid, 10 * ETHER, tmp_path)
    part = owners_part(signed.voucher.amount, TERMS.owners_ppm)
    assert paid.held(paid.run.modules.revenue) == 0
    redeemed = paid.done(*paid.words(1, "redeem", "--from", str(tmp_path)))
    assert (redeemed["vouchers"], redeemed["sent_on"]) == (0, {_text(paid.token): part})
    assert paid.held(paid.run.modules.revenue) == part
    again = paid.done(*paid.words(1, "redeem", "--from", str(tmp_path)))
    assert not again["transactions"] and not again["sent_on"]


def test_a_redemption_that_fails_ends_so_whatever_is_sent_on(
    paid: PaidRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others redeemed is sent on beside, and hides no failure from who watches exit codes alone."""
    owe_owners(paid, 10 * ETHER, tmp_path)
    paid.done(*paid.words(2, "deposit", "10", *paid.at(), "--yes"))
    paid.done(*paid.words(2, "refund", "10", *paid.at()))
    due = due_vouchers(paid.chain, paid.contract, [paid.signed(2, 4 * ETHER)])
    assert due[0].before is not None
    paid.chain.rpc("evm_mine", {"timestamp": due[0].before})
    paid.done(*paid.words(2, "withdraw", *paid.at()))
    # Its payer was faster than the redemption, which had looked before.
    monkeypatch.setattr(redeeming, "due_vouchers", lambda *_: due)
    error = paid.refused(*paid.words(1, "redeem", "--from", str(tmp_path), "--json"))
    assert (error.code, error.exit_code) == ("VouchersUnpaid", ExitCode.REJECTED)
    assert paid.held(paid.run.modules.revenue) == owners_part(Wei(10 * ETHER), TERMS.owners_ppm)


def test_what_others_redeemed_is_sent_on_once_it_is_worth_the_gas(paid: PaidRun, tmp_path: Path) -> None:
    """Else who redeems next to nothing elsewhere has every gateway of the token pay for a transaction."""
    owe_owners(paid, 10 * ETHER, tmp_path)
    redeem = paid.words(1, "redeem", "--from", str(tmp_path))
    assert not paid.done(*redeem, "--least", "1.5")["transactions"]
    assert paid.done(*redeem, "--least", "1")["sent_on"] == {_text(paid.token): ETHER}
    # Of what it redeems itself, a gateway sends on the part that is less than that.
    kept = KeptVouchers(tmp_path, paid.domain, address_of(paid.gateway))
    accepted(
        Cashier(paid.chain, paid.contract, kept, [paid.token]), paid.signed(0, 14 * ETHER), Wei(1), keccak(b"more")
    )
    kept.close()
    assert paid.done(*redeem, "--least", "4")["sent_on"] == {_text(paid.token): 4 * ETHER // 10}


@pytest.mark.parametrize("together", [1, 2])
def test_a_deposit_that_was_taken_back_first_is_told_of(paid: PaidRun, together: int) -> None:
    """Also where the other vouchers of its batch are paid."""
    for who in (0, 1):
        paid.done(*paid.words(who, "deposit", "10", *paid.at(), "--yes"))
    paid.done(*paid.words(0, "refund", "10", *paid.at()))
    due = due_vouchers(paid.chain, paid.contract, [paid.signed(who, 4 * ETHER) for who in range(together)])
    assert len(due) == together and due[0].before is not None
    paid.chain.rpc("evm_mine", {"timestamp": due[0].before})
    paid.done(*paid.words(0, "withdraw", *paid.at()))
    done = redeem_vouchers(paid.chain, paid.gateway, paid.contract, due)
    assert done.vouchers == together - 1
    (error,) = done.errors
    assert error.code == "VouchersUnpaid"
    assert error.message.startswith(f"1 of {together} vouchers") and _text(address_of(paid.keys[0])) in error.message


def test_a_gateway_takes_its_own_tokens_and_no_voucher_without_a_deposit(paid: PaidRun, tmp_path: Path) -> None:
    asked = 0

    class CountedChain(Chain):
        def ask(self, *args: Any, **more: Any) -> Any:
            nonlocal asked
            asked += 1
            return super().ask(*args, **more)

    kept = KeptVouchers(tmp_path, paid.domain, address_of(paid.gateway))
    cashier = Cashier(CountedChain(paid.chain.url), paid.contract, kept, [paid.token], clock=lambda: 0.0)

    def code_of(signed: SignedVoucher) -> str:
        with pytest.raises(AssayError) as refused:
            accepted(cashier, signed, Wei(1), keccak(b"a question"))
        return refused.value.code

    one = paid.signed(0, ETHER)
    other = replace(one, voucher=replace(one.voucher, token=Address(b"\x01" * 20)))
    assert code_of(other) == "TokenNotTaken"
    assert code_of(replace(one, signature=bytes(65))) == "VoucherUnsigned"
    assert asked == 0, "what nobody signed costs the node nothing"
    assert code_of(one) == code_of(one) == "VoucherUncovered"
    assert asked == 1, "and what is not covered one question a second"
    kept.close()


def test_a_chain_that_is_dark_is_waited_for_once_and_covers_what_it_covered(paid: PaidRun, tmp_path: Path) -> None:
    now = [0.0]
    for who in (0, 1):
        paid.done(*paid.words(who, "deposit", "10", *paid.at(), "--yes"))
    wire = TcpRelay(int(paid.chain.url.rpartition(":")[2]))
    chain = Chain(f"http://127.0.0.1:{wire.port}", retry_for_s=0.0, timeout_s=2.0)
    kept = KeptVouchers(tmp_path, paid.domain, address_of(paid.gateway))
    cashier = Cashier(chain, paid.contract, kept, [paid.token], clock=lambda: now[0])
    accepted(cashier, paid.signed(0, ETHER), Wei(ETHER), keccak(b"first"))
    wire.hush()
    for _ in range(2):
        with pytest.raises(ChainDark):
            accepted(cashier, paid.signed(1, ETHER), Wei(ETHER), keccak(b"second"))
    taken = wire.taken
    with pytest.raises(ChainDark, match="a moment ago"):
        accepted(cashier, paid.signed(1, ETHER), Wei(ETHER), keccak(b"third"))
    assert wire.taken == taken
    assert accepted(cashier, paid.signed(0, 2 * ETHER), Wei(ETHER), keccak(b"fourth")).spent == 2 * ETHER
    assert kept.spent(paid.token, address_of(paid.keys[1])) is None, "nothing is charged in the dark"
    now[0] = FRESH_S + 1
    with pytest.raises(ChainDark):
        accepted(cashier, paid.signed(0, 3 * ETHER), Wei(ETHER), keccak(b"fifth"))
    kept.close()


def test_only_a_contract_of_this_releases_code_is_paid_into(paid: PaidRun) -> None:
    wallet = paid.chain.deploy(paid.keys[0], "VoucherWallet", paid.keys[0].address)[0]
    impostor = paid.chain.deploy(paid.keys[0], "Vouchers", paid.run.address, TERMS.owners_ppm, TERMS.refund_delay)[0]
    for address, code in (
        (wallet, "UnknownCode"),
        (impostor, "UnknownCode"),
        (paid.token, "UnknownCode"),
        (Address(b"\x01" * 20), "VouchersMissing"),
    ):
        words = ("deposit", "1", *paid.at(), "--yes", "--contract", "0x" + address.hex())
        error = paid.refused(*paid.words(0, *words))
        assert (error.code, error.exit_code) == (code, ExitCode.REJECTED)
    other = deploy_vouchers(paid.chain, paid.keys[0], paid.run.address, VoucherTerms(250_000, 3600))
    shown = paid.done(
        "gateway", "show", *paid.at(), "--address", paid.keys[0].address, "--contract", _text(other.address)
    )
    assert (shown["owners_ppm"], shown["refund_delay"], shown["balance"]) == (250_000, 3600, 0)


def test_an_account_that_takes_on_code_pays_what_its_key_has_signed(paid: PaidRun) -> None:
    """EIP-7702: an account with a key may have code from one transaction to the next, and that code denies all."""
    me = address_of(paid.keys[0])
    paid.done(*paid.words(0, "deposit", "10", *paid.at(), "--yes"))
    wallet = paid.chain.deploy(paid.keys[1], "VoucherWallet", paid.keys[1].address)[0]
    paid.chain.rpc("anvil_setCode", _text(me), "0xef0100" + wallet.hex())
    signed = paid.signed(0, 4 * ETHER)
    denied = IERC1271 + signed.voucher.digest(paid.domain) + (64).to_bytes(32, "big") + (65).to_bytes(32, "big")
    answer = paid.chain.rpc("eth_call", {"to": _text(me), "data": "0x" + (denied + signed.signature).hex()}, "latest")
    assert not int(answer[:10], 16), "asked, the code says that nobody signed"
    done = redeem_vouchers(paid.chain, paid.gateway, paid.contract, due_vouchers(paid.chain, paid.contract, [signed]))
    assert done.vouchers == 1 and not done.errors


def test_what_is_wrong_with_a_command_is_said_before_anything_is_sent(paid: PaidRun, tmp_path: Path) -> None:
    for words, code, exit_code in (
        (("deposit", "2000", *paid.at(), "--yes"), "TokensShort", ExitCode.FUNDS),
        (("deposit", "1", *paid.at()), "ConfirmationNeeded", ExitCode.USAGE),
        (("deposit", "1", "--gateway", "0x12", "--yes"), "AddressInvalid", ExitCode.USAGE),
        (("deposit", "1", *paid.at(), "--token", "0x" + "11" * 20, "--yes"), "TokenNotListed", ExitCode.USAGE),
        (("refund", "1", *paid.at()), "RefundTooLarge", ExitCode.REJECTED),
        (("withdraw", *paid.at()), "NothingAsked", ExitCode.REJECTED),
        (("redeem", "--from", str(tmp_path)), "VouchersNoFile", ExitCode.CONFIG),
    ):
        error = paid.refused(*paid.words(0, *words))
        assert (error.code, error.exit_code) == (code, exit_code)


def _text(address: Address) -> str:
    return "0x" + address.hex()
