"""Converters: what goes in comes out, the same bytes whatever the order of files, and what is wrong is named."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from assay.cli.data import app
from assay.datasets.convert import DataTerms, SourceKind, convert, kind_of
from assay.datasets.examples import is_held_out
from assay.datasets.folder import CARD, TOKENIZER, TRAIN, check_roots, open_data
from assay.datasets.sources import files_of
from assay.datasets.streams import PIECE
from assay.datasets.tokenizers import Characters, read_tokenizer, tokenizer_of
from assay.protocol.errors import AssayError, UserError

TEXTS = st.lists(st.text(st.characters(exclude_categories=("Cs",)), max_size=20), min_size=1, max_size=6)


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def refused(code: str, words: str, sources: list[Path], terms: DataTerms, to: Path) -> None:
    """The conversion ends with this code and these words, and leaves nothing behind."""
    before = sorted(to.parent.iterdir())
    with pytest.raises(AssayError) as found:
        convert(sources, to, terms)
    assert found.value.code == code, found.value
    assert words in str(found.value)
    assert sorted(to.parent.iterdir()) == before


@settings(max_examples=25, deadline=None)
@given(texts=TEXTS, end=st.sampled_from(("", "\n", "$$")), percent=st.integers(0, 99))
def test_texts_come_back_from_their_tokens(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], end: str, percent: int
) -> None:
    texts = [*texts, "at least a word"]
    folder = tmp_path_factory.mktemp("data")
    sources = [folder / f"{k:03d}.txt" for k in range(len(texts))]
    for path, text in zip(sources, texts, strict=True):
        path.write_text(text, encoding="utf-8", newline="")
    convert(sources, folder / "out", DataTerms(end=end, percent=percent))
    data = open_data(folder / "out")
    tokenizer = data.tokenizer
    assert tokenizer is not None
    held_out = () if data.validation is None else data.validation
    tokens = torch.cat([*data.train, *held_out]).tolist()
    assert tokenizer.decode(tokens) == "".join(text + end for text in texts)
    assert sum(t.numel() for t in held_out) == len(tokens) * percent // 100


def test_the_order_of_files_and_sources_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b", "a/x", "a/É", "ä", "c/deep/er"):
        path = tmp_path / "texts" / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"This is {name}.\n", encoding="utf-8")
    convert([tmp_path / "texts"], tmp_path / "first", DataTerms())
    scandir, seed = os.scandir, random.Random(48)

    def shuffled(where: object) -> object:
        if not isinstance(where, Path):
            return scandir(where)  # type: ignore[call-overload]
        found = list(scandir(where))
        seed.shuffle(found)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", shuffled)
        patched.setenv("LC_ALL", "tr_TR.UTF-8")
        convert([tmp_path / "texts"], tmp_path / "second", DataTerms())
    assert files_in(tmp_path / "first") == files_in(tmp_path / "second")
    sources = sorted((tmp_path / "texts").rglob("*.txt"), reverse=True)
    for k in range(2):
        seed.shuffle(sources)
        convert(sources, tmp_path / f"named{k}", DataTerms())
    assert files_in(tmp_path / "named0") == files_in(tmp_path / "named1")


def test_a_card_states_licence_and_creator_where_somebody_does(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some text, and some more\n" * 20)
    stated = convert([tmp_path / "a.txt"], tmp_path / "out", DataTerms(licence="CC0-1.0", creator="Ada"))
    assert (stated["licence"], stated["creator"]) == ("CC0-1.0", "Ada")
    silent = convert([tmp_path / "a.txt"], tmp_path / "more", DataTerms())
    assert not {"licence", "creator"} & set(silent) and stated["files"] == silent["files"]


def test_the_card_names_sources_files_and_the_data_root(tmp_path: Path) -> None:
    from assay.engine.runtime.values.state_io import root_of

    (tmp_path / "a.txt").write_bytes(b"to be or not to be, that is the question\n")
    card = convert([tmp_path / "a.txt"], tmp_path / "out", DataTerms())
    assert card == json.loads((tmp_path / "out" / CARD).read_text())
    assert card["sources"] == [
        {"name": "a.txt", "bytes": 41, "sha256": hashlib.sha256((tmp_path / "a.txt").read_bytes()).hexdigest()}
    ]
    data = open_data(tmp_path / "out")
    assert card["tensors"]["train"]["tokens"] == {
        "dtype": "u8", "shape": [37], "root": "0x" + root_of(data.train[0]).hex()
    }  # fmt: skip
    assert {name: hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() for name in card["files"]} == (
        card["files"]
    )


def test_files_written_are_those_of_the_safetensors_library(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save

    rows = [{"x": [k / 2, 1.0], "y": k, "z": [[k]]} for k in range(7)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    convert([tmp_path / "rows.jsonl"], tmp_path / "out", DataTerms(fields=("x", "y", "z"), percent=0))
    file = tmp_path / "out" / TRAIN
    assert save(load_file(file)) == file.read_bytes()
    x, y, z = open_data(tmp_path / "out").train
    assert x.tolist() == [row["x"] for row in rows]
    assert (y.tolist(), y.dtype) == (list(range(7)), torch.int32)
    assert z.shape == (7, 1, 1)


@given(percent=st.integers(0, 99), count=st.integers(0, 500))
def test_held_out_examples_are_a_share_at_equal_distances(percent: int, count: int) -> None:
    assert sum(is_held_out(k, percent) for k in range(count)) == count * percent // 100


def test_a_long_text_is_cut_at_line_ends_and_nothing_is_lost(tmp_path: Path) -> None:
    line = "é" * 999 + "\n"
    text = line * (PIECE // 1000 + 2) + "x" * (PIECE + 5)
    (tmp_path / "long.txt").write_text(text, encoding="utf-8")
    convert([tmp_path / "long.txt"], tmp_path / "out", DataTerms(percent=0))
    assert torch.bincount(open_data(tmp_path / "out").train[0].to(torch.int32)).tolist() == [
        text.count(c) for c in "\nxé"
    ]


BAD_LINES: list[tuple[bytes, str, str]] = [
    (b'{"text": "cut', "BadRow", "line 2: it is no JSON"),
    (b'["text"]', "BadRow", "line 2: it holds a list"),
    (b'{"other": "x"}', "NoSuchField", "line 2: there is no field 'text', only other"),
    (b'{"text": 7}', "BadRow", "line 2: the field holds a int"),
    (b'{"text": "\xff"}', "BadRow", "line 2: it is no JSON"),
    (b'{"text": "\\ud800"}', "BadRow", "line 2: character 0 is half of a surrogate pair"),
    (b"[" * 1_000_000, "BadRow", "line 2: it is no JSON"),
    (b'{"text": NaN}', "BadRow", "line 2: it is no JSON"),
]


@pytest.mark.parametrize(("line", "code", "words"), BAD_LINES)
def test_a_bad_line_of_jsonl_is_named(tmp_path: Path, line: bytes, code: str, words: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"text": "good"}\n' + line + b'\n{"text": "good"}\n')
    refused(code, words, [path], DataTerms(fields=("text",)), tmp_path / "out")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1, 2, 3], "shape [3], in the first row [2]"),
        ([1.5, 2], "holds fractions, in the first row integers"),
        ([1 << 31, 0], "an integer beyond 32 bits"),
        ([1 << 70, 0], "neither a number nor"),
        ("one", "neither a number nor"),
        ([[1], [2, 3]], "neither a number nor"),
    ],
)
def test_a_row_of_other_numbers_is_named(tmp_path: Path, value: object, words: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"x": [1, 2]}\n' + json.dumps({"x": value}))
    refused("BadRow", words, [path], DataTerms(fields=("x",)), tmp_path / "out")


def test_numbers_that_float32_does_not_hold_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"x": 1.5}\n{"x": 1e39}')
    refused(
        "BadRow", "line 2: 'x' holds a number that float32 does not", [path], DataTerms(fields=("x",)), tmp_path / "o"
    )


def _not_utf8(folder: Path) -> list[Path]:
    (folder / "a.txt").write_bytes(b"one\ntwo\nthr\xffee")
    return [folder / "a.txt"]


def _circle(folder: Path) -> list[Path]:
    (folder / "texts").mkdir()
    (folder / "texts" / "a.txt").write_text("a")
    (folder / "texts" / "again").symlink_to(folder / "texts")
    return [folder / "texts"]


def _link_to_itself(folder: Path) -> list[Path]:
    (folder / "texts").mkdir()
    (folder / "texts" / "a.txt").symlink_to("a.txt")
    return [folder / "texts"]


def _pipe(folder: Path) -> list[Path]:
    os.mkfifo(folder / "a.txt")
    return [folder / "a.txt"]


def _one_name(folder: Path) -> list[Path]:
    for part in ("x", "y"):
        (folder / part).mkdir()
        (folder / part / "a.txt").write_text(part)
    return [folder / "x" / "a.txt", folder / "y" / "a.txt"]


def _empty(folder: Path) -> list[Path]:
    (folder / "a.txt").write_text("")
    return [folder / "a.txt"]


def _mixed(folder: Path) -> list[Path]:
    (folder / "a.txt").write_text("a")
    (folder / "b.jsonl").write_text("{}")
    return [folder / "a.txt", folder / "b.jsonl"]


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (_not_utf8, "DataNotUtf8", "line 3, is not UTF-8: byte 11"),
        (_circle, "LinkedFolder", "again is a link to a folder"),
        (_link_to_itself, "DataUnreadable", "a.txt"),
        (_pipe, "DataUnreadable", "no regular file"),
        (_one_name, "NameTwice", "have one name"),
        (_empty, "EmptyData", "no data"),
        (_mixed, "MixedSources", "a.txt (text)"),
        (lambda folder: [folder / "nothing.txt"], "DataUnreadable", "nothing.txt"),
        (lambda folder: [folder], "NoData", "no file"),
    ],
)
def test_sources_that_cannot_be_taken_are_named(
    tmp_path: Path, make: Callable[[Path], list[Path]], code: str, words: str
) -> None:
    (tmp_path / "in").mkdir()
    refused(code, words, make(tmp_path / "in"), DataTerms(), tmp_path / "out")


def test_fields_that_cannot_name_tensors_are_refused(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"a": 1, "__metadata__": 2, "b\\n": 3}\n' * 4)
    for fields, code in ((("a", "a"), "FieldTwice"), (("__metadata__",), "FieldUnfit"), (("a", "b\n"), "FieldUnfit")):
        refused(code, "", [rows], DataTerms(fields=fields), tmp_path / "out")


def test_a_field_with_quotes_names_a_tensor_as_the_library_writes_it(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save

    name = 'say "é" \\'
    (tmp_path / "rows.jsonl").write_text(json.dumps({name: 1}))
    convert([tmp_path / "rows.jsonl"], tmp_path / "out", DataTerms(fields=(name,), percent=0))
    held = load_file(tmp_path / "out" / TRAIN)
    assert held[name].tolist() == [1] and (tmp_path / "out" / TRAIN).read_bytes() == save(held)


def test_links_to_files_are_followed(tmp_path: Path) -> None:
    (tmp_path / "blob").write_text("words")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").symlink_to("../blob")
    assert convert([tmp_path / "texts"], tmp_path / "out", DataTerms())["sources"][0]["name"] == "a.txt"


def test_a_folder_that_is_taken_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    refused("FolderTaken", "exists already", [tmp_path / "a.txt"], DataTerms(), tmp_path / "out")
    assert files_in(tmp_path / "out") == {"mine": b"mine"}


def test_endings_say_what_files_are(tmp_path: Path) -> None:
    for name, kind in {
        "a.TXT": "text",
        "b.md": "text",
        "c.JSONL": "jsonl",
        "d.pq": "parquet",
        "e.JPG": "images",
    }.items():
        (tmp_path / name).touch()
        assert kind_of(files_of([tmp_path / name])) is SourceKind(kind)


# --- what was converted, later


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("to be or not to be\n")
    convert([tmp_path / "a.txt"], tmp_path / "out", DataTerms())
    return tmp_path / "out"


@pytest.mark.parametrize("name", [TRAIN, TOKENIZER])
def test_a_changed_file_is_noticed_when_the_folder_is_opened(converted: Path, name: str) -> None:
    data = bytearray((converted / name).read_bytes())
    data[-3] ^= 1
    (converted / name).write_bytes(data)
    with pytest.raises(UserError, match="is not what its card names") as found:
        open_data(converted)
    assert found.value.code == "DataDamaged"


def test_a_card_names_no_file_outside_its_folder(converted: Path) -> None:
    card = json.loads((converted / CARD).read_text())
    card["files"]["../../etc/passwd"] = "00"
    (converted / CARD).write_text(json.dumps(card))
    with pytest.raises(UserError) as found:
        open_data(converted)
    assert found.value.code == "NoDataFolder"


@pytest.mark.parametrize(
    "said",
    [
        {"files": {}},
        {"files": {TRAIN: 5}},
        {"tensors": {"train": [1], "validation": None}},
        {"tensors": {"train": {"tokens": {}}, "validation": None}},
        {"tokenizer": "none"},
        {"sources": None},
        {"kind": "\x1b[2J"},
    ],
    ids=str,
)
def test_what_says_less_than_a_card_is_none(converted: Path, said: dict[str, object]) -> None:
    """Attack: a stranger's card that names no file, so that none is compared with it."""
    card = json.loads((converted / CARD).read_text())
    (converted / CARD).write_text(json.dumps(card | said))
    with pytest.raises(UserError) as found:
        open_data(converted)
    assert found.value.code == "NoDataFolder"


@pytest.mark.parametrize("name", ["", "\ud800", "\0"], ids=ascii)
def test_a_card_whose_tensors_no_file_holds_is_refused(converted: Path, name: str) -> None:
    card = json.loads((converted / CARD).read_text())
    card["tensors"]["train"] = dict.fromkeys([name], *card["tensors"]["train"].values())
    (converted / CARD).write_text(json.dumps(card))
    with pytest.raises(UserError) as found:
        open_data(converted)
    assert found.value.code == "DataDamaged"


def test_the_roots_of_other_data_are_none_of_a_folders(converted: Path) -> None:
    """Attack: a stranger's card that names its own files, and the roots of data that everybody knows."""
    check_roots(open_data(converted))
    for part in ("train", "validation"):
        card = json.loads((converted / CARD).read_text())
        card["tensors"][part]["tokens"]["root"] = "0x" + "11" * 32
        (converted / CARD).write_text(json.dumps(card))
        shown = CliRunner().invoke(app, ["show", str(converted)])
        assert isinstance(shown.exception, UserError) and shown.exception.code == "DataDamaged"
        assert "the root of tokens is 0x" in shown.exception.message and not shown.stdout


def test_another_tokenizer_is_refused_by_its_digest(converted: Path, tmp_path: Path) -> None:
    digest = json.loads((converted / CARD).read_text())["tokenizer"]["sha256"]
    assert open_data(converted, tokenizer=digest).tokenizer == read_tokenizer(converted / TOKENIZER, "0x" + digest)
    other = tmp_path / "other.json"
    other.write_bytes(Characters.of(["another alphabet"]).file)
    with pytest.raises(UserError) as found:
        open_data(converted, tokenizer=hashlib.sha256(other.read_bytes()).hexdigest())
    assert found.value.code == "WrongTokenizer"
    terms = DataTerms(tokenizer=other, tokenizer_digest=digest)
    refused("WrongTokenizer", digest, [tmp_path / "a.txt"], terms, tmp_path / "again")


def test_a_character_that_the_tokenizer_lacks_is_named_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "few.json").write_bytes(Characters.of(["abc\n"]).file)
    (tmp_path / "a.txt").write_text("abc\nabd\n")
    terms = DataTerms(tokenizer=tmp_path / "few.json")
    refused("UnknownCharacter", "a.txt, from line 1: The character 'd'", [tmp_path / "a.txt"], terms, tmp_path / "out")


LISTED = Characters("ab").file
HALF = LISTED.replace(b"ab", b"a\\ud800")


@pytest.mark.parametrize(
    "file",
    [b"", b"{", b"[" * 1_000_000, LISTED + b" ", Characters("ba").file, Characters("aa").file, HALF],
)
def test_bytes_that_are_no_list_of_characters_are_refused(file: bytes) -> None:
    with pytest.raises(UserError) as found:
        tokenizer_of(file)
    assert found.value.code == "BadTokenizer"
