"""A gateway takes exactly the signatures that the contract will take, from text that strangers write."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.protocol.errors import ConfigError, RejectedError
from assay.protocol.payments.voucher import Voucher, VoucherDomain
from assay.protocol.types import Address, Wei
from assay_ledger.vouchers.signed import HALF_ORDER, SignedVoucher, check_signature, sign_voucher, signer_of
from tests.harness.payments.kept_samples import DOMAIN, GATEWAY, TOKEN, payer, signed

ORDER = 2 * HALF_ORDER + 1
PAGE = Path(__file__).resolve().parents[3] / "docs" / "payments.md"


def test_a_voucher_goes_through_text_and_back() -> None:
    one = signed(0, 12_345)
    text = one.to_text()
    assert SignedVoucher.of_text(text) == one and text.isascii() and "\n" not in text
    check_signature(one, DOMAIN, GATEWAY)


def test_what_other_programs_sign_by_the_page_is_taken() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    domain = re.search(r'domain \(name "([^"]+)", version "([^"]+)", chainId, verifyingContract\)', text)
    struct = re.search(r"`Voucher\(([^)]+)\)`", text)
    assert domain is not None and struct is not None
    message = {
        "payer": "0x" + payer(0).address.hex(),
        "gateway": "0x" + GATEWAY.hex(),
        "token": "0x" + TOKEN.hex(),
        "amount": 12_345,
    }
    place = {"chainId": DOMAIN.chain_id, "verifyingContract": "0x" + DOMAIN.contract.hex()}
    fields = [dict(zip(("type", "name"), field.split(" "), strict=True)) for field in struct[1].split(",")]
    signed_by = payer(0).local.sign_typed_data
    signature = signed_by({"name": domain[1], "version": domain[2], **place}, {"Voucher": fields}, message).signature
    line = json.dumps({**message, "amount": "12345", "signature": "0x" + bytes(signature).hex()})
    check_signature(SignedVoucher.of_text(line), DOMAIN, GATEWAY)


@pytest.mark.parametrize(
    "change",
    [
        {"amount": 5},
        {"amount": "-5"},
        {"amount": "5.0"},
        {"amount": " 5"},
        {"amount": "٥"},
        {"amount": "9" * 78},
        {"amount": "9" * 4000},
        {"payer": "0x12"},
        {"payer": "0x" + "12" * 18 + "    "},
        {"payer": None},
        {"signature": "0x" + "00" * 64},
        {"signature": "0x" + "00" * 66},
        {"gateway": "ab" * 21},
    ],
    ids=lambda change: "-".join([*change, str(next(iter(change.values())))[:6]]),
)
def test_what_is_no_voucher_is_refused_as_such(change: dict[str, object]) -> None:
    document = json.loads(signed(0, 5).to_text()) | change
    with pytest.raises(RejectedError) as refused:
        SignedVoucher.of_text(json.dumps(document))
    assert refused.value.code == "VoucherUnreadable"


@settings(max_examples=40)
@given(st.text(max_size=60) | st.recursive(st.integers() | st.text(max_size=5), st.lists).map(json.dumps))
def test_any_text_is_refused_by_one_error(text: str) -> None:
    with pytest.raises(RejectedError) as refused:
        SignedVoucher.of_text(text)
    assert refused.value.code == "VoucherUnreadable"


def code_of(one: SignedVoucher, domain: VoucherDomain = DOMAIN, gateway: Address = GATEWAY) -> str:
    with pytest.raises(RejectedError) as refused:
        check_signature(one, domain, gateway)
    return refused.value.code


def test_what_the_contract_would_not_pay_is_not_taken() -> None:
    one = signed(0, 100)
    assert code_of(one, gateway=Address(b"\x01" * 20)) == "VoucherForeign"
    assert code_of(one, replace(DOMAIN, chain_id=1)) == "VoucherUnsigned"
    assert code_of(one, replace(DOMAIN, contract=Address(b"\x01" * 20))) == "VoucherUnsigned"
    for changes in ({"amount": Wei(101)}, {"payer": payer(1).address}, {"token": Address(b"\x01" * 20)}):
        assert code_of(replace(one, voucher=replace(one.voucher, **changes))) == "VoucherUnsigned"  # type: ignore[arg-type]
    for signature in (bytes(65), b"\xff" * 65, one.signature[:64] + b"\x00", one.signature[:64] + b"\x1d", b""):
        assert code_of(replace(one, signature=signature)) == "VoucherUnsigned"


def test_the_other_form_of_a_signature_is_not_taken() -> None:
    """Libraries take it, and the contract does not: served, such a voucher would never be paid."""
    one = signed(0, 100)
    s = ORDER - int.from_bytes(one.signature[32:64], "big")
    high = one.signature[:32] + s.to_bytes(32, "big") + bytes([55 - one.signature[64]])
    assert signer_of(replace(one, signature=high), DOMAIN) is None
    assert code_of(replace(one, signature=high)) == "VoucherUnsigned"


def test_only_a_payers_own_key_signs_its_vouchers() -> None:
    voucher = Voucher(payer(1).address, GATEWAY, TOKEN, Wei(1))
    with pytest.raises(ConfigError) as refused:
        sign_voucher(payer(0), voucher, DOMAIN)
    assert refused.value.code == "PayerNotTheKey"
    elsewhere = replace(payer(1), beside=payer(2).local)
    with pytest.raises(ConfigError) as refused:
        sign_voucher(elsewhere, voucher, DOMAIN)
    assert refused.value.code == "VoucherKeyElsewhere"
