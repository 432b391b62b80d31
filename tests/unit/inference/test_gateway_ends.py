"""A gateway that ends while somebody waits for an answer that is paid: whoever got nothing owes nothing."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import httpx
import pytest
from eth_account import Account

from assay.inference.gateway import server
from assay.inference.gateway.app import GatewayTerms
from assay.inference.gateway.batcher import TextBatch
from assay.inference.gateway.till import HEADER, Till, TillTerms
from assay.protocol.types import Wei
from assay.web.listening import listen
from assay_ledger.bindings.vouchers import VouchersContract
from assay_ledger.vouchers.cashier import Cashier
from assay_ledger.vouchers.kept import KeptVouchers
from tests.harness.inference.models import small_gpt
from tests.harness.payments.kept_samples import DOMAIN, GATEWAY, TOKEN, payer, signed
from tests.unit.inference.test_hostile_askers import PacedRows
from tests.unit.inference.test_till import RichChain

PAID = 100_000


class EndingGateway:
    """A paid gateway with a slow model, and somebody who waits for a long answer."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.servers: list[server._Server] = []
        made = server._Server.__init__

        def noted(one: server._Server, *arguments: object) -> None:
            made(one, *arguments)  # type: ignore[arg-type]
            self.servers.append(one)

        monkeypatch.setattr(server._Server, "__init__", noted)
        monkeypatch.setattr(server, "ENDING_S", 2)
        self.folder, self.kept = folder, KeptVouchers(folder, DOMAIN, GATEWAY)
        cashier = Cashier(RichChain(), VouchersContract(DOMAIN.contract), self.kept, [TOKEN])
        self.till = Till(cashier, TillTerms(DOMAIN, GATEWAY, TOKEN, Wei(10)))
        self.batch = TextBatch(PacedRows())
        terms = GatewayTerms(small_gpt(), Account.from_key(b"\x05" * 32), "assay", till=self.till)
        listener, ready = listen("The gateway", "127.0.0.1", 0), threading.Event()
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1/completions"
        arguments = (terms, self.batch, listener)
        self.thread = threading.Thread(target=server.serve_batch, args=arguments, kwargs={"ready": ready.set})
        self.thread.start()
        assert ready.wait(120)
        self.answers: list[httpx.Response | None] = []
        self.asking = threading.Thread(target=self._ask)
        self.asking.start()
        deadline = time.monotonic() + 120
        while self.batch.tokens < 5:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def _ask(self) -> None:
        asked = {"model": "assay", "prompt": "the cat", "max_tokens": 1000}
        try:
            self.answers.append(
                httpx.post(self.url, json=asked, headers={HEADER: signed(0, PAID).to_text()}, timeout=120)
            )
        except httpx.HTTPError:
            self.answers.append(None)

    def ended(self) -> tuple[int, int] | None:
        """What the payer has spent at the next start."""
        self.thread.join(120)
        self.asking.join(120)
        assert not self.thread.is_alive() and not self.asking.is_alive()
        self.till.close()
        self.kept.close()
        kept = KeptVouchers(self.folder, DOMAIN, GATEWAY)
        found = kept.spent(TOKEN, payer(0).address)
        kept.close()
        return found


def test_whoever_still_waits_when_a_gateway_ends_is_told_and_owes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = EndingGateway(tmp_path, monkeypatch)
    ending.servers[0].should_exit = True
    assert ending.ended() == (0, PAID)
    (answer,) = ending.answers
    assert answer is not None and (answer.status_code, answer.json()["error"]["code"]) == (503, "GatewayEnds")


def test_whoever_waits_when_a_gateway_is_made_to_end_owes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = EndingGateway(tmp_path, monkeypatch)
    ending.servers[0].should_exit = ending.servers[0].force_exit = True
    assert ending.ended() == (0, PAID)
    (answer,) = ending.answers
    assert answer is None or answer.status_code >= 500
