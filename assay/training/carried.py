"""Error feedback: what an update does not send is kept, shrunk, and added to the seat's next one (SparseLoCo).

A program of two lists out. No run has it: its kept list is a claim about a claim before it (docs/adr/0059), so it
runs where a method is compared, without a chain.

Shapes: a kept list is laid out as an update on the wire that carries it, f32 or int4.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from assay.training.sparse import DECAY
from assay.training.updates import UpdateWire, packed_list, received

CarriedUpdate = tuple[list[Tensor], list[Tensor]]
"""The update on the wire, and what is kept of it."""


def compute_update_carried(
    start: Sequence[Tensor],
    end: Sequence[Tensor],
    kept: Sequence[Tensor],
    *,
    carrier: UpdateWire = UpdateWire.F32,
    wire: UpdateWire = UpdateWire.SPARSE,
    decay: float = DECAY,
) -> CarriedUpdate:
    """`decay` of what was kept and the round's own update as a wire sends it; and what is left of that.

    carrier: how the kept list lies, F32 or INT4. wire: SPARSE, SIGN, POWERSGD or COCKTAIL.
    """
    shapes = [s.shape for s in start]
    before = received(kept, carrier, shapes)
    whole = [k * decay + (s - e) for k, s, e in zip(before, start, end, strict=True)]
    sent = packed_list(whole, wire, start)
    rest = [x - y for x, y in zip(whole, received(sent, wire, shapes), strict=True)]
    if carrier is UpdateWire.F32:
        return sent, rest
    return sent, packed_list(rest, carrier, start)
