"""Freivalds' check of one product in each run, where the products are (see `products.freivalds`).

S r = A (B r) modulo 2^64: the product's own kernel weighs its integers before it rounds them, two more kernels weigh
the operands anew, from f32 and by no tensor core. Which product is due is a number in the device's memory: all kernels
are launched in every run, so that a captured run checks another product each time, and return at once where they are
not due.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

import torch
from torch import Tensor

from assay.engine.runtime.exact import philox
from assay.engine.runtime.products.dot import groups
from assay.engine.runtime.products.freivalds import ProductWatch, fault
from assay.engine.runtime.triton import backend, words
from assay.protocol.program.nodes import Dot
from assay.protocol.program.program import Program

_NONE = -1

MOST_PROGRAMS = 528
"""That weigh one operand, four for each multiprocessor of a large device: what is not due ends after a load."""


class ProductChecks:
    """What a program's checks keep on the device. One run at a time: between `begin` and `verify` there is no other."""

    def __init__(self, program: Program, watch: ProductWatch) -> None:
        self._program, self._watch = program, watch
        self._is_due = False

    @cached_property
    def due(self) -> Tensor:
        """i32 [1]: the node whose product this run checks."""
        return torch.full((1,), _NONE, dtype=torch.int32, device=backend.device())

    @cached_property
    def _most(self) -> tuple[int, ...]:
        """Of the largest products: weights of B's rows; B's terms as weighed; what is left of A's rows."""
        sizes = [_sizes(node) for k in self._watch.products if isinstance(node := self._program.nodes[k], Dot)]
        return tuple(max(size) for size in zip(*sizes, strict=True))

    @property
    def nbytes(self) -> int:
        """Of all that is kept."""
        return 8 * sum(self._most)

    @cached_property
    def _memory(self) -> tuple[Tensor, Tensor, Tensor]:
        """The same, i64."""
        weights, middle, left = (torch.zeros(n, dtype=torch.int64, device=backend.device()) for n in self._most)
        return weights, middle, left

    @property
    def weights(self) -> Tensor:
        """Of B's rows."""
        return self._memory[0]

    @property
    def middle(self) -> Tensor:
        """B's terms as weighed, [batch, K]."""
        return self._memory[1]

    @property
    def left(self) -> Tensor:
        """Of A's rows, [batch, M]: 0 at the end of a run whose product is right."""
        return self._memory[2]

    def begin(self) -> None:
        """A run begins; the watch says which product it checks."""
        node, was_due = self._watch.due, self._is_due
        self._is_due = node is not None
        if node is None:
            if was_due:
                self.due.fill_(_NONE)  # or kernels would go on with the check of the run before
            return
        place = self.weights.device
        key, zeros = torch.tensor(self._watch.key(node), device=place), torch.zeros(2, dtype=torch.int64, device=place)
        # On a GPU by one kernel: stock torch's are a hundred launches there, and a tenth of a step on the CPU.
        draw = philox.words if place.type == "cpu" else words.words
        self.weights.copy_(draw(key, zeros, 0, len(self.weights)))
        self.middle.zero_()
        self.left.zero_()
        self.due.fill_(node)

    def verify(self) -> None:
        """The run is done.

        Raises:
            InvariantError: HardwareFault, the product that it checked is wrong.
        """
        node = self._watch.due
        if node is not None and bool(self.left.any()):
            raise fault(node)


def _sizes(node: Dot) -> tuple[int, int, int]:
    """Weights, weighed terms, and rows with their batch; of a node that no tensor core takes none.

    A product of tiles is weighed from either side, so both have room.
    """
    parts = groups(node)
    if parts is None:
        return 1, 1, 1
    batch, rows, columns = (prod(node.spec.dims[d] for d in part) for part in parts)
    most = max(rows, columns)
    return most, batch * prod(node.red), batch * most


def weighing(
    check: tuple[ProductChecks, int] | None, *, along: bool
) -> tuple[Tensor | None, Tensor | None, Tensor | None, int]:
    """What a kernel is given to weigh an operand of a product: the rows of B first, then the terms of A (along)."""
    if check is None:
        return None, None, None, 0
    checks, node = check
    return checks.due, *((checks.middle, checks.left) if along else (checks.weights, checks.middle)), node


def weigh(
    checks: ProductChecks, k: int, given: Sequence[Tensor], sizes: Sequence[int], strides: Sequence[int], *,
    precision: int, along: bool, times: int = 1,
) -> None:  # fmt: skip
    """Weighs an operand of node k: the rows of B first, then the terms of A.

    given: it and its exponents; sizes: of the batch's two dims, its rows, the terms; strides: of it and of them.
    times: how often A's terms count, by what the kernels that compute the product anew weigh theirs.
    """
    from assay.engine.runtime.triton.kernels.weigh import weigh as kernel

    z0, z1, rows, terms = sizes
    block = (1 << 10, 1 << 10) if backend.is_interpreted() else (64, 64)
    br, bk = (min(1 << max(n - 1, 0).bit_length(), most) for n, most in zip((rows, terms), block, strict=True))
    due, weights, out, _ = weighing((checks, k), along=along)
    count = -(-rows // br) * -(-terms // bk) * z0 * z1
    backend.launch(
        kernel, (min(count, MOST_PROGRAMS),), *given, due, weights, out, k, z1, rows, terms, count,
        *strides, P=precision, ALONG=along, TIMES=times, BR=br, BK=bk,
    )  # fmt: skip
