"""Payers with keys, a gateway and vouchers for it, without a chain."""

from __future__ import annotations

from typing import Final

from eth_account import Account

from assay.protocol.digests import keccak
from assay.protocol.payments.voucher import PayerDeposit, Voucher, VoucherDomain
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.vouchers.signed import SignedVoucher, sign_voucher

GATEWAY: Final = Address(b"\x61" * 20)
TOKEN: Final = Address(b"\x70" * 20)
DOMAIN: Final = VoucherDomain(31_337, Address(b"\xc0" * 20))
FULL: Final = PayerDeposit(balance=Wei(10**9))


def payer(number: int) -> ActorKeys:
    """The keys of a payer."""
    return ActorKeys(f"payer-{number}", Account.from_key((0xFACE + number).to_bytes(32, "big")))


def signed(number: int, amount: int, gateway: Address = GATEWAY, token: Address = TOKEN) -> SignedVoucher:
    """A voucher of a payer."""
    keys = payer(number)
    return sign_voucher(keys, Voucher(keys.address, gateway, token, Wei(amount)), DOMAIN)


def request(label: object) -> Digest:
    """What is paid for."""
    return keccak(repr(label).encode())
