"""A run's card: where its roots came from. Advice, which every reader checks against the chain."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay.protocol.errors import UnavailableError
from assay.protocol.types import Address, Digest
from assay.sponsor.model_files import ModelFile
from assay.sponsor.sponsor_words import NO_WORDS, SponsorWords
from assay.sponsor.validation import CardValidation
from assay_ledger.json_input import JsonRefused, parse_json
from assay_ledger.store.interfaces import ArtifactStore
from assay_ledger.store.search import get_named

if TYPE_CHECKING:
    from assay.protocol.program.program import Program
    from assay.training.data import Corpus
    from assay.training.presets import Preset
    from assay.training.recipes.evaluation import Validation
    from assay.training.recipes.outline import Outline

MAX_CARD_BYTES: Final = 1 << 20
MAX_TEXT_BYTES: Final = 1 << 30
MAX_NAMES: Final = 1 << 14
MAX_NAME: Final = 256
NO_MORE: Final = ModelFile()
_CARD_OF: Final = re.compile(r"runs/([0-9a-f]{40})/card")


@dataclass(frozen=True, slots=True)
class ModelOrigin:
    """Where a model comes from, for people: a preset on a text, or a recipe with the names of its parameters.

    outline: what a file of the recipe's module holds beside these. validation: its loss on held-out examples. loss: the
    program of its loss on examples of its own; the validation's, where there is one. words: what nothing on chain says.
    """

    preset: str | None = None
    text: bytes = b""
    recipe: str | None = None
    names: tuple[str, ...] = ()
    outline: Outline | None = None
    validation: Validation | None = None
    loss: Program | None = None
    words: SponsorWords = NO_WORDS


@dataclass(frozen=True, slots=True)
class Card:
    """What a sponsor says of its run.

    preset, text: the preset and the SHA-256 of the training text (UTF-8), both None where the model is the sponsor's
    own. recipe, names: then what it calls it, and the names of the parameters (running statistics behind them).
    first_block: where to read from. file: what else a file of the model holds. validation: how its loss is found.
    loss: the root of the program that gives the loss of a few examples. words: rules, data and first weights as told.
    """

    preset: str | None
    text: Digest | None
    first_block: int
    recipe: str | None = None
    names: tuple[str, ...] = ()
    file: ModelFile = NO_MORE
    validation: CardValidation | None = None
    loss: Digest | None = None
    words: SponsorWords = NO_WORDS

    @property
    def model(self) -> str:
        """What is trained, in a word."""
        return self.preset or self.recipe or "unnamed"

    def encode(self) -> bytes:
        """The card as JSON."""
        document: dict[str, object] = {"first_block": self.first_block}
        if self.text is not None:
            document |= {"preset": self.preset, "text": self.text.hex()}
        else:
            document |= {"recipe": self.recipe, "names": list(self.names)} | self.file.document()
            document |= {} if self.validation is None else {"validation": self.validation.document()}
            document |= {} if self.loss is None else {"loss": self.loss.hex()}
        document |= {"words": self.words.document()} if self.words != NO_WORDS else {}
        return json.dumps(document).encode()

    @classmethod
    def decode(cls, data: bytes) -> Card:
        """The card in hostile bytes. Raises ValueError when they hold none."""
        try:
            document = parse_json(data, max_bytes=MAX_CARD_BYTES)
            first, said = int(document["first_block"]), SponsorWords.of_document(document.get("words"))
            if "text" in document:
                card = cls(str(document["preset"]), Digest(bytes.fromhex(document["text"])), first, words=said)
            else:
                names, file = tuple(map(str, document["names"])), ModelFile.of_document(document)
                validation = CardValidation.of_document(document.get("validation"))
                loss = Digest(bytes.fromhex(document["loss"])) if "loss" in document else None
                card = cls(None, None, first, str(document["recipe"]), names, file, validation, loss, said)
        except (JsonRefused, AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError("no card") from error
        words = [card.preset or card.recipe or "", *card.names, *card.file.names]
        if len(words) > MAX_NAMES or not all(0 < len(w) <= MAX_NAME and w.isprintable() for w in words):
            raise ValueError("implausible names of parameters")
        if any(digest is not None and len(digest) != 32 for digest in (card.text, card.loss)):
            raise ValueError("no digest of a text or a program")
        return card


def listed_runs(store: ArtifactStore) -> list[Address]:
    """The runs that some card in the store is named after; anybody may name a card. Raises what `list` raises."""
    found = map(_CARD_OF.fullmatch, {name for name, _ in store.list("runs")})
    return sorted(Address(bytes.fromhex(match[1])) for match in found if match)


def read_card(store: ArtifactStore, run: Address) -> Card:
    """The card of a run. Raises UnavailableError (ObjectMissing, ObjectMismatch) when there is no readable one."""
    found: list[Card] = []

    def fits(data: bytes) -> bool:
        try:
            found[:] = [Card.decode(data)]
        except ValueError:
            return False
        return True

    get_named(store, f"runs/{run.hex()}/card", MAX_CARD_BYTES, fits)
    return found[0]


def read_corpus(
    store: ArtifactStore, card: Card, data_root: Digest, most: int = MAX_TEXT_BYTES
) -> tuple[Preset, Corpus]:
    """Preset and corpus of a run, once the text, of so many bytes at most, is found to give the data root on chain.

    Raises UnavailableError (NoCorpus, CardWrong, and what the store raises), UserError (UnknownPreset, DataNotUtf8).
    """
    from assay.engine.runtime.values.state_io import root_of
    from assay.training.data import corpus_from_text, decode_text
    from assay.training.presets import preset

    if card.preset is None or card.text is None:
        raise UnavailableError(
            f"This run trains a model of its sponsor's own ({card.model}); only its sponsor's code defines its loss.",
            code="NoCorpus",
            remedy="Fetch the weights with `assay model pull`, and evaluate them in your own copy of the module.",
        )
    text = decode_text(store.get(card.text, most), f"object {card.text.hex()}")
    corpus = corpus_from_text(text)
    if root_of(corpus.train) != data_root:
        raise UnavailableError(
            "The text that the run's card names is not the one whose root stands on chain.",
            code="CardWrong",
            remedy="Ask the sponsor for the text, or name another store.",
        )
    return preset(card.preset), corpus


def parameter_names(store: ArtifactStore, card: Card, data_root: Digest, count: int) -> tuple[str, ...]:
    """The module's own names of its `count` parameters, in order. Raises UnavailableError (CardWrong) and the above."""
    from assay.training.model import build_model

    names = card.names
    if card.preset is not None:
        preset, corpus = read_corpus(store, card, data_root)
        names = tuple(name for name, _ in build_model(preset, len(corpus.vocabulary)).named_parameters())
    return checked_names(names, count)


def checked_names(names: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Names of `count` parameters. Raises UnavailableError (CardWrong)."""
    if len(names) != count or len(set(names)) != count:
        raise UnavailableError(
            f"The run's card names {len(set(names))} parameters; the program on chain has {count}.",
            code="CardWrong",
            remedy="Ask the sponsor for the right names, or name another store.",
        )
    return names
