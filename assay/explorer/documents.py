"""What the JSON documents of a run are made of: the one source of pages, of the API and of tables for download.

Amounts are wei as decimal strings, digests and addresses full lower-case hex, times seconds of chain time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Document = dict[str, Any]

MOST_SAID: Final = 4_096
"""Characters of a text, or of bytes in hex: a leaf of a tensor has half as many."""


def hexed(value: bytes) -> str:
    """Bytes as the documents show them."""
    return "0x" + value.hex()


def wei(value: int) -> str:
    """An amount as the documents show it: exact whatever reads it."""
    return str(value)


def said(text: str) -> str:
    """What a stranger said, cut where it is long.

    Attack: votes without weight whose reasons fill a block each, and a page of a hundred of them.
    """
    return text if len(text) <= MOST_SAID else f"{text[:MOST_SAID]}… ({len(text)} characters)"


def plain(value: Any) -> Any:
    """Event arguments as JSON values: bytes as hex, amounts and other large numbers as decimal strings."""
    if isinstance(value, bytes):
        return said("0x" + value.hex())
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, str):
        return said(value.lower() if value.startswith("0x") else value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 53:
        return str(value)
    return value
