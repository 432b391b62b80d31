"""Loaded by schemathesis (SCHEMATHESIS_HOOKS): every request for an answer comes with the next voucher of a payer.

ASSAY_PAYS names a JSON file: key (hex), chain_id, contract, gateway, token (hex), and by how many wei amounts grow.
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import schemathesis
from eth_account import Account

from assay.protocol.payments.voucher import Voucher, VoucherDomain
from assay.protocol.types import Address, Wei
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.vouchers.signed import sign_voucher

TERMS = json.loads(Path(os.environ["ASSAY_PAYS"]).read_text())
KEYS = ActorKeys("payer", Account.from_key(TERMS["key"]))
DOMAIN = VoucherDomain(TERMS["chain_id"], Address(bytes.fromhex(TERMS["contract"])))
AMOUNTS = itertools.count(1)


@schemathesis.hook
def before_call(_: Any, case: Any, kwargs: Any) -> None:
    """What is asked is paid for: a refusal of what the description allows is then a fault."""
    if case.method.upper() != "POST":
        return
    gateway, token = (Address(bytes.fromhex(TERMS[name])) for name in ("gateway", "token"))
    voucher = Voucher(KEYS.address, gateway, token, Wei(next(AMOUNTS) * TERMS["grows"]))
    case.headers["X-Assay-Voucher"] = sign_voucher(KEYS, voucher, DOMAIN).to_text()
