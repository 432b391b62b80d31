"""Prefix roots: append proofs bind everything before them."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.protocol.digests import ZERO
from assay.protocol.trees import prefix
from assay.protocol.trees.prefix import DEPTH, EMPTY, PrefixTree
from assay.protocol.types import Digest


def digests(count: int) -> list[Digest]:
    return [Digest(sha256(i.to_bytes(4, "big")).digest()) for i in range(count)]


TREE = PrefixTree(digests(133))


def by_definition(used: list[Digest]) -> Digest:
    """The root of the fixed-depth tree with the given first leaves, level by level."""
    level = list(used)
    zero = bytes(32)
    for _ in range(DEPTH):
        if len(level) % 2:
            level.append(Digest(zero))
        level = [Digest(sha256(b"\x04" + a + b).digest()) for a, b in zip(level[::2], level[1::2], strict=True)]
        zero = sha256(b"\x04" + zero + zero).digest()
        level = level or [Digest(zero)]
    return level[0]


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 5, 63, 64, 65, 127, 128, 129, 133])
def test_a_prefix_root_is_the_fixed_depth_tree_with_zero_leaves(k: int) -> None:
    assert TREE.roots[k] == by_definition(digests(k))


def test_the_empty_prefix_is_a_constant_of_the_protocol() -> None:
    assert TREE.roots[0] == EMPTY == PrefixTree([]).roots[0]
    assert len(TREE.roots) == TREE.count + 1


@given(st.integers(0, 132))
def test_the_append_path_leads_from_one_prefix_to_the_next(k: int) -> None:
    path = TREE.path(k, k)
    assert prefix.verify_append(TREE.roots[k], TREE.roots[k + 1], digests(k + 1)[k], k, path)
    assert path == TREE.path(k + 1, k)


@given(st.integers(0, 133), st.data())
def test_every_leaf_opens_under_every_prefix(k: int, data: st.DataObject) -> None:
    j = data.draw(st.integers(0, 140))
    leaf = digests(j + 1)[j] if j < k else ZERO
    path = TREE.path(k, j)
    assert len(path) == DEPTH
    assert prefix.verify_path(TREE.roots[k], leaf, j, path)
    level, bit = data.draw(st.integers(0, DEPTH - 1)), data.draw(st.integers(0, 255))
    changed = bytearray(path[level])
    changed[bit // 8] ^= 1 << bit % 8
    assert not prefix.verify_path(TREE.roots[k], leaf, j, (*path[:level], Digest(bytes(changed)), *path[level + 1 :]))
    assert not prefix.verify_path(TREE.roots[k], leaf, j, path[:-1])
    assert not prefix.verify_path(TREE.roots[k], leaf, j, (*path, ZERO))
    # The same path at another index passes only among zero leaves, where it proves the same: that they are unused.
    other = data.draw(st.integers(-2, 1 << DEPTH).filter(lambda i: i != j))
    assert leaf == ZERO or not prefix.verify_path(TREE.roots[k], leaf, other, path)


@settings(max_examples=30)
@given(st.integers(1, 132), st.data())
def test_an_earlier_output_cannot_be_changed_between_two_prefixes(k: int, data: st.DataObject) -> None:
    j = data.draw(st.integers(0, k - 1))
    changed = digests(133)
    changed[j] = Digest(bytes(31) + b"\x01")
    liar = PrefixTree(changed)
    # A liar who agrees with P_k and claims the changed list from k + 1 on has no append path that fits both.
    for path in (TREE.path(k, k), liar.path(k, k)):
        assert not prefix.verify_append(TREE.roots[k], liar.roots[k + 1], changed[k], k, path)


def test_indices_outside_the_tree_prove_nothing() -> None:
    path = TREE.path(5, 3)
    assert prefix.root_from_path(digests(4)[3], -1, path) is None
    assert prefix.root_from_path(digests(4)[3], 1 << DEPTH, path) is None
