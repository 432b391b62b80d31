"""Tensors: type and shape, 1 KiB leaves of exact length, and the root over them (docs/protocol.md, section 2).

A tensor's bytes are its row-major little-endian elements. An element never straddles two leaves, since every element
size divides 1,024. Leaves are not padded: a padded leaf would hold bits that belong to no element, and a lie there
could not be selected.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from math import prod

from assay.protocol.arithmetic.words import Word, from_bytes
from assay.protocol.digests import TAG_LEAF, Buffer, leaf_digest, tensor_digest
from assay.protocol.errors import FraudError
from assay.protocol.trees import merkle
from assay.protocol.types import Digest, DType

LEAF_SIZE = 1024
MAX_RANK = 8
MAX_NUMEL = 1 << 40


class TensorSizeError(FraudError):
    """Bytes given for a tensor do not have the length that its type and shape demand."""

    remedy = "Fetch the object again, or refuse it: its sender does not follow the protocol."


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Element type and dims of a tensor; rank 0 is a scalar with one element."""

    dtype: DType
    dims: tuple[int, ...]

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.dims)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.numel * self.dtype.size

    @property
    def leaf_count(self) -> int:
        """Number of leaves; 0 for a tensor without elements."""
        return -(-self.nbytes // LEAF_SIZE)

    def leaf_length(self, index: int) -> int:
        """The exact length of leaf `index` in bytes."""
        return min(LEAF_SIZE, self.nbytes - index * LEAF_SIZE)

    def locate(self, element: int) -> tuple[int, int]:
        """Leaf index and byte offset inside it of a row-major element."""
        return divmod(element * self.dtype.size, LEAF_SIZE)

    def digest(self, tree_root: Digest) -> Digest:
        """The tensor root over a tree root of the leaves."""
        return tensor_digest(self.dtype, self.dims, tree_root)

    def zeros(self) -> bytes:
        """The bytes of the all-zero tensor."""
        return bytes(self.nbytes)


def leaf_digests(spec: TensorSpec, data: Buffer) -> list[Digest]:
    """The digests of a tensor's leaves, in order, without copying the data.

    Raises:
        TensorSizeError: the data has another length than the spec says.
    """
    if len(data) != spec.nbytes:
        raise TensorSizeError(
            f"A tensor of {spec.dtype.name} {list(spec.dims)} has {spec.nbytes} bytes, not {len(data)}.",
            wanted=spec.nbytes,
            got=len(data),
        )
    view = memoryview(data)
    tagged = sha256(TAG_LEAF)
    digests = []
    for start in range(0, len(data), LEAF_SIZE):
        leaf = tagged.copy()
        leaf.update(view[start : start + LEAF_SIZE])
        digests.append(Digest(leaf.digest()))
    return digests


def tensor_root(spec: TensorSpec, data: Buffer) -> Digest:
    """The root of a tensor with these bytes. Raises TensorSizeError as `leaf_digests`."""
    return spec.digest(merkle.root(leaf_digests(spec, data)))


class TensorTree:
    """A tensor with the tree over its leaves: what a player of the game opens."""

    __slots__ = ("data", "root", "spec", "tree")

    def __init__(self, spec: TensorSpec, data: bytes) -> None:
        self.spec = spec
        self.data = data
        self.tree = merkle.Tree(leaf_digests(spec, data))
        self.root = spec.digest(self.tree.root)

    def leaf(self, index: int) -> bytes:
        """The bytes of a leaf."""
        return bytes(self.data[index * LEAF_SIZE : (index + 1) * LEAF_SIZE])

    def word(self, element: int) -> Word:
        """The raw word of an element, as it stands in the leaf."""
        size = self.spec.dtype.size
        return from_bytes(self.spec.dtype, bytes(self.data[element * size : (element + 1) * size]))[0]

    def path(self, leaf_index: int) -> tuple[Digest, ...]:
        """The path of a leaf to the tree root."""
        return self.tree.path(leaf_index)


def verify_leaf(root: Digest, spec: TensorSpec, index: int, leaf: bytes, path: tuple[Digest, ...]) -> bool:
    """Whether `leaf` is leaf `index` of the tensor with this root and spec; its length must be exact."""
    if not 0 <= index < spec.leaf_count or len(leaf) != spec.leaf_length(index):
        return False
    tree_root = merkle.root_from_path(leaf_digest(leaf), spec.leaf_count, index, path)
    return tree_root is not None and spec.digest(tree_root) == root


def element_word(spec: TensorSpec, element: int, leaf: bytes) -> Word:
    """The raw word of an element from the leaf that holds it."""
    _, offset = spec.locate(element)
    return from_bytes(spec.dtype, leaf[offset : offset + spec.dtype.size])[0]
