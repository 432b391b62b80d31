"""Everything that is listed of a run, by name, in an order that only grows; and as flat rows of CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any, Final

from assay.explorer.audit_documents import accusations, epochs, findings
from assay.explorer.documents import Document
from assay.explorer.games import games
from assay.explorer.people import actors, tickets
from assay.explorer.reader import RunReader
from assay.explorer.work_documents import generation_document, generations, round_document, tenures, works
from assay.protocol.types import Round


def rounds(reader: RunReader) -> Iterator[Document]:
    """Every round of the run."""
    return (round_document(reader, Round(number)) for number in range(len(reader.state.books.commitments.rounds)))


def all_generations(reader: RunReader) -> Iterator[Document]:
    """Every generation of the run, the genesis first."""
    return (generation_document(reader, number) for number in generations(reader))


def events(reader: RunReader) -> Iterator[Document]:
    """Every event of the run's contracts, in the order of the chain."""
    return (asdict(row) for row in reader.events)


TABLES: Final[dict[str, Callable[[RunReader], Iterable[Document]]]] = {
    "rounds": rounds,
    "commitments": works,
    "generations": all_generations,
    "tenures": tenures,
    "tickets": tickets,
    "epochs": epochs,
    "findings": findings,
    "accusations": accusations,
    "games": games,
    "actors": actors,
    "events": events,
}


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
