"""Comma-separated values as data: the tensors of the same rows in JSONL, and what is no such file is named."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.datasets import tables
from assay.datasets.convert import DataTerms, SourceKind, convert, kind_of
from assay.datasets.folder import open_data
from assay.datasets.sources import files_of
from tests.unit.datasets.test_convert import files_in, refused

CELLS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=12)


def written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6), tab=st.booleans())
def test_texts_are_those_of_the_same_rows_in_jsonl(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], tab: bool
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    rows = [(f"a{text}", other) for text, other in rows]
    file = folder / ("rows.tsv" if tab else "rows.csv")
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter="\t" if tab else ",").writerows([("text", "other"), *rows])
    (folder / "rows.jsonl").write_text("\n".join(json.dumps({"text": text}) for text, _ in rows))
    terms = DataTerms(fields=("text",))
    assert (
        convert([file], folder / "a", terms)["files"] == convert([folder / "rows.jsonl"], folder / "b", terms)["files"]
    )


def test_numbers_are_those_of_the_same_rows_in_jsonl(tmp_path: Path) -> None:
    table = written(tmp_path / "rows.csv", '\ufeffy,"x, scaled",name\r\n1,-0.5,a\r\n\r\n 2 ,"+1e3",b\r\n-3,.25,7\r\n')
    terms = DataTerms(fields=("x, scaled", "y"), percent=0)
    convert([table], tmp_path / "out", terms)
    rows = [{"x, scaled": x, "y": y} for x, y in ((-0.5, 1), (1e3, 2), (0.25, -3))]
    convert([written(tmp_path / "rows.jsonl", "\n".join(map(json.dumps, rows)))], tmp_path / "other", terms)
    made, other = files_in(tmp_path / "out"), files_in(tmp_path / "other")
    assert made["train.safetensors"] == other["train.safetensors"]
    x, y = open_data(tmp_path / "out").train
    assert (x.tolist(), y.tolist()) == ([-0.5, 1000.0, 0.25], [1, 2, -3])


@pytest.mark.parametrize("name", ["a.csv", "a.CSV", "a.tsv", "a.tab"])
def test_endings_say_that_a_file_is_such_a_table(tmp_path: Path, name: str) -> None:
    assert kind_of(files_of([written(tmp_path / name, "")])) is SourceKind.CSV


def test_what_the_first_row_of_all_holds_decides_for_every_file(tmp_path: Path) -> None:
    first, second = written(tmp_path / "a.csv", "t\nwords\n"), written(tmp_path / "b.csv", "t\n12\n")
    convert([first, second], tmp_path / "out", DataTerms(fields=("t",), percent=0))
    data = open_data(tmp_path / "out")
    assert data.tokenizer is not None and data.tokenizer.decode(data.train[0].tolist()) == "words\n12\n"
    written(first, "t\n1\n")
    written(second, "t\nwords\n")
    refused("BadRow", "b.csv, line 2", [first, second], DataTerms(fields=("t",)), tmp_path / "other")


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("x,y\n1\n", "BadRow", "line 2: it has 1 cells, the first row 2"),
        ("x,y\n1,2,3\n", "BadRow", "line 2: it has 3 cells, the first row 2"),
        ("y\n1\n", "NoSuchField", "there is no field 'x', only y"),
        ("x,x\n1,2\n", "BadRow", "line 1: the column 'x' is there twice"),
        ('x\n"1\n2\n', "BadRow", "line 3: it is no CSV (unexpected end of data)"),
        ('x\n"1"2\n', "BadRow", "line 2: it is no CSV"),
        ("x\n1\n\n\nnan\n", "BadRow", "line 5: 'x' holds neither a number"),
        ("x\n1\n1_0\n", "BadRow", "line 3: 'x' holds neither a number"),
        ("x,y\n1,a\n,b\n", "BadRow", "line 3: 'x' holds neither a number"),
        ("x\n1\n2.5\n", "BadRow", "line 3: 'x' holds fractions"),
        ("x\n", "EmptyData", "no data"),
        ("", "EmptyData", "no data"),
    ],
)
def test_what_is_wrong_is_named_by_its_line(tmp_path: Path, text: str, code: str, words: str) -> None:
    refused(code, words, [written(tmp_path / "rows.csv", text)], DataTerms(fields=("x",)), tmp_path / "out")


def test_more_digits_than_python_reads_are_text(tmp_path: Path) -> None:
    table = written(tmp_path / "rows.csv", "x\n1\n" + "9" * 5000 + "\n")
    refused("BadRow", "line 3: 'x' holds neither a number", [table], DataTerms(fields=("x",)), tmp_path / "out")


@pytest.fixture
def short_cells() -> Iterator[None]:
    """A limit of the whole process, which importlib, for one, reads its tables by."""
    before = csv.field_size_limit(8)
    yield
    csv.field_size_limit(before)


def test_reading_a_table_lowers_no_limit_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_LINE", 8)
    before = csv.field_size_limit()
    convert([written(tmp_path / "rows.csv", "x\n1\n")], tmp_path / "out", DataTerms(fields=("x",)))
    assert csv.field_size_limit() == before


def test_bytes_that_are_no_text_and_lines_without_end_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "rows.csv"
    table.write_bytes(b"x\n1\n\xff\n")
    refused("BadRow", "line 3: byte 0 is no UTF-8", [table], DataTerms(fields=("x",)), tmp_path / "out")
    monkeypatch.setattr(tables, "MAX_LINE", 8)
    table.write_bytes(b"x\n" + b"1" * 7 + b"\n")
    convert([table], tmp_path / "out", DataTerms(fields=("x",)))
    table.write_bytes(b"x\n" + b"1" * 8 + b"\n")
    refused("BadRow", "line 2: the line has more than 8 bytes", [table], DataTerms(fields=("x",)), tmp_path / "more")


@pytest.mark.usefixtures("short_cells")
def test_a_cell_of_many_lines_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MAX_LINE", 8)
    table = tmp_path / "rows.csv"
    table.write_bytes(b'x\n"' + b"1\n" * 5 + b'"\n')
    refused(
        "BadRow", "it is no CSV (field larger than field limit (8)", [table], DataTerms(fields=("x",)), tmp_path / "m"
    )
