"""Elements of earlier nodes opened under an agreed prefix root, as a proof (docs/protocol.md, section 5).

The opened type and dims are bound by the tensor root, the tensor root by the node's place in the prefix tree, the leaf
by its place and exact length: one read has one value, whichever side opens it. `Openings.sol` makes the same checks, in
the same order: rules OPEN-1 to OPEN-9.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.protocol.arithmetic.words import Word, canonical, from_bytes
from assay.protocol.digests import leaf_digest
from assay.protocol.game.errors import WrongCount, WrongDigest
from assay.protocol.game.header import Header
from assay.protocol.program.leaf import Read
from assay.protocol.program.nodes import Family
from assay.protocol.trees import merkle, prefix
from assay.protocol.trees.tensors import LEAF_SIZE, MAX_RANK
from assay.protocol.types import Digest


@dataclass(frozen=True, slots=True)
class Opening:
    """An element of an earlier node: equal to Solidity's `Opening`.

    The leaf that holds the element, its path in the tensor's tree, and the 20 siblings of the node in the prefix tree.
    For an address outside the source the leaf is empty and the path is the root of the tensor's tree alone.
    """

    dtype: int
    dims: tuple[int, ...]
    leaf: bytes
    path: tuple[Digest, ...]
    prefix_path: tuple[Digest, ...]


NOTHING: Final = Opening(0, (), b"", (), ())
"""Stands where a read opens nothing: a fill, or a node that is not earlier."""


def load(reads: Sequence[Read], openings: Sequence[Opening], root: Digest, k: int) -> list[Word]:
    """The words of reads that node k makes, each with its opening under P_k = `root`.

    Raises:
        WrongCount, WrongDigest: an opening is not exactly the one that the read demands.
    """
    check_count(len(openings), len(reads))
    return [load_one(read, opening, root, k) for read, opening in zip(reads, openings, strict=True)]


def load_one(read: Read, opening: Opening, root: Digest, k: int) -> Word:
    """The word of one read: its fill, 0 for a node not before k or an address outside the source, else the element."""
    if read.is_fill:
        return read.fill
    if read.node >= k:
        return 0
    if len(opening.dims) > MAX_RANK:
        raise WrongCount(f"A tensor of rank {len(opening.dims)}.", got=len(opening.dims), wanted=MAX_RANK)
    # A malformed node has a value too, and its root has whatever type and dims its bytes say: cut as the contract cuts
    # them, or a game on it would have one verdict here and another there.
    head = Header(Family.MAP, opening.dtype, opening.dims, 0)
    inside = read.address < head.numel
    tree = _tree(opening, head, read.address) if inside else _bare(opening)
    check_count(len(opening.prefix_path), prefix.DEPTH)
    check_digest(prefix.root_from_path(head.tensor_root(tree), read.node, opening.prefix_path), root)
    if not inside:
        return 0
    at = read.address * head.width % LEAF_SIZE
    return canonical(head.element, from_bytes(head.element, opening.leaf[at : at + head.width])[0])


def _tree(opening: Opening, head: Header, element: int) -> Digest:
    """The root of the tree over a tensor's leaves, from the leaf that holds an element."""
    index = element * head.width // LEAF_SIZE
    check_count(len(opening.leaf), min(LEAF_SIZE, head.nbytes - index * LEAF_SIZE))
    return path_root(leaf_digest(opening.leaf), index, head.leaf_count, opening.path)


def _bare(opening: Opening) -> Digest:
    """The root of the tree over a tensor's leaves, as given."""
    check_count(len(opening.leaf), 0)
    check_count(len(opening.path), 1)
    return opening.path[0]


def path_root(digest: Digest, index: int, count: int, siblings: Sequence[Digest]) -> Digest:
    """The root that a path of exactly the right length leads to (index < count). Raises WrongCount."""
    check_count(len(siblings), merkle.path_length(count, index))
    root = merkle.root_from_path(digest, count, index, siblings)
    assert root is not None
    return root


def check_count(got: int, wanted: int) -> None:
    """Raises WrongCount when a length is not exact."""
    if got != wanted:
        raise WrongCount(f"{got} entries where {wanted} belong.", got=got, wanted=wanted)


def check_digest(got: Digest | None, wanted: Digest) -> None:
    """Raises WrongDigest when an opening does not hash to what it opens."""
    if got != wanted:
        shown = got.hex() if got else "nothing"
        raise WrongDigest(f"The opening hashes to {shown}, not to {wanted.hex()}.", got=got, wanted=wanted)
