"""From files to a folder of data. It appears whole or not at all."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Any, Final

from assay.datasets import streams
from assay.datasets.examples import ExampleFiles, write_examples
from assay.datasets.folder import CARD, FORMAT, TOKENIZER, TRAIN, VALIDATION
from assay.datasets.images import AS_THEY_ARE, ImageForm, classes_of, decoder, write_images
from assay.datasets.sources import SourceFile, digest_of, files_of, reading
from assay.datasets.tables import TableRow, check_fields, csv_rows, jsonl_rows, numbers_of, parquet_rows
from assay.datasets.tokenizers import Tokenizer, digest_of_tokenizer, read_tokenizer
from assay.datasets.writing import FileRows, TensorFile, remove, write_tensors
from assay.protocol.errors import ConfigError, UsageError, UserError


class SourceKind(StrEnum):
    """What sources are."""

    TEXT = "text"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    IMAGES = "images"


_SUFFIXES: Final = {
    **dict.fromkeys((".jsonl", ".ndjson"), SourceKind.JSONL),
    **dict.fromkeys((".csv", ".tsv", ".tab"), SourceKind.CSV),
    **dict.fromkeys((".parquet", ".pq"), SourceKind.PARQUET),
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm"), SourceKind.IMAGES),
}


@dataclass(frozen=True, slots=True)
class DataTerms:
    """How sources are converted.

    kind: by the names' endings unless given. fields: of rows; one of text gives a stream, others tensors of examples.
    tokenizer: a file; one of all characters is made unless given. tokenizer_digest: the SHA-256 it must have, in hex.
    end: what is put behind each document, a token's text or characters. percent: of what is held out. images: their
    form. licence, creator: of the sources, as whoever converts them states it; empty: not stated.
    """

    kind: SourceKind | None = None
    fields: tuple[str, ...] = ()
    tokenizer: Path | None = None
    tokenizer_digest: str | None = None
    end: str = ""
    percent: int = 10
    images: ImageForm = AS_THEY_ARE
    licence: str = ""
    creator: str = ""


def convert(sources: Sequence[Path], folder: Path, terms: DataTerms) -> dict[str, Any]:
    """Converts sources into a new folder of data; its card.

    Raises:
        UserError: what stands in the way, with file and line. UsageError: MixedSources, FieldMissing.
        ConfigError: FolderTaken, FileNotWritable, PackageMissing.
    """
    if not 0 <= terms.percent < 100:
        raise UsageError(f"{terms.percent} % cannot be held out.", code="BadSplit", remedy="Hold out 0 to 99.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists already.", code="FolderTaken", remedy="Name a folder that is not there.")
    files, folder = files_of(sources), folder.absolute()
    fresh = folder.with_name(f".{folder.name}-{secrets.token_hex(8)}")
    try:
        fresh.mkdir(parents=True)
        card = _made(files, fresh, terms)
        (fresh / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
        fresh.replace(folder)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be written ({error.strerror or error}).",
            code="FileNotWritable",
            remedy="Name another folder, and look at the room on its disk.",
        ) from None
    finally:
        remove(fresh)
    return card


def kind_of(files: Sequence[SourceFile]) -> SourceKind:
    """By the endings of the files' names, text unless they say otherwise. Raises UsageError (MixedSources)."""
    kinds = {_SUFFIXES.get(file.path.suffix.lower(), SourceKind.TEXT): file for file in files}
    if len(kinds) > 1:
        named = ", ".join(f"{file.path} ({kind})" for kind, file in sorted(kinds.items()))
        raise UsageError(
            f"The sources are of several kinds: {named}.",
            code="MixedSources",
            remedy="Convert each kind by itself, or say what they are: --from KIND.",
        )
    return next(iter(kinds))


# --- inside


@dataclass(frozen=True, slots=True)
class _Parts:
    """What was written of a data set, before it lies in its files."""

    train: dict[str, FileRows]
    validation: dict[str, FileRows]
    split: str
    tokenizer: Tokenizer | None = None
    end: str = ""
    more: tuple[tuple[str, Any], ...] = ()


def _made(files: Sequence[SourceFile], fresh: Path, terms: DataTerms) -> dict[str, Any]:
    kind = terms.kind or kind_of(files)
    before = [file.document() for file in files]
    rows = fresh / "rows"
    rows.mkdir()
    match kind:
        case SourceKind.TEXT:
            parts = _stream(rows, lambda: streams.text_pieces(files), terms, terms.end)
        case SourceKind.IMAGES:
            classes = classes_of(files)
            made = write_images(rows, files, terms.images, terms.percent)
            parts = _examples(made, (("classes", classes), ("decoder", decoder())))
        case _:
            parts = _table(rows, files, kind, terms)
    if not parts.train or not all(part.count for part in parts.train.values()):
        raise UserError("The sources hold no data.", code="EmptyData", remedy="Give files with something in them.")
    names = _written(fresh, parts)
    remove(rows)
    # What was read twice may have been written to between.
    if [file.document() for file in files] != before:
        raise UserError("A source changed while it was read.", code="DataChanged", remedy="Convert again.")
    return _card(fresh, kind, before, parts, names, terms)


def _table(rows: Path, files: Sequence[SourceFile], kind: SourceKind, terms: DataTerms) -> _Parts:
    if not terms.fields:
        raise UsageError(
            f"Of {kind} it must be said which field is taken.", code="FieldMissing", remedy="Name it: --field text."
        )
    read = {SourceKind.JSONL: jsonl_rows, SourceKind.CSV: csv_rows, SourceKind.PARQUET: parquet_rows}[kind]

    def all_rows() -> Iterator[TableRow]:
        rows = chain.from_iterable(read(file, terms.fields) for file in files)
        return numbers_of(rows) if kind is SourceKind.CSV else rows

    first = next(all_rows(), None)
    if first is not None and len(terms.fields) == 1 and isinstance(first.values[0], str):
        # Without an end two documents would run into each other; a tokenizer's own end has to be named.
        end = terms.end or ("" if terms.tokenizer else "\n")
        return _stream(rows, lambda: streams.row_pieces(all_rows()), terms, end)
    check_fields(terms.fields)
    return _examples(write_examples(rows, all_rows(), terms.fields, terms.percent))


def _stream(rows: Path, pieces: streams.Pieces, terms: DataTerms, end: str) -> _Parts:
    if terms.tokenizer is None:
        tokenizer: Tokenizer = streams.characters_of(pieces, end)
    else:
        tokenizer = read_tokenizer(terms.tokenizer, terms.tokenizer_digest)
    made = streams.write_stream(rows / "tokens", pieces, tokenizer, end)
    held_out = made.count * terms.percent // 100
    train = {"tokens": FileRows(made, 0, made.count - held_out)}
    validation = {"tokens": FileRows(made, made.count - held_out, held_out)}
    return _Parts(train, validation, "the last tokens", tokenizer, end)


def _examples(made: ExampleFiles, more: tuple[tuple[str, Any], ...] = ()) -> _Parts:
    def whole(parts: dict[str, TensorFile]) -> dict[str, FileRows]:
        return {name: FileRows(file, 0, file.count) for name, file in parts.items()}

    return _Parts(whole(made.train), whole(made.validation), "examples at equal distances", more=more)


def _written(fresh: Path, parts: _Parts) -> list[str]:
    names = [TRAIN]
    write_tensors(fresh / TRAIN, parts.train)
    if parts.validation and all(rows.count for rows in parts.validation.values()):
        names.append(VALIDATION)
        write_tensors(fresh / VALIDATION, parts.validation)
    if parts.tokenizer is not None:
        names.append(TOKENIZER)
        (fresh / TOKENIZER).write_bytes(parts.tokenizer.file)
    return names


def _card(
    fresh: Path, kind: SourceKind, sources: list[dict[str, object]], parts: _Parts, names: list[str], terms: DataTerms
) -> dict[str, Any]:
    tokenizer = None
    if parts.tokenizer is not None:
        tokenizer = {
            "kind": parts.tokenizer.kind,
            "sha256": digest_of_tokenizer(parts.tokenizer.file),
            "size": parts.tokenizer.size,
            "end": parts.end,
        }
    return {
        "format": FORMAT,
        "kind": str(kind),
        **{name: text for name, text in (("licence", terms.licence), ("creator", terms.creator)) if text},
        "sources": sources,
        "fields": list(terms.fields),
        "tensors": {
            "train": _tensor_documents(fresh / TRAIN, parts.train),
            "validation": _tensor_documents(fresh / VALIDATION, parts.validation) if VALIDATION in names else None,
        },
        "split": {"percent": terms.percent, "held_out": parts.split},
        "tokenizer": tokenizer,
        **dict(parts.more),
        "files": {name: _digest(fresh / name) for name in names},
    }


def _tensor_documents(path: Path, parts: dict[str, FileRows]) -> dict[str, Any]:
    """Element type, shape and tensor root of each, by name in the order of a recipe's data."""
    from safetensors import safe_open

    from assay.engine.runtime.values.state_io import root_of

    found = {}
    with safe_open(path, framework="pt") as file:
        for name, rows in parts.items():
            root = root_of(file.get_tensor(name))
            found[name] = {
                "dtype": rows.source.dtype.name.lower(),
                "shape": list(rows.dims),
                "root": "0x" + root.hex(),
            }
    return found


def _digest(path: Path) -> str:
    with reading(path) as stream:
        return digest_of(stream)[0]
