"""How the digits of a product travel to the tensor cores, and up to how many terms that is exact."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from assay.engine.runtime.exact import limits

MOST_COUNTED = 1 << 30
"""Rows, columns or terms of a product, which its kernels count in i32: up to the end of a block, or of a chunk, that
the last one begins.
"""

LEAST_TILE = 16
"""Rows or columns of a block: tensor cores take no fewer."""

LEAST_TERMS = 32
"""Of one step, of bytes."""


def is_counted(batch: int, rows: int, columns: int, terms: int) -> bool:
    """Whether kernels count a product of these sizes, and a GPU starts as many programs as it may have blocks."""
    blocks = batch * -(-rows // LEAST_TILE) * -(-columns // LEAST_TILE)
    return max(rows, columns, terms) <= MOST_COUNTED and blocks < 1 << 31


class Carrier(IntEnum):
    """How digits travel to the tensor cores; equal to CARRIER in `kernels.product`."""

    I8 = 0
    F16 = 1
    BF16 = 2

    @property
    def bytes(self) -> int:
        """Of a digit."""
        return 1 if self is Carrier.I8 else 2


ACCUMULATOR = {Carrier.I8: limits.I32_MOST, Carrier.F16: limits.F32_MOST, Carrier.BF16: limits.F32_MOST}
"""Magnitudes up to which a carrier's accumulator holds every integer."""


@dataclass(frozen=True, slots=True)
class Route:
    """How the digits of a product are multiplied. terms: that accumulators hold; more are added in i64, in chunks."""

    carrier: Carrier
    digits_a: int
    digits_b: int
    bits: int
    terms: int

    @property
    def name(self) -> str:
        """Of the carrier, and how many of its products one product takes."""
        return f"{self.carrier.name.lower()}x{self.digits_a * self.digits_b}"

    def narrow_terms(self, pa: int, pb: int) -> int:
        """Terms up to which i32 holds what the places above the first come to, joined: the sum without the first place,
        over 2^bits.
        """
        each = (1 << (pa + pb - 2)) + (1 << (2 * self.bits - 2))
        return min((limits.I32_MOST << self.bits) // each, self.terms)

    @property
    def digits(self) -> dict[str, int]:
        """How kernels make digits."""
        return {"BITS": self.bits, "CARRIER": int(self.carrier)}

    @property
    def constants(self) -> dict[str, int]:
        """What the kernel of products is made for."""
        return {"NA": self.digits_a, "NB": self.digits_b, **self.digits}


def route(pa: int, pb: int, carrier: Carrier = Carrier.I8) -> Route | None:
    """The digits for these precisions; None where three of i8 do not hold them."""
    most = ACCUMULATOR[carrier]
    if not {pa, pb} <= set(limits.I8_PRECISIONS):
        return None
    a, b = limits.octets(pa), limits.octets(pb)
    return Route(carrier, a.count, b.count, 8, most // max(limits.places(pa, pb)))
