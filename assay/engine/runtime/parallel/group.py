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
    """The ranks of a `torch.distributed` process group; the default group unless one is given.

    Gloo exchanges what lies in the processor's memory, NCCL what lies on a GPU: tensors from elsewhere are copied.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self._group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        by_gpu = dist.get_backend(group) == "nccl"
        self._device = torch.device("cuda", torch.cuda.current_device()) if by_gpu else torch.device("cpu")

    def maximum(self, t: Tensor) -> None:
        """All-reduce by max."""
        self._reduce(t, dist.ReduceOp.MAX)

    def total(self, t: Tensor) -> None:
        """All-reduce by sum."""
        self._reduce(t, dist.ReduceOp.SUM)

    def _reduce(self, t: Tensor, operation: dist.ReduceOp.RedOpType) -> None:
        moved = t.to(self._device)
        dist.all_reduce(moved, operation, self._group)
        if moved is not t:
            t.copy_(moved)

    def gather(self, t: Tensor, counts: Sequence[int]) -> Tensor:
        """All-gather of bytes, padded to the longest part: Gloo takes parts of one size and few element types."""
        t, dtype = bits(t), t.dtype  # joined as bools, a byte of 2 would become 1
        width = t[:1].numel() if t.shape[0] else int(torch.Size(t.shape[1:]).numel())
        rows = max(counts)
        mine = torch.zeros((rows, width), dtype=t.dtype, device=t.device)
        mine[: t.shape[0]] = t.reshape(t.shape[0], width)
        raw = mine.view(torch.uint8).to(self._device)
        parts = [torch.empty_like(raw) for _ in counts]
        dist.all_gather(parts, raw, self._group)
        kept = [part.to(t.device).view(t.dtype)[:count] for part, count in zip(parts, counts, strict=True)]
        return torch.cat(kept).reshape(sum(counts), *t.shape[1:]).view(dtype)
