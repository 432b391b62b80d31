"""Text that comes token by token is the text of all tokens, by every kind of decoder, in time linear in the tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.datasets.streamed_text import HELD_MOST, StreamedText
from assay.datasets.tokenizers import Characters, Tokenizer, tokenizer_of

LETTERS = Characters("".join(sorted("abc .é\U0001f600\ufffd")))
WORDS = ["a", "b", "\u2581", "\u2581the", "\u2581cat", "the", "'s", " .", "##ing", "ing</w>", "n't", "|", "\ufffd", "é"]
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
DECODERS: dict[str, Callable[[Any], Any]] = {
    "bytes of pairs": lambda d: d.ByteLevel(),
    "metaspace": lambda d: d.Metaspace(),
    "bytes in words": lambda d: d.Sequence([d.Replace("\u2581", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)]),
    "pieces of words": lambda d: d.WordPiece(cleanup=True),
    "ends of words": lambda d: d.BPEDecoder(),
    "sounds": lambda d: d.CTC(pad_token="a", word_delimiter_token="|"),
    "none": lambda _d: None,
}
KINDS = pytest.mark.parametrize("kind", DECODERS)
NO_WORD = 70_000


@cache
def made(kind: str) -> Tokenizer:
    """A small tokenizer of Hugging Face whose tokens are read by this decoder."""
    library: Any = pytest.importorskip("tokenizers", reason="tokenizers of Hugging Face need their package")
    words = WORDS + BYTES
    if kind == "bytes of pairs":
        words = [
            *library.pre_tokenizers.ByteLevel.alphabet(),
            "the",
            "Ġcat",
            "Ã©",
            "ðŁĺ",
            "<end>",
            "not in the alphabet \u4e16",
        ]
    inner = library.Tokenizer(library.models.WordLevel({word: k for k, word in enumerate(words)}, unk_token=words[0]))
    if (decoder := DECODERS[kind](library.decoders)) is not None:
        inner.decoder = decoder
    return tokenizer_of(inner.to_str().encode())


def pieces_of(tokenizer: Tokenizer, tokens: Sequence[int]) -> list[str]:
    text = StreamedText(tokenizer)
    return [*map(text.add, tokens), text.end()]


def tokens_of(size: int) -> st.SearchStrategy[list[int]]:
    """Any tokens, rows of one and the same, and some that have no text."""
    one = st.integers(0, size - 1) | st.just(NO_WORD)
    rows = st.builds(lambda token, times: [token] * times, one, st.integers(1, 2 * HELD_MOST))
    return st.lists(rows | st.lists(one, max_size=8), max_size=8).map(lambda found: list(chain(*found)))


@KINDS
@settings(max_examples=60)
@given(st.data())
def test_the_pieces_are_the_text_of_all_tokens(kind: str, data: st.DataObject) -> None:
    tokenizer = made(kind)
    tokens = data.draw(tokens_of(tokenizer.size))
    assert "".join(pieces_of(tokenizer, tokens)) == tokenizer.decode(tokens)


@given(st.lists(st.integers(-2, LETTERS.size + 2)))
def test_a_character_is_shown_as_it_comes(tokens: list[int]) -> None:
    pieces = pieces_of(LETTERS, tokens)
    assert "".join(pieces) == LETTERS.decode(tokens)
    assert pieces == [*(LETTERS.decode([token]) for token in tokens), ""]


def test_a_character_of_several_tokens_is_held_back_until_it_is_whole() -> None:
    tokenizer = made("bytes of pairs")
    places = {tokenizer.word(k): k for k in range(tokenizer.size)}
    tokens = [places[word] for word in ("the", "ð", "Ł", "ĺ", "Ģ", "Ġcat")]
    assert pieces_of(tokenizer, tokens) == ["the", "", "", "", "\U0001f600", " cat", ""]
    assert pieces_of(tokenizer, tokens[:3]) == ["the", "", "", "\ufffd"]


@KINDS
@pytest.mark.parametrize("tokens", ["mixed", "no-text", "broken"])
def test_the_work_grows_with_the_number_of_tokens(kind: str, tokens: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = made(kind)
    decode, work = tokenizer.decode, [0]

    def counted(near: Sequence[int]) -> str:
        work[0] += len(near)
        return decode(near)

    monkeypatch.setattr(tokenizer, "decode", counted)
    found = []
    for count in (1_000, 2_000):
        work[0] = 0
        broken = [k for k in range(tokenizer.size) if decode([k]).endswith("\ufffd")] or [0]
        row = {"mixed": list(range(tokenizer.size)), "no-text": [1, NO_WORD], "broken": broken[-1:]}[tokens]
        pieces_of(tokenizer, (row * count)[:count])
        found.append(work[0])
    assert found[1] <= 2.2 * found[0] + 100 and found[1] <= 6 * HELD_MOST * 2_000


def test_tokens_without_a_text_say_nothing() -> None:
    """A model of one's own may have more tokens than its tokenizer has characters."""
    assert LETTERS.decode([0, LETTERS.size, 1, 1 << 31, -1]) == LETTERS.decode([0, 1])
    assert made("metaspace").decode([0, NO_WORD, 1]) == made("metaspace").decode([0, 1])
