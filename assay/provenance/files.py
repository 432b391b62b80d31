"""A card as files beside the weights that it is of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from assay.programs.files import writing
from assay.provenance.document import FORMAT, encode_card
from assay.provenance.readme import MARK, readme

README: Final = "README.md"
CARD_FILE: Final = "model-card.json"


def write_card(folder: Path, document: dict[str, Any]) -> Iterator[tuple[str, Path | None]]:
    """Writes README.md and model-card.json over those of an earlier pull; a name, and the path or None, of each.

    A file that somebody else wrote is left as it is. Raises ConfigError (FileNotWritable).
    """
    yield "readme", _write(folder / README, readme(document), f"---\n{MARK}\n".encode(), at_start=True)
    yield "card", _write(folder / CARD_FILE, encode_card(document), f'"format":"{FORMAT}"'.encode(), at_start=False)


def _write(path: Path, data: bytes, mark: bytes, *, at_start: bool) -> Path | None:
    with writing(path):
        if path.exists():
            with path.open("rb") as file:
                before = file.read(len(mark) if at_start else 1 << 27)
            if mark not in before:
                return None
        path.write_bytes(data)
    return path
