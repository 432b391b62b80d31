"""What ranks exchange: maxima, sums of integers, and rows. Every exchange is exact, so its topology leaves no trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from assay.engine.runtime.values.dtypes import bits


class RankGroup(Protocol):
    """The ranks that run one program together; every rank makes the same calls in the same order."""

    rank: int
    size: int

    def maximum(self, t: Tensor) -> None:
        """Replace i32 t on every rank by the elementwise maximum over ranks."""

    def total(self, t: Tensor) -> None:
        """Replace i64 t on every rank by the elementwise sum over ranks."""

    def gather(self, t: Tensor, counts: Sequence[int]) -> Tensor:
        """The rows of all ranks in order; counts: rows per rank, t has this rank's."""


class Alone:
    """One rank: nothing to exchange."""

    rank, size = 0, 1

    def maximum(self, t: Tensor) -> None:
        """Nothing."""

    def total(self, t: Tensor) -> None:
        """Nothing."""

    def gather(self, t: Tensor, counts: Sequence[int]) -> Tensor:
        """The tensor itself."""
        return t


class Distributed:
    """The ranks of a `torch.distributed` process group (Gloo on CPU); the default group unless one is given."""

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self._group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def maximum(self, t: Tensor) -> None:
        """All-reduce by max."""
        dist.all_reduce(t, dist.ReduceOp.MAX, self._group)

    def total(self, t: Tensor) -> None:
        """All-reduce by sum."""
        dist.all_reduce(t, dist.ReduceOp.SUM, self._group)

    def gather(self, t: Tensor, counts: Sequence[int]) -> Tensor:
        """All-gather of bytes, padded to the longest part: Gloo takes parts of one size and few element types."""
        t, dtype = bits(t), t.dtype  # joined as bools, a byte of 2 would become 1
        width = t[:1].numel() if t.shape[0] else int(torch.Size(t.shape[1:]).numel())
        rows = max(counts)
        mine = torch.zeros((rows, width), dtype=t.dtype)
        mine[: t.shape[0]] = t.reshape(t.shape[0], width)
        raw = mine.view(torch.uint8)
        parts = [torch.empty_like(raw) for _ in counts]
        dist.all_gather(parts, raw, self._group)
        kept = [part.view(t.dtype)[:count] for part, count in zip(parts, counts, strict=True)]
        return torch.cat(kept).reshape(sum(counts), *t.shape[1:]).view(dtype)
