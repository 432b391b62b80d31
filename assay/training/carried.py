"""Error feedback: what an update does not send is kept, shrunk, and added to the seat's next one (SparseLoCo).

A program of two lists out. No run has it: its kept list is a claim about a claim before it (docs/adr/0059), so it
runs where a method is compared, without a chain.

Shapes: a kept list is laid out as an update on the wire that carries it, f32 or int4.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from assay.training.nibbles import pack_int4
from assay.training.sparse import DECAY, pack_sparse
from assay.training.updates import UpdateWire, received

CarriedUpdate = tuple[list[Tensor], list[Tensor]]
"""The update on the wire, and what is kept of it."""


def compute_update_carried(
    start: Sequence[Tensor], end: Sequence[Tensor], kept: Sequence[Tensor], *, carrier: UpdateWire = UpdateWire.F32
) -> CarriedUpdate:
    """One parameter in 64 of 0.95 of what was kept and the round's own update; and what is left of that.

    carrier: how the kept list lies, F32 or INT4.
    """
    shapes = [s.shape for s in start]
    before = received(kept, carrier, shapes)
    whole = [k * DECAY + (s - e) for k, s, e in zip(before, start, end, strict=True)]
    pairs = [pack_sparse(x) for x in whole]
    sent = [*[values for values, _ in pairs], *[scales for _, scales in pairs]]
    rest = [x - y for x, y in zip(whole, received(sent, UpdateWire.SPARSE, shapes), strict=True)]
    if carrier is UpdateWire.F32:
        return sent, rest
    packed = [pack_int4(x) for x in rest]
    return sent, [*[values for values, _ in packed], *[scales for _, scales in packed]]
