"""The explorer as people meet it: in a browser, on a phone and a screen, light and dark, by keyboard, while it changes.

The run is imagined: it has every kind of page but the steps of a game, which need a node.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

import pytest

from assay.bench.explorer import pages_of
from assay.bench.imagined_run import ImaginedRun, ToldEvent, imagined_events
from assay.explorer import app
from assay.explorer.documents import hexed
from assay.explorer.losses import Losses
from assay.explorer.reader import RunReader
from assay.explorer.server import serve_reader
from assay.protocol.payments.share_earnings import WEEK
from assay_ledger.chain.client import Head
from assay_ledger.store.blobs import open_store
from tests.harness.browser import MISSING, BrowserPage, browser_page
from tests.harness.payments.told_payments import GATEWAYS, PAYERS, ToldPayments

pytestmark = pytest.mark.skipif(MISSING != "", reason=MISSING)

PHONE, SCREEN = 390, 1280
SEATS, EVENTS = 4, 2_000
"""Enough for the first dispute and accusation."""

LEAST_PX = 11

TEXT_SIZES = """Array.from(document.querySelectorAll("figure svg"), (svg) => {
  if (getComputedStyle(svg).display === "none") return [];
  const scale = svg.getScreenCTM().a;
  return Array.from(svg.querySelectorAll("text"), (text) => parseFloat(getComputedStyle(text).fontSize) * scale);
}).flat()"""


def take(reader: RunReader, told: list[ToldEvent]) -> None:
    reader.take(reader.known, told, Head(told[-1][1].block, told[-1][2]))


def pay(reader: RunReader) -> None:
    """Two gateways, three payers, some weeks of revenue, and a payer that wants its money back."""
    told = ToldPayments(reader)
    for payer in PAYERS:
        for gateway in GATEWAYS:
            told.deposit(payer, gateway, 10**20 + 7)
    told.send_on(told.redeem(GATEWAYS[0], {PAYERS[0]: 10**19 + 1, PAYERS[1]: 3}))
    told.pass_time(WEEK)
    told.redeem(GATEWAYS[1], {PAYERS[2]: 10**18})
    told.pay_in(PAYERS[2], 10**17)
    told.ask_refund(PAYERS[1], GATEWAYS[0], 10**18)
    told.pass_time(2 * WEEK)


@pytest.fixture(scope="module")
def source() -> Iterator[ToldEvent]:
    return imagined_events(ImaginedRun(SEATS), EVENTS + 10_000)


@pytest.fixture(scope="module")
def reader(source: Iterator[ToldEvent], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunReader]:
    reader = RunReader(ImaginedRun(SEATS), open_store(tmp_path_factory.mktemp("store")))
    while len(reader.events) < EVENTS:
        take(reader, list(islice(source, 5_000)))
    pay(reader)
    reader.follow()
    yield reader
    reader.stop()


@pytest.fixture(scope="module")
def url(reader: RunReader) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "losses_of", lambda _: Losses(lambda: (lambda root: 2.0 + root[0] / 256, 3.2)))
        with serve_reader(reader) as server:
            yield server.url.rstrip("/")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserPage]:
    with browser_page(tmp_path_factory.mktemp("chromium")) as page:
        yield page


def kinds(reader: RunReader) -> dict[str, str]:
    """One page of each kind."""
    found = {kind: paths[-1] for kind, paths in pages_of(reader).items() if kind != "list"}
    found |= {"run": "/run", "nothing": "/rounds/-99", "found nothing": "/search?q=abcdefabcdef"}
    week = ToldPayments(reader).now // WEEK
    found |= {
        "revenue": "/revenue",
        "week": f"/revenue/{week}",
        "gateways": "/gateways",
        "governance": "/governance",
        "card of one": "/generations/1/card",
    }
    found |= {"gateway": f"/gateways/{hexed(GATEWAYS[0])}", "payer": f"/actors/{hexed(PAYERS[1])}"}
    found["accusation"] = f"/accusations/{hexed(reader.shelves.accusations[0])}"
    return found | {"search": f"/search?q={reader.shelves.works[0].digest.hex()[:6]}"}


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize(("width", "dark"), [(PHONE, False), (SCREEN, True)], ids=["phone-light", "screen-dark"])
def test_axe_finds_nothing_wrong_with_any_kind_of_page(
    reader: RunReader, url: str, page: BrowserPage, width: int, dark: bool
) -> None:
    page.look(width, dark)
    found = {}
    for kind, path in kinds(reader).items():
        page.open(url + path)
        found[kind] = page.violations()
        assert page.run("document.documentElement.scrollWidth") <= width, f"{kind} is wider than the window"
    assert {kind: wrong for kind, wrong in found.items() if wrong} == {}


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize(("width", "dark"), [(PHONE, True), (SCREEN, False)], ids=["phone-dark", "screen-light"])
def test_axe_finds_nothing_wrong_in_the_other_colours(
    reader: RunReader, url: str, page: BrowserPage, width: int, dark: bool
) -> None:
    page.look(width, dark)
    pages = kinds(reader)
    for kind in (
        "front",
        "member",
        "accusation",
        "events",
        "nothing",
        "revenue",
        "week",
        "gateways",
        "gateway",
        "payer",
    ):
        page.open(url + pages[kind])
        assert page.violations() == [], kind


def test_axe_would_find_what_is_wrong(url: str, page: BrowserPage) -> None:
    page.open(url + "/run")
    page.run("document.querySelector('main').insertAdjacentHTML('beforeend', '<img src=x><button></button>')")
    wrong = " ".join(page.violations())
    assert "image-alt" in wrong and "button-name" in wrong


@pytest.mark.parametrize("width", [320, PHONE, 640, 799, 801, SCREEN])
def test_the_text_of_charts_is_never_smaller_than_eleven_pixels(url: str, page: BrowserPage, width: int) -> None:
    page.look(width, False)
    page.open(url + "/")
    page.until("document.querySelector('figure svg') !== null")
    sizes = page.run(TEXT_SIZES)
    assert len(sizes) > 5 and min(sizes) >= LEAST_PX, sizes


def test_a_strangers_word_that_is_longer_than_a_window_widens_no_page(url: str, page: BrowserPage) -> None:
    """Attack: a proposal's reason, a gateway's name, a token's symbol without a space in it."""
    page.look(PHONE, False)
    page.open(url + "/run")
    for where in ("dl.facts dd", "main p", "h1"):
        page.run(f"document.querySelector('{where}').textContent = 'x'.repeat(4000)")
        assert page.run("document.documentElement.scrollWidth") <= PHONE, where


def test_a_table_wider_than_a_phone_scrolls_by_keyboard(url: str, page: BrowserPage) -> None:
    page.look(PHONE, False)
    page.open(url + "/findings")
    page.run(
        "window.scrolled = null; document.querySelector('.scroll').addEventListener('scroll', (e) => {"
        " window.scrolled = e.target.scrollLeft; })"
    )
    for _ in range(30):
        page.press("Tab")
        if page.run("document.activeElement.className") == "scroll":
            break
    assert page.run("document.activeElement.getAttribute('aria-label')") == "Findings"
    for _ in range(5):
        page.press("ArrowRight")
    page.until("window.scrolled > 0")


def test_every_table_has_a_name_and_heads_that_say_what_they_head(
    reader: RunReader, url: str, page: BrowserPage
) -> None:
    for kind, path in kinds(reader).items():
        page.open(url + path)
        assert page.run("Array.from(document.querySelectorAll('table')).every((t) => t.caption.textContent.trim())"), (
            kind
        )
        assert page.run("Array.from(document.querySelectorAll('th')).every((h) => ['col', 'row'].includes(h.scope))")
        assert page.run("Array.from(document.querySelectorAll('.scroll')).every((b) => b.tabIndex === 0)"), kind


def test_a_page_changes_by_itself_and_leaves_alone_what_its_reader_is_at(
    reader: RunReader, source: Iterator[ToldEvent], url: str, page: BrowserPage
) -> None:
    page.look(SCREEN, False)
    page.open(url + "/events")
    first = page.run("document.querySelector('tbody tr').textContent")
    page.run("window.same = true; document.querySelector('input').value = 'half a word'")
    take(reader, list(islice(source, 20)))
    page.until(f"document.querySelector('tbody tr').textContent !== {json.dumps(first)}")
    assert page.run("window.same") is True, "it was not loaded again"
    assert page.run("document.querySelector('input').value") == "half a word"
    assert page.violations() == []


def test_pages_are_whole_without_scripts(url: str, page: BrowserPage) -> None:
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(url + "/")
        for words in ("Ledger", "do not trust each other", "Rounds"):
            assert page.run(f"document.body.textContent.includes({words!r})")
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
