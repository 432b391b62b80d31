"""Events as the ABI has them: topics and types of a declaration, and how logs of it are taken apart.

Events of ours have few dynamic arguments. All others are words at known places, read here at a tenth of what a general
decoder takes; what it refuses is refused, which tests compare for every event. Source: docs/adr/0052-kept-events.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from eth_abi.codec import ABICodec
from eth_abi.decoding import StringDecoder
from eth_abi.grammar import ABIType, BasicType, TupleType, parse
from eth_abi.registry import ABIRegistry, BaseEquals
from web3._utils.abi import build_strict_registry

from assay.protocol.digests import keccak
from assay.protocol.types import Digest


class AnyTextDecoder(StringDecoder):
    r"""A string of the ABI, whose bytes a contract does not look at: those that are no UTF-8 read as \xff.

    Attack: a vote without weight whose reason is no text, and nobody can read the events of the run any more.
    """

    def __init__(self) -> None:
        super().__init__("backslashreplace")  # type: ignore[no-untyped-call]


def _registry() -> ABIRegistry:
    registry = build_strict_registry()
    registry.unregister_decoder("string")
    text = BaseEquals("string")  # type: ignore[no-untyped-call]
    registry.register_decoder(text, AnyTextDecoder, label="string")
    return registry


CODEC: Final = ABICodec(_registry())
"""Strict as web3's own, a bytes32 of 31 bytes is an error, but for what strangers write as text."""

WORD: Final = 32

ReadWord = Callable[[bytes, int], Any]
"""A value of bytes that are long enough, from an offset on. Raises ValueError for padding that is not empty."""

_DECLARATION: Final = re.compile(r"((?:\([^()]*\)|[^(), ])+(?: indexed)? \w+)[,)]")
"""One argument in an event's declaration; structs have no structs in them."""


@dataclass(frozen=True, slots=True)
class EventForm:
    """An event's declaration, taken apart: its topic, and type and place of its arguments by their Solidity names."""

    topic: Digest
    types: Mapping[str, str]
    indexed: tuple[str, ...]
    data: tuple[str, ...] = ()
    """The arguments that are in the data of a log, not in its topics."""
    _reads: Sequence[tuple[int, ReadWord]] | None = field(default=None, repr=False)
    """For each argument in order, the place of its value in topics and data one after another; None where one of them
    is dynamic."""
    _size: int = 0

    def decode(self, topics: Sequence[bytes], data: bytes) -> list[Any]:
        """The arguments in order, an address as 20 bytes or as text; `topics` are those behind the first.

        Raises DecodingError, ValueError.
        """
        if len(topics) != len(self.indexed):
            raise ValueError(f"{len(topics)} indexed arguments where there are {len(self.indexed)}")
        words = b"".join(topics)
        if self._reads is None or len(words) != WORD * len(topics):
            return self.decode_generally(topics, data)
        words += data
        if len(words) < self._size:
            raise ValueError(f"{len(data)} bytes of data are too few")
        return [read(words, at) for at, read in self._reads]

    def decode_generally(self, topics: Sequence[bytes], data: bytes) -> list[Any]:
        """The same by eth_abi, an address as text."""
        found = {
            name: CODEC.decode([self.types[name]], topic)[0] for name, topic in zip(self.indexed, topics, strict=True)
        }
        found |= zip(self.data, CODEC.decode([self.types[name] for name in self.data], data), strict=True)
        return [found[name] for name in self.types]


@cache
def form_of(abi: str) -> EventForm:
    """The form of a declaration such as "Joined(address indexed solver, uint32 indexed seat)"."""
    name, types, indexed = abi.partition("(")[0], {}, []
    for part in _DECLARATION.findall(abi.partition("(")[2]):
        kind, *is_indexed, argument = part.split(" ")
        types[argument] = kind
        indexed += [argument] if is_indexed else []
    topic = keccak(f"{name}({','.join(types.values())})".encode())
    data = tuple(argument for argument in types if argument not in indexed)
    places, at = {}, 0
    for argument in (*indexed, *data):
        found = _word_reader(parse(types[argument]))
        if found is None:
            return EventForm(topic, types, tuple(indexed), data)
        places[argument] = at, found[1]
        at += WORD * found[0]
    return EventForm(topic, types, tuple(indexed), data, [places[argument] for argument in types], at)


def _word_reader(kind: ABIType) -> tuple[int, ReadWord] | None:
    """How many words a type has and how they are read; None for a dynamic one."""
    if kind.is_dynamic:
        return None
    if kind.is_array:
        item, count = _word_reader(kind.item_type), kind.arrlist[-1][0]
        return None if item is None else _all([item] * count)
    if isinstance(kind, TupleType):
        parts = [_word_reader(part) for part in kind.components]
        return None if None in parts else _all([part for part in parts if part is not None])
    assert isinstance(kind, BasicType)
    base, size = kind.base, kind.sub
    if base == "uint":
        return 1, _unsigned(int(size or 256))
    if base == "int":
        return 1, _signed(int(size or 256))
    if base == "bytes" and size is not None:
        return 1, _left(int(size))
    return {"address": (1, _address), "bool": (1, _bool)}.get(base)


def _all(parts: Sequence[tuple[int, ReadWord]]) -> tuple[int, ReadWord]:
    places, at = [], 0
    for count, read in parts:
        places.append((at, read))
        at += WORD * count

    def read_all(data: bytes, start: int) -> tuple[Any, ...]:
        return tuple([read(data, start + place) for place, read in places])

    return at // WORD, read_all


def _unsigned(bits: int) -> ReadWord:
    limit = 1 << bits

    def read(data: bytes, at: int) -> int:
        value = int.from_bytes(data[at : at + WORD], "big")
        if value >= limit:
            raise ValueError(f"more than {bits} bits")
        return value

    return read


def _signed(bits: int) -> ReadWord:
    half = 1 << bits - 1

    def read(data: bytes, at: int) -> int:
        value = int.from_bytes(data[at : at + WORD], "big", signed=True)
        if not -half <= value < half:
            raise ValueError(f"more than {bits} bits")
        return value

    return read


def _left(size: int) -> ReadWord:
    padding = bytes(WORD - size)

    def read(data: bytes, at: int) -> bytes:
        if data[at + size : at + WORD] != padding:
            raise ValueError(f"more than {size} bytes")
        return data[at : at + size]

    return read


_NO_ADDRESS_BYTES: Final = bytes(12)


def _address(data: bytes, at: int) -> bytes:
    if data[at : at + 12] != _NO_ADDRESS_BYTES:
        raise ValueError("more than 20 bytes")
    return data[at + 12 : at + WORD]


def _bool(data: bytes, at: int) -> bool:
    value = int.from_bytes(data[at : at + WORD], "big")
    if value > 1:
        raise ValueError("neither true nor false")
    return value == 1
