"""Verdicts and claims in words, alike in the command line and the explorer."""

from __future__ import annotations

import struct
from typing import Final

from assay.bundle.replay import ReplayedDispute, VerdictValues
from assay.protocol.program.nodes import Family
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import DType

WORD: Final = 1 << 256


def family_text(family: int) -> str:
    """The name of a family code; a slot of the end state has none of its own."""
    return Family(family).name.lower() if family in Family._value2member_map_ else "none"


def ref_text(ref: ClaimRef) -> str:
    """What a claim is about."""
    work = f"seat {ref.seat} in round {ref.round}"
    match ref.kind:
        case ClaimKind.OUTER if ref.duty:
            return f"the sum of group {ref.duty - 1} of generation {ref.round + 1}"
        case ClaimKind.OUTER:
            return f"the merge of generation {ref.round + 1}"
        case ClaimKind.UPDATE:
            return f"the update of {work}"
        case ClaimKind.ATTESTATION:
            return f"part {ref.duty} of an attestation of the work of {work}"
        case _:
            return f"the work of {work}"


def claim_text(found: ReplayedDispute) -> str:
    """What the claim of a replayed dispute is about."""
    return ref_text(found.ref)


def value_texts(found: ReplayedDispute) -> tuple[str, str]:
    """`expected` and `claimed` in full: 32 bytes, and for an element the number that they stand for."""
    verdict = found.verdict
    assert verdict is not None
    return _text(found, verdict.expected), _text(found, verdict.claimed)


def _text(found: ReplayedDispute, value: int) -> str:
    full = f"0x{value % WORD:064x}"
    node = found.node
    if found.values is VerdictValues.WORDS and node is not None:
        return f"{full} ({number_text(node.spec.dtype, value)})"
    return f"{full} ({value}, a partial result)" if found.values is VerdictValues.PARTS else full


def number_text(dtype: DType, word: int) -> str:
    """The number that an element word stands for."""
    if dtype is DType.F32:
        (value,) = struct.unpack("<f", struct.pack("<I", word & 0xFFFFFFFF))
        return f"f32 {value!r}"
    return f"{dtype.name.lower()} {word}"
