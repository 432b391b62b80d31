"""JSON from strangers: bounded in bytes and depth before any parser recurses over it.

Python's C parser recurses once per nesting level and stops at the interpreter's recursion limit; libraries raise that
limit (py_ecc, which web3 imports, to 100,000), and then a file of brackets overflows the C stack and kills the process.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

DEFAULT_DEPTH: Final = 16
_BESIDE: Final = bytes(set(range(256)) - set(b'"\\[]{}'))
"""Bytes that say nothing of how deep a document is nested."""
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?+|[\[{]|[\]}]', re.DOTALL)
# Attack: a string without an end, whose every escaped quote would be tried as a start, takes time like its square. So
# the closing quote may be missing: what is behind the first is no nesting then, and parsers stop there.


class JsonRefused(ValueError):
    """The bytes are no JSON that this program reads; the message says why in a few words."""


def parse_json(data: bytes, *, max_bytes: int, max_depth: int = DEFAULT_DEPTH) -> Any:
    """Parse strict JSON: UTF-8, unique keys, integers only, at most `max_bytes` long and `max_depth` deep.

    Raises JsonRefused.
    """
    if len(data) > max_bytes:
        raise JsonRefused(f"it has more than {max_bytes} bytes")
    if is_deeper(data, max_depth):
        raise JsonRefused(f"it is nested more than {max_depth} levels deep")
    try:
        return json.loads(data.decode(), object_pairs_hook=_unique, parse_float=_refuse, parse_constant=_refuse)
    except JsonRefused:
        raise
    except ValueError:
        raise JsonRefused("it is not JSON") from None


def is_deeper(data: bytes | bytearray, most: int) -> bool:
    """Are brackets nested more than `most` levels deep, whatever else the bytes are?"""
    if data.count(b"[") + data.count(b"{") <= most or _is_shallow(data, most):
        return False
    depth = 0
    for token in _TOKEN.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
            if depth > most:
                return True
        elif first in b"]}":
            depth -= 1
    return False


def _is_shallow(data: bytes | bytearray, most: int) -> bool:
    """Whether bytes whose strings have no brackets and no escapes are balanced within `most` levels; at C's pace, as
    long answers of nodes are. False says nothing."""
    # Without escapes quotes open and close in turn. If strings without brackets take all of them away, there is none
    # with brackets: it would leave a quote on either side.
    rest = bytes(data).translate(None, _BESIDE).replace(b'""', b"")
    if b'"' in rest or b"\\" in rest:
        return False
    for level in range(most):
        # One kind of bracket a turn, so that no turn takes two levels away.
        rest = rest.replace(b"{}" if level % 2 else b"[]", b"")
        if not rest:
            return True
    return False


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Two readers that keep different duplicates would see different documents in the same bytes.
    document = dict(pairs)
    if len(document) != len(pairs):
        raise JsonRefused("a key occurs twice")
    return document


def _refuse(text: str) -> NoReturn:
    raise JsonRefused(f"{text[:20]} is not an integer")
