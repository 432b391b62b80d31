"""Rows of tables: JSONL by field, parquet by column. A row knows where it stood, so that what is wrong can be named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from assay.datasets.sources import SourceFile, json_of, lacking, reading, unreadable
from assay.protocol.errors import AssayError, UsageError, UserError

MAX_LINE: Final = 1 << 26
"""Bytes of a line of JSONL: a file without line ends is not read into memory whole."""

RESERVED: Final = "__metadata__"
"""What a safetensors file says beside its tensors stands under this name."""

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


def _reason(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
