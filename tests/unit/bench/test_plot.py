"""Pictures without a plotting library: a real PNG, curves where their points are."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.bench.plot import _COLOURS, PlotLine, draw, ticks


def pixels(png: bytes) -> np.ndarray:
    """The picture as u8 [height, width, 3], every checksum verified."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size])[0] == zlib.crc32(kind + data)
        chunks[kind] = data
        at += 12 + size
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    return rows[:, 1:].reshape(height, width, 3)


def test_a_curve_goes_through_its_points_and_nowhere_else() -> None:
    picture = pixels(draw("t", "x", [PlotLine("a", [(0, 0.0), (1, 0.0)]), PlotLine("b", [(0, 5.0), (1, 5.0)])]))
    blue = (np.abs(picture.astype(int) - np.rint(np.array(_COLOURS[1]) * 255)).sum(-1) < 6).nonzero()
    rows = blue[0][blue[1] < 500]
    assert picture.shape == (480, 820, 3)
    # The upper of two flat lines, a twentieth of their distance below the upper edge of the axes.
    assert rows.size
    assert 40 < rows.min() <= rows.max() < 80


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_inside(low: float, size: float) -> None:
    found = ticks(low, low + size)
    assert 1 <= len(found) <= 8
    assert all(low - size * 1e-6 <= t <= low + size * (1 + 1e-6) for t in found)


def test_one_flat_curve_of_one_value_can_be_drawn() -> None:
    assert pixels(draw("t", "x", [PlotLine("a", [(3, 2.0), (4, 2.0)])])).min() < 100


def test_no_curve_is_no_picture() -> None:
    with pytest.raises(ValueError, match="min"):
        draw("t", "x", [])
