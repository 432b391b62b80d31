"""Prefix roots: P_k commits to the values of nodes 0..k-1 (docs/protocol.md, section 2).

A tree of fixed depth 20 whose leaf i is the tensor root of node i's value for i < k and 32 zero bytes elsewhere. One
path is at once the proof that P_k and P_(k+1) differ in leaf k alone: with the zero leaf it gives P_k, with the tensor
root P_(k+1). So nothing earlier can be changed between two agreed prefixes.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.protocol.digests import ZERO, prefix_digest
from assay.protocol.types import Digest

DEPTH = 20


def _zero_subtrees() -> tuple[Digest, ...]:
    """The root of a subtree of unused leaves per height 0..20."""
    roots = [ZERO]
    for _ in range(DEPTH):
        roots.append(prefix_digest(roots[-1], roots[-1]))
    return tuple(roots)


ZERO_SUBTREES = _zero_subtrees()
EMPTY = ZERO_SUBTREES[DEPTH]
"""P_0, the same for every program."""


class PrefixTree:
    """All prefix roots of one list of tensor roots, and the paths under each of them.

    `roots[k]` is P_k for k = 0..n.
    """

    __slots__ = ("_levels", "roots")

    def __init__(self, tensor_roots: Sequence[Digest]) -> None:
        # Level h holds the entries all of whose leaves are used; entries cut by a prefix are computed on demand.
        self._levels: list[list[Digest]] = [[] for _ in range(DEPTH + 1)]
        self.roots: list[Digest] = [EMPTY]
        for digest in tensor_roots:
            self._append(digest)

    @property
    def count(self) -> int:
        """n, the number of used leaves."""
        return len(self._levels[0])

    def _append(self, digest: Digest) -> None:
        """Use the next leaf."""
        entry, complete = digest, True
        index = self.count
        for level in range(DEPTH):
            if complete:
                self._levels[level].append(entry)
            complete = complete and index & 1 == 1
            if index & 1:
                entry = prefix_digest(self._levels[level][index - 1], entry)
            else:
                entry = prefix_digest(entry, ZERO_SUBTREES[level])
            index >>= 1
        if complete:
            self._levels[DEPTH].append(entry)
        self.roots.append(entry)

    def path(self, k: int, j: int) -> tuple[Digest, ...]:
        """The 20 siblings of leaf j under P_k, from the leaves upwards; j = k gives the append path."""
        return tuple(self._entry(k, level, (j >> level) ^ 1) for level in range(DEPTH))

    def _entry(self, k: int, level: int, index: int) -> Digest:
        """The entry (level, index) under P_k."""
        if index << level >= k:
            return ZERO_SUBTREES[level]
        if (index + 1) << level <= k:
            return self._levels[level][index]
        return prefix_digest(self._entry(k, level - 1, 2 * index), self._entry(k, level - 1, 2 * index + 1))


def root_from_path(digest: Digest, index: int, siblings: Sequence[Digest]) -> Digest | None:
    """The prefix root that 20 siblings lead to from leaf `index`; None when index or length do not fit."""
    if not 0 <= index < 1 << DEPTH or len(siblings) != DEPTH:
        return None
    for sibling in siblings:
        digest = prefix_digest(sibling, digest) if index & 1 else prefix_digest(digest, sibling)
        index >>= 1
    return digest


def verify_path(prefix_root: Digest, digest: Digest, index: int, siblings: Sequence[Digest]) -> bool:
    """Whether leaf `index` under this prefix root is `digest`."""
    return root_from_path(digest, index, siblings) == prefix_root


def verify_append(before: Digest, after: Digest, digest: Digest, k: int, siblings: Sequence[Digest]) -> bool:
    """Whether `after` is `before` with the unused leaf k set to `digest` and nothing else changed."""
    return verify_path(before, ZERO, k, siblings) and verify_path(after, digest, k, siblings)
