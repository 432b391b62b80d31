"""A list of tensors in fewer bytes, without loss: against a list that both sides hold, byte by byte, deflated.

    8 bytes     MAGIC
    1 byte      1 where the list is packed against a base, else 0
    per type of the list, in the order of its file, per byte of an element, the lowest first, a plane:
        1 byte      1 where it is deflated, 0 where that would not be smaller
        8 bytes     its length as it lies here, big-endian
        the plane

A plane is one byte of every element of all tensors of a type. Where there is a base, of the same layout, an element
stands for its pattern less the base's, folded so that small steps either way have high bytes of zero; else floats are
turned by one bit, so that their exponents fill a byte.

Nothing is believed: how large a plane is follows from the layout that the reader knows, deflating stops there, and what
comes out has the digest of the list's file or is refused. zlib is Python's own; zstd, which the field uses, has no
package among those that we pin.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final

import numpy as np
from numpy.typing import NDArray

from assay.protocol.errors import FraudError, UserError
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store import listfile

MAGIC: Final = b"packed-1"
LEVEL: Final = 6
_HEAD: Final = len(MAGIC) + 1
_PLANE_HEAD: Final = 9
_TURNED: Final = (DType.F32, DType.U16)
"""Whose first bits are a sign and an exponent; a u16 of an update is a bfloat16's bits."""

Elements = NDArray[np.unsignedinteger]


def pack_list(specs: Sequence[TensorSpec], tensors: Sequence[bytes], base: Sequence[bytes] | None = None) -> bytes:
    """The packed list; base: one of the same layout that every reader holds. Raises UserError (OtherLayout)."""
    parts = [MAGIC, bytes([base is not None])]
    _check_layout(specs, tensors)
    if base is not None:
        _check_layout(specs, base)
    for dtype, places in _groups(specs):
        elements = _elements(dtype, [tensors[k] for k in places])
        if base is not None:
            elements = _folded(elements, _elements(dtype, [base[k] for k in places]))
        elif dtype in _TURNED:
            elements = _turned(elements, 1)
        planes = elements.view(np.uint8).reshape(-1, dtype.size)
        for k in range(dtype.size):
            plane = planes[:, k].tobytes()
            deflated = zlib.compress(plane, LEVEL)
            kept = deflated if len(deflated) < len(plane) else plane
            parts += [bytes([kept is deflated]), len(kept).to_bytes(8, "big"), kept]
    return b"".join(parts)


def packed_limit(specs: Sequence[TensorSpec]) -> int:
    """The most bytes that a packed list of this layout has: a plane is never longer than it is by itself."""
    return _HEAD + sum(spec.nbytes for spec in specs) + sum(_PLANE_HEAD * dtype.size for dtype, _ in _groups(specs))


def unpack_list(
    specs: Sequence[TensorSpec], data: bytes, digest: Digest, base: Sequence[bytes] | None = None
) -> tuple[bytes, ...]:
    """The tensors of a list that was packed, whose file has this digest.

    base: the list that it was packed against; None where there was none. Memory: some times that of the layout,
    whatever the bytes are.

    Raises:
        FraudError: FalsePacking, the bytes are no such list. UserError: OtherLayout, the base is of another layout.
    """
    if base is not None:
        _check_layout(specs, base)
    if len(data) > packed_limit(specs):
        raise _false("it is longer than the list")
    if data[:_HEAD] != MAGIC + bytes([base is not None]):
        raise _false("it does not begin as one, or has another base")
    at, found = _HEAD, [b""] * len(specs)
    for dtype, places in _groups(specs):
        count = sum(specs[k].numel for k in places)
        planes = np.empty((count, dtype.size), np.uint8)
        for k in range(dtype.size):
            plane, at = _plane(data, at, count)
            planes[:, k] = np.frombuffer(plane, np.uint8)
        elements = planes.reshape(-1).view(f"<u{dtype.size}")
        if base is not None:
            elements = _unfolded(elements, _elements(dtype, [base[k] for k in places]))
        elif dtype in _TURNED:
            elements = _turned(elements, 8 * dtype.size - 1)
        whole, begin = elements.tobytes(), 0
        for k in places:
            found[k] = whole[begin : begin + specs[k].nbytes]
            begin += specs[k].nbytes
    if at != len(data):
        raise _false("bytes follow it")
    # Attack: planes of the right sizes with other numbers in them.
    if sha256(listfile.pack(specs, found)).digest() != digest:
        raise _false("it is another list")
    return tuple(found)


def _plane(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    """The plane of so many bytes that begins here, and where it ends."""
    length = int.from_bytes(data[at + 1 : at + _PLANE_HEAD], "big")
    mode, kept = data[at : at + 1], data[at + _PLANE_HEAD : at + _PLANE_HEAD + length]
    end = at + _PLANE_HEAD + length
    if end > len(data) or mode not in (b"\0", b"\1"):
        raise _false("a plane ends beyond it")
    if mode == b"\0":
        if length != size:
            raise _false("a plane has another size")
        return kept, end
    # Attack: a kilobyte that deflates to a gigabyte. One byte more than there may be tells, and is all that is made.
    inflater = zlib.decompressobj()
    try:
        plane = inflater.decompress(kept, size + 1)
    except zlib.error as error:
        raise _false("a plane is not deflated") from error
    if len(plane) != size or not inflater.eof or inflater.unused_data:
        raise _false("a plane has another size")
    return plane, end


def _groups(specs: Sequence[TensorSpec]) -> Iterator[tuple[DType, list[int]]]:
    """The places of each type's tensors, in the order of a list's file."""
    for dtype in listfile.ORDER:
        places = [k for k, spec in enumerate(specs) if spec.dtype is dtype]
        if places:
            yield dtype, places


def _elements(dtype: DType, parts: Sequence[bytes]) -> Elements:
    """Their patterns, unsigned."""
    return np.frombuffer(b"".join(parts), f"<u{dtype.size}")


def _folded(x: Elements, base: Elements) -> Elements:
    """The step from the base modulo 2^n, as 0, -1, 1, -2, 2 ... are 0, 1, 2, 3, 4."""
    step, top = x - base, 8 * x.itemsize - 1
    return ((step << 1) ^ (0 - (step >> top))).astype(x.dtype)


def _unfolded(folded: Elements, base: Elements) -> Elements:
    return (base + ((folded >> 1) ^ (0 - (folded & 1)))).astype(base.dtype)


def _turned(x: Elements, bits: int) -> Elements:
    """Bits turned to the left."""
    return ((x << bits) | (x >> (8 * x.itemsize - bits))).astype(x.dtype)


def _check_layout(specs: Sequence[TensorSpec], tensors: Sequence[bytes]) -> None:
    if [spec.nbytes for spec in specs] != [len(data) for data in tensors]:
        raise UserError(
            "The tensors are not of the layout that they are packed by.",
            code="OtherLayout",
            remedy="Give the list that the other side has, whole.",
        )


def _false(why: str) -> FraudError:
    return FraudError(f"The bytes are not the packed list that was named: {why}.", code="FalsePacking")
