"""The text of tokens as they come, one by one, in time that grows with their number and not with its square.

A tokenizer may write one character as several tokens, and what a token says may depend on the one before it: a space
that only the first word lacks, bytes that are no character yet. So what is new is what a few tokens say behind the few
that were shown last, less what those say by themselves. Adding the pieces gives what the tokenizer gives of all tokens
at once (tests/unit/datasets/test_streamed_text.py: of every kind of decoder).
"""

from __future__ import annotations

import re
from typing import Final

from assay.datasets.tokenizers import Tokenizer

HELD_MOST: Final = 16
"""Tokens that say nothing whole, after which they are shown as they are: no character has so many, and the time that a
stretch of broken ones takes grows with the square of this."""

CHARACTER_TOKENS: Final = 4
"""A character of UTF-8 has four bytes at most, and a token one at least."""

BROKEN: Final = "\ufffd"
_BYTE: Final = re.compile(r"<0x[0-9A-F]{2}>")
"""A byte as SentencePiece's vocabularies have them. A row of them is read as a whole: one that is wrong makes all of
them broken, also those that were a character before it came."""


class StreamedText:
    """Takes the tokens of one text in their order."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._near: list[int] = []
        """Tokens that were shown last, and those behind them that were not shown."""
        self._shown, self._before = 0, ""
        """How many of them were shown, and what these say by themselves."""

    def add(self, token: int) -> str:
        """What a token has made whole, which may be nothing."""
        word = self._tokenizer.word(token)
        if word is None or self._tokenizer.kind == "characters":
            return word or ""
        self._near.append(token)
        if _BYTE.fullmatch(word):
            return ""
        after = self._tokenizer.decode(self._near)
        if len(after) > len(self._before) and not after.endswith(BROKEN):
            return self._show(len(self._near), after)
        return "" if len(self._near) - self._shown < HELD_MOST else self._show_broken(after)

    def end(self) -> str:
        """What is left when no token follows."""
        after = self._tokenizer.decode(self._near) if len(self._near) > self._shown else self._before
        return self._show(len(self._near), after)

    def _show(self, count: int, text: str) -> str:
        """Shows the first of the near tokens, which say `text`; the newest of them stay near."""
        piece = text[len(self._before) :]
        self._near = self._near[self._shown :]
        self._shown = count - self._shown
        self._before = self._tokenizer.decode(self._near[: self._shown])
        return piece

    def _show_broken(self, after: str) -> str:
        """Shows what cannot become whole: up to a place where the text falls apart into two, or all of it."""
        decode, near = self._tokenizer.decode, self._near
        for count in range(len(near) - 1, max(self._shown, len(near) - CHARACTER_TOKENS - 1), -1):
            text = decode(near[:count])
            if len(text) > len(self._before) and text + decode(near[count:]) == after:
                return self._show(count, text)
        return self._show(len(near), after)
