"""The one file of a list of tensors: a safetensors file whose every byte follows from the types, dims and values.

    8 bytes     length of the header, little-endian
    header      JSON without spaces, padded with spaces to a multiple of 8:
                {"00000":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}
    data        the tensors' bytes, row-major little-endian, one after another

Tensors are named by their place, in five digits, and lie in the order of ORDER, within a type by place. So the header
is known before a byte is read, and is compared, never parsed: whatever a stranger wrote there costs nothing. And a list
root has one file and one digest: a holder of the list can put the very object again that others look for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final

from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store.packing import ElementRun

_NAMES: Final[dict[DType, str]] = {
    DType.I64: "I64",
    DType.F32: "F32",
    DType.I32: "I32",
    DType.U16: "U16",
    DType.I8: "I8",
    DType.U8: "U8",
    DType.BOOL: "BOOL",
}
"""In the order in which the safetensors library writes them, so that its files are ours."""

ORDER: Final = {dtype: place for place, dtype in enumerate(_NAMES)}

_TURNED: Final = (DType.F32, DType.U16)
"""Whose first bits are a sign and an exponent; a u16 of an update is a bfloat16's bits."""


MOST_DIGESTS: Final = 256


class ListDigests:
    """The digests of the files of the last MOST_DIGESTS lists that were asked for, by root: a list has one file."""

    def __init__(self) -> None:
        self._known: dict[Digest, Digest] = {}

    def known(self, root: Digest) -> Digest | None:
        """The digest of a list that was asked for before."""
        return self._known.get(root)

    def of(self, root: Digest, made: Callable[[], bytes]) -> Digest:
        """The digest of a list, whose file is made and hashed for the first who asks."""
        if root not in self._known:
            while len(self._known) >= MOST_DIGESTS:
                del self._known[next(iter(self._known))]
            self._known[root] = Digest(sha256(made()).digest())
        return self._known[root]


def file_size(specs: Sequence[TensorSpec]) -> int:
    """The size of a list's file, in bytes."""
    return len(_head(specs)) + sum(spec.nbytes for spec in specs)


def runs(specs: Sequence[TensorSpec]) -> list[ElementRun]:
    """What a list's file is made of: its header, and the elements of each type."""
    counts = {dtype: sum(spec.numel for spec in specs if spec.dtype is dtype) for dtype in ORDER}
    found = [ElementRun(dtype.size, dtype in _TURNED, count) for dtype, count in counts.items() if count]
    return [ElementRun(1, False, len(_head(specs))), *found]


def pack(specs: Sequence[TensorSpec], tensors: Sequence[bytes]) -> bytes:
    """The file of a list."""
    assert [spec.nbytes for spec in specs] == [len(data) for data in tensors]
    return b"".join([_head(specs), *(tensors[k] for k in _places(specs))])


def unpack(specs: Sequence[TensorSpec], data: bytes) -> tuple[bytes, ...] | None:
    """The tensors of a list in their places, if the bytes are the file of such a list, else None."""
    parts = unpack_views(specs, data)
    return None if parts is None else tuple(map(bytes, parts))


def unpack_views(specs: Sequence[TensorSpec], data: bytes) -> tuple[memoryview, ...] | None:
    """The same where they lie, for who looks at them and keeps none."""
    head = _head(specs)
    if len(data) != file_size(specs) or not data.startswith(head):
        return None
    found, at, view = {}, len(head), memoryview(data)
    for k in _places(specs):
        found[k] = view[at : at + specs[k].nbytes]
        at += specs[k].nbytes
    return tuple(found[k] for k in range(len(specs)))


def _places(specs: Sequence[TensorSpec]) -> list[int]:
    return sorted(range(len(specs)), key=lambda k: (ORDER[specs[k].dtype], k))


def _head(specs: Sequence[TensorSpec]) -> bytes:
    entries, at = {}, 0
    for k in _places(specs):
        end = at + specs[k].nbytes
        entries[f"{k:05d}"] = {"dtype": _NAMES[specs[k].dtype], "shape": specs[k].dims, "data_offsets": [at, end]}
        at = end
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header
