"""`assay data`: texts, tables and images as the tensors that a recipe trains on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.common import print_fields, print_json, talk
from assay.cli.options import JsonOption
from assay.cli.progress import progress, written
from assay.protocol.errors import UsageError
from assay.sponsor.sponsor_words import MAX_STATED

app = typer.Typer(no_args_is_help=True, help="Texts, tables and images as data for recipes.")


@app.callback()
def _group() -> None:
    """Texts, tables and images as data for recipes."""


@app.command(
    "convert",
    epilog="Example: assay data convert stories.jsonl --field text --to stories --json"
    '  ->  {"kind": "jsonl", "sources": [...], "tensors": {...}, "tokenizer": {"sha256", ...}, "files": {...}, ...}',
)
def convert(
    sources: Annotated[
        list[Path], typer.Argument(metavar="SOURCE...", help="Files, or folders: of images one folder a class.")
    ],
    to: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="A new folder for tensors and card.")],
    kind: Annotated[
        str | None,
        typer.Option("--from", metavar="KIND", help="text, jsonl, csv, parquet or images; else by endings."),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="NAME", help="Field or column; of numbers as many as there are tensors."),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option("--tokenizer", metavar="FILE", help="tokenizer.json; without it each character is a token."),
    ] = None,
    tokenizer_digest: Annotated[
        str | None, typer.Option("--tokenizer-digest", metavar="HEX", help="The SHA-256 that it must have.")
    ] = None,
    end: Annotated[
        str, typer.Option("--end", metavar="TEXT", help="What stands behind each document; a line's end behind rows.")
    ] = "",
    validation: Annotated[
        int, typer.Option("--validation", metavar="PERCENT", min=0, max=99, help="How much is held out.")
    ] = 10,
    size: Annotated[
        str | None, typer.Option("--size", metavar="HEIGHTxWIDTH", help="Scale images to so many pixels.")
    ] = None,
    licence: Annotated[
        str, typer.Option("--licence", metavar="TEXT", help="The sources' licence, for the card: such as CC-BY-4.0.")
    ] = "",
    creator: Annotated[str, typer.Option("--creator", metavar="TEXT", help="Who made the sources, for the card.")] = "",
    gray: Annotated[bool, typer.Option("--gray", help="Images of one channel instead of three.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Turn text, JSONL, CSV, parquet or images into tensors, the same bytes on every machine, with a card."""
    from assay.datasets.convert import DataTerms
    from assay.datasets.convert import convert as converted
    from assay.datasets.images import ImageForm

    terms = DataTerms(
        kind=None if kind is None else _kind(kind),
        fields=tuple(field or ()),
        tokenizer=tokenizer,
        tokenizer_digest=tokenizer_digest,
        end=end,
        percent=validation,
        images=ImageForm(None if size is None else _pixels(size), gray),
        licence=_stated("--licence", licence),
        creator=_stated("--creator", creator),
    )
    with progress("converting", measure=written(to.absolute())):
        card = converted(sources, to, terms)
    _show(card, as_json=as_json)
    talk.print(f"In a recipe: data = open_data({str(to)!r}), from assay.datasets.folder.", markup=False)


@app.command(
    "show",
    epilog='Example: assay data show stories --json  ->  {"kind": "jsonl", "tensors": {...}, "tokenizer": {...}, ...}',
)
def show(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="What `assay data convert` wrote.")],
    tokenizer_digest: Annotated[
        str | None, typer.Option("--tokenizer-digest", metavar="HEX", help="Fail unless this is its tokenizer.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the card of converted data, once every file and tensor is found to be what it names."""
    from assay.datasets.folder import check_roots, open_data

    data = open_data(folder, tokenizer=tokenizer_digest)
    check_roots(data)
    _show(dict(data.card), as_json=as_json)


def _show(card: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(card)
        return
    shown: dict[str, Any] = {"kind": card["kind"], "sources": len(card["sources"])}
    shown |= {name: card[name] for name in ("licence", "creator") if name in card}
    for part, tensors in card["tensors"].items():
        for name, t in (tensors or {}).items():
            shown[f"{part} {name}"] = f"{t['dtype']} {t['shape']}, root {t['root']}"
    if card["tokenizer"] is not None:
        t = card["tokenizer"]
        shown["tokenizer"] = f"{t['kind']}, {t['size']} tokens, SHA-256 {t['sha256']}"
    if "classes" in card:
        names = ", ".join(map(str, card["classes"]))
        shown["classes"] = "".join(c if c.isprintable() else "\ufffd" for c in names)
    print_fields(shown)


def _stated(option: str, text: str) -> str:
    """A line of a card. Raises UsageError (BadText)."""
    if len(text) > MAX_STATED or not text.isprintable():
        raise UsageError(
            f"{option} is no line of text.", code="BadText", remedy=f"Give at most {MAX_STATED} printable characters."
        )
    return text


def _kind(text: str) -> Any:
    from assay.datasets.convert import SourceKind

    try:
        return SourceKind(text)
    except ValueError:
        known = ", ".join(SourceKind)
        raise UsageError(f"{text!r} is no kind of source.", code="BadKind", remedy=f"Say one of {known}.") from None


def _pixels(text: str) -> tuple[int, int]:
    from assay.datasets.images import MAX_SIDE

    found = re.fullmatch(r"([0-9]{1,5})x([0-9]{1,5})", text)
    sides = (int(found[1]), int(found[2])) if found else (0, 0)
    if not all(0 < side <= MAX_SIDE for side in sides):
        raise UsageError(
            f"{text!r} is no size of an image.", code="BadSize", remedy="Give height and width, such as 32x32."
        )
    return sides
