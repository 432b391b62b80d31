"""Trees with promotion: every path and opening verifies at its own place and nowhere else."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.digests import ZERO
from assay.protocol.trees import merkle
from assay.protocol.types import Digest

counts = st.integers(1, 150)


def digests(count: int) -> list[Digest]:
    return [Digest(sha256(i.to_bytes(4, "big")).digest()) for i in range(count)]


def flipped(digest: bytes, bit: int) -> Digest:
    changed = bytearray(digest)
    changed[bit // 8] ^= 1 << bit % 8
    return Digest(bytes(changed))


def by_recursion(entries: list[bytes]) -> bytes:
    """The root by the text of the protocol: halves at the largest power of two below the count."""
    if len(entries) == 1:
        return entries[0]
    half = 1 << (len(entries) - 1).bit_length() - 1
    return sha256(b"\x01" + by_recursion(entries[:half]) + by_recursion(entries[half:])).digest()


@given(counts)
def test_promotion_is_a_split_at_the_largest_power_of_two(count: int) -> None:
    assert merkle.root(digests(count)) == by_recursion([bytes(d) for d in digests(count)])


def test_a_tree_over_nothing_has_32_zero_bytes_and_a_tree_over_one_is_that_one() -> None:
    assert merkle.root([]) == merkle.Tree([]).root == ZERO
    assert merkle.root(digests(1)) == digests(1)[0]
    assert merkle.height(0) == merkle.height(1) == 0
    assert merkle.path(digests(1), 0) == ()


@given(counts, st.data())
def test_every_path_verifies_and_has_the_exact_length(count: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, count - 1))
    tree = merkle.Tree(digests(count))
    path = tree.path(index)
    assert len(path) == merkle.path_length(count, index)
    assert merkle.verify_path(tree.root, tree.entry(0, index), count, index, path)
    assert tree.root == merkle.root(digests(count)) == tree.entry(merkle.height(count), 0)


@given(counts, st.data())
def test_a_path_proves_nothing_with_one_bit_flipped_another_length_or_another_index(
    count: int, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, count - 1))
    tree = merkle.Tree(digests(count))
    path, leaf = tree.path(index), tree.entry(0, index)
    bit = data.draw(st.integers(0, 255))
    assert not merkle.verify_path(tree.root, flipped(leaf, bit), count, index, path)
    assert not merkle.verify_path(flipped(tree.root, bit), leaf, count, index, path)
    if path:
        at = data.draw(st.integers(0, len(path) - 1))
        assert not merkle.verify_path(
            tree.root, leaf, count, index, (*path[:at], flipped(path[at], bit), *path[at + 1 :])
        )
        assert not merkle.verify_path(tree.root, leaf, count, index, path[:-1])
    assert not merkle.verify_path(tree.root, leaf, count, index, (*path, ZERO))
    other = data.draw(st.integers(-2, count + 2).filter(lambda i: i != index))
    assert not merkle.verify_path(tree.root, leaf, count, other, path)


@given(counts, st.data(), st.sampled_from([1, 2, 6]))
def test_every_entry_opens_by_several_levels_to_an_exact_count(count: int, data: st.DataObject, levels: int) -> None:
    tree = merkle.Tree(digests(count))
    level = data.draw(st.integers(0, merkle.height(count)))
    index = data.draw(st.integers(0, merkle.level_count(count, level) - 1))
    entry, opened = tree.entry(level, index), tree.open_entry(level, index, levels)
    assert 1 <= len(opened) <= 1 << levels
    assert merkle.verify_opening(entry, count, level, index, opened, levels)
    below, first, end = merkle.opening_range(count, level, index, levels)
    assert below == max(level - levels, 0)
    assert list(opened) == [tree.entry(below, i) for i in range(first, end)]
    assert not merkle.verify_opening(entry, count, level, index, opened[:-1], levels)
    assert not merkle.verify_opening(entry, count, level, index, (*opened, opened[-1]), levels)
    at, bit = data.draw(st.integers(0, len(opened) - 1)), data.draw(st.integers(0, 255))
    changed = (*opened[:at], flipped(opened[at], bit), *opened[at + 1 :])
    assert not merkle.verify_opening(entry, count, level, index, changed, levels)
    assert not merkle.verify_opening(entry, count, level, merkle.level_count(count, level), opened, levels)
    assert not merkle.verify_opening(entry, count, merkle.height(count) + 1, 0, opened, levels)


@given(counts, st.data())
def test_an_entry_covers_the_digests_that_the_text_says(count: int, data: st.DataObject) -> None:
    level = data.draw(st.integers(0, merkle.height(count)))
    index = data.draw(st.integers(0, merkle.level_count(count, level) - 1))
    covered = digests(count)[index << level : min((index + 1) << level, count)]
    assert merkle.root(covered) == merkle.Tree(digests(count)).entry(level, index)


@pytest.mark.parametrize(
    ("count", "index", "length"), [(1, 0, 0), (2, 1, 1), (3, 2, 1), (5, 4, 1), (6, 5, 2), (7, 6, 2)]
)
def test_promoted_levels_are_left_out_of_a_path(count: int, index: int, length: int) -> None:
    assert merkle.path_length(count, index) == length


@given(st.integers(2, 150), st.data())
def test_an_opening_by_fewer_levels_is_refused(count: int, data: st.DataObject) -> None:
    tree = merkle.Tree(digests(count))
    top = merkle.height(count)
    fewer = data.draw(st.integers(0, top - 1))
    # It hashes to the entry, but its digests stand for other places than the game would take them for.
    opened = tree.open_entry(top, 0, fewer)
    assert merkle.root(opened) == tree.root
    assert not merkle.verify_opening(tree.root, count, top, 0, opened, top)
