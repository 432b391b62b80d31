"""Products of three tensors and of groups of rows, as products of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def trilinear(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    expand_a: Sequence[int],
    expand_b: Sequence[int],
    expand_c: Sequence[int],
    summed: Sequence[int],
    _: int = 1,
) -> Tensor:
    """The sum over some dimensions of a product of three tensors; each lacks those that it is expanded along."""
    rank = a.ndim + len(expand_a)
    letters = "abcdefghijkl"[:rank]
    names = ["".join(x for d, x in enumerate(letters) if d not in e) for e in (expand_a, expand_b, expand_c)]
    out = "".join(x for d, x in enumerate(letters) if d not in summed)
    return torch.einsum(f"{','.join(names)}->{out}", a, b, c)


def _groups(ends: Tensor, count: int) -> Tensor:
    """The group of each of `count` rows, given where groups end: i64 [count], the number of groups behind the last."""
    rows = torch.arange(count, dtype=torch.int32, device=ends.device)
    return (ends.to(torch.int32) <= rows[:, None]).sum(1)


def grouped_mm(
    a: Tensor,
    b: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """Products of groups that end where `offs` says: of rows of a [T, K] with their matrix of b [G, K, N], to [T, N].

    Likewise a [G, M, K] with groups of columns of b [K, N], to [M, N]; and groups of the terms of a [M, T] and
    b [T, N], to [G, M, N]. Every row is multiplied with every matrix and its own result kept: sizes of groups are
    values, which no program's shapes follow, so this takes G times the products.
    """
    if offs is None or bias is not None:
        return NotImplemented if bias is not None else torch.bmm(a, b)
    count = offs.shape[0]
    if a.ndim == 3:
        return grouped_mm(b.mT, a.mT, offs, None, out_dtype).mT
    if b.ndim == 3:
        own = _groups(offs, a.shape[0])
        every = torch.bmm(a.expand(count, *a.shape), b)
        rows = torch.arange(a.shape[0], device=a.device)
        kept = every[own.clamp(max=count - 1), rows]
        result = torch.where((own < count)[:, None], kept, 0.0)
    else:
        own = _groups(offs, a.shape[1])
        member = own == torch.arange(count, device=a.device)[:, None]
        result = torch.bmm(torch.where(member[:, None, :], a, 0.0), b.expand(count, *b.shape))
    return result.to(a.dtype if out_dtype is None else out_dtype)


TABLE: dict[Any, Callable[..., Any]] = {
    aten._trilinear.default: trilinear,
    aten._grouped_mm.default: grouped_mm,
}
