"""Vouchers go to a gateway one after the other: what becomes of who waits for its turn."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.inference.relay.app import make_relay
from assay.inference.relay.paying import PaidAnswers
from assay.protocol.types import Wei
from assay_ledger.vouchers.purse import Purse, PursePlace
from tests.harness.buckets import eventually
from tests.harness.payments.kept_samples import DOMAIN, TOKEN, payer
from tests.unit.inference.test_relay_books import ANOTHER, ASKED, ME, PlayedGateway, answers, hangs_up


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


class EndedAsks:
    """Answers of which it is known when the thread that asks for one has ended."""

    def __init__(self, asker: PaidAnswers) -> None:
        self._asker, self.gateway, self.is_known = asker, asker.gateway, threading.Event()

    def ask(self, *asked: Any) -> Any:
        try:
            return self._asker.ask(*asked)
        finally:
            self.is_known.set()


@pytest.mark.parametrize("stream", [False, True])
def test_nothing_is_signed_for_who_was_told_that_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    """Bad luck: others' vouchers go first for longer than a request has; its thread had one signed all the same."""
    monkeypatch.setattr("assay.inference.relay.app.BESIDE_S", 0.0)
    busy, purse = BusyGateway(), Purse(tmp_path, payer(0), PursePlace(DOMAIN, ME, TOKEN), Wei(0), Wei(10_000))
    asker = answers(busy, purse)
    first = threading.Thread(target=lambda: list(asker.ask(ANOTHER)))
    first.start()
    assert busy.asked.wait(60)
    second: Any = EndedAsks(asker)
    with TestClient(make_relay(second, 0.3, hosts=["testserver"])) as client:
        late = client.post("/v1/completions", json=ASKED.model_dump() | {"stream": stream})
        assert late.status_code == 504 and late.json()["error"]["code"] == "AnswerLate"
        busy.free.set()
        first.join(60)
        assert second.is_known.wait(60)
    assert busy.vouchers == [50] and purse.spent == 50
    purse.close()


class TwoPieceGateway(BusyGateway):
    """Its answer comes in two pieces."""

    def events(self, response: object) -> Iterator[dict[str, Any]]:
        yield {"choices": [{"text": ""}]}
        yield from super().events(response)


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_comes_after_the_relays_time_is_broken_off_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    """Bad luck: it was read to its end for nobody, and whoever asked again paid for all of it once more."""
    monkeypatch.setattr("assay.inference.relay.app.BESIDE_S", 0.0)
    slow, purse = TwoPieceGateway(), Purse(tmp_path, payer(0), PursePlace(DOMAIN, ME, TOKEN), Wei(0), Wei(10_000))
    asker = answers(slow, purse)
    asked = ASKED.model_dump() | {"stream": stream}
    with TestClient(make_relay(asker, 0.3, hosts=["testserver"])) as client:
        assert client.post("/v1/completions", json=asked).status_code == 504
        slow.free.set()
        assert eventually(lambda: bool(slow.closed))
    assert asker.answers == 0
    with TestClient(make_relay(asker, 60.0, hosts=["testserver"])) as client:
        assert client.post("/v1/completions", json=asked).status_code == 200
    assert slow.vouchers == [50, 50] and purse.spent == 50 and asker.answers == 1
    purse.close()
