"""What anybody may do, done by somebody else in the moment before a command sends the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from web3.types import TxReceipt

from assay_ledger.chain.client import Chain
from assay_ledger.chain.transaction_signer import TransactionSigner
from assay_ledger.contract import Call


@contextmanager
def overtaken(awaited: Call, by: Callable[[], object]) -> Iterator[None]:
    """In this block something is done right before a call is sent for the first time, by whatever client."""
    send, waits = Chain.send, [by]

    def sent(chain: Chain, account: TransactionSigner, call: Call, **options: Any) -> TxReceipt:
        if call == awaited and waits:
            waits.pop()()
        return send(chain, account, call, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chain, "send", sent)
        yield
    assert not waits, "nobody sent it"
