"""Tensor roots by the native SHA-256, which hashes as many leaves at once as a vector has lanes; hashlib without it.

The same roots as `protocol.trees.tensors`. The kernels are proved on known answers before they are used, and a wrong
digest could only make a claim that its own maker loses, never one that others accept.
"""

from __future__ import annotations

import ctypes
from functools import cache

from assay.engine.runtime.native.library import load, native
from assay.mapped_files import mapping_of
from assay.protocol.digests import Buffer
from assay.protocol.trees import merkle, tensors
from assay.protocol.trees.tensors import LEAF_SIZE, TensorSizeError, TensorSpec
from assay.protocol.types import Digest, DType

UNIT = "sha256"

_SUBTREE = LEAF_SIZE << 14
"""Bytes of mapped data that are hashed together, a whole subtree of leaves."""

_integer, _pointer = ctypes.c_int64, ctypes.c_void_p


class Hasher:
    """The kernels for one instruction set. variant: see `assay_sha_choose` in `sha256.c`; -1 is the fastest here."""

    def __init__(self, handle: ctypes.CDLL, instruction_set: str, *, variant: int = -1) -> None:
        self.instruction_set = instruction_set
        handle.assay_sha_choose.argtypes, handle.assay_sha_choose.restype = [_integer], None
        handle.assay_sha_choose(variant)
        self._leaves, self._tree = handle.assay_leaf_digests, handle.assay_tree_root
        self._leaves.argtypes, self._leaves.restype = [_pointer, _integer, _pointer], None
        self._tree.argtypes, self._tree.restype = [_pointer, _integer, _pointer], _integer
        self._odd = handle.assay_has_odd_nan
        self._odd.argtypes, self._odd.restype = [_pointer, _integer], _integer
        self._root = handle.assay_root
        self._root.argtypes, self._root.restype = [_pointer, _integer, _pointer], _integer

    def leaf_digests(self, data: bytes) -> list[Digest]:
        """The digests of 1 KiB leaves, in order."""
        count = -(-len(data) // LEAF_SIZE)
        out = ctypes.create_string_buffer(32 * count)
        self._leaves(data, len(data), out)
        return [Digest(out.raw[i : i + 32]) for i in range(0, 32 * count, 32)]

    def tree_root(self, data: bytes | int, size: int) -> Digest:
        """The root over the leaves of `size` bytes, given themselves or by their address."""
        out = ctypes.create_string_buffer(32)
        if self._tree(data, size, out):
            raise MemoryError("There is no memory for the digests of a tensor.")
        return Digest(out.raw)

    def has_odd_nan(self, address: int, count: int) -> bool:
        """Whether some f32 at an address is a NaN that no store writes."""
        return bool(self._odd(address, count))

    def root(self, digests: list[Digest]) -> Digest:
        """The root of the tree over these digests."""
        out = ctypes.create_string_buffer(32)
        if self._root(b"".join(digests), len(digests), out):
            raise MemoryError("There is no memory for the digests of a tree.")
        return Digest(out.raw)


@cache
def hasher() -> Hasher | None:
    """The kernels for this machine; None where they are not built or fail their self-test (then `failure` says how)."""
    found = native(UNIT)
    if found.handle is None:
        return None
    made = Hasher(found.handle, found.instruction_set)
    return None if failure(made) else made


def hasher_of(instruction_set: str, *, variant: int = -1) -> Hasher:
    """The kernels for a named instruction set, for tests and conformance. Raises OSError when they are not built."""
    return Hasher(load(UNIT, instruction_set), instruction_set, variant=variant)


def failure(made: Hasher) -> str:
    """What these kernels hash wrongly; empty when they agree with hashlib."""
    data = bytes(i * i * 31 >> 3 & 255 for i in range(40 * LEAF_SIZE + 17))
    for size in (0, 1, 55, 56, 63, 64, LEAF_SIZE - 1, LEAF_SIZE, LEAF_SIZE + 1, 17 * LEAF_SIZE, len(data)):
        part = data[:size]
        digests = tensors.leaf_digests(TensorSpec(DType.U8, (size,)), part)
        if made.leaf_digests(part) != digests or made.tree_root(part, size) != merkle.root(digests):
            return f"the native SHA-256 ({made.instruction_set}) is wrong for {size} bytes"
    return ""


def tree_root(data: Buffer) -> Digest:
    """The root over the leaves of these bytes, which the type and dims of a tensor are put before."""
    found = hasher() if len(data) > LEAF_SIZE else None
    if found is None:
        return merkle.root(tensors.leaf_digests(TensorSpec(DType.U8, (len(data),)), data))
    if isinstance(data, bytes):
        return found.tree_root(data, len(data))
    import numpy as np  # only an actor's data is mapped: a bare checkout has torch alone

    return found.tree_root(np.frombuffer(data, np.uint8).ctypes.data, len(data))


def _mapped_root(spec: TensorSpec, data: memoryview) -> Digest:
    """The root of bytes that may be more than memory; of a whole file once, as long as nobody writes to it.

    Every run, pass and trace begins with the roots of its slots, and data may take minutes to be read.
    """
    if len(data) != spec.nbytes:
        raise TensorSizeError(
            f"A tensor of {spec.nbytes} bytes was given {len(data)}.", wanted=spec.nbytes, got=len(data)
        )
    mapping = mapping_of(data)
    if mapping is None or len(data) != len(mapping):
        return spec.digest(merkle.root(_subtree_roots(data)))
    return mapping.once(spec, lambda: spec.digest(merkle.root(_subtree_roots(data))))


def _subtree_roots(data: memoryview) -> list[Digest]:
    """Subtree by subtree, letting go of each."""
    mapping, roots = mapping_of(data), []
    for at in range(0, len(data), _SUBTREE):
        roots.append(tree_root(data[at : at + _SUBTREE]))
        if mapping is not None:
            mapping.let_go()
    return roots


def tensor_root(spec: TensorSpec, data: Buffer) -> Digest:
    """The root of a tensor with these bytes, as `protocol.trees.tensors.tensor_root`.

    Raises:
        TensorSizeError: the data has another length than the spec says.
    """
    if isinstance(data, memoryview):
        return _mapped_root(spec, data)
    found = hasher() if isinstance(data, bytes) and len(data) > LEAF_SIZE else None
    if found is None:
        return tensors.tensor_root(spec, data)
    if len(data) != spec.nbytes:
        raise TensorSizeError(
            f"A tensor of {spec.nbytes} bytes was given {len(data)}.", wanted=spec.nbytes, got=len(data)
        )
    return spec.digest(found.tree_root(bytes(data), len(data)))


def root_at(spec: TensorSpec, address: int) -> Digest | None:
    """The root of the tensor whose bytes lie at an address of this process; None without kernels."""
    found = hasher()
    return None if found is None else spec.digest(found.tree_root(address, spec.nbytes))
