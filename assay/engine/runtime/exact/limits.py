"""Every inequality by which a product or a sum of integers is exact, in one place; what is admitted is decided here.

|q_p| <= 2^(p-1), so K products of pA by pB bits add up to at most S = K 2^(pA+pB-2). A computation must hold S
and everything on the way to it. x and y are the largest magnitudes of one digit of either operand, r pairs of terms.

    what is exact                        while                               because
    pairs of i16, a run in 32 bits       2^16 - 1 + 2 x y r <= 2^31 - 1      it starts from the low half of the sum
    the same, as norms allow             2^16 - 1 + |a| |b| <= 2^31 - 1      Cauchy and Schwarz, on the run's terms
    pairs of i16, the high half          K x y <= 2^47                       the floor of K - 1 products over 2^16
    fours of i8, kept mod 2^32           K x y <= 2^31 - 1                   the end lies within 32 bits
    tiles of i8, a place of base 256     K P <= 2^31 - 1                     P: the sum of x y over its pairs of digits
    tiles of i8, places t and t + 1      K (256 P_t+1 + P_t) <= 2^31 - 1     joined in 32 bits
    digits joined in binary64            S <= 2^52                           overlap on the way: below 2^53
    torch, binary64                      S <= 2^53                           any partial sum is an integer up to S
    torch, A in digits of base 2^d       K 2^(d+pB-1) <= 2^53 for the low    binary64 each, joined in i64
                                         K 2^(pA-d+pB-1) <= 2^53 for the high
    torch, i64; native sums of q_31      S <= 2^62                           a rule of well-formedness
    torch, i8 in i32                     K 2^14 <= 2^31 - 1                  chunks of K are added in i64
    tensor cores, i8 in i32              K P <= 2^31 - 1                     P as for tiles; chunks of K added in i64
    the same, f16 or bf16 in f32         K P <= 2^24                         integers up to 2^24 are exact in binary32
    torch, Karatsuba's high digits       K (2^19 + 2^13) <= 2^31 - 1         128 h h' + h l' + l h', joined in i32
    sums of q_31 in binary64             K 2^30 <= 2^53                      any partial sum is an integer
    Freivalds' check                     always                              both sides wrap mod 2^64 alike

Each row is run at its last K, with operands of one sign, of two and with a full low half, before its kernel is used
(`native_selftest`, `product_variants`), and one past it something slower and exact is chosen.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

I32_MOST = (1 << 31) - 1
F32_MOST = 1 << 24
F64_MOST = 1 << 53
"""Integers of at most this magnitude are exact in binary64."""

ROOM = I32_MOST - ((1 << 16) - 1)
"""What a run of pairs may add to the low half of a sum."""

_HIGH = 1 << 47
_JOINED = 1 << 52

MOST_TERMS = 1 << 20
"""Of one native product: an operand's tables and a packed panel take memory per term, however few values it has."""

_MANY_TERMS = 1 << 17
"""At which products are run at start that `MOST_TERMS` ends before any inequality does."""

TILES_TERMS, TILES_JOINED = 1 << 16, 1 << 8
"""Terms up to which matrix tiles, and their joined places, have been run; the inequalities reach a little further."""

TILES_WORTH = 32
"""Terms fill half a tile at most, and pairs are faster (measured)."""

NATIVE_PRECISIONS = range(2, 25)
"""Packing takes an operand apart into two words."""

I8_PRECISIONS = range(2, 24)
"""Up to three digits of i8 hold an operand."""

INT8_CHUNK = 1 << 16
"""Terms that one int8 product of stock torch adds in i32."""

KARATSUBA_JOINED = 1 << 11
"""Terms up to which the two higher digits of a Karatsuba product are joined in i32."""


class NativeVariant(IntEnum):
    """How digits are multiplied: pairs of i16, fours of i8, matrix tiles of i8; equal to `dot.h`."""

    PAIRS = 0
    BYTES = 1
    TILES = 2


@dataclass(frozen=True, slots=True)
class Digits:
    """q_p as the sum of digit_i 2^(i shift); largest: of each |digit_i|, the lowest digit first."""

    shift: int
    largest: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many digits there are."""
        return len(self.largest)


def largest(p: int) -> int:
    """The bound of |q_p| that all inequalities use (q_8 itself ends at 127)."""
    return 1 << (p - 1)


def words(p: int) -> Digits:
    """q_p in words of i16: the low one in [-2^(s-1), 2^(s-1)), the high one rounded to nearest."""
    if p <= 15:
        return Digits(0, (largest(p),))
    s = (p + 1) // 2
    return Digits(s, (1 << (s - 1), (largest(p) + (1 << (s - 1))) >> s))


def octets(p: int) -> Digits:
    """q_p in bytes of i8: all but the highest in [-128, 128)."""
    count = 1 if p <= 8 else 2 if p <= 15 else 3
    halves = (0, 1 << 7, (1 << 7) + (1 << 15))
    top = (largest(p) + halves[count - 1]) >> 8 * (count - 1)
    return Digits(8, (*(128,) * (count - 1), top))


def digits(variant: NativeVariant, p: int) -> Digits:
    """The digits of q_p in this variant."""
    return words(p) if variant is NativeVariant.PAIRS else octets(p)


def run(x: int, y: int) -> int:
    """The most pairs of terms of digits up to x and y that 32 bits add to the low half of a sum."""
    return ROOM // (2 * x * y)


def places(pa: int, pb: int) -> list[int]:
    """Per place of base 256 the most that one term adds to it."""
    a, b = octets(pa).largest, octets(pb).largest
    return [sum(a[i] * b[t - i] for i in range(len(a)) if 0 <= t - i < len(b)) for t in range(len(a) + len(b) - 1)]


def tiles_joined(pa: int, pb: int) -> int:
    """Terms up to which neighbouring places are joined in 32 bits: 0 and 1, then 2 and 3."""
    found = [*places(pa, pb), 0]
    most = max(256 * found[t + 1] + found[t] for t in range(0, len(found) - 1, 2))
    return min(TILES_JOINED, I32_MOST // most)


@cache
def exact_terms(variant: NativeVariant, pa: int, pb: int) -> int:
    """The most terms of a native product of these precisions that all inequalities admit; 0 where there is none."""
    if pa not in NATIVE_PRECISIONS or pb not in NATIVE_PRECISIONS:
        return 0
    joined = _JOINED // (largest(pa) * largest(pb))
    a, b = digits(variant, pa), digits(variant, pb)
    if variant is NativeVariant.PAIRS:
        return min(joined, *(_HIGH // (x * y) for x in a.largest for y in b.largest))
    if variant is NativeVariant.BYTES:
        return min(joined, I32_MOST // (a.largest[0] * b.largest[0])) if a.count == b.count == 1 else 0
    # A highest digit of three is below 128 up to 23 bits.
    fits = a.count + b.count <= 5 and (a.count == 1) == (b.count == 1) and max(pa, pb) <= 23
    return min(joined, TILES_TERMS, I32_MOST // max(places(pa, pb))) if fits else 0


def native_terms(variant: NativeVariant, pa: int, pb: int) -> int:
    """The most terms of a native product of these precisions; 0 where it has no such product."""
    return min(exact_terms(variant, pa, pb), MOST_TERMS)


def edges(variant: NativeVariant, pa: int, pb: int) -> list[int]:
    """The numbers of terms at which a native product is nearest to an overflow; fewer where none is near."""
    most = exact_terms(variant, pa, pb)
    near = (tiles_joined(pa, pb), tiles_joined(pa, pb) + 1) if variant is NativeVariant.TILES else ()
    return [*(k for k in near if k < most), most if most <= MOST_TERMS else _MANY_TERMS]


def fastest_variant(pa: int, pb: int, terms: int, variants: Collection[NativeVariant]) -> NativeVariant | None:
    """The fastest of these variants that is exact; None where none is."""
    fits = [w for w in variants if terms <= native_terms(w, pa, pb)]
    if NativeVariant.TILES in fits and terms > TILES_WORTH:
        return NativeVariant.TILES
    return next((w for w in (NativeVariant.BYTES, NativeVariant.PAIRS) if w in fits), None)


def f64_is_exact(pa: int, pb: int, terms: int) -> bool:
    """Whether stock torch adds these products in binary64: S <= 2^53."""
    return terms * largest(pa) * largest(pb) <= F64_MOST


def split_f64(pa: int, pb: int, terms: int) -> int:
    """Bits of the low digit of A with which two products in binary64 are exact; 0 where no split is."""
    low = 53 - pb - max(terms - 1, 0).bit_length()
    if low <= 0 or terms << (low + pb - 1) > F64_MOST:
        return 0
    return low if terms << max(pa - low + pb - 1, 0) <= F64_MOST else 0


def sums_fit_f64(bits: int, terms: int) -> bool:
    """Whether every partial sum of this many integers of at most 2^bits is exact in binary64."""
    return terms << bits <= F64_MOST
