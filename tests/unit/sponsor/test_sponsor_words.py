"""What a run's card says beside names: kept as it was stated, and refused where nobody would state it."""

from __future__ import annotations

import json
from dataclasses import replace
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
    data_words,
    files_words,
)

ONE, TWO = Digest(b"\1" * 32), Digest(b"\2" * 32)
FROM_RUN = StartWords((), 1 << 200, Address(b"\7" * 20), 3, True)
DATA = DataWords("text", "CC-BY-4.0", "Ada", 2, (ONE,), TWO)
WORDS = SponsorWords("fixed8", "int8", "mean", FROM_RUN, DATA)


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
