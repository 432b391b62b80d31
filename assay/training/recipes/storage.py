"""Element types that no state holds: int64 lies in i32 slots, bfloat16 and float16 as their bits in u16 slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from assay.engine import ops
from assay.engine.compiler.lowering.registry import SIXTEEN
from assay.engine.runtime.values.dtypes import PROTOCOL

STORABLE = frozenset({*PROTOCOL, *SIXTEEN})
"""The element types that parameters, buffers and data may have."""


def stored(t: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """The tensor, after rounding to `dtype` where it is given, in an element type that a state holds."""
    wanted = dtype or t.dtype
    if wanted in SIXTEEN:
        return ops.bits_of(t, wanted)
    t = t.to(wanted)
    return t.to(torch.int32) if wanted is torch.int64 else t


def held(t: Tensor, dtype: torch.dtype) -> Tensor:
    """What a slot holds, in the element type that the user's code gave it."""
    return ops.floats_of(t, dtype) if dtype in SIXTEEN else t.to(dtype)


def mapped(kinds: Mapping[str, Sequence[torch.dtype]], casts: Mapping[str, str], tier: str) -> list[str]:
    """Sentences on what is 16 bits wide in the user's code and how a program has it.

    kinds: element types of the tensors of each kind. casts: the user's lines that cast, and to which type.
    """
    found = []
    for dtype, name in SIXTEEN.items():
        counts = {kind: Counter(types)[dtype] for kind, types in kinds.items()}
        kept = ", ".join(f"{kind} {count}" for kind, count in counts.items() if count)
        if kept:
            found.append(f"kept as {name} in 16 bits and computed in {tier}, rounded once at the end of a step: {kept}")
        lines = sorted(line for line, to in casts.items() if to == name)
        if lines:
            more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
            found.append(f"cast to {name} but computed in {tier}, without rounding: at {lines[0]}{more}")
    return found
