"""Updates that are a round late (Kale et al., 2025): a worker's own is there at once, the others' one round after.

Shapes: an update and a sum have their parameter's.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def late_update(total_before: Sequence[Tensor], *, workers: int) -> tuple[list[Tensor]]:
    """What a round applies where everything is late: the mean of the updates of the round before."""
    return ([t * (1.0 / workers) for t in total_before],)


def eager_update(
    own: Sequence[Tensor], own_before: Sequence[Tensor], total_before: Sequence[Tensor], *, workers: int
) -> tuple[list[Tensor]]:
    """The same mean with the worker's own update of this round in the place of its last one.

    Over rounds every update is applied once by everybody, so that workers differ by their newest one alone.
    """
    changed = zip(own, own_before, total_before, strict=True)
    return ([(total + (now - before)) * (1.0 / workers) for now, before, total in changed],)
