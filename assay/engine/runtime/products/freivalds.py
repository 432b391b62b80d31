"""Rotating checks of products at run time (Freivalds, 1977): silent hardware errors, caught exactly and cheaply.

A self-test at start sees neither a bit that flips at step 70 nor a library that picks another kernel for another shape.
S r = A (B r) is tested in wrapping 64-bit integers, so there is no tolerance: a wrong S fails it for at least half of
all r, and for nearly all of them when r has many bits. One product per run is checked, each in its turn:

- any n runs in a row of one executor check each of its n products (n times `every` runs, where it pauses);
- so do the first runs of any n executors in a row that one process makes for a program: each begins one later;
- a process begins anywhere, so that processes of one run each miss a product r times in a row by (1 - 1/n)^r only.

Shapes: B batch, M rows of A, N rows of B, K terms.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from threading import Lock, local

import torch
from torch import Tensor

from assay.engine.runtime.exact import philox
from assay.engine.runtime.products.native_dot import NativeDot
from assay.protocol.errors import InvariantError
from assay.protocol.program.nodes import Dot
from assay.protocol.program.program import Program

_KNOWN = 1 << 12
"""Names whose beginnings a process remembers: those of programs that it has met last."""


class Beginnings:
    """Where executors of one name begin with their turns: each one later than the one before."""

    def __init__(self) -> None:
        self._next: OrderedDict[Hashable, int] = OrderedDict()
        self._lock = Lock()

    def take(self, name: Hashable) -> int:
        """The next one of this name; the first is any."""
        with self._lock:
            found = self._next.pop(name) if name in self._next else secrets.randbelow(1 << 30)
            self._next[name] = found + 1
            if len(self._next) > _KNOWN:
                self._next.popitem(last=False)
            return found


_beginnings = Beginnings()


class ProductWatch:
    """Says which product of a run is checked, and checks it. Runs on several threads at once have turns of their own.

    products: nodes, each checked in its turn. name: of what runs them; executors of one name begin one after another.
    every: one is due in every so many-th run; where a run multiplies single rows, a check takes as long as several.
    """

    def __init__(
        self,
        products: Sequence[int] = (),
        name: Hashable = None,
        beginnings: Beginnings = _beginnings,
        *,
        every: int = 1,
    ) -> None:
        self.products, self._every = tuple(products), every
        self._name, self._beginnings = name, beginnings
        self._turn: int | None = None
        self._lock = Lock()
        self._run = local()

    def begin(self) -> None:
        """A run begins on this thread; the next product in turn is due."""
        with self._lock:
            # Not before there is a run: executors that never run would take the turns of others.
            self._turn = self._beginnings.take(self._name) if self._turn is None else self._turn + 1
            self._run.turn = self._turn

    @property
    def due(self) -> int | None:
        """The node whose product is checked in this thread's run; None where none is."""
        turn, rest = divmod(self._turn_of_run(), self._every)
        return None if rest or not self.products else self.products[turn % len(self.products)]

    def is_due(self, node: int) -> bool:
        """Whether this node's product is checked in this thread's run."""
        return self.due == node

    def _turn_of_run(self) -> int:
        return getattr(self._run, "turn", 0)

    def key(self, node: int) -> tuple[int, int]:
        """The key of the random numbers that this run's sums are weighed with."""
        return self._turn_of_run() & 0xFFFFFFFF, node

    def check(self, node: int, qa_BMK: Tensor, qb_BNK: Tensor, s_BMN: Tensor) -> None:
        """Check sums against the operands that they are of, all holding integers.

        Rows and columns that are not finite are left out: their results are NaN whatever the product says.

        Raises:
            InvariantError: HardwareFault, the product is wrong.
        """
        rows_BM, columns_BN = (q.isfinite().all(2) for q in (qa_BMK, qb_BNK))
        pairs = (qa_BMK, rows_BM), (qb_BNK, columns_BN)
        a_BMK, b_BNK = (torch.where(keep[:, :, None], q, 0.0).to(torch.int64) for q, keep in pairs)
        exact_BMN = torch.where(rows_BM[:, :, None] & columns_BN[:, None, :], s_BMN, 0).to(torch.int64)
        key, zeros = torch.tensor(self.key(node), dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
        r_N = philox.words(key, zeros, 0, b_BNK.shape[1]).to(torch.int64)
        # Products and sums wrap mod 2^64 on both sides alike.
        left_BM = (exact_BMN * r_N).sum(2)
        right_BM = (a_BMK * (b_BNK * r_N[None, :, None]).sum(1)[:, None, :]).sum(2)
        if not torch.equal(left_BM, right_BM):
            raise fault(node)


def products(program: Program) -> list[int]:
    """The nodes of a program that multiply anything."""
    return [k for k, n in enumerate(program.nodes) if isinstance(n, Dot) and n.spec.numel and n.terms]


@dataclass(frozen=True, slots=True)
class ProductCheck:
    """The check of one node's product by a watch."""

    watch: ProductWatch
    node: int

    def __call__(self, qa_BMK: Tensor, qb_BNK: Tensor, s_BMN: Tensor) -> None:
        """By stock torch, see `ProductWatch.check`."""
        self.watch.check(self.node, qa_BMK, qb_BNK, s_BMN)

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
