"""A sum over parts, whole and to the last unit: what several payers' money is told apart by."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.payments.share_earnings import allot

PARTS = st.lists(st.integers(0, 9) | st.integers(0, (1 << 128) - 1), min_size=1, max_size=12)


def told_one_by_one(parts: list[int], total: int) -> list[int]:
    """Jefferson's rule as it is told: each unit to whoever has the most for one unit more, the first of equals."""
    found = [0] * len(parts)
    for _ in range(total):
        place = max(range(len(parts)), key=lambda k: (Fraction(parts[k], found[k] + 1), -k))
        found[place] += 1
    return found


@given(parts=st.lists(st.integers(0, 12), min_size=1, max_size=6), data=st.data())
def test_units_go_one_after_another_to_who_has_most_for_one_more(parts: list[int], data: st.DataObject) -> None:
    total = data.draw(st.integers(0, sum(parts)))
    assert allot(parts, total) == told_one_by_one(parts, total)


@given(parts=PARTS, data=st.data())
def test_a_larger_total_takes_from_nobody_and_all_of_it_is_exact(parts: list[int], data: st.DataObject) -> None:
    whole = sum(parts)
    less = data.draw(st.integers(0, whole))
    more = data.draw(st.integers(less, whole) | st.integers(less, min(whole, less + 3)))
    first, then = allot(parts, less), allot(parts, more)
    assert (sum(first), sum(then)) == (less, more)
    assert all(0 <= was <= now <= part for was, now, part in zip(first, then, parts, strict=True))
    # Nobody has less than its share of it, rounded down.
    assert all(now >= part * more // whole for now, part in zip(then, parts, strict=True) if whole)
    assert allot(parts, whole) == parts and allot(parts, 0) == [0] * len(parts)


@pytest.mark.parametrize("total", [-1, 11])
def test_more_than_there_is_cannot_be_allotted(total: int) -> None:
    with pytest.raises(ValueError, match="cannot be allotted"):
        allot([4, 6], total)


def test_amounts_as_large_as_a_deposit_can_be_are_told_apart() -> None:
    most = (1 << 128) - 1
    # Quotients that differ by 2^-256 or so: rounded to fewer digits they would be equal, and the first go first.
    assert allot([most - 1, most], most) == [(1 << 127) - 1, 1 << 127]
    assert allot([most, most - 1], most) == [1 << 127, (1 << 127) - 1]
