"""What Solidity's abi.encode makes of values: words of 32 bytes, and whole lists by their types.

Raises InvariantError (WordOutOfRange) for a value that does not fit its type: on chain there would be no such value.
Source: the contract ABI specification of Solidity, "Formal specification of the encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from assay.protocol.errors import InvariantError
from assay.protocol.types import Address, Digest


def uint(value: int, bits: int = 256) -> bytes:
    """The word of a uint of this width."""
    if not isinstance(value, int) or not 0 <= value < 1 << bits:
        raise InvariantError(f"{value!r} does not fit uint{bits}.", code="WordOutOfRange")
    return int(value).to_bytes(32, "big")


def uints(values: Sequence[int], bits: int = 256) -> bytes:
    """The words of many, one after another."""
    if values and not (all(isinstance(v, int) for v in values) and min(values) >= 0 and max(values) < 1 << bits):
        raise InvariantError(f"{values[:8]!r}... do not all fit uint{bits}.", code="WordOutOfRange")
    return b"".join([int(v).to_bytes(32, "big") for v in values])


def boolean(value: bool) -> bytes:
    """The word of a bool."""
    if not isinstance(value, bool):
        raise InvariantError(f"{value!r} is no bool.", code="WordOutOfRange")
    return uint(value)


def address(value: Address) -> bytes:
    """The word of an address."""
    return bytes(12) + _exactly(20, value)


def bytes32(value: Digest) -> bytes:
    """The word of a bytes32."""
    return _exactly(32, value)


def text(value: bytes) -> bytes:
    """The word of a string literal of at most 32 bytes that is used as a bytes32."""
    if len(value) > 32:
        raise InvariantError(f"{value!r} does not fit bytes32.", code="WordOutOfRange")
    return value.ljust(32, b"\0")


def encode(types: Sequence[str], values: Sequence[Any]) -> bytes:
    """abi.encode of values of these types: uintN, bool, address, bytes32, bytes, string, T[k], T[] and tuples (T,U)."""
    return _list([_kind(name) for name in types], values)


def _exactly(size: int, value: bytes) -> bytes:
    if not isinstance(value, bytes) or len(value) != size:
        raise InvariantError(f"{value!r} is not of {size} bytes.", code="WordOutOfRange")
    return bytes(value)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type: whether its place holds where its bytes are instead of them, and what it makes of a value."""

    is_dynamic: bool
    encoded: Callable[[Any], bytes]


def _list(kinds: Sequence[_Kind], values: Sequence[Any]) -> bytes:
    """Heads, then tails: the enc of a tuple."""
    if len(kinds) != len(values):
        raise InvariantError(f"{len(values)} values where {len(kinds)} are needed.", code="WordOutOfRange")
    parts = [(kind.is_dynamic, kind.encoded(value)) for kind, value in zip(kinds, values, strict=True)]
    at = sum(32 if is_dynamic else len(data) for is_dynamic, data in parts)
    heads, tails = [], []
    for is_dynamic, data in parts:
        heads.append(uint(at) if is_dynamic else data)
        if is_dynamic:
            tails.append(data)
            at += len(data)
    return b"".join(heads + tails)


@cache
def _kind(name: str) -> _Kind:
    if name.endswith("]"):
        inner, _, count = name[:-1].rpartition("[")
        return _array(_kind(inner), int(count) if count else None)
    if name.startswith("("):
        members = [_kind(member) for member in _members(name[1:-1])]
        return _Kind(any(m.is_dynamic for m in members), lambda values: _list(members, values))
    if name.startswith("uint"):
        bits = int(name[4:])
        return _Kind(False, lambda value: uint(value, bits))
    return _WORDS[name]


def _array(kind: _Kind, count: int | None) -> _Kind:
    if count is None:
        return _Kind(True, lambda values: uint(len(values)) + _list([kind] * len(values), values))
    return _Kind(kind.is_dynamic, lambda values: _list([kind] * count, values))


def _members(names: str) -> list[str]:
    """The types of a tuple; commas inside another tuple part nothing."""
    found, depth = [""], 0
    for letter in names:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


def _padded(data: bytes) -> bytes:
    return uint(len(data)) + data + bytes(-len(data) % 32)


_WORDS = {
    "bool": _Kind(False, boolean),
    "address": _Kind(False, address),
    "bytes32": _Kind(False, bytes32),
    "bytes": _Kind(True, _padded),
    "string": _Kind(True, lambda value: _padded(value.encode())),
}
