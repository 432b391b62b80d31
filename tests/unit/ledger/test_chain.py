"""The chain as actors reach it: what goes wrong has a name, and a slow chain ends no actor."""

from __future__ import annotations

import pytest
from eth_account import Account

from assay.protocol.errors import UnavailableError
from assay_ledger.chain.client import Chain
from assay_ledger.chain.node import Anvil


def test_a_transaction_that_is_not_mined_is_unavailable_and_counts_once_it_is() -> None:
    with Anvil() as node:
        chain = Chain(node.url, receipt_for_s=0.3)
        payer, payee = Account.from_key(node.dev_keys[0]), Account.from_key(b"\x05" * 32)
        node.rpc("evm_setAutomine", False)
        with pytest.raises(UnavailableError) as caught:
            chain.transfer(payer, payee.address, 7)
        assert caught.value.code == "TransactionPending"
        node.rpc("evm_mine")
        assert chain.w3.eth.get_balance(payee.address) == 7
