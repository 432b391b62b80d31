"""What a product's route must get right on this machine before it is used: sums that fill its accumulators.

An inequality says that an accumulator holds every integer on the way; whether the device adds as its maker says is
looked at. Tensor cores that keep fewer bits of binary32 than it has are found here, and their carrier is refused.
Small blocks and large ones are multiplied by other instructions (sm_90: mma.sync, wgmma; sm_100: tcgen05): both are
looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cache

import torch
from torch import Tensor

from assay.engine.runtime.exact import exponents
from assay.engine.runtime.triton import ahead, backend
from assay.engine.runtime.triton.backend import Launch
from assay.engine.runtime.triton.products import by_digits
from assay.engine.runtime.triton.routes import Route
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Dot
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

_ROWS = 4
_ROWS_OF_LARGE_BLOCKS = 64
"""Rows and columns from which on four warps multiply together, where a device has instructions for that."""


@cache
def failure(route: Route, pa: int, pb: int) -> str:
    """What a route gets wrong here; empty when it multiplies the extremes exactly, up to the last term of a chunk.

    A device for which its kernel cannot be made has no such carrier. The interpreter's integers are numpy's: there, few
    terms show that the kernel is right. What says that the GPU has no memory left is raised: it
    says nothing of a carrier.
    """
    for terms, packed, rows in _cases(route):
        try:
            with torch.device("cpu"):  # whatever device is the caller's default: integers are compared here
                is_wrong = differs(route, pa, pb, terms, packed=packed, rows=rows)
        except Exception as error:  # compilers have many
            if backend.lacks_memory(error):
                raise
            return f"{route.name} does not run ({backend.in_one_line(error)})"
        if is_wrong:
            return f"{route.name} adds {terms} products of {pa} by {pb} bits wrongly"
    return ""


def compile_probes(probed: Iterable[tuple[Route, int, int]]) -> None:
    """Compiles what `failure` will launch for these routes and precisions, side by side: a dozen kernels each, which
    take seconds one after another.
    """
    new = [each for each in probed if each not in _compiled]
    _compiled.update(new)
    if new:
        ahead.compile_ahead(lambda: [launch for each in new for launch in _launches(*each)])


_compiled: set[tuple[Route, int, int]] = set()


def _launches(route: Route, pa: int, pb: int) -> list[Launch]:
    with backend.recorded() as seen, torch.device("cpu"):
        for terms, packed, rows in _cases(route):
            with suppress(Exception):  # `failure` meets it again, and says so
                differs(route, pa, pb, terms, packed=packed, rows=rows)
    return seen


def _cases(route: Route) -> list[tuple[int, bool, int]]:
    """Numbers of terms, whether digits come from planes, and rows: few of what is split, many of planes."""
    counts = (7, 300) if backend.is_interpreted() else (7, route.terms, route.terms + 1)
    shapes = (False, _ROWS), (True, _ROWS_OF_LARGE_BLOCKS)
    return [(terms, packed, rows) for terms in counts for packed, rows in shapes]


def differs(route: Route, pa: int, pb: int, terms: int, *, packed: bool, rows: int = _ROWS) -> bool:
    """Whether a product of so many terms, with digits as large as they get, has other bits than its integers say.

    packed: digits come from planes. rows: of either side, a multiple of 4.
    """
    spec = TensorSpec(DType.F32, (rows, terms))
    b = ProgramBuilder([[spec, spec]])
    program = b.build([[b.matmul(b.input(0, 0), b.input(0, 1), pa, pb)]])
    node = program.nodes[-2]
    assert isinstance(node, Dot)
    qa, qb = _fullest(pa, route.digits_a, route.bits, terms), _fullest(pb, route.digits_b, route.bits, terms)
    times = rows // _ROWS
    # Integers of p - 1 bits are their own q_p, under the exponent p - 1.
    values = [q.to(torch.float32) for q in (qa, qb)]
    values += [torch.full((_ROWS, 1), p - 1, dtype=torch.int32) for p in (pa, pb)]
    kernel = by_digits(program, node, route, ((), (0,), (1,)), packed=packed)
    found = kernel([v.to(backend.device()).repeat(times, 1) for v in values]).cpu()
    wanted = exponents.finish((qa[:, None] * qb[None]).sum(-1), torch.zeros((), dtype=torch.int64)).repeat(times, times)
    return not torch.equal(found, wanted)


def _fullest(p: int, digits: int, bits: int, terms: int) -> Tensor:
    """Integers i64 [4, terms] whose digits are as large as they get: all alike; half of either sign, so that a large
    sum comes down to a small one, whose lowest bits are all seen; of alternating signs; and, of either sign again, a
    little smaller here and there, so that sums have odd bits on the way too.
    """
    half, ones = 1 << (bits - 1), sum(1 << bits * i for i in range(digits - 1))
    top, most = 1 << bits * (digits - 1), (1 << (p - 1)) - 1
    low, high = half * ones, (half - 1) * ones
    least, largest = -low - (most - low) // top * top, high + (most - high) // top * top
    rows = torch.full((_ROWS, terms), least, dtype=torch.int64)
    i = torch.arange(terms)
    rows[1, terms // 2 :] = largest
    rows[2, 1::2] = largest
    rows[3] = rows[1] - torch.sign(rows[1]) * ((7 * i + i * i) % 5 if p > 7 else 0)
    return rows
