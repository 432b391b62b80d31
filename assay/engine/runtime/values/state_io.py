"""Lists of tensors as bytes and as roots, and back.

Files and stores hold the bytes (`assay_ledger.store.objects`); what is here is the border between torch and the
protocol. Bytes
of a stranger are checked against their root before they come here; shapes and sizes come from the program. A slot's
bytes cross the border as they are, in both directions: a NaN keeps its payload, a bool its byte.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from assay.engine.runtime.native.sha256 import root_at
from assay.engine.runtime.values.dtypes import PROTOCOL, canonical, from_bytes, raw_bytes
from assay.protocol.errors import UserError
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


def to_lists_of_bytes(lists: Lists) -> ListBytes:
    """The bytes of every slot, as they are."""
    return tuple(tuple(raw_bytes(t) for t in part) for part in lists)


def from_lists_of_bytes(
    specs: Sequence[Sequence[TensorSpec]], data: Sequence[Sequence[bytes]]
) -> tuple[list[Tensor], ...]:
    """The tensors with these bytes, in memory of their own; bits are kept as they are.

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
