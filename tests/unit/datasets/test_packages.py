"""Parquet, images and Hugging Face's tokenizers: what the optional packages read."""

from __future__ import annotations

import builtins
import io
import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.datasets.convert import DataTerms, convert
from assay.datasets.folder import TOKENIZER, open_data
from assay.datasets.images import ImageForm
from assay.protocol.errors import AssayError, ConfigError


def refused(code: str, words: str, sources: list[Path], terms: DataTerms, to: Path) -> None:
    """The conversion ends with this code and these words, and leaves nothing behind."""
    with pytest.raises(AssayError) as found:
        convert(sources, to, terms)
    assert found.value.code == code, found.value
    assert words in str(found.value)
    assert not to.exists()
    assert not list(to.parent.glob(".out*"))


# --- parquet


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pa: Any = pytest.importorskip("pyarrow", reason="parquet files need pyarrow")
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    columns = {"text": ["one", "", "three"] * 900, "x": [[1.5, 2.0]] * 2700, "y": list(range(2700))}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=500)
    return tmp_path / "rows.parquet"


def test_parquet_and_jsonl_of_the_same_rows_are_the_same_tensors(table: Path, tmp_path: Path) -> None:
    rows = [{"text": t, "x": [1.5, 2.0], "y": k} for k, t in enumerate(["one", "", "three"] * 900)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for name, fields in (("text", ("text",)), ("numbers", ("x", "y"))):
        cards = [
            convert([source], tmp_path / f"{name}{k}", DataTerms(fields=fields))
            for k, source in enumerate((table, tmp_path / "rows.jsonl"))
        ]
        assert cards[0]["files"] == cards[1]["files"]


def test_a_table_that_is_cut_short_is_named(table: Path, tmp_path: Path) -> None:
    whole = table.read_bytes()
    terms = DataTerms(fields=("y",))
    for size in (0, 3, len(whole) // 2, len(whole) - 5):
        table.write_bytes(whole[:size])
        refused("DataUnreadable", "rows.parquet cannot be read", [table], terms, tmp_path / "out")
    table.write_bytes(whole[:40] + bytes(len(whole) // 3) + whole[40 + len(whole) // 3 :])
    refused("DataUnreadable", "rows.parquet", [table], DataTerms(fields=("y",)), tmp_path / "out")


def test_values_of_a_table_that_python_does_not_have_are_named(tmp_path: Path) -> None:
    pa: Any = pytest.importorskip("pyarrow", reason="parquet files need pyarrow")
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    places = pa.py_buffer(np.array([0, 2, 4], np.int32).tobytes())
    no_text = pa.Array.from_buffers(pa.string(), 2, [None, places, pa.py_buffer(b"ok\xff\xfe")])
    no_date = pa.array([1 << 52, 1], pa.timestamp("ms"))
    for name, columns in (("text", [no_text]), ("date", [no_date]), ("twice", [pa.array([1])] * 2)):
        parquet.write_table(pa.Table.from_arrays(columns, ["x"] * len(columns)), path := tmp_path / f"{name}.parquet")
        words = f"{name}.parquet cannot be read"
        refused("DataUnreadable", words, [path], DataTerms(fields=("x",)), tmp_path / "out")


def test_a_missing_column_and_an_empty_value_are_named(table: Path, tmp_path: Path) -> None:
    refused("NoSuchField", "no field 'z', only text, x, y", [table], DataTerms(fields=("z",)), tmp_path / "out")
    pa: Any = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pa.table({"y": [1, None]}), table)
    refused("BadRow", "row 2: 'y' holds neither a number", [table], DataTerms(fields=("y",)), tmp_path / "out")


# --- images


def draw(path: Path, shape: tuple[int, ...], seed: int = 0, mode: str = "RGB") -> None:
    image: Any = pytest.importorskip("PIL.Image", reason="images need Pillow")
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    image.fromarray(pixels).convert(mode).save(path)


def test_images_come_back_by_class_and_of_each_the_same_share_is_held_out(tmp_path: Path) -> None:
    for kind, count in (("b", 10), ("a", 20)):
        for k in range(count):
            draw(tmp_path / "in" / kind / f"{k}.png", (4, 6, 3), seed=ord(kind) * 100 + k)
    card = convert([tmp_path / "in"], tmp_path / "out", DataTerms())
    assert card["classes"] == ["a", "b"]
    assert card["decoder"].startswith("Pillow ")
    data = open_data(tmp_path / "out")
    images, labels = data.train
    assert (images.shape, labels.tolist()) == ((27, 3, 4, 6), [0] * 18 + [1] * 9)
    assert data.validation is not None and data.validation[1].tolist() == [0, 0, 1]
    first = np.random.default_rng(ord("a") * 100).integers(0, 256, (4, 6, 3), dtype=np.uint8)
    assert np.array_equal(images[0].numpy(), first.transpose(2, 0, 1))


def test_images_of_another_size_are_refused_or_scaled(tmp_path: Path) -> None:
    draw(tmp_path / "in" / "a" / "0.png", (4, 6, 3))
    draw(tmp_path / "in" / "a" / "1.png", (5, 6, 3))
    refused("ImageSize", "1.png has 5x6 pixels", [tmp_path / "in"], DataTerms(), tmp_path / "out")
    convert([tmp_path / "in"], tmp_path / "out", DataTerms(images=ImageForm((3, 2), is_gray=True)))
    assert open_data(tmp_path / "out").train[0].shape == (2, 1, 3, 2)


def test_damaged_wide_and_misplaced_images_are_named(tmp_path: Path) -> None:
    image: Any = pytest.importorskip("PIL.Image", reason="images need Pillow")
    path = tmp_path / "in" / "a" / "0.png"
    draw(path, (40, 40, 3))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    words = "0.png cannot be read: it is no whole image"
    refused("DataUnreadable", words, [tmp_path / "in"], DataTerms(), tmp_path / "out")
    image.fromarray(np.zeros((4, 4), np.uint16)).save(path)
    refused("ImageMode", "wider than 8 bits", [tmp_path / "in"], DataTerms(), tmp_path / "out")
    refused("NoClass", "lies in no folder of a class", [tmp_path / "in" / "a"], DataTerms(), tmp_path / "out")


@pytest.mark.parametrize(("name", "kind"), [("rgb.png", 2), ("gray-alpha.png", 4), ("rgba.png", 6), ("rgb.ppm", 0)])
def test_colours_of_sixteen_bits_lose_no_bits_without_a_word(tmp_path: Path, name: str, kind: int) -> None:
    """Pillow opens them as ones of eight: two that differ in their lower bits would be one picture."""
    pytest.importorskip("PIL.Image", reason="images need Pillow")
    path = tmp_path / "in" / "a" / name
    path.parent.mkdir(parents=True)
    row = bytes(range(2 * {0: 3, 2: 3, 4: 2, 6: 4}[kind]))
    if not kind:
        path.write_bytes(b"P6 1 1 65535\n" + row)
    else:
        parts = (
            (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 16, kind, 0, 0, 0)),
            (b"IDAT", zlib.compress(b"\0" + row)),
            (b"IEND", b""),
        )
        chunks = [struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts]
        path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    refused("ImageMode", "wider than 8 bits", [tmp_path / "in"], DataTerms(), tmp_path / "out")


def test_a_program_that_is_called_an_image_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: PostScript in a data set of pictures, for which Pillow starts Ghostscript."""
    pytest.importorskip("PIL.Image", reason="images need Pillow")
    program, ran = tmp_path / "bin" / "gs", tmp_path / "ran"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    path = tmp_path / "in" / "a" / "0.png"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n%%EndComments\nshowpage\n")
    refused("DataUnreadable", "it is no whole image", [tmp_path / "in"], DataTerms(), tmp_path / "out")
    assert not ran.exists()


def test_an_image_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    image: Any = pytest.importorskip("PIL.Image", reason="images need Pillow")
    path = tmp_path / "in" / "a" / "0.png"
    path.parent.mkdir(parents=True)
    held = io.BytesIO()
    image.new("1", (10_000, 10_000)).save(held, "png")
    path.write_bytes(held.getvalue())
    refused("DataUnreadable", "0.png", [tmp_path / "in"], DataTerms(), tmp_path / "out")


# --- tokenizers of Hugging Face


@pytest.fixture
def byte_pairs(tmp_path: Path) -> Path:
    """A small tokenizer of byte pairs with an end, that asks for padding and truncation."""
    library: Any = pytest.importorskip("tokenizers", reason="tokenizers of Hugging Face need their package")
    made = library.Tokenizer(library.models.BPE())
    made.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = library.decoders.ByteLevel()
    alphabet = library.pre_tokenizers.ByteLevel.alphabet()
    trainer = library.trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<end>"], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(["the cat sat on the mat, the hat on the cat"] * 9, trainer)
    made.enable_truncation(3)
    made.enable_padding()
    made.save(str(tmp_path / "tokenizer-of-mine.json"))
    return tmp_path / "tokenizer-of-mine.json"


def test_a_tokenizer_of_hugging_face_gives_text_back_and_lies_in_the_folder(byte_pairs: Path, tmp_path: Path) -> None:
    rows = [{"text": f"the cat {k} sät"} for k in range(50)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    terms = DataTerms(fields=("text",), tokenizer=byte_pairs, end="<end>", percent=0)
    card = convert([tmp_path / "rows.jsonl"], tmp_path / "out", terms)
    assert (tmp_path / "out" / TOKENIZER).read_bytes() == byte_pairs.read_bytes()
    data = open_data(tmp_path / "out", tokenizer=card["tokenizer"]["sha256"])
    assert card["tensors"]["train"]["tokens"]["dtype"] == ("u8" if card["tokenizer"]["size"] <= 256 else "u16")
    assert data.tokenizer is not None
    assert data.tokenizer.decode(data.train[0].tolist()) == "".join(row["text"] + "<end>" for row in rows)


def test_an_end_that_the_tokenizer_lacks_is_refused(byte_pairs: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the cat")
    terms = DataTerms(tokenizer=byte_pairs, end="<eos>")
    refused("UnknownToken", "has no token '<eos>'", [tmp_path / "a.txt"], terms, tmp_path / "out")


def test_a_tokenizer_that_draws_its_tokens_gives_everybody_the_same(byte_pairs: Path, tmp_path: Path) -> None:
    """Bad luck: byte pairs dropped at random, as a training asked its tokenizer to: no two conversions agree."""
    document = json.loads(byte_pairs.read_text())
    document["model"]["dropout"] = 0.5
    drawing = tmp_path / "drawing.json"
    drawing.write_text(json.dumps(document))
    (tmp_path / "a.txt").write_text("the cat sat on the mat, the hat on the cat\n" * 20)
    made = []
    for name, tokenizer in (("usual", byte_pairs), ("first", drawing), ("second", drawing)):
        terms = DataTerms(tokenizer=tokenizer, percent=0)
        made.append(convert([tmp_path / "a.txt"], tmp_path / name, terms)["tensors"]["train"]["tokens"]["root"])
    assert len(set(made)) == 1


# --- without them


@pytest.mark.parametrize(
    ("package", "name", "terms"),
    [
        ("pyarrow", "in/a/rows.parquet", DataTerms(fields=("x",))),
        ("PIL", "in/a/0.png", DataTerms()),
        ("tokenizers", "in/a/words.txt", DataTerms(tokenizer=Path("other.json"))),
    ],
)
def test_a_missing_package_is_said_with_what_mends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, name: str, terms: DataTerms
) -> None:
    import_ = builtins.__import__

    def absent(wanted: str, *rest: Any) -> Any:
        if wanted.partition(".")[0] == package:
            raise ModuleNotFoundError(wanted)
        return import_(wanted, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text("words")
    with pytest.raises(ConfigError, match="which is not installed") as found:
        convert([tmp_path / "in"], tmp_path / "out", terms)
    assert found.value.code == "PackageMissing"
    assert "pip install" in str(found.value.remedy)
