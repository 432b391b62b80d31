"""How many vouchers a gateway checks and keeps in a second, alone and from many requests at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from eth_account import Account

from assay.protocol.digests import keccak
from assay.protocol.payments.voucher import PayerDeposit, Voucher, VoucherDomain
from assay.protocol.types import Address, Wei
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.vouchers.kept import KeptVouchers
from assay_ledger.vouchers.signed import SignedVoucher, check_signature, sign_voucher

GATEWAY: Final = Address(b"\x61" * 20)
TOKEN: Final = Address(b"\x70" * 20)
DOMAIN: Final = VoucherDomain(31_337, Address(b"\xc0" * 20))
PRICE: Final = Wei(10)


@dataclass(frozen=True, slots=True)
class VoucherRates:
    """Vouchers a second: signed, checked, kept one after another, kept by `at_once` requests at once.

    A voucher counts as kept when the disk has it. `start_s`: seconds until the file of all of them is open again.
    """

    signed: float
    checked: float
    kept_alone: float
    kept_together: float
    at_once: int
    start_s: float


def measure(folder: Path, count: int, at_once: int) -> VoucherRates:
    """Rates over `count` vouchers, in an empty folder of the disk that is meant."""
    payers = [ActorKeys("payer", Account.from_key((0xB0B + k).to_bytes(32, "big"))) for k in range(at_once)]
    began = time.perf_counter()
    alone = [_signed(payers[0], step) for step in range(count)]
    signed = count / (time.perf_counter() - began)
    rows = [[_signed(payer, count + step) for step in range(-(-count // at_once))] for payer in payers]
    began = time.perf_counter()
    for voucher in alone:
        check_signature(voucher, DOMAIN, GATEWAY)
    checked = count / (time.perf_counter() - began)
    kept = KeptVouchers(folder, DOMAIN, GATEWAY)
    try:
        began = time.perf_counter()
        _keep(kept, alone)
        kept_alone = count / (time.perf_counter() - began)
        began = time.perf_counter()
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(lambda row: _keep(kept, row), rows))
        kept_together = len(list(chain(*rows))) / (time.perf_counter() - began)
    finally:
        kept.close()
    began = time.perf_counter()
    KeptVouchers(folder, DOMAIN, GATEWAY).close()
    return VoucherRates(signed, checked, kept_alone, kept_together, at_once, time.perf_counter() - began)


def _signed(payer: ActorKeys, step: int) -> SignedVoucher:
    return sign_voucher(payer, Voucher(payer.address, GATEWAY, TOKEN, Wei((step + 1) * PRICE)), DOMAIN)


def _keep(kept: KeptVouchers, vouchers: Sequence[SignedVoucher]) -> None:
    deposit = PayerDeposit(balance=vouchers[-1].voucher.amount)
    for voucher in vouchers:
        kept.accept(voucher, PRICE, keccak(voucher.signature), deposit).result()
