"""Vouchers go to a gateway one after the other: what becomes of who waits for its turn."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from assay.inference.relay.app import make_relay
from assay.protocol.types import Wei
from assay_ledger.vouchers.purse import Purse, PursePlace
from tests.harness.payments.kept_samples import DOMAIN, TOKEN, payer
from tests.unit.inference.test_relay_books import ANOTHER, ME, PlayedGateway, answers, hangs_up


class BusyGateway(PlayedGateway):
    """One that takes its time to accept a voucher."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.free = threading.Event(), threading.Event()

    def ask(self, body: bytes, voucher: str) -> Any:
        self.asked.set()
        assert self.free.wait(60)
        return super().ask(body, voucher)


@pytest.mark.parametrize("stream", [False, True])
def test_nothing_is_signed_for_who_hangs_up_while_others_vouchers_go_first(tmp_path: Path, stream: bool) -> None:
    busy, purse = BusyGateway(), Purse(tmp_path, payer(0), PursePlace(DOMAIN, ME, TOKEN), Wei(0), Wei(10_000))
    asker = answers(busy, purse)
    first = threading.Thread(target=lambda: list(asker.ask(ANOTHER)))
    first.start()
    assert busy.asked.wait(60)
    asyncio.run(hangs_up(make_relay(asker, 60.0), stream=stream, once=lambda: True, then=busy.free.set))
    first.join(60)
    assert busy.vouchers == [50] and purse.spent == 50 and asker.answers == 1
    purse.close()
