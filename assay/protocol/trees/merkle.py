"""Binary trees over digests with promotion: roots, paths, openings of several levels (docs/protocol.md, section 2).

Level 0 is the digests; an entry is named by (level, index). The last entry of a level with an odd count is promoted
unchanged. The shape follows from the count alone, and so does the exact length of every path and opening: a proof of
any other length is refused, or one digest could be proved at two places.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from assay.protocol.digests import TAG_NODE, ZERO, node_digest
from assay.protocol.types import Digest

LEVELS_PER_OPENING = 6
"""Levels that one move of the game opens at arity 64; at arity A it is log2(A)."""


def height(count: int) -> int:
    """The level of the root of a tree over `count` digests; 0 for none or one."""
    return max(count - 1, 0).bit_length()


def level_count(count: int, level: int) -> int:
    """How many entries a level has: ceil(count / 2^level)."""
    return -(-count >> level)


def next_level(entries: Sequence[Digest]) -> list[Digest]:
    """The level above these entries."""
    pairs = len(entries) // 2
    above = [Digest(sha256(TAG_NODE + entries[2 * i] + entries[2 * i + 1]).digest()) for i in range(pairs)]
    if len(entries) % 2:
        above.append(entries[-1])
    return above


def root(digests: Sequence[Digest]) -> Digest:
    """The root of the tree over these digests; 32 zero bytes when there are none."""
    level = list(digests)
    while len(level) > 1:
        level = next_level(level)
    return level[0] if level else ZERO


class Tree:
    """All levels of one tree, to answer many questions about it.

    `levels[0]` are the digests given, `levels[-1]` holds the root alone (or nothing).
    """

    __slots__ = ("levels",)

    def __init__(self, digests: Sequence[Digest]) -> None:
        self.levels: list[list[Digest]] = [list(digests)]
        while len(self.levels[-1]) > 1:
            self.levels.append(next_level(self.levels[-1]))

    @property
    def count(self) -> int:
        """Number of digests on level 0."""
        return len(self.levels[0])

    @property
    def root(self) -> Digest:
        """The root."""
        return self.levels[-1][0] if self.levels[-1] else ZERO

    def entry(self, level: int, index: int) -> Digest:
        """The entry (level, index)."""
        return self.levels[level][index]

    def path(self, index: int) -> tuple[Digest, ...]:
        """The siblings of digest `index` from level 0 upwards, levels on which it is promoted left out."""
        return _path(self.levels, index)

    def open_entry(self, level: int, index: int, levels: int = LEVELS_PER_OPENING) -> tuple[Digest, ...]:
        """The entries `levels` lower (level 0 at the lowest) that the entry covers, in order."""
        below, first, end = opening_range(self.count, level, index, levels)
        return tuple(self.levels[below][first:end])


def _path(levels: Sequence[Sequence[Digest]], index: int) -> tuple[Digest, ...]:
    """Siblings of an index through full levels."""
    siblings = []
    for level in levels[:-1]:
        if index ^ 1 < len(level):
            siblings.append(level[index ^ 1])
        index >>= 1
    return tuple(siblings)


def path(digests: Sequence[Digest], index: int) -> tuple[Digest, ...]:
    """The path of one digest; build a `Tree` when more than one is wanted."""
    return Tree(digests).path(index)


def path_length(count: int, index: int) -> int:
    """The exact number of siblings that the path of a digest has."""
    length = 0
    while count > 1:
        length += index ^ 1 < count
        index, count = index >> 1, (count + 1) >> 1
    return length


def root_from_path(digest: Digest, count: int, index: int, siblings: Sequence[Digest]) -> Digest | None:
    """The root that a path leads to from digest `index` of `count`; None when index or length do not fit."""
    if not 0 <= index < count or len(siblings) != path_length(count, index):
        return None
    remaining = iter(siblings)
    while count > 1:
        if index & 1:
            digest = node_digest(next(remaining), digest)
        elif index + 1 < count:
            digest = node_digest(digest, next(remaining))
        index, count = index >> 1, (count + 1) >> 1
    return digest


def verify_path(tree_root: Digest, digest: Digest, count: int, index: int, siblings: Sequence[Digest]) -> bool:
    """Whether a path proves that digest `index` of the `count` under this root is `digest`."""
    return root_from_path(digest, count, index, siblings) == tree_root


def opening_range(count: int, level: int, index: int, levels: int = LEVELS_PER_OPENING) -> tuple[int, int, int]:
    """Level, first index and end index of the entries that open entry (level, index) of a tree over `count` digests."""
    below = max(level - levels, 0)
    span = level - below
    return below, index << span, min((index + 1) << span, level_count(count, below))


def verify_opening(
    entry: Digest, count: int, level: int, index: int, opened: Sequence[Digest], levels: int = LEVELS_PER_OPENING
) -> bool:
    """Whether these digests are exactly the ones that open entry (level, index) of a tree over `count` digests."""
    if not (0 <= level <= height(count) and 0 <= index < level_count(count, level)):
        return False
    _, first, end = opening_range(count, level, index, levels)
    # The covered entries are a tree of their own with the same shape: only the last entry of a level is ever promoted.
    return len(opened) == end - first and root(opened) == entry
