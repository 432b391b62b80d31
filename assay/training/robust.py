"""What N updates of a tensor agree on, where a mean would follow whoever shouts: rules that some liars cannot lead far.

Median norms clip (as Templar's and INTELLECT's merges), a median of each coordinate (Yin et al., 2018), clipping around
a center (Karimireddy et al., 2021), and that over buckets of seats, whose means are more alike than seats on data of
their own (Karimireddy et al., 2022). All are of one group of up to 64 seats: medians of medians are none of the whole.

Shapes: N seats of a group, B buckets; P elements of a tensor. Every part is f32 in its parameter's shape, finite, and
within the merge's limit; counted_N is bool. Where nobody is counted, what is returned means nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Final

import torch
from torch import Tensor

from assay.protocol.errors import UserError
from assay.training.statistics import middle_two


class MergeKind(StrEnum):
    """What becomes of the updates of one group; each within the merge's limit first."""

    MEAN = "mean"
    MEDIAN_NORM = "median-norm"
    MEDIAN = "median"
    CENTERED_CLIP = "centered-clip"
    BUCKETED_CLIP = "bucketed-clip"


BUCKET: Final = 2
"""Seats of a bucket: each liar spoils one, so buckets of s withstand an s-th of the liars that seats do."""

CLIPS: Final = 3
"""How often the center moves; from a median it is near its end after one."""


def agreed(kind: MergeKind, parts: Sequence[Tensor], counted_N: Tensor) -> Tensor:
    """What the counted ones of N updates of a tensor come to by a rule that is not the mean, in the tensor's shape."""
    if kind is MergeKind.MEDIAN:
        return _median(torch.stack(list(parts), -1), counted_N)
    if kind is MergeKind.CENTERED_CLIP:
        return _clipped_around(torch.stack(list(parts), -1), counted_N)
    if kind is MergeKind.BUCKETED_CLIP:
        return _clipped_around(*_in_buckets(parts, counted_N))
    stack = torch.where(counted_N, torch.stack(list(parts), -1), 0.0)
    return _clipped_sum(stack, counted_N) * _share(counted_N)


def merge_kind(name: str) -> MergeKind:
    """The kind of this name. Raises UserError: UnknownMerge."""
    if name not in list(MergeKind):
        raise UserError(
            f"There is no merge {name!r}.", code="UnknownMerge", remedy=f"Choose one of: {', '.join(MergeKind)}."
        )
    return MergeKind(name)


def bucket_order(seats: int) -> list[int]:
    """The seats of a group in the order in which buckets are filled: by the SHA-256 of their place, one byte."""
    return sorted(range(seats), key=lambda k: sha256(bytes([k])).digest())


def _median(x: Tensor, counted_N: Tensor) -> Tensor:
    """The middle of each coordinate of [..., N]; of an even number the mean of the middle two."""
    low, high = middle_two(x, counted_N)
    return low * 0.5 + high * 0.5


def _clipped_around(x: Tensor, counted_N: Tensor) -> Tensor:
    """CenteredClip on [..., N]: the center, first the median, moves by the mean of clipped differences from it."""
    center = _median(x, counted_N)
    for _ in range(CLIPS):
        apart = torch.where(counted_N, x - center[..., None], 0.0)
        center = center + _clipped_sum(apart, counted_N) * _share(counted_N)
    return center


def _clipped_sum(x: Tensor, counted_N: Tensor) -> Tensor:
    """The sum over the last dimension of [..., N], each scaled down to the median of the counted ones' norms.

    Of an even number the lower of the middle two: half of a group that lies cannot lift it.
    """
    flat_PN = x.reshape(-1, x.shape[-1])
    norms_N = torch.sqrt((flat_PN * flat_PN).sum(0))
    radius, _ = middle_two(norms_N, counted_N)
    scales_N = torch.where(norms_N <= radius, 1.0, radius / norms_N)
    return (x * scales_N).sum(-1)


def _in_buckets(parts: Sequence[Tensor], counted_N: Tensor) -> tuple[Tensor, Tensor]:
    """The means of the counted seats of each bucket, [..., B], and which bucket has any."""
    order = bucket_order(len(parts))
    means, counts = [], []
    for first in range(0, len(order), BUCKET):
        inside = order[first : first + BUCKET]
        held = [torch.where(counted_N[k], parts[k], 0.0) for k in inside]
        count = torch.stack([counted_N[k] for k in inside]).to(torch.float32).sum()
        means.append(torch.stack(held, -1).sum(-1) / torch.maximum(count, torch.ones(())))
        counts.append(count > 0.0)
    return torch.stack(means, -1), torch.stack(counts)


def _share(counted_N: Tensor) -> Tensor:
    """One over how many are counted."""
    return 1.0 / torch.maximum(counted_N.to(torch.float32).sum(), torch.ones(()))
