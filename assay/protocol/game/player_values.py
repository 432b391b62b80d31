"""What a player of the game reads from its own trace: values, their openings, and parts of reductions.

Pure functions of a `Trace`; the words are those that the contract would load. `defend_parts` also serves a liar: parts
that stand for a false claim, where there are any, so that it loses at the very last move and not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from assay.protocol.arithmetic import f32
from assay.protocol.arithmetic.words import Word, as_i32, canonical, from_bytes, signed
from assay.protocol.game.element import chunk
from assay.protocol.game.openings import NOTHING, Opening
from assay.protocol.program import leaf
from assay.protocol.program.leaf import Read
from assay.protocol.program.nodes import Dot, Max, Node, RowExp, ScatterSum, Sum
from assay.protocol.program.program import Program
from assay.protocol.program.trace import Trace
from assay.protocol.trees.tensors import TensorTree

_HUGE = 1 << 240
"""A sum that overflows whatever it is scaled by, inside int256."""


@dataclass(frozen=True)
class Position:
    """Node k of step t in somebody's trace; not slotted, since trees are built once and kept."""

    trace: Trace
    t: int
    k: int

    @property
    def program(self) -> Program:
        """The program that both sides agree on."""
        return self.trace.program

    @property
    def node(self) -> Node:
        """The node itself."""
        return self.program.nodes[self.k]

    @property
    def descriptor(self) -> bytes:
        """Its descriptor."""
        return self.program.descriptors[self.k]

    @property
    def value(self) -> TensorTree:
        """Its value with the tree over its leaves."""
        return self.tensor(self.k)

    @cached_property
    def _sources(self) -> dict[int, bytes]:
        """Bytes of the nodes that this one reads (at most 8), fetched once: a trace may have to compute them."""
        return {}

    @cached_property
    def _trees(self) -> dict[int, TensorTree]:
        """The same with their trees, as openings need them."""
        return {}

    def bytes_of(self, j: int) -> bytes:
        """The bytes of node j's value in this step."""
        if j not in self._sources:
            self._sources[j] = self.trace.node_bytes(self.t, j)
        return self._sources[j]

    def tensor(self, j: int) -> TensorTree:
        """The value of node j in this step with its tree."""
        if j not in self._trees:
            self._trees[j] = TensorTree(self.program.specs[j], self.bytes_of(j))
        return self._trees[j]

    def load(self, read: Read) -> Word:
        """The word that a read gives."""
        if read.is_fill:
            return read.fill
        if read.node >= self.k:
            return 0
        spec = self.program.specs[read.node]
        if read.address >= spec.numel:
            return 0
        size = spec.dtype.size
        data = bytes(self.bytes_of(read.node)[read.address * size : (read.address + 1) * size])
        return canonical(spec.dtype, from_bytes(spec.dtype, data)[0])

    def open(self, read: Read) -> Opening:
        """The proof of what a read gives, under P_k."""
        if read.is_fill or read.node >= self.k:
            return NOTHING
        source = self.tensor(read.node)
        spec, siblings = source.spec, self.trace.prefix_path(self.t, self.k, read.node)
        if read.address >= spec.numel:
            return Opening(spec.dtype, spec.dims, b"", (source.tree.root,), siblings)
        index, _ = spec.locate(read.address)
        return Opening(spec.dtype, spec.dims, source.leaf(index), source.path(index), siblings)

    def heads(self, element: int) -> list[Word]:
        """The words that an element's computation reads first."""
        return [self.load(read) for read in leaf.head_reads(self.node, element)]

    def parts(self, element: int, lo: int, hi: int, heads: Sequence[Word], arity: int) -> list[int]:
        """The true partial results of terms [lo, hi) of an element, in chunks."""
        size = chunk(hi - lo, arity)
        parts = []
        for start in range(lo, hi, size):
            terms = range(start, min(start + size, hi))
            each = [leaf.part_of(self.node, element, k, heads, self.load) for k in terms]
            parts.append(leaf.combine(self.node, each) if len(each) > 1 else each[0])
        return parts


def defend_parts(
    node: Node, heads: Sequence[Word], parts: Sequence[int], claimed: int, whole: bool
) -> list[int] | None:
    """Parts that stand for what was claimed: the true ones where they do, otherwise a liar's; None where none could.

    `claimed` is the element's word while `whole`, else a part.
    """
    parts = list(parts)
    if _stands_for(node, heads, parts, whole) == claimed:
        return parts
    if isinstance(node, Max | RowExp):
        # Every part is the claimed maximum.
        bent = [claimed] * len(parts)
    else:
        target = _sum_behind(node, heads, claimed) if whole else claimed
        bent = [*parts[:-1], signed(target - sum(parts[:-1]))]
    return bent if _stands_for(node, heads, bent, whole) == claimed else None


def _stands_for(node: Node, heads: Sequence[Word], parts: Sequence[int], whole: bool) -> int:
    """The element's word as an int256, or the part, that parts stand for."""
    return signed(leaf.fold(node, heads, parts)) if whole else leaf.combine(node, parts)


def _sum_behind(node: Node, heads: Sequence[Word], claimed: int) -> int:
    """A sum that rounds to the claimed word, where there is one."""
    if not isinstance(node, Dot | Sum | ScatterSum):
        return claimed
    if not f32.is_finite(claimed):
        return -_HUGE if claimed >> 31 else _HUGE
    sign, magnitude, exponent = f32.unpack(claimed)
    n = _shift(node, heads)
    scaled = Fraction(magnitude) * Fraction(2) ** (exponent - n)
    return round(-scaled if sign else scaled)


def _shift(node: Dot | Sum | ScatterSum, heads: Sequence[Word]) -> int:
    """The n of finish(S, n) for these heads."""
    exponents = sum(as_i32(h) for h in heads)
    if isinstance(node, Dot):
        return exponents - (node.precision_a - 1) - (node.precision_b - 1)
    return exponents - (leaf.SUM_PRECISION - 1)
