"""What a run's card says of where the model came from: rules, data, first weights. A word, which no contract knows.

Whoever may write to the store may write a card, so readers show these as said, beside the roots that bind the truth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from assay.protocol.errors import UserError
from assay.protocol.types import Address, Digest

MAX_RULE: Final = 64
MAX_STATED: Final = 1024
"""Characters of a licence or of who made something."""

MAX_LICENCE: Final = 256
"""Characters of an expression of licences."""

MAX_NAME: Final = 256
MOST_FILES: Final = 256
"""Files that first weights lay in, and roots of data."""

_LICENCE: Final = r"[A-Za-z0-9][A-Za-z0-9.+:-]*"
_LICENCES: Final = re.compile(rf"{_LICENCE}( (AND|OR|WITH) {_LICENCE})*")
_DIGEST: Final = re.compile(r"(?:0x)?([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class StartWords:
    """Where the first weights came from: files by name with their SHA-256, or a generation of another run.

    with_momentum: the other run's training goes on, with its outer momentum. chain_id, run: None for files.
    """

    files: tuple[tuple[str, Digest], ...] = ()
    chain_id: int | None = None
    run: Address | None = None
    generation: int | None = None
    with_momentum: bool = False

    def document(self) -> dict[str, object]:
        """As a part of a card's JSON."""
        if self.run is None:
            return {"files": [[name, digest.hex()] for name, digest in self.files]}
        return {
            "chain_id": self.chain_id,
            "run": self.run.hex(),
            "generation": self.generation,
            "with_momentum": self.with_momentum,
        }

    @classmethod
    def of_document(cls, document: Any) -> StartWords | None:
        """The same from hostile JSON. Raises TypeError, ValueError, KeyError."""
        if document is None:
            return None
        if "run" not in document:
            files = tuple((_text(name, MAX_NAME), _digest(digest)) for name, digest in document["files"])
            if not 0 < len(files) <= MOST_FILES:
                raise ValueError("implausible files")
            return cls(files)
        run = bytes.fromhex(_text(document["run"], 40))
        chain_id, generation = document["chain_id"], document["generation"]
        if len(run) != 20 or not _is_number(chain_id, 256) or not _is_number(generation, 64):
            raise ValueError("names no generation of a run")
        return cls((), chain_id, Address(run), generation, document["with_momentum"] is True)


@dataclass(frozen=True, slots=True)
class DataWords:
    """What the card of a folder of data says. Empty: not stated. roots: of its training tensors."""

    kind: str = ""
    licence: str = ""
    creator: str = ""
    sources: int = 0
    roots: tuple[Digest, ...] = ()
    card: Digest | None = None
    """The SHA-256 of that card, which names every source."""

    def document(self) -> dict[str, object]:
        """As a part of a card's JSON; what is not stated is left out."""
        said = {"kind": self.kind, "licence": self.licence, "creator": self.creator}
        document: dict[str, object] = {name: text for name, text in said.items() if text}
        document |= {"sources": self.sources, "roots": [root.hex() for root in self.roots]}
        return document | ({} if self.card is None else {"card": self.card.hex()})

    @classmethod
    def of_document(cls, document: Any) -> DataWords | None:
        """The same from hostile JSON. Raises TypeError, ValueError, KeyError."""
        if document is None:
            return None
        names = ("kind", "licence", "creator")
        kind, licence, creator = (_text(document.get(name, ""), MAX_STATED, 0) for name in names)
        roots = tuple(_digest(root) for root in document["roots"])
        if len(roots) > MOST_FILES or not _is_number(document["sources"], 63):
            raise ValueError("implausible data")
        card = None if document.get("card") is None else _digest(document["card"])
        return cls(kind, licence, creator, document["sources"], roots, card)


@dataclass(frozen=True, slots=True)
class SponsorWords:
    """tier, update, merge: as `assay run post` names them; licence: of the weights. Empty: not stated."""

    tier: str = ""
    update: str = ""
    merge: str = ""
    start: StartWords | None = None
    data: DataWords | None = None
    licence: str = ""

    def document(self) -> dict[str, object]:
        """The part of a card's JSON; what is not stated is left out."""
        said = {"tier": self.tier, "update": self.update, "merge": self.merge, "licence": self.licence}
        document: dict[str, object] = {name: text for name, text in said.items() if text}
        parts = {"start": self.start, "data": self.data}
        return document | {name: part.document() for name, part in parts.items() if part is not None}

    @classmethod
    def of_document(cls, document: Any) -> SponsorWords:
        """The same from hostile JSON. Raises TypeError, ValueError, KeyError."""
        if document is None:
            return NO_WORDS
        if not isinstance(document, dict):
            raise TypeError("no words")
        tier, update, merge = (_text(document.get(name, ""), MAX_RULE, 0) for name in ("tier", "update", "merge"))
        start, data = StartWords.of_document(document.get("start")), DataWords.of_document(document.get("data"))
        return cls(tier, update, merge, start, data, _text(document.get("licence", ""), MAX_LICENCE, 0))


NO_WORDS: Final = SponsorWords()


def checked_licence(text: str) -> str:
    """An expression of SPDX licences; of its names only the form is looked at, since new ones are listed every year.

    Raises UserError (LicenceForm).
    """
    inside = text.replace("(", "").replace(")", "")
    is_balanced = text.count("(") == text.count(")")
    if len(text) > MAX_LICENCE or not is_balanced or _LICENCES.fullmatch(inside) is None:
        raise UserError(
            f"{text[:80]!r} has not the form of SPDX's licences.",
            code="LicenceForm",
            remedy="Give an identifier of the list, such as Apache-2.0 or CC-BY-4.0, or several joined by AND or OR; "
            "one of your own is LicenseRef-NAME.",
        )
    return text


def stated_data(path: Path) -> DataWords:
    """What a card of data says: of a folder that `assay data convert` wrote, or a file in JSON of one's own, an object
    with any of `kind`, `licence`, `creator` (texts) and `sources` (a list).

    Raises UserError (NoDataFolder, DataUnreadable, NoDataCard).
    """
    from hashlib import sha256

    from assay.datasets.folder import CARD, MAX_DATA_CARD, read_data_card
    from assay.datasets.sources import json_of, reading

    if path.is_dir():
        return data_words(read_data_card(path), Digest(sha256((path / CARD).read_bytes()).digest()))
    with reading(path) as stream:
        file = stream.read(MAX_DATA_CARD)
    try:
        card = json_of(file)
        if not {"kind", "licence", "creator", "sources"} & set(card) or not isinstance(card.get("sources", []), list):
            raise ValueError("says nothing of data")
        return data_words({"tensors": {"train": {}}} | card, Digest(sha256(file).digest()))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path} is no card of data.",
            code="NoDataCard",
            remedy='Give a folder of `assay data convert`, or a file such as {"licence": "CC-BY-4.0", "creator": '
            '"Ada", "kind": "text", "sources": ["https://..."]}.',
        ) from error


def data_words(card: Mapping[str, Any], file: Digest) -> DataWords:
    """What the card of a folder of data says; file: the card's SHA-256."""
    tensors = card["tensors"]["train"].values()
    kind, licence, creator = (str(card.get(name, "")) for name in ("kind", "licence", "creator"))
    roots = tuple(_digest(t["root"]) for t in tensors)
    return DataWords(kind, licence, creator, len(card.get("sources", ())), roots, file)


def files_words(paths: Iterable[Path]) -> StartWords:
    """First weights that lay in these files. Raises OSError."""
    from hashlib import file_digest

    found = []
    for path in sorted(paths):
        with path.open("rb") as file:
            found.append((_printable(path.name), Digest(file_digest(file, "sha256").digest())))
    return StartWords(tuple(found))


def check_words(words: SponsorWords) -> None:
    """Readers refuse a card whose words are implausible, and say so only when the run stands on chain.

    Raises UserError (WordsImplausible).
    """
    try:
        SponsorWords.of_document(words.document())
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            "The run's card cannot hold what it is to say of data, rules and first weights.",
            code="WordsImplausible",
            remedy=f"Give printable lines of at most {MAX_STATED} characters, and at most {MOST_FILES} files.",
        ) from error


def _printable(name: str) -> str:
    """The name of a file as a card may hold it."""
    return "".join(c if c.isprintable() else "?" for c in name)[-MAX_NAME:]


def _text(value: Any, most: int, least: int = 1) -> str:
    if not isinstance(value, str) or not least <= len(value) <= most or not value.isprintable():
        raise ValueError("no such text")
    return value


def _digest(value: Any) -> Digest:
    found = _DIGEST.fullmatch(_text(value, 66))
    if found is None:
        raise ValueError("no digest")
    return Digest(bytes.fromhex(found[1]))


def _is_number(value: Any, bits: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << bits
