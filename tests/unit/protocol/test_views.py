"""Views and windows: what an index reads, against plain nested lists."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.errors import InvariantError
from assay.protocol.program.views import View, Window, contiguous_strides, fill_bits, unravel
from assay.protocol.types import DType

FILL = 99


def read(window: Window, source: list[int]) -> np.ndarray:
    """The values that a window reads, FILL where outside."""
    values = []
    for i in range(prod(window.dims)):
        address = window.view.address(unravel(i, window.dims))
        values.append(window.view.fill if address is None else source[address])
    return np.array(values, dtype=np.int64).reshape(window.dims)


shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3)


@given(shapes, st.data())
def test_any_chain_of_reshapings_reads_what_numpy_reads(shape: list[int], data: st.DataObject) -> None:
    window = Window.whole(shape)
    source = list(range(prod(shape)))
    expected = np.arange(prod(shape)).reshape(shape)
    for _ in range(data.draw(st.integers(1, 5))):
        dim = data.draw(st.integers(0, expected.ndim - 1))
        match data.draw(st.sampled_from(["permute", "unsqueeze", "slice", "pad", "expand", "flip"])):
            case "permute":
                order = data.draw(st.permutations(range(expected.ndim)))
                window, expected = window.permute(order), expected.transpose(order)
            case "unsqueeze" if expected.ndim < 5:
                window, expected = window.unsqueeze(dim), np.expand_dims(expected, dim)
            case "slice":
                size = expected.shape[dim]
                start, stop = sorted((data.draw(st.integers(0, size)), data.draw(st.integers(0, size))))
                step = data.draw(st.integers(1, 3))
                window = window.slice(dim, start, stop, step)
                expected = expected[(slice(None),) * dim + (slice(start, stop, step),)]
            case "flip" if expected.shape[dim]:
                step = -data.draw(st.integers(1, 2))
                window = window.slice(dim, expected.shape[dim] - 1, -1, step)
                expected = expected[(slice(None),) * dim + (slice(None, None, step),)]
            case "pad" if expected.size < 1000:
                before, after = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))
                window = window.pad(dim, before, after, FILL)
                width = [(before, after) if d == dim else (0, 0) for d in range(expected.ndim)]
                expected = np.pad(expected, width, constant_values=FILL)
            case "expand" if expected.shape[dim] == 1:
                dims = [3 if d == dim else n for d, n in enumerate(expected.shape)]
                window, expected = window.expand(dims), np.broadcast_to(expected, dims)
            case _:
                continue
        assert window.dims == expected.shape
        assert (read(window, source) == expected).all()
        extremes = window.view.extremes(window.dims)
        if extremes is not None:
            assert 0 <= extremes[0] <= extremes[1] < len(source)
        assert all(0 <= lo <= hi <= n for lo, hi, n in zip(window.view.lo, window.view.hi, window.dims, strict=True))


views = st.integers(0, 3).flatmap(
    lambda rank: st.tuples(
        st.builds(
            View,
            st.integers(-20, 20),
            *(st.tuples(*[st.integers(-9, 9)] * rank) for _ in range(3)),
        ),
        st.tuples(*[st.integers(0, 4)] * rank),
    )
)


@given(views)
def test_extremes_are_the_lowest_and_highest_address_read(case: tuple[View, tuple[int, ...]]) -> None:
    view, dims = case
    addresses = [view.address(unravel(i, dims)) for i in range(prod(dims))]
    found = [a for a in addresses if a is not None]
    assert view.extremes(dims) == ((min(found), max(found)) if found else None)


def test_split_select_and_refusals() -> None:
    window = Window.whole((6, 4))
    source = list(range(24))
    expected = np.arange(24).reshape(6, 4)
    assert (read(window.split(0, (2, 3)), source) == expected.reshape(2, 3, 4)).all()
    assert (read(window.select(1, 3), source) == expected[:, 3]).all()
    for refused in (
        lambda: window.split(0, (2, 2)),
        lambda: window.expand((6, 5)),
        lambda: window.select(0, 6),
        lambda: window.slice(0, 0, 7),
        lambda: window.permute((0, 0)),
        lambda: window.pad(0, 1, 0, 1).pad(0, 1, 0, 2),
        lambda: window.pad(0, 1, 0).select(0, 0),
    ):
        with pytest.raises(InvariantError):
            refused()


def test_a_fill_is_the_canonical_word_mod_2_to_64() -> None:
    assert fill_bits(DType.I32, -1) == fill_bits(DType.I8, 0xFF) == (1 << 64) - 1
    assert fill_bits(DType.U8, -1) == 255
    assert fill_bits(DType.F32, 0xFFFFFFFF) == 0x7FC00000
    assert fill_bits(DType.BOOL, 7) == 1
    assert contiguous_strides((2, 3, 4)) == (12, 4, 1)
