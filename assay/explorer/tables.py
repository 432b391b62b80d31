"""Tables for download: the documents as flat rows of CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final

from assay.explorer.chain_reader import ChainReader
from assay.explorer.documents import Document, actors, claims, commitment_document, game_document, round_document
from assay.explorer.run_reader import RunReader


def commitments(reader: RunReader) -> Iterator[Document]:
    """Every commitment of the run."""
    for record in reader.state.rounds:
        for _, commitment in sorted(record.commitments.items()):
            yield commitment_document(reader, record, commitment)


def games(reader: RunReader) -> Iterator[Document]:
    """Every dispute of the run."""
    return (game_document(reader, game) for _, game in sorted(reader.state.games.items()))


def rounds(reader: RunReader) -> Iterator[Document]:
    """Every round of the run."""
    return (round_document(reader, record) for record in reader.state.rounds)


def events(reader: ChainReader) -> Iterator[Document]:
    """Every event of the run's contracts, in the order of the chain."""
    return (asdict(row) for row in reader.events)


TABLES: Final[dict[str, Callable[[RunReader], Iterable[Document]]]] = {
    "rounds": rounds,
    "commitments": commitments,
    "claims": claims,
    "games": games,
    "actors": actors,
    "events": events,
}
"""Everything that is listed, by name, in an order that only grows."""


def to_csv(documents: Iterable[Document]) -> str:
    """Rows of CSV with one column per scalar; lists of scalars are joined by spaces, lists of documents counted."""
    rows = [_flat(document) for document in documents]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _flat(document: Document, prefix: str = "") -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in document.items():
        if isinstance(value, dict):
            row |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            is_plain = not any(isinstance(entry, dict) for entry in value)
            row[prefix + name] = " ".join(map(str, value)) if is_plain else len(value)
        else:
            row[prefix + name] = "" if value is None else value
    return row
