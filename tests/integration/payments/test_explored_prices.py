"""An explorer asks the gateways that it was told of for their prices, and waits for none of them."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from assay.explorer.app import make_app
from assay.explorer.prices import EVERY_S, MAX_URL, MOST, GatewayPrices, gateway_urls
from assay.explorer.reader import RunReader
from assay.protocol.errors import UsageError
from assay_ledger.chain.client import address_of
from tests.harness.payments.paid_gateway import PRICE, Served, paid_gateway
from tests.harness.payments.paid_run import PaidRun, paid_run


@pytest.fixture(scope="module")
def paid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaidRun]:
    with paid_run(tmp_path_factory.mktemp("prices"), 1) as made:
        made.done(*made.words(0, "deploy"))
        yield made


@pytest.fixture(scope="module")
def gateway(paid: PaidRun) -> Iterator[Served]:
    with paid_gateway(paid) as served:
        yield served


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of nobody."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def test_an_explorer_shows_what_gateways_ask_and_who_does_not_answer(
    paid: PaidRun, gateway: Served, silent: str
) -> None:
    url = str(gateway.client.base_url).rstrip("/")
    client = TestClient(make_app(RunReader(paid.run, gateways=[url, silent])))
    found = client.get("/api/v1/prices").json()
    (mine, away), me = found["gateways"], "0x" + address_of(paid.gateway).hex()
    assert (mine["url"], mine["gateway"], mine["price"], mine["here"]) == (url, me, str(PRICE), True)
    assert mine["model"] == gateway.client.get("/v1/models").json()["data"][0]["parameters"]
    assert (away["url"], away["problem"], away["price"]) == (silent, "GatewayAway", None)
    page = client.get("/gateways").text
    assert "does not answer" in page and mine["model_name"] in page and f"/gateways/{me}" in page
    # It is a gateway by its price alone: nobody has deposited for it.
    assert client.get(f"/api/v1/gateways/{me}").json()["prices"] == [mine]
    assert f"says who listens at <code>{url}</code>" in client.get(f"/gateways/{me}").text
    blind = TestClient(make_app(RunReader(paid.run)))
    assert blind.get("/api/v1/prices").status_code == blind.get(f"/gateways/{me}").status_code == 404
    assert "Prices" not in blind.get("/gateways").text


def test_a_price_of_another_chain_is_none_of_this_run(paid: PaidRun, gateway: Served) -> None:
    reader = RunReader(paid.run, gateways=[str(gateway.client.base_url)])
    assert reader.prices is not None
    seen = reader.prices.look()
    (one,) = seen.gateways
    assert one.said is not None
    reader.prices._seen = replace(seen, gateways=(replace(one, said=replace(one.said, chain_id=1)),))
    client = TestClient(make_app(reader))
    assert "is paid on another chain" in client.get("/gateways").text
    assert client.get(f"/api/v1/gateways/0x{one.said.gateway.hex()}").status_code == 404


def test_prices_are_asked_once_a_minute_and_shown_with_their_time(silent: str) -> None:
    now = [1000.0]
    prices = GatewayPrices([silent], clock=lambda: now[0])
    first = prices.seen()
    assert first is not None and first.at == 1000.0
    now[0] += EVERY_S - 1
    assert prices.seen() is first
    now[0] += 1
    later = prices.seen()
    assert later is not None and later.at == 1000.0 + EVERY_S


def test_a_page_is_made_anew_when_prices_came_and_when_they_are_due(paid: PaidRun, silent: str) -> None:
    """On a quiet chain nothing else tells a page that is kept."""
    reader, now = RunReader(paid.run, gateways=[silent]), [1000.0]
    assert reader.prices is not None
    reader.prices._clock = lambda: now[0]
    reader.prices.lookups.start()
    try:
        before = reader.answered
        assert reader.prices.seen() is None, "nobody waits for the first look"
        deadline = time.monotonic() + 120
        while reader.answered == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert reader.prices.seen() is not None
        kept = reader.answered
        now[0] += EVERY_S
        assert reader.answered != kept
    finally:
        reader.prices.lookups.stop()


NO_URLS = [
    "gateway:8080",
    "ftp://host",
    "http://",
    "http://me:secret@host",
    "http://host/?key=1",
    "http://[::1",
    "http://h:99999",
    "http://h:x",
]


@pytest.mark.parametrize("url", [*NO_URLS, "http://h\n", "http://h h"])
def test_an_address_that_nobody_may_ask_or_see_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="gateway"):
        gateway_urls([url])


def test_so_many_addresses_are_asked_and_one_is_so_long() -> None:
    longest = "http://" + "h" * (MAX_URL - len("http://"))
    assert gateway_urls([longest, longest]) == [longest]
    with pytest.raises(UsageError):
        gateway_urls([longest + "h"])
    many = [f"http://host:{port}" for port in range(1, MOST + 1)]
    assert gateway_urls(many) == many
    with pytest.raises(UsageError):
        gateway_urls([*many, "http://another"])
