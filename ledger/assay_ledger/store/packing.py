"""An object in fewer bytes, without loss, as a store may keep it in the object's place: planes of bytes, Huffman-coded.

    8 bytes     MAGIC
    8 bytes     the object's length, big-endian
    per run of elements of one width, until their bytes are the object's length:
        1 byte      bytes of an element: 1, 2, 4 or 8
        1 byte      1 where elements are turned by one bit to the left, so that a float's exponent fills a byte, else 0
        8 bytes     how many elements, at least 1, big-endian
        per byte of an element, the lowest first, a plane: that byte of all elements
            1 byte      1 where the plane is a zlib stream, 0 where that would not be smaller
            8 bytes     its length as it lies here, big-endian
            the plane

Digests, names and commitments are those of the object. So packing decides nothing: two writers may pack otherwise, and
what comes out has the digest that was asked for or is refused.

Nothing is believed. A reader knows how long the object may be, takes no more than EXPANSION times what it was sent, and
ends each plane at its size.
Source: docs/protocol/store.md (STO-20, STO-21); docs/adr/0069-packed-objects.md.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay_ledger.store.errors import ObjectMismatch

if TYPE_CHECKING:
    import numpy as np

MAGIC: Final = b"packed-1"

EXPANSION: Final = 8
"""How many times its packed bytes an object may have. A Huffman code has at least a bit for each byte, so no packing of
ours exceeds it; a larger number lets strangers cost readers more than they pay for."""

WORTH: Final = 50
"""An object lies packed where that saves one byte in so many; below, it is not worth its readers' time."""

SOME: Final = 1 << 20
"""Elements that are turned at a time: a large list is turned, and turned back, without another one beside it."""

WIDTHS: Final = (1, 2, 4, 8)
_HEAD: Final = len(MAGIC) + 8
_RUN_HEAD: Final = 10
_PLANE_HEAD: Final = 9


@dataclass(frozen=True, slots=True)
class ElementRun:
    """So many elements of so many bytes, one after another in an object. is_turned: their first bits are a sign and an
    exponent."""

    width: int
    is_turned: bool
    count: int

    @property
    def nbytes(self) -> int:
        """Bytes of all of them."""
        return self.width * self.count


def packed(data: bytes, runs: Sequence[ElementRun]) -> bytes | None:
    """The object packed by its layout; None where that is not worth it. The runs have all of its bytes."""
    import numpy as np  # here: a machine that trains and publishes nothing may lack it

    assert sum(run.nbytes for run in runs) == len(data)
    parts, at = [MAGIC, len(data).to_bytes(8, "big")], 0
    for run in runs:
        if not run.count:
            continue
        parts.append(bytes([run.width, run.is_turned]) + run.count.to_bytes(8, "big"))
        elements = np.frombuffer(data, f"<u{run.width}", run.count, at)
        for k in range(run.width):
            some = range(0, run.count, SOME)
            plane = b"".join(
                _turned(elements[i : i + SOME], run, 1).view(np.uint8)[k :: run.width].tobytes() for i in some
            )
            coded = _coded(plane)
            kept = coded if len(coded) < len(plane) else plane
            parts += [bytes([kept is coded]), len(kept).to_bytes(8, "big"), kept]
        at += run.nbytes
    size = sum(map(len, parts))
    return b"".join(parts) if WORTH * (len(data) - size) >= len(data) else None


def unpacked(data: bytes, max_bytes: int) -> bytes | None:
    """The object that packed bytes of a stranger stand for; None where they do not begin as packed ones.

    Takes memory of some times `max_bytes` at most. Raises ObjectMismatch.
    """
    if not data.startswith(MAGIC):
        return None
    size = int.from_bytes(data[len(MAGIC) : _HEAD], "big")
    # Attack: a kilobyte that says it is a gigabyte, so that each candidate of a name costs its readers a second.
    if len(data) < _HEAD or size > min(max_bytes, EXPANSION * len(data)):
        raise _false("it says that it is longer than it may be")
    out, at, filled = bytearray(size), _HEAD, 0
    while filled < size:
        run = _run(data, at, size - filled)
        at += _RUN_HEAD
        end = filled + run.nbytes
        for k in range(run.width):
            plane, at = _plane(data, at, run.count)
            out[filled + k : end : run.width] = plane
        if run.is_turned:
            for i in range(filled, end, SOME * run.width):
                part = out[i : min(i + SOME * run.width, end)]
                out[i : i + len(part)] = _turned_back(part, run)
        filled = end
    if at != len(data):
        raise _false("bytes follow it")
    return bytes(out)


def _run(data: bytes, at: int, room: int) -> ElementRun:
    """The head of a run of at most so many bytes."""
    head = data[at : at + _RUN_HEAD]
    if len(head) < _RUN_HEAD or head[0] not in WIDTHS or head[1] > 1:
        raise _false("a run is of no kind")
    run = ElementRun(head[0], bool(head[1]), int.from_bytes(head[2:], "big"))
    if not 1 <= run.count <= room // run.width:
        raise _false("a run is empty or longer than the object")
    return run


def _plane(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    """The plane of so many bytes that begins here, and where it ends."""
    length = int.from_bytes(data[at + 1 : at + _PLANE_HEAD], "big")
    mode, kept = data[at : at + 1], data[at + _PLANE_HEAD : at + _PLANE_HEAD + length]
    end = at + _PLANE_HEAD + length
    if end > len(data) or mode not in (b"\0", b"\1"):
        raise _false("a plane is of no kind, or ends beyond it")
    if mode == b"\0":
        if length != size:
            raise _false("a plane has another size")
        return kept, end
    # Attack: a stream that inflates to a gigabyte. One byte more than there may be tells, and is all that is made.
    inflater = zlib.decompressobj()
    try:
        plane = inflater.decompress(kept, size + 1)
    except zlib.error:
        raise _false("a plane is no stream") from None
    if len(plane) != size or not inflater.eof or inflater.unused_data:
        raise _false("a plane has another size")
    return plane, end


def _coded(plane: bytes) -> bytes:
    """A zlib stream of it without repetitions: on planes of floats smaller than with them, and ten times faster."""
    coder = zlib.compressobj(strategy=zlib.Z_HUFFMAN_ONLY)
    return coder.compress(plane) + coder.flush()


def _turned(elements: np.ndarray, run: ElementRun, bits: int) -> np.ndarray:
    """Bits turned to the left, where the run is of that kind."""
    if not run.is_turned:
        return elements
    return (elements << bits) | (elements >> (8 * run.width - bits))


def _turned_back(data: bytearray, run: ElementRun) -> bytes:
    """The elements turned by one bit to the right; one by one on a machine without NumPy, which reads known answers."""
    bits = 8 * run.width - 1
    try:
        import numpy as np
    except ModuleNotFoundError:
        form = f"<{len(data) // run.width}{'BHIQ'[WIDTHS.index(run.width)]}"
        mask = (1 << bits + 1) - 1
        return struct.pack(form, *((x << bits & mask) | x >> 1 for x in struct.unpack(form, data)))
    return _turned(np.frombuffer(data, f"<u{run.width}"), run, bits).tobytes()


def _false(why: str) -> ObjectMismatch:
    return ObjectMismatch(f"An object is packed as none may be: {why}.")
