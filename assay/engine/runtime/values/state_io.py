"""Lists of tensors as bytes and as roots, and back.

Files and stores hold the bytes (`assay_ledger.store.objects`); what is here is the border between torch and the
protocol. Bytes
of a stranger are checked against their root before they come here; shapes and sizes come from the program. A slot's
bytes cross the border as they are, in both directions: a NaN keeps its payload, a bool its byte.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from torch import Tensor

from assay.engine.runtime.native.sha256 import root_at
from assay.engine.runtime.values.dtypes import PROTOCOL, canonical, from_bytes, raw_bytes
from assay.mapped_files import MappedFile, mapping_of
from assay.protocol.errors import InvariantError, UserError
from assay.protocol.program.program import Program
from assay.protocol.trees import state
from assay.protocol.trees.state import ListBytes, SlotLists
from assay.protocol.trees.tensors import LEAF_SIZE, TensorSizeError, TensorSpec, tensor_root
from assay.protocol.types import Digest

Lists = Sequence[Sequence[Tensor]]


def spec_of(t: Tensor) -> TensorSpec:
    """Element type and dims of a tensor.

    Raises:
        UserError: UnknownElementType, when programs do not have it.
    """
    if t.dtype not in PROTOCOL:
        raise UserError(
            f"Tensors of {t.dtype} have no place in a state.",
            code="UnknownElementType",
            remedy="Use float32, int32, int64, bool, uint8, int8 or uint16.",
        )
    return TensorSpec(PROTOCOL[t.dtype], tuple(t.shape))


def bytes_of(t: Tensor) -> memoryview:
    """The bytes of a contiguous tensor on the CPU, where they lie; it must outlive them."""
    return memoryview((ctypes.c_char * t.nbytes).from_address(t.data_ptr() if t.nbytes else id(t))).cast("B")


def to_lists_of_bytes(lists: Lists) -> ListBytes:
    """The bytes of every slot, as they are."""
    return tuple(tuple(raw_bytes(t) for t in part) for part in lists)


def passed_on(given: ListBytes, inputs: Lists, results: Lists) -> ListBytes:
    """The bytes of results; slots that are inputs passed through are the very bytes that were given.

    inputs: the tensors made of `given`. So data is neither copied nor read for being passed on.
    """
    known = {id(t): raw for part, raws in zip(inputs, given, strict=True) for t, raw in zip(part, raws, strict=True)}
    return tuple(tuple(known[id(t)] if id(t) in known else raw_bytes(t) for t in part) for part in results)


def mappings_of(lists: ListBytes) -> list[MappedFile]:
    """The mapped files that slots lie in."""
    return list({id(m): m for part in lists for data in part if (m := mapping_of(data)) is not None}.values())


def check_mapped(lists: ListBytes) -> None:
    """Lets go of the pages of mapped slots, once their files hold what they must.

    Attack: somebody writes to a file after its root was found right, and an honest actor signs what it computed.

    Raises:
        InvariantError: DataChanged.
    """
    for mapping in mappings_of(lists):
        mapping.let_go()
        if not mapping.is_right():
            raise InvariantError(
                "The file of the run's data was written to while it was in use; what was computed is thrown away.",
                code="DataChanged",
                remedy="Start again: the file is fetched anew. Keep other programs out of --data-dir.",
            )


def from_lists_of_bytes(
    specs: Sequence[Sequence[TensorSpec]], data: Sequence[Sequence[bytes]]
) -> tuple[list[Tensor], ...]:
    """The tensors with these bytes, in memory of their own or in their mapped file; bits are kept as they are.

    Raises:
        TensorSizeError: some bytes have another length than their spec says.
    """
    return tuple(
        [tensor_from_bytes(spec, raw) for spec, raw in zip(part, raws, strict=True)]
        for part, raws in zip(specs, data, strict=True)
    )


def tensor_from_bytes(spec: TensorSpec, data: bytes) -> Tensor:
    """The tensor with these bytes. Raises TensorSizeError for another length."""
    if len(data) != spec.nbytes:
        raise TensorSizeError(
            f"A tensor of {spec.nbytes} bytes was given {len(data)}.", wanted=spec.nbytes, got=len(data)
        )
    return from_bytes(spec.dtype, spec.dims, data)


def input_specs(program: Program) -> list[list[TensorSpec]]:
    """The specs of the slots of X, per list."""
    return [[program.specs[k] for k in nodes] for nodes in program.input_nodes]


def check_inputs(program: Program, inputs: Lists) -> None:
    """Raises UserError (InputLayout): the lists are not the program's X."""
    sizes = tuple(len(part) for part in inputs)
    if sizes != program.inputs:
        raise UserError(f"The program takes lists of {program.inputs} tensors, not {sizes}.", code="InputLayout")
    for k, tensor in enumerate(t for part in inputs for t in part):
        spec = program.specs[k]
        if tuple(tensor.shape) != spec.dims or PROTOCOL.get(tensor.dtype) is not spec.dtype:
            raise UserError(
                f"Input {k} is {tensor.dtype} {list(tensor.shape)}, not {spec.dtype.name} {list(spec.dims)}.",
                code="InputLayout",
            )


def output_specs(program: Program) -> list[list[TensorSpec]]:
    """The specs of the slots of Y, per list."""
    return [[program.specs[k] for k in nodes] for nodes in program.output_nodes]


def root_of(t: Tensor) -> Digest:
    """The tensor root of a slot."""
    spec = spec_of(t)
    is_in_memory = t.device.type == "cpu" and t.is_contiguous()
    found = root_at(spec, t.data_ptr()) if is_in_memory and spec.nbytes > LEAF_SIZE else None
    return found or tensor_root(spec, raw_bytes(t))


def stored_root(t: Tensor) -> Digest:
    """The tensor root of a computed value, which memory may hold with other NaNs than a store writes."""
    return root_of(canonical(t))


def slot_roots(lists: Lists) -> SlotLists:
    """The tensor root of every slot."""
    return tuple(tuple(root_of(t) for t in part) for part in lists)


def list_roots(lists: Lists) -> tuple[Digest, ...]:
    """The root of every list."""
    return state.list_roots(slot_roots(lists))


def state_root(lists: Lists) -> Digest:
    """The root of the state."""
    return state.state_root(slot_roots(lists))
