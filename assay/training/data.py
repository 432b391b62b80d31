"""Text as training data: a character vocabulary, tokens, and a split that everybody derives alike.

The blob that a sponsor publishes is the UTF-8 text itself; vocabulary, tokens and split follow from it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from assay.protocol.errors import UserError

VALIDATION_SHARE = 10
"""One character in ten, the last of the text, is kept for validation."""

MAX_VOCABULARY = 1 << 16


@dataclass(frozen=True, slots=True)
class Corpus:
    """A text as tokens.

    train, validation: u8 (u16 above 256 symbols), rank 1. vocabulary: the symbol of each token.
    """

    vocabulary: str
    train: Tensor
    validation: Tensor

    def decode(self, tokens: list[int]) -> str:
        """The text of these tokens."""
        return "".join(self.vocabulary[t] for t in tokens)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text; characters outside the vocabulary are left out."""
        numbers = {symbol: number for number, symbol in enumerate(self.vocabulary)}
        return [numbers[c] for c in text if c in numbers]

    def letter_entropy(self) -> float:
        """Nats per character of the validation split under the training split's letter frequencies (plus one each)."""
        counts = Counter(self.train.tolist())
        total = self.train.numel() + len(self.vocabulary)
        seen = sorted(Counter(self.validation.tolist()).items())
        nats = [times * math.log(total / (counts[token] + 1)) for token, times in seen]
        return math.fsum(nats) / self.validation.numel()

    def shard_length(self, shards: int) -> int:
        """Tokens in each of `shards` equal, adjacent, disjoint pieces of the training split; a remainder is unused."""
        return self.train.numel() // shards


def pydoc_text() -> str:
    """The topics of this Python's own documentation, about 466 kB of English; differs between versions of Python."""
    from pydoc_data.topics import topics  # type: ignore[import-untyped, unused-ignore]

    return "\n\n".join(topics[name] for name in sorted(topics))


def corpus_from_text(text: str, min_tokens: int = 2) -> Corpus:
    """Vocabulary (sorted by code point), tokens and split of a text.

    min_tokens: the least either split must hold, say context + 1.

    Raises:
        UserError: EmptyData, too few characters or too many different ones.
    """
    cut = len(text) - len(text) // VALIDATION_SHARE
    if min(cut, len(text) - cut) < min_tokens:
        raise UserError(
            f"The data holds {len(text)} characters, too few to train and validate on.",
            code="EmptyData",
            remedy=f"Give a text of at least {min_tokens * VALIDATION_SHARE} characters.",
        )
    vocabulary = "".join(sorted(set(text)))
    if len(vocabulary) > MAX_VOCABULARY:
        raise UserError(
            f"The data uses {len(vocabulary)} different characters; a token has 16 bits.",
            code="VocabularyTooLarge",
            remedy="Leave out or replace rare characters.",
        )
    numbers = {symbol: number for number, symbol in enumerate(vocabulary)}
    dtype = torch.uint8 if len(vocabulary) <= 256 else torch.uint16
    tokens = torch.tensor([numbers[c] for c in text], dtype=torch.int32).to(dtype)
    return Corpus(vocabulary, tokens[:cut].clone(), tokens[cut:].clone())


def given_text(path: Path | None) -> str:
    """The text of a file, this Python's documentation where none is named. Raises what `read_text` does."""
    return pydoc_text() if path is None else read_text(path)


def read_text(path: Path) -> str:
    """The text of a file, newlines as they are.

    Raises:
        UserError: DataUnreadable, DataNotUtf8 or EmptyData, each with what to do.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"The data file {path} cannot be read: {error.strerror}.",
            code="DataUnreadable",
            remedy="Check the path and its permissions.",
        ) from error
    return decode_text(raw, str(path))


def decode_text(raw: bytes, name: str) -> str:
    """The text of a published or local blob; `name` is for the message.

    Raises:
        UserError: DataNotUtf8 or EmptyData.
    """
    if not raw:
        raise UserError(f"The data file {name} is empty.", code="EmptyData", remedy="Give a file with text in it.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"The data file {name} is not UTF-8: byte {error.start} cannot be decoded.",
            code="DataNotUtf8",
            remedy=f"Convert it first, for example: iconv -t UTF-8 {name}.",
        ) from error
