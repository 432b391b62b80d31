"""What a run publishes, by root: programs, tensors, lists of tensors, and which lists a state is made of.

A name in the store promises a root; every read recomputes that root from the bytes, so a store or a stranger can at
worst be useless. Even that passes those by who hold copies of their own: they work from these, and put back what is
gone. Sizes follow from the specs that the program declares, and bound every read before memory is taken.
Source: docs/protocol.md, section 2; docs/adr/0007-actors.md; docs/adr/0017-copies.md.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from assay.engine.native_sha256 import tensor_root
from assay.ledger.shelf import Shelf
from assay.ledger.store import ArtifactStore, StoreDenied, StoreUnreachable, get_named
from assay.protocol.digests import state_digest
from assay.protocol.errors import AssayError, UnavailableError
from assay.protocol.program import Program
from assay.protocol.programfile import decode_program, encode_program
from assay.protocol.state import list_root
from assay.protocol.tensors import TensorSpec
from assay.protocol.types import Digest, DType

MAX_PROGRAM_BYTES: Final = 1 << 28
MAX_LISTS: Final = 64
_HEADER_BYTES_PER_TENSOR: Final = 256
_HEADER_BYTES: Final = 4096

_NUMPY: Final[dict[DType, np.dtype[Any]]] = {
    DType.F32: np.dtype("<f4"),
    DType.I32: np.dtype("<i4"),
    DType.I64: np.dtype("<i8"),
    DType.BOOL: np.dtype("?"),
    DType.U8: np.dtype("u1"),
    DType.I8: np.dtype("i1"),
    DType.U16: np.dtype("<u2"),
}

Tensors = tuple[bytes, ...]
"""The bytes of a list's tensors, row-major little-endian."""


class Objects:
    """Typed access to a run's store. Reads raise what `get_named` raises: all of it UnavailableError, never fraud.

    With a shelf, a copy of everything read or published is kept there, and read when the store fails.
    """

    def __init__(self, store: ArtifactStore, shelf: Shelf | None = None) -> None:
        self.store = store
        self.shelf = shelf

    def put_program(self, program: Program) -> Digest:
        """Publishes a program; returns its root."""
        self._publish(f"programs/{program.root.hex()}", encode_program(program))
        return program.root

    def program(self, root: Digest) -> Program:
        """The program with this root."""

        def fits(data: bytes) -> bool:
            try:
                return decode_program(data, MAX_PROGRAM_BYTES).root == root
            except AssayError:
                return False

        data = self._fetch(f"programs/{root.hex()}", MAX_PROGRAM_BYTES, fits)
        return decode_program(data, MAX_PROGRAM_BYTES)

    def put_tensor(self, spec: TensorSpec, data: bytes) -> Digest:
        """Publishes one tensor's bytes; returns its root."""
        root = tensor_root(spec, data)
        self._publish(f"tensors/{root.hex()}", data)
        return root

    def tensor(self, root: Digest, spec: TensorSpec) -> bytes:
        """The bytes of the tensor with this root."""

        def fits(data: bytes) -> bool:
            return len(data) == spec.nbytes and tensor_root(spec, data) == root

        return self._fetch(f"tensors/{root.hex()}", spec.nbytes, fits)

    def put_list(self, specs: Sequence[TensorSpec], tensors: Sequence[bytes]) -> Digest:
        """Publishes a list of tensors as one safetensors file; returns the list root."""
        root = root_of_list(specs, tensors)
        self._publish(f"lists/{root.hex()}", _pack(specs, tensors))
        return root

    def list(self, root: Digest, specs: Sequence[TensorSpec]) -> Tensors:
        """The tensors of the list with this root; all-zero lists are never stored."""
        zeros = tuple(spec.zeros() for spec in specs)
        if root_of_list(specs, zeros) == root:
            return zeros
        limit = sum(s.nbytes for s in specs) + _HEADER_BYTES + _HEADER_BYTES_PER_TENSOR * len(specs)

        def fits(data: bytes) -> bool:
            tensors = _unpack(specs, data)
            return tensors is not None and root_of_list(specs, tensors) == root

        found = _unpack(specs, self._fetch(f"lists/{root.hex()}", limit, fits))
        assert found is not None
        return found

    def put_state(self, list_roots: Sequence[Digest]) -> Digest:
        """Publishes which lists a state is made of; returns the state root."""
        root = state_digest(list_roots)
        self._publish(f"states/{root.hex()}", b"".join(list_roots))
        return root

    def state(self, root: Digest) -> tuple[Digest, ...]:
        """The list roots of the state with this root."""

        def fits(data: bytes) -> bool:
            return len(data) % 32 == 0 and state_digest(_digests(data)) == root

        return _digests(self._fetch(f"states/{root.hex()}", 32 * MAX_LISTS, fits))

    def _publish(self, name: str, data: bytes) -> None:
        if self.shelf is not None:
            self.shelf.put(name, data)
        self.store.put(data, name)

    def _fetch(self, name: str, max_bytes: int, fits: Callable[[bytes], bool]) -> bytes:
        """From the store; where that fails from the shelf, and then what is gone is put back for everybody else."""
        try:
            data = get_named(self.store, name, max_bytes, fits)
        except UnavailableError as error:
            copy = None if self.shelf is None else self.shelf.get(name, max_bytes)
            if copy is None or not fits(copy):
                raise
            if not isinstance(error, StoreUnreachable | StoreDenied):
                with contextlib.suppress(UnavailableError):
                    self.store.put(copy, name)
            return copy
        if self.shelf is not None:
            self.shelf.put(name, data)
        return data


def root_of_list(specs: Sequence[TensorSpec], tensors: Sequence[bytes]) -> Digest:
    """The list root of these tensors."""
    return list_root([tensor_root(spec, data) for spec, data in zip(specs, tensors, strict=True)])


def _digests(data: bytes) -> tuple[Digest, ...]:
    return tuple(Digest(data[i : i + 32]) for i in range(0, len(data), 32))


def _pack(specs: Sequence[TensorSpec], tensors: Sequence[bytes]) -> bytes:
    """A safetensors file whose tensors are named by their place."""
    arrays = {
        f"{i:05d}": np.frombuffer(data, _NUMPY[spec.dtype]).reshape(spec.dims)
        for i, (spec, data) in enumerate(zip(specs, tensors, strict=True))
    }
    return save(arrays)


def _unpack(specs: Sequence[TensorSpec], data: bytes) -> Tensors | None:
    """The tensors of a file if it holds exactly these specs, else None: whoever wrote it is a stranger."""
    try:
        found = load(data)
    except (SafetensorError, ValueError, KeyError, TypeError):
        return None
    if sorted(found) != [f"{i:05d}" for i in range(len(specs))]:
        return None
    arrays = [found[f"{i:05d}"] for i in range(len(specs))]
    if any(a.dtype != _NUMPY[s.dtype] or a.shape != s.dims for a, s in zip(arrays, specs, strict=True)):
        return None
    return tuple(a.tobytes() for a in arrays)
