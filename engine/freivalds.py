"""Rotating checks of products at run time (Freivalds, 1977): silent hardware errors, caught exactly and cheaply.

A self-test at start sees neither a bit that flips at step 70 nor a library that picks another kernel for another shape.
S r = A (B r) is tested in wrapping 64-bit integers, so there is no tolerance: a wrong S fails it for at least half of
all r, and for nearly all of them when r has many bits. One product per run is checked, each in its turn.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.engine import philox
from assay.engine.native_dot import NativeDot
from assay.protocol.errors import InvariantError


class ProductWatch:
    """Says which product of a run is checked, and checks it."""

    def __init__(self) -> None:
        self.products: list[int] = []
        self.runs = 0

    def begin(self) -> None:
        """A run begins; the next product in turn is due."""
        self.runs += 1

    @property
    def due(self) -> int | None:
        """The node whose product is checked in this run."""
        return self.products[self.runs % len(self.products)] if self.products else None

    def is_due(self, node: int) -> bool:
        """Whether this node's product is checked in this run."""
        return self.due == node

    def key(self, node: int) -> tuple[int, int]:
        """The key of the random numbers that this run's sums are weighed with."""
        return self.runs & 0xFFFFFFFF, node

    def check(self, node: int, qa: Tensor, qb: Tensor, s: Tensor) -> None:
        """Check s [B, M, N] against qa [B, M, K] and qb [B, N, K], all holding integers.

        Rows and columns that are not finite are left out: their results are NaN whatever the product says.

        Raises:
            InvariantError: HardwareFault, the product is wrong.
        """
        rows, columns = (q.isfinite().all(2) for q in (qa, qb))
        a, b = (torch.where(keep[:, :, None], q, 0.0).to(torch.int64) for q, keep in ((qa, rows), (qb, columns)))
        exact = torch.where(rows[:, :, None] & columns[:, None, :], s, 0).to(torch.int64)
        key, zeros = torch.tensor(self.key(node), dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
        r = philox.words(key, zeros, 0, b.shape[1]).to(torch.int64)
        # Products and sums wrap mod 2^64 on both sides alike.
        left = (exact * r).sum(2)
        right = (a * (b * r[None, :, None]).sum(1)[:, None, :]).sum(2)
        if not torch.equal(left, right):
            raise fault(node)


@dataclass(frozen=True, slots=True)
class ProductCheck:
    """The check of one node's product by a watch."""

    watch: ProductWatch
    node: int

    def __call__(self, qa: Tensor, qb: Tensor, s: Tensor) -> None:
        """By stock torch, see `ProductWatch.check`."""
        self.watch.check(self.node, qa, qb, s)

    def native(self, own: NativeDot, values: list[Tensor], out: Tensor | None = None) -> Tensor:
        """The node's value, rounded from sums that pass; in `out` if given.

        Raises:
            InvariantError: HardwareFault, the product is wrong.
        """
        value = own.checked(values, self.watch.key(self.node), out)
        if value is None:
            raise fault(self.node)
        return value


def fault(node: int) -> InvariantError:
    """What is raised for a wrong product."""
    return InvariantError(
        f"The product of node {node} is not what its operands give: this machine or a library miscalculates.",
        code="HardwareFault",
        remedy="Stop using this machine; run `assay doctor` and a memory test before you stake on it again.",
    )
