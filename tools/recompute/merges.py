"""What a merge makes of the updates of a tensor, by numpy alone, in double precision: the mean, or what most agree on.

A run's merge is the program that its charter names; which of these it is, its sponsor says (`assay run post --merge`).
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np

BUCKET, CLIPS = 2, 3
MERGES = ("mean", "median-norm", "median", "centered-clip", "bucketed-clip")


def agreed(merge: str, updates: list[Any], seats: list[int], all_seats: int) -> Any:
    """Of one tensor's updates, those that count, each finite and within the limit; seats: whose they are."""
    x = np.stack([update.astype("f8") for update in updates])
    if merge == "mean":
        return x.mean(0)
    if merge == "median":
        return np.median(x, axis=0)
    if merge == "median-norm":
        return _clipped(x).mean(0)
    if merge == "bucketed-clip":
        order = sorted(range(all_seats), key=lambda k: sha256(bytes([k])).digest())
        buckets = [order[k : k + BUCKET] for k in range(0, all_seats, BUCKET)]
        held = [[x[seats.index(k)] for k in bucket if k in seats] for bucket in buckets]
        x = np.stack([sum(own) / len(own) for own in held if own])
    center = np.median(x, axis=0)
    for _ in range(CLIPS):
        center = center + _clipped(x - center).mean(0)
    return center


def _clipped(x: Any) -> Any:
    """Rows scaled down to the lower middle of their norms."""
    norms = np.sqrt((x * x).reshape(len(x), -1).sum(1))
    radius = np.sort(norms)[(len(x) - 1) // 2]
    scales = np.where(norms <= radius, 1.0, radius / np.where(norms > 0.0, norms, 1.0))
    return x * scales.reshape(-1, *[1] * (x.ndim - 1))
