"""Are a list's bytes such as a store writes them: f32 with the one NaN, bools of 0 and 1?

Other bytes mean the same to readers of elements, and pass through programs as they are (docs/adr/0018-raw-bytes.md).
From lists that are canonical every program makes lists that are; so one that is not was either posted so by the
sponsor, or is no program's result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from assay.protocol.arithmetic import f32
from assay.protocol.errors import FraudError
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

_AT_A_TIME: Final = 1 << 22
"""Bytes that are looked at in one go."""


class NotCanonical(FraudError):
    """A published list holds elements that no store writes: it is no honest result."""

    remedy = "Take no part in a run that starts from it, and sign for no commitment that names it."


def check_canonical(what: str, specs: Sequence[TensorSpec], tensors: Sequence[bytes]) -> None:
    """Raises NotCanonical, naming the list as `what` and the first slot that is not."""
    for slot, (spec, data) in enumerate(zip(specs, tensors, strict=True)):
        if not is_canonical(spec.dtype, data):
            raise NotCanonical(
                f"Slot {slot} of {what} holds a NaN with a payload, or a bool other than 0 and 1.", slot=slot
            )


def is_canonical(dtype: DType, data: bytes) -> bool:
    """`protocol.program.wellformed.is_canonical` for lists of any size."""
    if dtype not in (DType.F32, DType.BOOL):
        return True
    view = memoryview(data)
    return not any(_is_odd(dtype, view[i : i + _AT_A_TIME]) for i in range(0, len(data), _AT_A_TIME))


def _is_odd(dtype: DType, data: memoryview) -> bool:
    if dtype is DType.BOOL:
        return bool((np.frombuffer(data, np.uint8) > 1).any())
    words = np.frombuffer(data, "<u4")
    return bool((((words & 0x7FFFFFFF) > f32.INF) & (words != f32.NAN)).any())
