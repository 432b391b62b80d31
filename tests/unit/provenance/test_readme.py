"""A card as hubs render it: strangers' words are shown and mean nothing; long runs have short cards."""

from __future__ import annotations

import re
import string
import unicodedata
from copy import deepcopy
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.protocol.errors import UnavailableError
from assay.protocol.types import Address
from assay.provenance.document import NO_STORE, encode_card, told_card, unread_card
from assay.provenance.files import write_card
from assay.provenance.readme import MOST_LETTERS, readme, words_shown
from assay_ledger.store.blobs import open_store

WHO, ROOT = "0x" + "ab" * 20, "0x" + "cd" * 32
GENERATION = {"generation": 1, "root": ROOT, "parameters": ROOT, "opened_in": 9, "tx": ROOT, "status": "final"}
CARD: dict[str, Any] = {
    "format": "assay-model-card-1",
    "chain_id": 31337,
    "run": WHO,
    "sponsor": WHO,
    "block": 12,
    "weights": {"generation": 1, "root": ROOT, "status": "final", "final": True},
    "generations": [GENERATION | {"updates": 4}],
    "contributors": [
        {"address": WHO, "rounds": 1, "rounds_paid": 1, "findings_paid": 0, "shares": "7", "shares_ppm": 1_000_000}
    ],
    "audited": {"steps": 40, "audited": 10, "ppm": 250_000},
    "audits": {
        "audited": 1, "commitments": 4, "findings": 2, "differing": 1, "upheld": 1, "rejected": 0, "lapsed": 0,
        "fined": 3, "audit_ppm": 100_000,
    },
    "disputes": [],
    "false_work": [
        {"round": 1, "seat": 3, "solver": WHO, "what": "its training", "game": 1, "generation": 2},
        {"round": 2, "seat": 3, "solver": WHO, "what": "its update", "game": 2, "generation": None},
    ],
    "false_roots": [],
    "counts": {"generations": 2, "contributors": 1, "disputes": 0, "convictions": 0},
    "terms": {"rounds": str(2**64 - 1), "seats": 8, "units": 5, "steps_per_unit": 2},
    "programs": {"step": ROOT},
    "start": {"parameters": ROOT, "momentum": ROOT, "said": {"kind": "not stated"}},
    "data": {
        "root": ROOT, "text_sha256": None, "kind": "not stated", "licence": "not stated", "creator": "not stated",
        "sources": None, "card_sha256": None, "card_names_the_root": None,
    },
    "told": {"preset": None, "recipe": "own", "tier": "fixed14", "update": "f32", "merge": "mean"},
}  # fmt: skip

HOSTILE = {
    "script": "</td><script>alert(1)</script>",
    "link": "[click](javascript:alert(1))",
    "image": "![x](http://evil.example/a.png)",
    "address": "www.evil.example @owner #1 https://evil.example",
    "yaml": "\n---\nlicense: mit\n---\n# Another card",
    "table": "| a | b |",
    "formula": "$\\href{http://evil.example}{x}$",
    "direction": "\u202eevil\u2066",
    "entity": "&lt;b&gt;",
    "comment": "<!-- ",
    "emphasis": "`code` **bold** ~~x~~ :smile:",
}


@given(st.text(max_size=300))
@example("\x1b]0;title\x07")
@example("\ud800")
def test_of_a_strangers_words_no_sign_means_anything(text: str) -> None:
    shown = words_shown(text)
    assert shown.isprintable() and not set(shown) & set("<>\n")
    # Each sign of Markdown stands behind a backslash, or is the entity of one of HTML's.
    bare = re.sub(r"\\.|&(?:amp|lt|gt);", "", shown)
    assert not set(bare) & set(string.punctuation)
    readable = unescape(re.sub(r"\\(.)", r"\1", shown))
    assert len(readable) <= MOST_LETTERS + 3
    if len(text) <= MOST_LETTERS and text.isprintable() and "&" not in text:
        assert readable == text


@pytest.mark.parametrize("words", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("place", ["recipe", "licence", "creator", "file", "why"])
def test_a_card_with_hostile_words_has_the_lines_of_one_without(words: str, place: str) -> None:
    def card(text: str) -> dict[str, Any]:
        made = deepcopy(CARD)
        if place == "file":
            made["start"]["said"] = {"kind": "files", "files": [{"name": text, "sha256": "ab" * 32}]}
        elif place == "why":
            made["told"] = {"why": text}
        else:
            made["told" if place == "recipe" else "data"][place] = text
        return made

    hostile, plain = (readme(card(text)).decode().split("\n") for text in (words, "plain"))
    assert len(hostile) == len(plain)
    differing = [(a, b) for a, b in zip(hostile, plain, strict=True) if a != b]
    assert len(differing) == 1 and "plain" in differing[0][1]
    assert hostile.index("---", 1) == plain.index("---", 1), "the block of YAML holds none of it"
    assert not any(unicodedata.category(c) in ("Cc", "Cf") for c in differing[0][0])


def test_one_of_a_thing_is_said_in_the_singular() -> None:
    audits = CARD["audits"] | {"findings": 1}
    text = readme(
        CARD | {"terms": {"rounds": 1, "seats": 1, "units": 1, "steps_per_unit": 1}, "audits": audits}
    ).decode()
    assert "- 1 round planned, 1 begun; 1 seat, up to 1 unit of 1 step each\n" in text
    assert "- 1 finding, of which" in text


def test_a_card_of_a_very_long_run_shows_the_newest_and_counts_the_others() -> None:
    long = CARD | {
        "generations": [GENERATION | {"generation": n, "updates": 4} for n in range(10_000)],
        "contributors": CARD["contributors"] * 10_000,
        "counts": {"generations": 10**9, "contributors": 10**6, "disputes": 0, "convictions": 0},
    }
    text = readme(long).decode()
    assert len(text) < 20_000 and "| 9999 |" in text and "| 9979 |" not in text
    assert "And 999999980 older ones." in text and "And 999980 others." in text


def test_false_work_inside_of_a_generation_is_named_before_all_disputes() -> None:
    text = readme(CARD).decode()
    assert "its training was false; PART OF GENERATION 2" in text
    assert "its update was false; not merged" in text


def test_a_card_says_that_its_store_has_none_and_not_where_the_store_is(tmp_path: Path) -> None:
    told = told_card(open_store(tmp_path / "private"), Address(bytes(20)))
    assert told.card is None and "ObjectMissing" in told.why and "private" not in told.why
    assert told_card(None, Address(bytes(20))) == NO_STORE


def test_a_card_that_is_on_its_way_is_not_said_to_be_missing() -> None:
    why = unread_card(UnavailableError("It is being fetched.", code="BeingFetched")).why
    assert "being fetched" in why and "no readable card" not in why


def test_a_later_pull_takes_the_place_of_an_earlier_one_and_of_nothing_else(tmp_path: Path) -> None:
    first = dict(write_card(tmp_path, CARD))
    assert first == {"readme": tmp_path / "README.md", "card": tmp_path / "model-card.json"}
    later = CARD | {"block": 13}
    assert dict(write_card(tmp_path, later)) == first
    assert first["card"] is not None and first["card"].read_bytes() == encode_card(later)
    (tmp_path / "README.md").write_text("# mine, and # Written by assay model pull")
    assert dict(write_card(tmp_path, CARD)) == first | {"readme": None}
