"""Texts as one stream of tokens, written as it comes."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from assay.datasets.sources import SourceFile, reading
from assay.datasets.tables import TableRow, bad_row
from assay.datasets.tokenizers import MAX_TOKENS, Characters, Tokenizer
from assay.datasets.writing import TensorFile
from assay.protocol.errors import UserError
from assay.protocol.types import DType

PIECE: Final = 1 << 20
"""Characters of a text that are made tokens at once; a piece ends at a line's end where it has one. Another number is
another data set: no token reaches across two pieces."""

_AT_ONCE: Final = 1 << 10
_TOGETHER: Final = 1 << 21
"""Pieces, and characters, that a tokenizer is given together: tokens lie in lists until they are written."""

_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a document. where: for messages; is_last: the document ends with it."""

    where: str
    text: str
    is_last: bool


Pieces = Callable[[], Iterator[Piece]]
"""Reads the documents anew."""


def text_pieces(files: Sequence[SourceFile]) -> Iterator[Piece]:
    """Each file a document. Raises UserError (DataUnreadable, DataNotUtf8)."""
    for file in files:
        held, line = "", 1
        for chunk in _decoded(file):
            held += chunk
            while len(held) > PIECE:
                cut = held.rfind("\n", 0, PIECE) + 1 or PIECE
                yield Piece(f"{file.path}, from line {line}", held[:cut], False)
                line += held.count("\n", 0, cut)
                held = held[cut:]
        yield Piece(f"{file.path}, from line {line}", held, True)


def row_pieces(rows: Iterable[TableRow]) -> Iterator[Piece]:
    """Each row a document, whose one value is a string. Raises UserError (BadRow)."""
    for row in rows:
        (text,) = row.values
        if not isinstance(text, str):
            raise bad_row(row.where, f"the field holds a {type(text).__name__} where other rows hold text")
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise bad_row(row.where, f"character {error.start} is half of a surrogate pair") from None
        for at in range(0, max(len(text), 1), PIECE):
            yield Piece(row.where, text[at : at + PIECE], at + PIECE >= len(text))


def characters_of(pieces: Pieces, end: str) -> Characters:
    """The tokenizer with every character of the documents and of what is put behind them."""
    return Characters.of([end, *_alphabets(pieces())])


def write_stream(path: Path, pieces: Pieces, tokenizer: Tokenizer, end: str) -> TensorFile:
    """The tokens of all documents, behind each those of `end`: u8, u16 or i32 by the tokenizer's size.

    Raises UserError (UnknownCharacter with file and line, UnknownToken, VocabularyTooLarge).
    """
    if tokenizer.size > MAX_TOKENS:
        raise UserError(
            f"The tokenizer has numbers up to {tokenizer.size}; a token has 31 bits.",
            code="VocabularyTooLarge",
            remedy="Use a smaller tokenizer.",
        )
    dtype = DType.U8 if tokenizer.size <= 1 << 8 else DType.U16 if tokenizer.size <= 1 << 16 else DType.I32
    behind = tokenizer.token(end) if end else []
    made, source = TensorFile.open(path, dtype), pieces()
    while some := _some(source):
        for piece, tokens in zip(some, _encoded(tokenizer, some), strict=True):
            made.append(tokens)
            if piece.is_last:
                made.append(behind)
    made.close()
    return made


def _some(source: Iterator[Piece]) -> list[Piece]:
    found: list[Piece] = []
    size = 0
    while size < _TOGETHER and len(found) < _AT_ONCE and (piece := next(source, None)) is not None:
        found.append(piece)
        size += len(piece.text)
    return found


def _encoded(tokenizer: Tokenizer, pieces: Sequence[Piece]) -> list[list[int]]:
    try:
        return tokenizer.encode_all([piece.text for piece in pieces])
    except UserError:
        for piece in pieces:
            try:
                tokenizer.encode_all([piece.text])
            except UserError as error:
                raise UserError(f"{piece.where}: {error}", code=error.code, remedy=error.remedy) from None
        raise


def _alphabets(pieces: Iterator[Piece]) -> Iterator[str]:
    for piece in pieces:
        yield "".join(set(piece.text))


def _decoded(file: SourceFile) -> Iterator[str]:
    decoder, done, line = codecs.getincrementaldecoder("utf-8")(), 0, 1
    with reading(file.path) as stream:
        while True:
            chunk = stream.read(_CHUNK)
            waiting = len(decoder.getstate()[0])
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                at = error.start - waiting
                line += chunk.count(b"\n", 0, max(at, 0))
                raise UserError(
                    f"{file.path}, line {line}, is not UTF-8: byte {done + at} cannot be decoded.",
                    code="DataNotUtf8",
                    remedy=f"Convert it first, for example: iconv -t UTF-8 {file.path}.",
                ) from None
            yield text
            if not chunk:
                return
            done, line = done + len(chunk), line + chunk.count(b"\n")
