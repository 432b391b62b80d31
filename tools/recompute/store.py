"""Objects of a store, read as files and hashed here."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load


class Store:
    """A folder store: names that stand for digests, and objects under their SHA-256."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def objects(self, name: str) -> Iterator[bytes]:
        """Whatever was given a name, hashed."""
        for marker in sorted((self.folder / "names" / name).glob("*")):
            yield self.object(marker.name)

    def object(self, digest: str) -> bytes:
        """The bytes of a digest."""
        data = (self.folder / "objects" / digest[:2] / digest).read_bytes()
        if hashlib.sha256(data).hexdigest() != digest and data.startswith(PACKED):
            data = unpacked(data)
        if hashlib.sha256(data).hexdigest() != digest:
            raise SystemExit(f"the object {digest} has other bytes")
        return data

    def weights(self, root: bytes) -> list[Any]:
        """The arrays of the list with this root, from a safetensors file that hashes to it."""
        found = self.find(root)
        if found is None:
            raise SystemExit(f"the store has no list with the root {root.hex()}")
        return found

    def find(self, root: bytes) -> list[Any] | None:
        """The same; None where nobody published it."""
        for data in self.objects(f"lists/{root.hex()}"):
            found = load(data)
            arrays = [found[name] for name in sorted(found)]
            if list_root(arrays) == root:
                return arrays
        return None


PACKED = b"packed-1"


def unpacked(data: bytes) -> bytes:
    """What packed bytes stand for, by STO-20; the digest says whether it was that."""
    size, at, out = int.from_bytes(data[8:16], "big"), 16, b""
    while len(out) < size:
        width, is_turned, count = data[at], data[at + 1], int.from_bytes(data[at + 2 : at + 10], "big")
        at += 10
        elements = np.zeros(count, np.uint64)
        for k in range(width):
            end = at + 9 + int.from_bytes(data[at + 1 : at + 9], "big")
            plane = zlib.decompress(data[at + 9 : end]) if data[at] else data[at + 9 : end]
            elements |= np.frombuffer(plane, np.uint8).astype(np.uint64) << np.uint64(8 * k)
            at = end
        if is_turned:
            elements = (elements >> np.uint64(1)) | (elements & np.uint64(1)) << np.uint64(8 * width - 1)
        out += elements.astype(f"<u{width}").tobytes()
    return out


def _sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def tree(digests: list[bytes]) -> bytes:
    """The root of the protocol's tree: pairs are hashed, an odd one is promoted."""
    while len(digests) > 1:
        pairs = [_sha(b"\1", a, b) for a, b in zip(digests[::2], digests[1::2], strict=False)]
        digests = pairs + digests[len(digests) - len(digests) % 2 :]
    return digests[0] if digests else bytes(32)


def tensor_root(code: int, dims: tuple[int, ...], data: bytes) -> bytes:
    """The root of a tensor: its element type's code, dims and 1 KiB leaves."""
    leaves = [_sha(b"\0", data[i : i + 1024]) for i in range(0, len(data), 1024)]
    header = bytes((code, len(dims))) + b"".join(d.to_bytes(8, "big") for d in dims)
    return _sha(b"\2", header, tree(leaves))


CODES = {"float32": 0, "uint8": 4, "int8": 5, "uint16": 6}
"""Element types that parameters and updates have."""


def list_root(arrays: list[Any]) -> bytes:
    """The root of a list of arrays."""
    roots = [tensor_root(CODES[a.dtype.name], a.shape, a.astype(a.dtype.newbyteorder("<")).tobytes()) for a in arrays]
    return _sha(b"\5", len(roots).to_bytes(4, "big"), tree(roots))


def state_root(lists: tuple[bytes, ...]) -> bytes:
    """The root of a state of several lists."""
    return _sha(b"\3", bytes((len(lists),)), *lists)
