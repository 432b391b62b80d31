"""The moves of the dispute game as values: one class per function of `Game.sol`, with the same arguments.

Source: docs/protocol.md, section 5; the table of who may make them when is `table`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.game.openings import Opening
from assay.protocol.game.table import Move
from assay.protocol.types import Digest

Digests = tuple[Digest, ...]


@dataclass(frozen=True, slots=True)
class PostDigests:
    """The digests at min(A, hi - lo) positions of (lo, hi], the last equal to the disputed one.

    Where the claimant's list is known already, an empty one stands for it.
    """

    kind: ClassVar[Move] = Move.POST_DIGESTS
    digests: Digests


@dataclass(frozen=True, slots=True)
class BisectDigests:
    """The first digest that is wrong; `digests` is the list posted."""

    kind: ClassVar[Move] = Move.BISECT_DIGESTS
    index: int
    digests: Digests


@dataclass(frozen=True, slots=True)
class OpenNode:
    """Node k: its descriptor under the program root, its value's tree opened from the root, its append path."""

    kind: ClassVar[Move] = Move.OPEN_NODE
    node: bytes
    program_path: Digests
    append_path: Digests
    digests: Digests


@dataclass(frozen=True, slots=True)
class ProveRoot:
    """What an input, const or output node, or a slot of Y, must equal.

    `opening`: input: the list roots of s_(t-1) and the slot's tensor root; output and slot: the source's tensor root.
    """

    kind: ClassVar[Move] = Move.PROVE_ROOT
    node: bytes
    path: Digests
    opening: bytes


@dataclass(frozen=True, slots=True)
class SelectSubtree:
    """A wrong digest of the opening of a tree."""

    kind: ClassVar[Move] = Move.SELECT_SUBTREE
    index: int
    digests: Digests


@dataclass(frozen=True, slots=True)
class OpenSubtree:
    """The digests, log2(A) levels lower, that the disputed entry covers."""

    kind: ClassVar[Move] = Move.OPEN_SUBTREE
    digests: Digests


@dataclass(frozen=True, slots=True)
class OpenLeaf:
    """The bytes of the disputed leaf."""

    kind: ClassVar[Move] = Move.OPEN_LEAF
    leaf: bytes


@dataclass(frozen=True, slots=True)
class SelectElement:
    """A wrong element, counted from the start of the leaf, with what its computation reads first."""

    kind: ClassVar[Move] = Move.SELECT_ELEMENT
    offset: int
    leaf: bytes
    node: bytes
    heads: tuple[Opening, ...]


@dataclass(frozen=True, slots=True)
class PostParts:
    """Partial results of the disputed terms, in chunks."""

    kind: ClassVar[Move] = Move.POST_PARTS
    node: bytes
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SelectPart:
    """A wrong part; `parts` is the list posted."""

    kind: ClassVar[Move] = Move.SELECT_PART
    index: int
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProveTerm:
    """What the disputed term reads."""

    kind: ClassVar[Move] = Move.PROVE_TERM
    node: bytes
    reads: tuple[Opening, ...]


@dataclass(frozen=True, slots=True)
class OpenState:
    """The list roots of s_t."""

    kind: ClassVar[Move] = Move.OPEN_STATE
    list_roots: Digests


@dataclass(frozen=True, slots=True)
class SelectList:
    """A wrong list root; `list_roots` is the list posted."""

    kind: ClassVar[Move] = Move.SELECT_LIST
    index: int
    list_roots: Digests


AnyMove = (
    PostDigests
    | BisectDigests
    | OpenNode
    | ProveRoot
    | SelectSubtree
    | OpenSubtree
    | OpenLeaf
    | SelectElement
    | PostParts
    | SelectPart
    | ProveTerm
    | OpenState
    | SelectList
)
