"""Tokenizers as the exact bytes of one file, whose SHA-256 is their name.

Two kinds: Hugging Face's `tokenizer.json`, run by the package `tokenizers`; and a list of characters, the token of each
being its place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from assay.datasets.sources import json_of, lacking, reading
from assay.protocol.errors import UserError

MAX_TOKENIZER: Final = 1 << 28
"""Bytes of a tokenizer's file."""

MAX_TOKENS: Final = (1 << 31) - 1
"""A token is an i32 at most."""

_FORMAT: Final = "assay characters 1"


class Tokenizer(Protocol):
    """Text to tokens and back. file: its exact bytes. kind: `characters` or `huggingface`."""

    @property
    def kind(self) -> str: ...
    @property
    def file(self) -> bytes: ...
    @property
    def size(self) -> int:
        """One more than the largest token."""
        ...

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text. Raises UserError (UnknownCharacter)."""
        ...

    def token(self, text: str) -> list[int]:
        """What is put behind a document for this text: one token, or characters. Raises UserError (UnknownToken)."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens. A model may have more tokens than its tokenizer: those have none."""
        ...

    def word(self, token: int) -> str | None:
        """A token as the file lists it, which may be another text than it stands for; None where it has none."""
        ...


def digest_of_tokenizer(file: bytes) -> str:
    """SHA-256 of a tokenizer's file, in hex."""
    return hashlib.sha256(file).hexdigest()


@dataclass(frozen=True)
class Characters:
    """Each character is a token; the vocabulary is in the order of code points, without surrogates."""

    vocabulary: str
    _places: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    kind = "characters"

    def __post_init__(self) -> None:
        self._places.update({c: k for k, c in enumerate(self.vocabulary)})

    @classmethod
    def of(cls, texts: Iterable[str]) -> Characters:
        """Those of some texts."""
        seen: set[str] = set()
        for text in texts:
            seen.update(text)
        return cls("".join(sorted(seen)))

    @property
    def file(self) -> bytes:
        """See Tokenizer."""
        document = {"format": _FORMAT, "characters": self.vocabulary}
        return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"

    @property
    def size(self) -> int:
        """See Tokenizer."""
        return len(self.vocabulary)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """See Tokenizer."""
        places = self._places
        try:
            return [[places[c] for c in text] for text in texts]
        except KeyError as error:
            raise UserError(
                f"The character {error.args[0]!r} is none of the tokenizer's {self.size}.",
                code="UnknownCharacter",
                remedy="Take the character out of the text, or use a tokenizer that has it.",
            ) from None

    def token(self, text: str) -> list[int]:
        """See Tokenizer."""
        return self.encode_all([text])[0]

    def decode(self, tokens: Sequence[int]) -> str:
        """See Tokenizer."""
        return "".join(self.word(t) or "" for t in tokens)

    def word(self, token: int) -> str | None:
        """See Tokenizer."""
        return self.vocabulary[token] if 0 <= token < len(self.vocabulary) else None


class HuggingFaceTokenizer:
    """A `tokenizer.json`. No special tokens are added; padding, truncation and dropout that it asks for are off."""

    kind = "huggingface"

    def __init__(self, file: bytes) -> None:
        """Raises ConfigError (PackageMissing), UserError (BadTokenizer)."""
        try:
            import tokenizers  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            raise lacking("tokenizers", "Tokenizers of Hugging Face") from None
        self.file = file
        try:
            self._inner: Any = tokenizers.Tokenizer.from_buffer(file)
        except Exception as error:  # the package raises Exception itself
            raise bad_tokenizer(str(error)) from None
        self._inner.no_padding()
        self._inner.no_truncation()
        if hasattr(self._inner.model, "dropout"):
            # Bad luck: a file from a training that drew its byte pairs; nobody would find the same tokens again.
            self._inner.model.dropout = None

    @property
    def size(self) -> int:
        """See Tokenizer. Numbers may have gaps, so that they are not counted."""
        return 1 + max(self._inner.get_vocab(with_added_tokens=True).values(), default=-1)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """See Tokenizer."""
        found = self._inner.encode_batch(list(texts), add_special_tokens=False)
        return [list(encoding.ids) for encoding in found]

    def token(self, text: str) -> list[int]:
        """See Tokenizer."""
        number = self._inner.token_to_id(text)
        if number is None:
            raise UserError(
                f"The tokenizer has no token {text!r}.",
                code="UnknownToken",
                remedy="Give --end a token that its file lists, such as <|endoftext|>.",
            )
        return [number]

    def decode(self, tokens: Sequence[int]) -> str:
        """See Tokenizer."""
        return str(self._inner.decode(list(tokens), skip_special_tokens=False))

    def word(self, token: int) -> str | None:
        """See Tokenizer."""
        word = self._inner.id_to_token(token)
        return None if word is None else str(word)


def tokenizer_of(file: bytes) -> Tokenizer:
    """The tokenizer with these bytes, of either kind. Raises ConfigError (PackageMissing), UserError (BadTokenizer)."""
    try:
        document = json_of(file)
    except ValueError as error:
        raise bad_tokenizer(f"it is no JSON ({error})") from None
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        return HuggingFaceTokenizer(file)
    made = Characters(str(document.get("characters")))
    try:
        # One list has one file: any other bytes are no tokenizer of this kind, whatever they seem to say.
        is_the_file = made.file == file and made.vocabulary == "".join(sorted(set(made.vocabulary)))
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can name and no file can hold
        is_the_file = False
    if not is_the_file:
        raise bad_tokenizer("its characters are not written as `assay data convert` writes them")
    return made


def read_tokenizer(path: Path, digest: str | None = None) -> Tokenizer:
    """The tokenizer in a file, where `digest` is given only the one with this SHA-256 in hex.

    Raises:
        UserError: DataUnreadable, BadTokenizer, WrongTokenizer. ConfigError: PackageMissing.
    """
    with reading(path) as stream:
        file = stream.read(MAX_TOKENIZER + 1)
    if len(file) > MAX_TOKENIZER:
        raise bad_tokenizer(f"it has more than {MAX_TOKENIZER} bytes")
    check_tokenizer(file, digest, str(path))
    return tokenizer_of(file)


def check_tokenizer(file: bytes, digest: str | None, name: str) -> None:
    """Raises UserError (WrongTokenizer) where bytes have another digest than is asked for.

    Attack: a tokenizer of the same size whose tokens are in another order; the model would read noise.
    """
    found = digest_of_tokenizer(file)
    if digest is not None and found != digest.removeprefix("0x").lower():
        raise UserError(
            f"The tokenizer {name} has the SHA-256 {found}; {digest} is asked for.",
            code="WrongTokenizer",
            remedy="Take the very file that the data was made with; a copy that was written anew has another digest.",
        )


def bad_tokenizer(why: str) -> UserError:
    """What is said of a file that is no tokenizer."""
    return UserError(
        f"The tokenizer cannot be read: {why}.",
        code="BadTokenizer",
        remedy="Give a tokenizer.json of Hugging Face's, or one that `assay data convert` wrote.",
    )
