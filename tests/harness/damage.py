"""Damaged moves of the dispute game: a field changed at random, or a bit of each field flipped."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields, replace

from assay.protocol.game.moves import AnyMove, SelectElement
from assay.protocol.game.openings import Opening


def damage(move: AnyMove, rng: random.Random) -> AnyMove:
    """The move with one field damaged: a bit, a length, an index."""
    names = [f.name for f in fields(move)]
    name = rng.choice(names)
    return replace(move, **{name: _damaged(getattr(move, name), rng)})


def _damaged(value: object, rng: random.Random) -> object:
    """Another value of the same type."""
    match value:
        case bool() | None:
            return value
        case int():
            return value ^ (1 << rng.randrange(8))
        case bytes():
            if not value or (rng.random() < 0.2 and len(value) != 32):
                return value + b"\x01"
            at = rng.randrange(8 * len(value))
            return flip(value, at)
        case Opening():
            name = rng.choice([f.name for f in fields(value)])
            return replace(value, **{name: _damaged(getattr(value, name), rng)})
        case tuple():
            if not value:
                return value
            if rng.random() < 0.2:
                return value[:-1]
            at = rng.randrange(len(value))
            return (*value[:at], _damaged(value[at], rng), *value[at + 1 :])
        case _:
            raise TypeError(type(value))


def flipped(move: AnyMove) -> Iterator[AnyMove]:
    """The move with one bit of one field flipped, for every field; another selection is no flip of a proof."""
    rng = random.Random(1)

    def flips(value: object) -> Iterator[object]:
        match value:
            case bytes():
                if value:
                    at = rng.randrange(8 * len(value))
                    yield value[: at // 8] + bytes((value[at // 8] ^ 1 << at % 8,)) + value[at // 8 + 1 :]
            case int():
                yield value ^ 1
            case tuple():
                for i, entry in enumerate(value):
                    for other in flips(entry):
                        yield (*value[:i], other, *value[i + 1 :])
            case _:
                # An opening that stands at a fill is not looked at, so its fields are no part of the proof.
                if value.prefix_path:
                    for name in (f.name for f in fields(value)):
                        for other in flips(getattr(value, name)):
                            yield replace(value, **{name: other})

    for name in (f.name for f in fields(move)):
        if (name, type(move)) != ("offset", SelectElement):
            for other in flips(getattr(move, name)):
                yield replace(move, **{name: other})


def flip(data: bytes, bit: int) -> bytes:
    """Bytes with one bit flipped."""
    altered = bytearray(data)
    altered[bit // 8] ^= 1 << bit % 8
    return bytes(altered)
