"""The tagged SHA-256 digests of the protocol (docs/protocol.md, section 2), and keccak-256 over ABI words.

One tag byte opens every preimage, so that no digest of one kind can be read as one of another: without it an inner node
of 64 bytes could be passed off as a leaf. All functions are pure and return 32 bytes; widths are checked by `to_bytes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from assay.protocol.keccak import keccak256
from assay.protocol.types import Digest, DType

TAG_LEAF: Final = b"\x00"
TAG_NODE: Final = b"\x01"
TAG_TENSOR: Final = b"\x02"
TAG_STATE: Final = b"\x03"
TAG_PREFIX: Final = b"\x04"
TAG_LIST: Final = b"\x05"
TAG_PROGRAM: Final = b"\x06"

DIGEST_SIZE: Final = 32
ZERO: Final = Digest(bytes(DIGEST_SIZE))
"""The root of a tree without leaves, and an unused leaf of the prefix tree; no preimage of it is known."""

Buffer = bytes | bytearray | memoryview


def leaf_digest(data: Buffer) -> Digest:
    """H(LEAF ‖ data): a tensor's leaf of at most 1,024 bytes, or a node's descriptor."""
    digest = sha256(TAG_LEAF)
    digest.update(data)
    return Digest(digest.digest())


def node_digest(left: Digest, right: Digest) -> Digest:
    """H(NODE ‖ left ‖ right): an inner entry of a tree."""
    return Digest(sha256(TAG_NODE + left + right).digest())


def prefix_digest(left: Digest, right: Digest) -> Digest:
    """H(PREFIX ‖ left ‖ right): an inner entry of a prefix tree."""
    return Digest(sha256(TAG_PREFIX + left + right).digest())


def tensor_digest(dtype: DType, dims: Sequence[int], tree_root: Digest) -> Digest:
    """H(TENSOR ‖ dtype u8 ‖ rank u8 ‖ dims u64[] ‖ root): a tensor of this type and shape over its leaves' tree."""
    header = bytes((dtype, len(dims))) + b"".join(d.to_bytes(8, "big") for d in dims)
    return Digest(sha256(TAG_TENSOR + header + tree_root).digest())


def list_digest(count: int, tree_root: Digest) -> Digest:
    """H(LIST ‖ count u32 ‖ root): a list of tensors over the tree of their roots."""
    return Digest(sha256(TAG_LIST + count.to_bytes(4, "big") + tree_root).digest())


def state_digest(list_roots: Sequence[Digest]) -> Digest:
    """H(STATE ‖ number of lists u8 ‖ list roots): a state."""
    return Digest(sha256(TAG_STATE + bytes((len(list_roots),)) + b"".join(list_roots)).digest())


def program_digest(header: bytes, tree_root: Digest) -> Digest:
    """H(PROGRAM ‖ header ‖ root): a program over the tree of its descriptors' leaf digests."""
    return Digest(sha256(TAG_PROGRAM + header + tree_root).digest())


def keccak(data: bytes) -> Digest:
    """keccak-256, the contracts' hash of ABI words."""
    return Digest(keccak256(data))


def digest_list_hash(digests: Sequence[Digest]) -> Digest:
    """keccak-256 of the digests one after another: how a posted list is kept between two moves."""
    return keccak(b"".join(digests))


def integer_list_hash(parts: Sequence[int]) -> Digest:
    """keccak-256 of int256 words one after another: how posted parts of a reduction are kept between two moves."""
    return keccak(b"".join((p % (1 << 256)).to_bytes(DIGEST_SIZE, "big") for p in parts))
