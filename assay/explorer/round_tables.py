"""Everything that is listed of a run of the second round, by name, in an order that only grows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from assay.explorer.audit_documents import accusations, epochs, findings
from assay.explorer.documents import Document
from assay.explorer.round_documents import generation_document, generations, round_document, tenures, works
from assay.explorer.round_people import actors, games, tickets
from assay.explorer.round_reader import RoundReader
from assay.explorer.tables import events
from assay.protocol.types import Round


def rounds(reader: RoundReader) -> Iterator[Document]:
    """Every round of the run."""
    return (round_document(reader, Round(number)) for number in range(len(reader.state.books.commitments.rounds)))


def all_generations(reader: RoundReader) -> Iterator[Document]:
    """Every generation of the run, the genesis first."""
    return (generation_document(reader, number) for number in generations(reader))


ROUND_TABLES: Final[dict[str, Callable[[RoundReader], Iterable[Document]]]] = {
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
