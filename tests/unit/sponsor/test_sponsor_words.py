"""What a run's card says beside names: kept as it was stated, and refused where nobody would state it."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.errors import UserError
from assay.protocol.types import Address, Digest
from assay.sponsor.cards import Card
from assay.sponsor.sponsor_words import (
    MAX_STATED,
    NO_WORDS,
    DataWords,
    SponsorWords,
    StartWords,
    check_words,
    checked_licence,
    data_words,
    files_words,
    stated_data,
)

ONE, TWO = Digest(b"\1" * 32), Digest(b"\2" * 32)
FROM_RUN = StartWords((), 1 << 200, Address(b"\7" * 20), 3, True)
DATA = DataWords("text", "CC-BY-4.0", "Ada", 2, (ONE,), TWO)
WORDS = SponsorWords("fixed8", "int8", "mean", FROM_RUN, DATA, "Apache-2.0")


@pytest.mark.parametrize(
    "words",
    [
        WORDS,
        replace(WORDS, start=StartWords((("a b.safetensors", ONE), ("c", TWO)))),
        SponsorWords("fixed14"),
        NO_WORDS,
    ],
    ids=["of-a-run", "of-files", "of-a-tier", "none"],
)
def test_a_card_keeps_the_words_of_its_sponsor(words: SponsorWords) -> None:
    for card in (Card("demo", ONE, 7, words=words), Card(None, None, 7, "own", ("weight",), words=words)):
        assert Card.decode(card.encode()) == card
    assert (b"words" in Card("demo", ONE, 7, words=words).encode()) is (words != NO_WORDS)


def with_words(words: Any) -> bytes:
    return json.dumps({"first_block": 1, "recipe": "own", "names": ["weight"], "words": words}).encode()


FORGED = {
    "list": [],
    "text": "words",
    "number": {"tier": 3},
    "long": {"merge": "x" * 65},
    "lines": {"update": "two\nlines"},
    "turned": {"update": "\u202eturned"},
    "start-empty": {"start": {}},
    "start-list": {"start": []},
    "no-files": {"start": {"files": []}},
    "short-digest": {"start": {"files": [["a", "00"]]}},
    "bell": {"start": {"files": [["a\u0007", "00" * 32]]}},
    "many-files": {"start": {"files": [["a", "00" * 32]] * 257}},
    "short-run": {"start": {"run": "00", "chain_id": 1, "generation": 1, "with_momentum": False}},
    "negative-chain": {"start": {"run": "00" * 20, "chain_id": -1, "generation": 1, "with_momentum": False}},
    "true-generation": {"start": {"run": "00" * 20, "chain_id": 1, "generation": True, "with_momentum": False}},
    "no-roots": {"data": {"sources": 1}},
    "sources-text": {"data": {"sources": "many", "roots": []}},
    "root-number": {"data": {"sources": 1, "roots": [7]}},
    "long-licence": {"data": {"sources": 1, "roots": [], "licence": "x" * (MAX_STATED + 1)}},
    "licence-number": {"licence": 7},
    "licence-lines": {"licence": "MIT\nAND all"},
    "licence-endless": {"licence": "x" * 257},
    "zero-byte": {"data": {"sources": 1, "roots": [], "creator": "a\u0000b"}},
}


@pytest.mark.parametrize("words", FORGED.values(), ids=FORGED)
def test_words_that_nobody_would_say_make_no_card(words: Any) -> None:
    with pytest.raises(ValueError, match="card"):
        Card.decode(with_words(words))


def test_files_of_first_weights_are_named_without_their_folders(tmp_path: Path) -> None:
    for name in ("b.safetensors", "a\u202e.safetensors"):
        (tmp_path / name).write_bytes(name.encode())
    said = files_words(tmp_path.iterdir())
    assert [name for name, _ in said.files] == ["a?.safetensors", "b.safetensors"]
    check_words(SponsorWords(start=said))


def test_a_sponsor_is_told_of_words_that_readers_would_refuse() -> None:
    card = {"kind": "text", "licence": "x" * (MAX_STATED + 1), "sources": [1, 2], "tensors": {"train": {}}}
    with pytest.raises(UserError) as refused:
        check_words(SponsorWords(data=data_words(card, ONE)))
    assert refused.value.code == "WordsImplausible" and refused.value.remedy


@pytest.mark.parametrize(
    "text",
    ["MIT", "CC-BY-4.0", "GPL-2.0+", "LicenseRef-mine", "MIT OR Apache-2.0", "(MIT OR GPL-2.0-only WITH x) AND 0BSD"],
)
def test_a_licence_in_the_form_of_spdx_is_stated(text: str) -> None:
    check_words(SponsorWords(licence=checked_licence(text)))


@pytest.mark.parametrize(
    "text",
    ["", "do what you want", "MIT AND", "(MIT", "mit\nlicense: other", "[x](y)", "MIT  OR  BSD", "M" * 257],
    ids=["empty", "prose", "no-second", "open", "lines", "link", "spaces", "endless"],
)
def test_what_has_not_the_form_of_a_licence_is_refused_before_the_run_is_posted(text: str) -> None:
    with pytest.raises(UserError) as refused:
        checked_licence(text)
    assert refused.value.code == "LicenceForm" and "SPDX" in refused.value.message


def test_a_card_of_ones_own_states_what_it_says_and_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_text(json.dumps({"licence": "CC0-1.0", "creator": "Ada", "sources": ["a", "b"], "more": 1}))
    said = stated_data(path)
    assert said == DataWords("", "CC0-1.0", "Ada", 2, (), Digest(sha256(path.read_bytes()).digest()))
    assert DataWords.of_document(said.document()) == said


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        '"licence"',
        "{}",
        '{"other": 1}',
        '{"sources": "one"}',
        '{"licence": "x", "tensors": 7}',
        "[" * 9999,
    ],
    ids=["empty", "list", "number", "text", "nothing", "other", "sources-text", "tensors-number", "deep"],
)
def test_what_says_nothing_of_data_is_no_card_of_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "card.json"
    path.write_text(text)
    with pytest.raises(UserError) as refused:
        stated_data(path)
    assert refused.value.code == "NoDataCard" and "licence" in refused.value.remedy
