"""Events are decoded as eth_abi decodes them, word by word, and what it refuses is refused."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from unittest.mock import patch

import pytest
from eth_abi.exceptions import DecodingError
from hypothesis import given
from hypothesis import strategies as st

from assay_ledger import json_input
from assay_ledger.contract import Event
from assay_ledger.event_forms import EventForm, form_of
from assay_ledger.json_input import is_deeper
from tools import bindings

FORMS = {
    kind.ABI: kind
    for module in bindings.CONTRACTS.values()
    for kind in vars(import_module(f"{bindings.PACKAGE}.{module}")).values()
    if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
}
"""Every event of every contract, by its declaration."""

WORDS = st.one_of(
    st.integers(0, 8).map(lambda n: n.to_bytes(32, "big")),
    st.sampled_from([8, 24, 32, 48, 64, 160, 255]).map(lambda bits: (1 << bits).to_bytes(32, "big")),
    st.sampled_from([8, 24, 32, 48, 64, 160, 256]).map(lambda bits: ((1 << bits) - 1).to_bytes(32, "big")),
    st.binary(min_size=32, max_size=32),
    st.binary(min_size=20, max_size=20).map(lambda a: bytes(12) + a),
)


def plain(value: Any) -> Any:
    """The value with addresses in bytes, whoever decoded it."""
    if isinstance(value, str):
        return bytes.fromhex(value[2:])
    return tuple(map(plain, value)) if isinstance(value, list | tuple) else value


def outcome(decode: Any, topics: list[bytes], data: bytes) -> Any:
    """What is decoded, or that it is refused."""
    try:
        return [plain(value) for value in decode(topics, data)]
    except (DecodingError, ValueError):
        return "refused"


def check(form: EventForm, topics: list[bytes], data: bytes) -> None:
    """Both say the same."""
    assert outcome(form.decode, topics, data) == outcome(form.decode_generally, topics, data)


@given(st.sampled_from(sorted(FORMS)), st.data())
def test_any_words_are_decoded_or_refused_as_by_eth_abi(abi: str, drawn: st.DataObject) -> None:
    form = form_of(abi)
    topics = [drawn.draw(WORDS) for _ in form.indexed]
    data = b"".join(drawn.draw(st.lists(WORDS, min_size=0, max_size=16)))
    check(form, topics, data + drawn.draw(st.binary(max_size=31)))
    check(form, topics, data)


@given(st.sampled_from(["uint8", "uint24", "uint256", "int8", "int256", "bool", "address", "bytes4", "bytes32"]), WORDS)
def test_a_word_of_any_type_is_decoded_or_refused_as_by_eth_abi(kind: str, word: bytes) -> None:
    check(form_of(f"Made({kind} indexed a, {kind} b, (bool,{kind}[2]) c)"), [word], word + bytes(32) + word * 2)
    check(form_of(f"Told({kind} a)"), [], word)


def test_most_events_of_ours_need_no_general_decoder() -> None:
    generally = {kind.__name__ for abi, kind in FORMS.items() if form_of(abi)._reads is None}
    assert len(FORMS) > 70
    ours = {"AnswerAccused", "Attested", "DigestsPosted", "LeafPosted", "PartsPosted"}
    assert generally == ours | {"ProposalCreated", "VoteCast", "VoteCastWithParams"}


@pytest.mark.parametrize("topics", [[], [bytes(32), bytes(32)], [bytes(31)]], ids=["none", "two", "short"])
def test_topics_that_are_not_those_of_the_event_are_refused(topics: list[bytes]) -> None:
    assert outcome(form_of("Cut(uint64 indexed generation)").decode, topics, b"") == "refused"


@given(st.lists(st.sampled_from(['"', "[", "]", "{", "}", "\\", "a", '"a"', '"["', '""', ","]), max_size=40))
def test_how_deep_bytes_are_nested_does_not_depend_on_the_short_way(parts: list[str]) -> None:
    data = "".join(parts).encode()
    for most in range(1, 6):
        with patch.object(json_input, "_is_shallow", return_value=False):
            slowly = is_deeper(data, most)
        assert is_deeper(data, most) == slowly


def test_a_hundred_thousand_brackets_are_seen_to_be_deep() -> None:
    assert is_deeper(b"[" * 100_000 + b"]" * 100_000, 32)
    assert not is_deeper(b'{"a": [' + b'{"b": ["0x", ""]},' * 1000 + b"]}", 4)
    assert is_deeper(b'{"a": [' + b'{"b": ["0x", ""]},' * 1000 + b"]}", 3)


def test_a_string_without_an_end_is_looked_through_once() -> None:
    # Each escaped quote was tried as the start of another string: of this many it took hours.
    assert not is_deeper(b"[]" * 17 + b'"' + b'\\"' * 1_000_000, 16)
    assert is_deeper(b"[" * 17 + b'"' + b'\\"' * 1_000_000, 16)
