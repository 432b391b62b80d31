"""Rows of tables: JSONL by field, CSV and parquet by column. A row knows where it stood, by which faults are named."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from assay.datasets.sources import SourceFile, json_of, lacking, reading, unreadable
from assay.protocol.errors import AssayError, UsageError, UserError

MAX_LINE: Final = 1 << 26
"""Bytes of a line of JSONL or CSV, and of a cell: a file without line ends is not read into memory whole."""

RESERVED: Final = "__metadata__"
"""What a safetensors file says beside its tensors stands under this name."""

_TABBED: Final = (".tsv", ".tab")

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,400}")
_FRACTION: Final = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][+-]?[0-9]+)?")

_AT_ONCE: Final = 1 << 10
"""Rows of a parquet file that are in memory together."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """The values of the wanted fields. where: the file and line, or row, counted from 1."""

    where: str
    values: tuple[Any, ...]


def check_fields(fields: Sequence[str]) -> None:
    """Whether fields can be taken, and name tensors. Raises UsageError (FieldTwice, FieldUnfit)."""
    # Two tensors of one name would be one, with every row in it twice.
    if twice := next((name for name in fields if fields.count(name) > 1), None):
        raise UsageError(f"The field {twice!r} is named twice.", code="FieldTwice", remedy="Name each field once.")
    unfit = next((name for name in fields if not name.isprintable() or name == RESERVED), None)
    if unfit is not None:
        raise UsageError(
            f"A tensor cannot be called {unfit!r}.", code="FieldUnfit", remedy="Rename the field in the source."
        )


def jsonl_rows(file: SourceFile, fields: Sequence[str]) -> Iterator[TableRow]:
    """The rows of a JSONL file; blank lines are none. Raises UserError (DataUnreadable, BadRow, NoSuchField)."""
    number = 0
    with reading(file.path) as stream:
        while line := stream.readline(MAX_LINE + 1):
            number += 1
            where = f"{file.path}, line {number}"
            if len(line) > MAX_LINE:
                raise bad_row(where, f"the line has more than {MAX_LINE} bytes")
            if not line.strip():
                continue
            try:
                document = json_of(line)
            except ValueError as error:
                raise bad_row(where, f"it is no JSON ({_reason(error)})") from None
            if not isinstance(document, dict):
                raise bad_row(where, f"it holds a {type(document).__name__}, no object")
            missing = [name for name in fields if name not in document]
            if missing:
                raise no_field(where, missing[0], sorted(document))
            yield TableRow(where, tuple(document[name] for name in fields))


def csv_rows(file: SourceFile, columns: Sequence[str]) -> Iterator[TableRow]:
    """The rows of a file of comma-separated values (RFC 4180), or of tabs by its name's ending; its first row names the
    columns, each cell is text. Blank lines are no rows.

    Raises UserError (DataUnreadable, BadRow, NoSuchField).
    """
    # One limit for all of the process, by which others read their tables as well: it is only ever raised.
    csv.field_size_limit(max(MAX_LINE, csv.field_size_limit()))
    number = 0

    def lines() -> Iterator[str]:
        nonlocal number
        while line := stream.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise bad_row(f"{file.path}, line {number}", f"the line has more than {MAX_LINE} bytes")
            try:
                # Spreadsheets put a mark before the first name.
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise bad_row(f"{file.path}, line {number}", f"byte {error.start} is no UTF-8") from None

    with reading(file.path) as stream:
        rows = csv.reader(lines(), delimiter="\t" if file.path.suffix.lower() in _TABBED else ",", strict=True)
        header: list[str] = []
        try:
            for cells in rows:
                where = f"{file.path}, line {number}"
                if not cells:
                    continue
                if not header:
                    header = cells
                    places = [_column(where, name, header) for name in columns]
                elif len(cells) != len(header):
                    raise bad_row(where, f"it has {len(cells)} cells, the first row {len(header)}")
                else:
                    yield TableRow(where, tuple(cells[place] for place in places))
        except csv.Error as error:
            raise bad_row(f"{file.path}, line {number}", f"it is no CSV ({_reason(error)})") from None


def numbers_of(rows: Iterable[TableRow]) -> Iterator[TableRow]:
    """Rows of text with numbers in the columns in which the first row has some; a cell that is none stays text."""
    are_numbers: list[bool] | None = None
    for row in rows:
        if are_numbers is None:
            are_numbers = [_number(text) is not None for text in row.values]
        cells = zip(row.values, are_numbers, strict=True)
        yield TableRow(row.where, tuple(_number_or_text(text) if taken else text for text, taken in cells))


def parquet_rows(file: SourceFile, columns: Sequence[str]) -> Iterator[TableRow]:
    """The rows of a parquet file.

    Raises ConfigError (PackageMissing), UserError (DataUnreadable, NoSuchField).
    """
    try:
        import pyarrow.parquet as parquet  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise lacking("pyarrow", "Parquet files") from None
    number = 0
    with reading(file.path) as stream:
        try:
            table = parquet.ParquetFile(stream)
            missing = [name for name in columns if name not in table.schema_arrow.names]
            if missing:
                raise no_field(str(file.path), missing[0], sorted(table.schema_arrow.names))
            for batch in table.iter_batches(_AT_ONCE, columns=list(columns), use_threads=False):
                for values in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
                    number += 1
                    yield TableRow(f"{file.path}, row {number}", values)
        except AssayError:
            raise
        except Exception as error:  # text that is no UTF-8, dates that Python does not have, a column twice
            after = f" after row {number}" if number else ""
            raise unreadable(file.path, f"{_reason(error)}{after}") from None


def bad_row(where: str, why: str) -> UserError:
    """What is said of a row that cannot be taken."""
    return UserError(f"{where}: {why}.", code="BadRow", remedy="Mend the row, or take it out.")


def no_field(where: str, name: str, known: Sequence[str]) -> UserError:
    """What is said of a row without a wanted field."""
    return UserError(
        f"{where}: there is no field {name!r}, only {', '.join(known[:8]) or 'none'}.",
        code="NoSuchField",
        remedy="Name fields that every row has: --field NAME.",
    )


def _column(where: str, name: str, header: Sequence[str]) -> int:
    """The place of a column. Raises UserError (NoSuchField, BadRow)."""
    if name not in header:
        raise no_field(where, name, sorted(header))
    if header.count(name) > 1:
        raise bad_row(where, f"the column {name!r} is there twice")
    return header.index(name)


def _number(text: str) -> int | float | None:
    """Of ASCII digits alone: what else Python reads as a number, such as `nan` or `1_000`, is text."""
    text = text.strip(" ")
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FRACTION.fullmatch(text) else None


def _number_or_text(text: str) -> int | float | str:
    found = _number(text)
    return text if found is None else found


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
