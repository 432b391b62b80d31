"""Damaged objects of a store, and whether its reader takes them."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from random import Random
from typing import Any

from assay.conformance import rules
from assay.protocol.digests import digest_list_hash
from assay.protocol.errors import UnavailableError
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store import listfile
from assay_ledger.store.blobs import ObjectTooLarge
from assay_ledger.store.manifest import Manifest
from assay_ledger.store.objects import Objects
from assay_ledger.store.packing import packed
from tests.second.fuzzing import damaged


def marks_object(rng: Random) -> tuple[int, Digest, bytes]:
    """A number of units, a digest, and bytes that are the marks with it or nearly."""
    data = rng.randbytes(32 * rng.choice((1, 3, 60)))
    marks = [Digest(data[i : i + 32]) for i in range(0, len(data), 32)]
    units = len(marks) if rng.random() < 0.9 else len(marks) + rng.choice((-1, 1))
    return units, digest_list_hash(marks), data if rng.random() < 0.5 else damaged(data, rng)


def marks_document(units: int, digest: Digest, data: bytes) -> dict[str, object]:
    """The same as the second implementation is asked."""
    return {"units": units, "digest": digest.hex(), "bytes": data.hex()}


def list_object(rng: Random) -> tuple[list[TensorSpec], bytes]:
    """Types and dims of a list, and bytes that are its file or nearly: damaged, or of another list."""
    specs = _specs(rng)
    other = specs if rng.random() < 0.8 else _specs(rng)
    data = listfile.pack(other, [rng.randbytes(spec.nbytes) for spec in other])
    for _ in range(rng.choice((0, 0, 1))):
        head = data[: rng.choice((8, 40, len(data)))]
        data = damaged(head, rng) + data[len(head) :]
    return specs, data


def _specs(rng: Random) -> list[TensorSpec]:
    count = rng.choice((0, 1, 2, 3, 7))
    dims = ((), (0,), (1,), (2, 3), (5,), (1, 1, 4))
    return [TensorSpec(rng.choice(list(DType)), rng.choice(dims)) for _ in range(count)]


def packed_object(rng: Random) -> dict[str, Any]:
    """An object as it lies packed or nearly, its digest, and how long it may be."""
    specs = _specs(rng)
    made = [rng.randbytes(spec.nbytes) if rng.random() < 0.5 else bytes(spec.nbytes) for spec in specs]
    file, runs = listfile.pack(specs, made), listfile.runs(specs)
    data = packed(file, runs) or file
    for _ in range(rng.choice((0, 0, 1))):
        head = data[: rng.choice((16, 40, len(data)))]
        data = damaged(head, rng) + data[len(head) :]
    return {"digest": sha256(file).hexdigest(), "limit": len(file) - rng.choice((0, 0, 0, 1)), "bytes": data.hex()}


def manifest_object(rng: Random) -> bytes:
    """Bytes that are a manifest or nearly."""
    digests = {Digest(rng.randbytes(32)): Digest(rng.randbytes(32)) for _ in range(rng.choice((0, 1, 2, 9)))}
    data = Manifest(digests).encode()
    if rng.random() < 0.2 and len(data) >= 128:
        data = data[64:128] + data[:64] + data[128:]  # out of order
    return data if rng.random() < 0.5 else damaged(data, rng)


def is_marks(units: int, digest: Digest, data: bytes) -> bool:
    """Whether bytes are the marks of so many units with this digest, as a reader of the store judges it."""
    objects = Objects(_OneObject(data))
    try:
        objects.marks(digest, units)
    except UnavailableError:
        return False
    return True


class _OneObject:
    """A store with one object, which every name is given to."""

    def __init__(self, data: bytes) -> None:
        self.put(data)

    def put(self, data: bytes, name: str | None = None, packed: bytes | None = None) -> Digest:
        self._data, self._digest = data, Digest(sha256(data).digest())
        return self._digest

    def get(self, digest: Digest, max_bytes: int) -> bytes:
        if len(self._data) > max_bytes:
            raise ObjectTooLarge("It is longer than its place allows.")
        return self._data

    def has(self, digest: Digest) -> bool:
        return True

    def list(self, prefix: str, limit: int = 4096) -> tuple[tuple[str, Digest], ...]:
        return ((prefix, self._digest),)

    def candidates(self, name: str, after: Digest | None = None) -> Iterator[Digest]:
        yield self._digest


def is_list(specs: list[TensorSpec], data: bytes) -> bool:
    """Whether bytes are laid out as the file of a list of these tensors."""
    return listfile.unpack(specs, data) is not None


def is_packed(case: dict[str, Any]) -> bool:
    """Whether bytes are an object of at most so many bytes with this digest, as they are or packed."""
    return rules.TAKES["packed"](case)


def list_document(specs: list[TensorSpec], data: bytes) -> dict[str, Any]:
    """A list's file as the second implementation takes it."""
    return {"specs": [[int(spec.dtype), list(spec.dims)] for spec in specs], "bytes": data.hex()}


def entries(data: bytes) -> int:
    """How many objects a manifest names."""
    return len(Manifest.decode(data).digests)
