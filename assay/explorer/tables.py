"""Everything that is listed of a run, by name, in an order that only grows; and as flat rows of CSV.

A table knows how long it is and makes the rows that are asked for, so that a page of a long one costs what it shows.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from assay.explorer.audit_documents import accusation_document, epoch_document, finding_document, ticket_document
from assay.explorer.documents import Document
from assay.explorer.games import VERDICT, game_document
from assay.explorer.people import actor_document
from assay.explorer.reader import RunReader
from assay.explorer.revenue_documents import account_document, till_document
from assay.explorer.vote_documents import proposal_document, vote_document
from assay.explorer.work_documents import generation_document, generations, round_document, tenure_document
from assay.explorer.work_documents import work_document as commitment_document
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Round


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A list of documents: how many there are, and the one at a place.

    each: of how many documents one is made. counted: the document with those counted; a row of CSV says no more.
    """

    size: Callable[[RunReader], int]
    row: Callable[[RunReader, int], Document]
    each: Callable[[RunReader], int] = lambda _: 1
    counted: Callable[[RunReader, int], Document] | None = None

    def rows(self, reader: RunReader, start: int = 0, end: int | None = None) -> Iterator[Document]:
        """Those from a place to another, as far as there are any."""
        return (self.row(reader, place) for place in self._places(reader, start, end))

    def flat_rows(self, reader: RunReader, start: int, end: int) -> Iterator[Document]:
        """The same as rows of CSV."""
        row = self.counted or self.row
        return (flat(row(reader, place)) for place in self._places(reader, start, end))

    def _places(self, reader: RunReader, start: int, end: int | None) -> range:
        size = self.size(reader)
        return range(min(start, size), size if end is None else min(end, size))


def _counts(row: Callable[[RunReader, int], Document], *lists: str) -> Callable[[RunReader, int], Document]:
    """Documents with lists of documents counted: of an empty one nothing tells what it is a list of."""

    def counted(reader: RunReader, place: int) -> Document:
        document = row(reader, place)
        return document | {name: len(document[name]) for name in lists}

    return counted


def _game(reader: RunReader, place: int) -> Document:
    return game_document(reader, reader.shelves.games[place])


def _judged(reader: RunReader, place: int) -> Document:
    """A game whose columns are those of one that is over, also before it is."""
    document = _game(reader, place)
    return document | {"verdict": document["verdict"] or dict.fromkeys(VERDICT)}


def _ticket(reader: RunReader, place: int) -> Document:
    return ticket_document(reader, TicketId(place + 1))


def _tenures(reader: RunReader) -> int:
    return len(reader.state.books.tenures.tenures)


TABLES: Final[dict[str, ListedTable]] = {
    "rounds": ListedTable(
        lambda r: len(r.state.books.commitments.rounds),
        lambda r, k: round_document(r, Round(k)),
        lambda r: r.run.charter.training.seats,
        lambda r, k: round_document(r, Round(k), is_whole=False),
    ),
    "commitments": ListedTable(lambda r: len(r.shelves.works), lambda r, k: commitment_document(r, r.shelves.works[k])),
    "generations": ListedTable(
        lambda r: len(generations(r)), generation_document, counted=_counts(generation_document, "openings", "sums")
    ),
    # Tenures and tickets are numbered from 1.
    "tenures": ListedTable(_tenures, lambda r, k: tenure_document(r, k + 1)),
    "tickets": ListedTable(lambda r: len(r.state.books.registry.anchors), _ticket, counted=_counts(_ticket, "calls")),
    "epochs": ListedTable(
        lambda r: len(r.view.epochs),
        epoch_document,
        counted=_counts(epoch_document, "called", "findings", "accusations", "fined"),
    ),
    "findings": ListedTable(lambda r: len(r.shelves.findings), lambda r, k: finding_document(r, r.shelves.findings[k])),
    "accusations": ListedTable(
        lambda r: len(r.shelves.accusations), lambda r, k: accusation_document(r, r.shelves.accusations[k])
    ),
    "games": ListedTable(lambda r: len(r.shelves.games), _game, counted=_judged),
    "gateways": ListedTable(
        lambda r: len(r.earnings.gateways.tills), lambda r, k: till_document(r.earnings.gateways.tills[k])
    ),
    "deposits": ListedTable(
        lambda r: len(r.earnings.gateways.accounts), lambda r, k: account_document(r.earnings.gateways.accounts[k])
    ),
    "proposals": ListedTable(lambda r: len(r.votes.made), lambda r, k: proposal_document(r, r.votes.made[k])),
    "votes": ListedTable(lambda r: len(r.votes.votes), lambda r, k: vote_document(r.votes.votes[k])),
    "actors": ListedTable(lambda r: len(r.money.people), lambda r, k: actor_document(r, r.money.people[k])),
    "events": ListedTable(lambda r: len(r.events), lambda r, k: asdict(r.events[k])),
}


_FORMULA: Final = re.compile(r"[=@\t\r\n]|[+-](?!\d+$)")
"""What a program for tables takes for one; a number with a sign is none."""


def to_csv(rows: Sequence[Document]) -> str:
    """Flat rows as CSV, with one column for each name in any of them."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def flat(document: Document, prefix: str = "") -> Document:
    """A row of one column per scalar; lists of scalars are joined by spaces, lists of documents counted."""
    row: Document = {}
    for name, value in document.items():
        if isinstance(value, dict):
            row |= flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            is_plain = not any(isinstance(entry, dict) for entry in value)
            row[prefix + name] = _inert(" ".join(map(str, value))) if is_plain else len(value)
        else:
            row[prefix + name] = "" if value is None else _inert(value)
    return row


def _inert(value: Any) -> Any:
    """Attack: the reason of a vote that begins as a formula does, which a program for tables computes, and may send."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
