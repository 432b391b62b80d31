"""The states of UPDATE and OUTER claims, which the contract builds (docs/protocol.md, section 4).

An outer step has eight slots, one per seat; a seat that is not included has the charter's all-zero update list and a
0 in the mask, so the program's shape does not depend on who contributed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from assay.protocol.arithmetic import f32
from assay.protocol.arithmetic.words import to_bytes
from assay.protocol.digests import state_digest
from assay.protocol.errors import InvariantError
from assay.protocol.trees.state import list_root
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Digest, DType

SLOTS: Final = 8
MASK_SPEC: Final = TensorSpec(DType.F32, (SLOTS,))


def mask_bytes(mask: int) -> bytes:
    """The mask tensor f32[8] of a bit set: element i is 1.0 when bit i is set, else +0.

    Raises:
        InvariantError: the mask has more than eight bits.
    """
    if not 0 <= mask < 1 << SLOTS:
        raise InvariantError(f"A mask of {SLOTS} seats is no {mask}.", code="MaskOutOfRange")
    return to_bytes(DType.F32, [f32.ONE if mask >> i & 1 else 0 for i in range(SLOTS)])


def mask_list_root(mask: int) -> Digest:
    """The root of the list that holds the mask alone."""
    return list_root([tensor_root(MASK_SPEC, mask_bytes(mask))])


def outer_state(parameters: Digest, momentum: Digest) -> Digest:
    """The root of an outer state, by its list roots."""
    return state_digest((parameters, momentum))


def update_input(parameters_before: Digest, parameters_after: Digest) -> Digest:
    """X of an UPDATE claim: the parameters lists of r_0 and r_n."""
    return state_digest((parameters_before, parameters_after))


def update_state(update: Digest) -> Digest:
    """Y of an UPDATE claim, by the root of the update list."""
    return state_digest((update,))


def outer_input(parameters: Digest, momentum: Digest, updates: Sequence[Digest], zero: Digest, mask: int) -> Digest:
    """X of an OUTER claim: parameters, momentum, the update list of every included seat (else `zero`), the mask.

    Raises:
        InvariantError: not eight update lists, or a mask of more than eight bits.
    """
    if len(updates) != SLOTS:
        raise InvariantError(f"An outer step has {SLOTS} slots, not {len(updates)}.", code="MaskOutOfRange")
    slots = [update if mask >> i & 1 else zero for i, update in enumerate(updates)]
    return state_digest((parameters, momentum, *slots, mask_list_root(mask)))
