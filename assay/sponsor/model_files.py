"""What a card says of the file of a model beside the names of its parameters, and what the store holds of it.

All of it is the sponsor's word, but that a buffer whose root is a constant of the run's step program is proven by it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from assay.protocol.errors import UnavailableError
from assay.protocol.types import Digest
from assay_ledger.json_input import DEFAULT_DEPTH, is_deeper
from assay_ledger.store.blobs import ArtifactStore

if TYPE_CHECKING:
    from torch import Tensor

    from assay.training.recipes.outline import Outline

MAX_CONSTANTS: Final = 1 << 28
"""Bytes of the file of buffers that no round changes."""

MAX_CONFIG: Final = 1 << 20

MAX_RUN_TOKENIZER: Final = 1 << 26
"""Bytes of a tokenizer's file; those of 250,000 tokens have some 20 MB."""


@dataclass(frozen=True, slots=True)
class ModelFile:
    """tied, wide: as in `training.recipes.outline`. constants: the digest of a safetensors file of the buffers that no
    round changes; config: of a JSON object; tokenizer: of the file of a tokenizer. None where there are none.
    """

    tied: tuple[tuple[str, str], ...] = ()
    wide: tuple[str, ...] = ()
    constants: Digest | None = None
    config: Digest | None = None
    tokenizer: Digest | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Every name in it."""
        return (*(name for pair in self.tied for name in pair), *self.wide)

    def document(self) -> dict[str, object]:
        """The part of a card's JSON; what is empty is left out."""
        lists: dict[str, object] = {"tied": [list(pair) for pair in self.tied], "wide": list(self.wide)}
        digests = {"constants": self.constants, "config": self.config, "tokenizer": self.tokenizer}
        return {n: v for n, v in lists.items() if v} | {n: d.hex() for n, d in digests.items() if d is not None}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> ModelFile:
        """The same from hostile JSON. Raises TypeError, ValueError."""
        tied = tuple((str(alias), str(name)) for alias, name in document.get("tied", ()))
        digests = [_digest(document.get(name)) for name in ("constants", "config", "tokenizer")]
        return cls(tied, tuple(map(str, document.get("wide", ()))), *digests)


def put_outline(store: ArtifactStore, outline: Outline) -> ModelFile:
    """Puts constants, configuration and tokenizer into the store."""
    from safetensors.torch import save

    made = ModelFile(outline.tied, outline.wide)
    if outline.constants:
        made = replace(made, constants=store.put(save(dict(outline.constants))))
    if outline.tokenizer:
        made = replace(made, tokenizer=store.put(outline.tokenizer))
    return replace(made, config=store.put(outline.config)) if outline.config else made


def read_outline(store: ArtifactStore, file: ModelFile, names: tuple[str, ...]) -> Outline:
    """What a file of the model holds beside `names`, those of the run's first list.

    Raises UnavailableError (CardWrong, and what the store raises).
    """
    from assay.training.recipes.outline import Outline

    constants = {} if file.constants is None else _constants(store.get(file.constants, MAX_CONSTANTS))
    config = b"" if file.config is None else _config(store.get(file.config, MAX_CONFIG))
    tokenizer = b"" if file.tokenizer is None else store.get(file.tokenizer, MAX_RUN_TOKENIZER)
    if file.tokenizer is not None and not is_tokenizer(tokenizer):
        raise _wrong("names a tokenizer that is no JSON object")
    known, aliases = {*names, *constants}, [alias for alias, _ in file.tied]
    fits = (
        known.isdisjoint(aliases)
        and len(set(aliases)) == len(aliases)
        and len(known) == len(names) + len(constants)
        and {name for _, name in file.tied} <= known
        and set(file.wide) <= set(names)
    )
    if not fits:
        raise _wrong("names tensors of the model's file twice, or such as the model does not have")
    return Outline(file.tied, file.wide, constants, config, tokenizer)


def is_tokenizer(data: bytes) -> bool:
    """Whether bytes are such as a run publishes as a tokenizer's file: it is handed on as it is, and never run here."""
    try:
        is_bounded = len(data) <= MAX_RUN_TOKENIZER and not is_deeper(data, DEFAULT_DEPTH)
        return is_bounded and isinstance(json.loads(data.decode()), dict)
    except ValueError:
        return False


def _constants(data: bytes) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        return load(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise _wrong(f"names a file of buffers that cannot be read ({type(error).__name__})") from None


def _config(data: bytes) -> bytes:
    """The configuration in hostile bytes, written anew.

    Attack: a configuration that names code of its own (`auto_map`), which some loaders fetch and run.
    """
    try:
        # Configurations hold fractions, which no other document of a store does.
        document = None if is_deeper(data, DEFAULT_DEPTH) else json.loads(data.decode())
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise _wrong("names a configuration that is no JSON object")
    return json.dumps({n: v for n, v in document.items() if n != "auto_map"}, indent=2).encode()


def _digest(text: str | None) -> Digest | None:
    if text is None:
        return None
    digest = Digest(bytes.fromhex(text))
    if len(digest) != 32:
        raise ValueError("no digest")
    return digest


def _wrong(what: str) -> UnavailableError:
    return UnavailableError(
        f"The run's card {what}.", code="CardWrong", remedy="Ask the sponsor for the right card, or name another store."
    )
