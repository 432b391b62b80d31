"""What the game reads of a descriptor itself: family, type and dims, by a total parser like `Descriptor.sol`.

Bytes after the end read as zero, a rank above 8 as 8, an unknown type as u8. `encoding.decode_node` is the strict
reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from assay.protocol.arithmetic.words import MASK_64
from assay.protocol.digests import TAG_TENSOR
from assay.protocol.trees.tensors import LEAF_SIZE, MAX_RANK
from assay.protocol.types import Digest, DType


@dataclass(frozen=True, slots=True)
class Header:
    """The beginning of a descriptor; `body` is the offset of the family's own part."""

    family: int
    dtype: int
    dims: tuple[int, ...]
    body: int

    @property
    def numel(self) -> int:
        """Number of elements; 2^64 - 1 where it would be larger."""
        return volume(self.dims)

    @property
    def element(self) -> DType:
        """The type that its elements are read as: u8 for an unknown code (AR-6)."""
        return DType(self.dtype) if self.dtype in DType._value2member_map_ else DType.U8

    @property
    def width(self) -> int:
        """Bytes of one element."""
        return self.element.size

    @property
    def nbytes(self) -> int:
        """Size of the value in bytes."""
        return self.numel * self.width

    @property
    def leaf_count(self) -> int:
        """Number of leaves of the value's tree."""
        return -(-self.nbytes // LEAF_SIZE)

    def tensor_root(self, tree_root: Digest) -> Digest:
        """The root of the value over the root of its leaves' tree."""
        # An unknown type code has a root as well: nothing reverts for an ill-formed program.
        header = bytes((self.dtype, len(self.dims))) + b"".join(d.to_bytes(8, "big") for d in self.dims)
        return Digest(sha256(TAG_TENSOR + header + tree_root).digest())


def volume(dims: tuple[int, ...]) -> int:
    """Product of sizes, capped at 2^64 - 1 after every factor."""
    product = 1
    for size in dims:
        if size == 0:
            return 0
        product = min(product * size, MASK_64)
    return product


def take(data: bytes, at: int, size: int) -> bytes:
    """`size` bytes at an offset; those after the end are zero."""
    return data[at : at + size].ljust(size, b"\0")


def parse_head(node: bytes) -> Header:
    """The beginning of a descriptor."""
    family, dtype, rank = take(node, 0, 3)
    rank = min(rank, MAX_RANK)
    dims = tuple(int.from_bytes(take(node, 3 + 8 * d, 8), "big") for d in range(rank))
    return Header(family, dtype, dims, 3 + 8 * rank)
