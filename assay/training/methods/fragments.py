"""Fragments in turn (Streaming DiLoCo, Douillard et al., 2025): which parameters travel together, and mixing."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


def fragments_of(sizes: Sequence[int], count: int) -> list[list[int]]:
    """The positions of each fragment, in order: parameters of these sizes, the largest first to the smallest fragment.

    As even as that makes them: a run's peak is its largest fragment. Fewer than `count` where there are fewer
    parameters.
    """
    found: list[list[int]] = [[] for _ in range(min(count, len(sizes)))]
    held = [0] * len(found)
    for k in sorted(range(len(sizes)), key=lambda k: (-sizes[k], k)):
        least = held.index(min(held))
        found[least].append(k)
        held[least] += sizes[k]
    return [sorted(fragment) for fragment in found]


def mixed(own: Sequence[Tensor], merged: Sequence[Tensor], *, alpha: float) -> tuple[list[Tensor]]:
    """Where a worker goes on from when a merge arrives: alpha of its own parameters, and the rest of the merged."""
    return ([o * alpha + m * (1.0 - alpha) for o, m in zip(own, merged, strict=True)],)
