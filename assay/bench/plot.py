"""Curves as a PNG without a plotting library: lines, axes, ticks and a legend, drawn on a grid of pixels.

Every curve has a colour and a dash of its own; lines are drawn at twice the size and averaged down.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.float32]

# fmt: off
_GLYPHS = {
    "0": "69bd96", "1": "262227", "2": "69124f", "3": "e161e0", "4": "99f111", "5": "f8e11e", "6": "68e996",
    "7": "f12244", "8": "696996", "9": "699716", "a": "069799", "b": "8e999e", "c": "078887", "d": "179997",
    "e": "069f87", "f": "34e444", "g": "069716", "h": "8e9999", "i": "402222", "j": "10119e", "k": "89aca9",
    "l": "622227", "m": "0f5555", "n": "0e9999", "o": "069996", "p": "0e9e88", "q": "079711", "r": "0ac888",
    "s": "07861e", "t": "4e4443", "u": "099997", "v": "099952", "w": "0555fa", "x": "096699", "y": "099716",
    "z": "0f124f", " ": "000000", ".": "000002", ",": "000024", "-": "000f00", "(": "244442", ")": "422224",
    "/": "112448", ":": "002020", "+": "002720", "=": "00f0f0", "%": "912489",
}
# fmt: on
"""Six rows of four pixels per character, one hexadecimal digit a row."""

_COLOURS = (
    (0.12, 0.12, 0.12),
    (0.0, 0.45, 0.70),
    (0.84, 0.37, 0.0),
    (0.0, 0.62, 0.45),
    (0.8, 0.47, 0.65),
    (0.9, 0.62, 0.0),
)
"""Told apart by the colour-blind too (Okabe and Ito, 2008)."""

_DASHES = ((1, 0), (14, 8), (5, 5), (22, 6), (2, 6), (9, 3))
_SCALE = 2


@dataclass(frozen=True, slots=True)
class PlotLine:
    """A named line through points (x, y); style: which colour and dash, its place among the curves if not given."""

    name: str
    points: Sequence[tuple[float, float]]
    style: int | None = None


class _Canvas:
    """White pixels, f32 [height, width, 3], drawn on at `_SCALE` times the final size."""

    def __init__(self, width: int, height: int) -> None:
        self.pixels: Pixels = np.ones((height * _SCALE, width * _SCALE, 3), np.float32)

    def dot(self, x: float, y: float, radius: float, colour: tuple[float, float, float]) -> None:
        """A filled square around a point, in final coordinates."""
        left, right = (round((x + d) * _SCALE) for d in (-radius, radius))
        top, bottom = (round((y + d) * _SCALE) for d in (-radius, radius))
        self.pixels[max(top, 0) : max(bottom, top + 1), max(left, 0) : max(right, left + 1)] = colour

    def line(
        self, a: tuple[float, float], b: tuple[float, float], colour: tuple[float, float, float], dash: tuple[int, int]
    ) -> None:
        """A dashed line: `dash` pixels on, then off."""
        length = math.hypot(b[0] - a[0], b[1] - a[1])
        for k in range(int(length * _SCALE) + 1):
            along = k / _SCALE
            if dash[1] and (a[0] + along) % sum(dash) >= dash[0]:
                continue
            share = along / length if length else 0.0
            self.dot(a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share, 0.8, colour)

    def text(self, x: float, y: float, words: str, colour: tuple[float, float, float] = (0.2, 0.2, 0.2)) -> None:
        """Words whose upper left corner is at a point; a character is 10 x 12 pixels."""
        for place, letter in enumerate(words.lower()):
            for row, digit in enumerate(_GLYPHS.get(letter, _GLYPHS[" "])):
                for column in range(4):
                    if int(digit, 16) >> (3 - column) & 1:
                        self.dot(x + place * 10 + column * 2 + 1, y + row * 2 + 1, 1.0, colour)

    def png(self) -> bytes:
        """The picture as a file."""
        height, width = self.pixels.shape[0] // _SCALE, self.pixels.shape[1] // _SCALE
        small = self.pixels.reshape(height, _SCALE, width, _SCALE, 3).mean((1, 3))
        rows = np.rint(small * 255).astype(np.uint8)
        raw = b"".join(b"\0" + row.tobytes() for row in rows)
        head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
        parts = ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            for kind, data in parts
        )


def ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Round numbers within [low, high], about `count` of them."""
    step = 10.0 ** math.floor(math.log10((high - low) / count))
    step *= next(m for m in (1, 2, 2.5, 5, 10) if (high - low) / (step * m) <= count)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def draw(title: str, x_name: str, curves: Sequence[PlotLine], *, width: int = 820, height: int = 480) -> bytes:
    """A PNG of these curves, at least one of them with two points."""
    canvas = _Canvas(width, height)
    xs = [x for c in curves for x, _ in c.points]
    ys = [y for c in curves for _, y in c.points]
    low_x, high_x = min(xs), max(xs)
    margin = (max(ys) - min(ys) or 1.0) * 0.05
    low_y, high_y = min(ys) - margin, max(ys) + margin
    left, right, top, bottom = 80, width - 20, 40, height - 50

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + (x - low_x) / (high_x - low_x or 1.0) * (right - left),
            bottom - (y - low_y) / (high_y - low_y) * (bottom - top),
        )

    grey, black = (0.88, 0.88, 0.88), (0.2, 0.2, 0.2)
    for x in ticks(low_x, high_x):
        canvas.line(at(x, low_y), at(x, high_y), grey, (1, 0))
        words = f"{x:g}"
        canvas.text(at(x, low_y)[0] - 5 * len(words), bottom + 8, words)
    for y in ticks(low_y, high_y):
        canvas.line(at(low_x, y), at(high_x, y), grey, (1, 0))
        words = f"{y:.4g}"
        canvas.text(left - 10 * len(words) - 6, at(low_x, y)[1] - 6, words)
    canvas.line((left, top), (left, bottom), black, (1, 0))
    canvas.line((left, bottom), (right, bottom), black, (1, 0))
    canvas.text(left, 14, title)
    canvas.text((left + right) / 2 - 5 * len(x_name), height - 22, x_name)
    longest = max(len(c.name) for c in curves)
    # Names stand where the curves are low.
    rises = sum(c.points[-1][1] for c in curves) > sum(c.points[0][1] for c in curves)
    names_x = left + 70 if rises else right - longest * 10 - 10
    for k, curve in enumerate(curves):
        style = k if curve.style is None else curve.style
        colour, dash = _COLOURS[style % len(_COLOURS)], _DASHES[style % len(_DASHES)]
        places = [at(x, y) for x, y in curve.points]
        for a, b in pairwise(places):
            canvas.line(a, b, colour, dash)
        for place in places:
            canvas.dot(*place, 2.0, colour)
        name_x, name_y = names_x, top + 14 + 20 * k
        canvas.line((name_x - 50, name_y + 6), (name_x - 10, name_y + 6), colour, dash)
        canvas.text(name_x, name_y, curve.name, colour)
    return canvas.png()
