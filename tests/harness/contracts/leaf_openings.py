"""An element as the contract computes it at the end of a game: every word from an opening under P_k."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

from assay.protocol.game.openings import NOTHING, Opening
from assay.protocol.program.leaf import Read
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorTree
from assay.protocol.types import Digest
from tests.harness.contracts.harness import EvmContract

TERMS_PER_CALL = 16
"""Terms whose reads are opened in one call of the harness."""


class LeafValues(Protocol):
    """Everything that nodes of the first step read, and the prefix roots over it: a trace, or part of one."""

    @property
    def program(self) -> Program: ...

    def node_bytes(self, t: int, k: int) -> bytes: ...

    def prefix_root(self, t: int, k: int) -> Digest: ...

    def prefix_path(self, t: int, k: int, j: int) -> tuple[Digest, ...]: ...


class Opener:
    """Opens reads of node k under P_k of the first step; trees are built once per source."""

    def __init__(self, values: LeafValues, k: int, harness: EvmContract) -> None:
        self._values, self._k, self._harness = values, k, harness
        self._sources: dict[int, tuple[TensorTree, tuple[Digest, ...]]] = {}

    @cached_property
    def _prefix(self) -> Digest:
        return self._values.prefix_root(1, self._k)

    def words(self, returned: Sequence[Any]) -> list[int]:
        """The words that the contract loads from honest openings of reads as a leaf returned them."""
        openings = [self._open(Read(*read)) for read in returned]
        fields = [(o.dtype, o.dims, o.leaf, o.path, o.prefix_path) for o in openings]
        return list(self._harness.call("load", returned, fields, self._prefix, self._k))

    def _open(self, read: Read) -> Opening:
        if read.is_fill:
            return NOTHING
        tree, siblings = self._source(read.node)
        spec = tree.spec
        if read.address >= spec.numel:
            return Opening(spec.dtype, spec.dims, b"", (tree.tree.root,), siblings)
        leaf = spec.locate(read.address)[0]
        return Opening(spec.dtype, spec.dims, tree.leaf(leaf), tree.path(leaf), siblings)

    def _source(self, j: int) -> tuple[TensorTree, tuple[Digest, ...]]:
        if j not in self._sources:
            tree = TensorTree(self._values.program.specs[j], self._values.node_bytes(1, j))
            self._sources[j] = tree, self._values.prefix_path(1, self._k, j)
        return self._sources[j]


def computed(leaf: EvmContract, opener: Opener, node: bytes, element: int, most_terms: int) -> int | None:
    """The element's word by a leaf contract; None when it has more terms than a test takes."""
    heads = opener.words(leaf.call("headReads", node, element))
    done, value, terms = leaf.call("start", node, element, heads)
    if done:
        return int(value)
    if terms > most_terms:
        return None
    parts: list[int] = []
    for first in range(0, terms, TERMS_PER_CALL):
        some = range(first, min(first + TERMS_PER_CALL, terms))
        reads = [leaf.call("termReads", node, element, k, heads) for k in some]
        words = iter(opener.words([read for each in reads for read in each]))
        for k, each in zip(some, reads, strict=True):
            parts.append(leaf.call("term", node, element, k, heads, [next(words) for _ in each]))
    return int(leaf.call("fold", node, heads, parts))
