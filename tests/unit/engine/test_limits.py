"""Every inequality that admits a product is tried at its last K, and one past it something exact is chosen instead."""

from __future__ import annotations

import itertools

import pytest
import torch

from assay.engine.runtime.exact import limits
from assay.engine.runtime.exact.limits import NativeVariant
from assay.engine.runtime.native.library import native
from assay.engine.runtime.products import native_dot, product_variants
from assay.engine.runtime.products.dot import NativeProduct, dot
from assay.engine.runtime.products.native_dot import wrong_at_the_limit
from assay.engine.runtime.products.native_selftest import matrix_program
from tests.harness.engine.fused_instruction_sets import PRESENT

needs_native = pytest.mark.skipif(native("dot").handle is None, reason=native("dot").reason or "-")

ALL = list(itertools.product(limits.NATIVE_PRECISIONS, repeat=2))


def split(q: int, variant: NativeVariant, p: int) -> list[int]:
    """The digits of q as the kernels take them, the lowest first."""
    if variant is NativeVariant.PAIRS and p <= 15:
        return [q]
    base = 1 << limits.digits(variant, p).shift
    found = []
    for _ in range(limits.digits(variant, p).count - 1):
        low = (q + base // 2) % base - base // 2
        found.append(low)
        q = (q - low) // base
    return [*found, q]


@pytest.mark.parametrize("variant", [NativeVariant.PAIRS, NativeVariant.BYTES])
def test_bounds_of_digits_hold_for_every_quantized_value_and_are_reached(variant: NativeVariant):
    for p in range(2, 25 if variant is NativeVariant.PAIRS else 24):
        digits, most = limits.digits(variant, p), 127 if p == 8 else limits.largest(p)
        values = {v for b in (0, most, most // 2, 1 << 15, 1 << 7) for v in range(b - 300, b + 300) if v <= most}
        values |= {most - n for d in range(1, p) for n in (1 << d, (1 << d) - 1, (1 << d) + 1) if n <= 2 * most}
        parts = [split(s * v, variant, p) for v in values for s in (1, -1) if abs(v) <= most]
        found = [max(abs(x[i]) for x in parts) for i in range(digits.count)]
        assert all(a <= b for a, b in zip(found, digits.largest, strict=True)), (p, found, digits)
        assert found == list(digits.largest) or p == 8, (p, found, digits)
        word = 1 << (15 if variant is NativeVariant.PAIRS else 7)
        assert all(-word <= d < word for x in parts for d in x), p


def test_digits_joined_in_binary64_stay_below_2_53_on_the_way():
    """Every pair of digits in two halves: the low one up to 2^16 more than the pair's sum."""
    for (pa, pb), variant in itertools.product(ALL, NativeVariant):
        terms = limits.exact_terms(variant, pa, pb)
        if terms == 0:
            continue
        a, b = limits.digits(variant, pa), limits.digits(variant, pb)
        on_the_way = sum(
            (terms * x * y + (1 << 17)) << (i * a.shift + j * b.shift)
            for (i, x), (j, y) in itertools.product(enumerate(a.largest), enumerate(b.largest))
        )
        assert on_the_way <= limits.F64_MOST, (pa, pb, variant)


def test_admitted_terms_keep_every_accumulator_in_its_bits_and_one_more_would_not():
    bounds = {NativeVariant.PAIRS: 1 << 47, NativeVariant.BYTES: (1 << 31) - 1}
    for (pa, pb), variant in itertools.product(ALL, bounds):
        terms = limits.exact_terms(variant, pa, pb)
        if terms == 0:
            continue
        a, b = limits.digits(variant, pa).largest, limits.digits(variant, pb).largest
        largest = max(x * y for x in a for y in b)
        total = limits.largest(pa) * limits.largest(pb)
        assert terms * largest <= bounds[variant] and terms * total <= 1 << 52
        assert (terms + 1) * largest > bounds[variant] or (terms + 1) * total > 1 << 52
        if variant is NativeVariant.PAIRS:
            run = limits.run(a[0], b[0])
            assert (1 << 16) - 1 + 2 * a[0] * b[0] * run <= (1 << 31) - 1 < (1 << 16) - 1 + 2 * a[0] * b[0] * (run + 1)


def test_the_largest_tiles_stay_in_32_bits_also_where_places_are_joined():
    for pa, pb in ALL:
        terms, joined = limits.exact_terms(NativeVariant.TILES, pa, pb), limits.tiles_joined(pa, pb)
        if terms == 0:
            continue
        places = [*limits.places(pa, pb), 0]
        assert all(terms * p < 1 << 31 for p in places)
        assert all(joined * (256 * b + a) < 1 << 31 for a, b in zip(places[::2], places[1::2], strict=False))


def test_what_no_kernel_holds_is_refused_at_the_first_term_too_many():
    for pa, pb, last in ((15, 15, 1 << 19), (15, 14, 1 << 20), (14, 14, 1 << 20), (22, 14, 1 << 18), (24, 24, 1 << 6)):
        assert limits.fastest_variant(pa, pb, last, (NativeVariant.PAIRS,)) is NativeVariant.PAIRS
        assert limits.fastest_variant(pa, pb, last + 1, (NativeVariant.PAIRS,)) is None
    assert limits.fastest_variant(8, 8, 131_071, (NativeVariant.PAIRS, NativeVariant.BYTES)) is NativeVariant.BYTES
    assert limits.fastest_variant(8, 8, 131_072, (NativeVariant.PAIRS, NativeVariant.BYTES)) is NativeVariant.PAIRS
    assert limits.fastest_variant(8, 8, 65_536, tuple(NativeVariant)) is NativeVariant.TILES
    assert limits.fastest_variant(8, 8, 65_537, tuple(NativeVariant)) is NativeVariant.BYTES
    assert [limits.fastest_variant(14, 14, k, tuple(NativeVariant)) for k in (32, 33)] == [
        NativeVariant.PAIRS,
        NativeVariant.TILES,
    ]
    assert limits.fastest_variant(25, 2, 1, tuple(NativeVariant)) is None


CLASSES = [(15, 15), (15, 14), (14, 14), (22, 14), (16, 16), (24, 24), (24, 2), (8, 8), (9, 8), (2, 2)]


@needs_native
@pytest.mark.parametrize("instruction_set", PRESENT)
@pytest.mark.parametrize("tiles", [False, True])
def test_the_largest_operands_are_multiplied_exactly_at_the_last_term(instruction_set: str, tiles: bool):
    kernels = native_dot.kernels_of(instruction_set, tiles=tiles)
    variants = [w for w in NativeVariant if w in kernels.variants and (w is NativeVariant.TILES) == tiles]
    for variant, (pa, pb) in itertools.product(variants, CLASSES):
        for terms in {limits.native_terms(variant, pa, pb), *limits.edges(variant, pa, pb)} - {0}:
            found = kernels if variant is not NativeVariant.PAIRS else kernels.on("int16")
            assert found.variant(pa, pb, terms) is variant
            assert wrong_at_the_limit(found, variant, pa, pb, terms) == "", (variant, pa, pb, terms)


@needs_native
@pytest.mark.parametrize("terms", [1 << 19, (1 << 19) + 1, 524_352])
def test_many_terms_of_15_bits_are_added_without_overflow(terms: int):
    """Data in [1.5, 2): from 2^19 + 1 terms on the high half of the sum does not fit 32 bits."""
    program, node = matrix_program((1, 2, 1, terms), 15, 15)
    kernel, product_variant = dot(program, node, native=native_dot.kernels())
    assert isinstance(kernel, NativeProduct) == (terms <= 1 << 19), product_variant
    largest = float(limits.largest(15))
    a, b = torch.full((1, 2, terms), largest), torch.full((1, 1, terms), largest)
    a[:, 1] = -largest
    e = torch.full((1, 2), 14, dtype=torch.int32)
    result = kernel([a, e, b, e[:, :1].contiguous()])
    exact = float(terms << 28)
    assert result.flatten().tolist() == [exact, -exact]


@needs_native
def test_a_product_that_overflows_at_its_limit_is_found_at_start(monkeypatch: pytest.MonkeyPatch):
    """As the kernels were: 2^20 terms of 15 bits."""
    kernels = native_dot.kernels_of(PRESENT[0])
    product_variant = kernels.on("int16").product_variant(15, 15, 1)
    assert native_dot.failure.__wrapped__(kernels, 15, 15, product_variant) == ""
    monkeypatch.setattr(limits, "exact_terms", lambda *_: 1 << 20)
    assert "wrong at 1048576 terms" in native_dot.failure.__wrapped__(kernels, 15, 15, product_variant)


def exact_sum(qa: torch.Tensor, qb: torch.Tensor) -> list[int]:
    return [sum(int(x) * int(y) for x, y in zip(row, qb[0, 0].tolist(), strict=True)) for row in qa[0].tolist()]


@pytest.mark.parametrize(("pa", "pb"), [(31, 22), (24, 24), (22, 20), (31, 31), (16, 31)])
def test_stock_routes_are_exact_at_their_last_term_and_the_next_one_takes_another(pa: int, pb: int):
    last = limits.F64_MOST // (limits.largest(pa) * limits.largest(pb))
    if last:
        assert product_variants.choose(pa, pb, 1, 2, 1, last).name == "fp64"
    assert product_variants.choose(pa, pb, 1, 2, 1, last + 1).name != "fp64"
    splits = [k for k in range(1, 4097) if limits.split_f64(pa, pb, k)]
    most = (1 << 62) // (limits.largest(pa) * limits.largest(pb))  # of a well-formed program
    for terms in {min(k, most) for k in (last, last + 1, max(splits, default=1), max(splits, default=1) + 1)} - {0}:
        top_a, top_b = (float(limits.largest(p)) for p in (pa, pb))
        qa = torch.full((1, 3, terms), top_a, dtype=torch.float64)
        qa[0, 1], qa[0, 2] = 1 - top_a, top_a - 1
        qb = torch.full((1, 1, terms), top_b - 1, dtype=torch.float64)
        qb[0, 0, 0] = top_b
        for other in (False, True):
            product_variant = product_variants.choose(pa, pb, 1, 3, 1, terms, other=other)
            assert product_variant.multiply(qa, qb).to(torch.int64).flatten().tolist() == exact_sum(qa, qb), (
                product_variant.name,
                terms,
            )


def test_splits_of_a_in_binary64_keep_both_products_exact():
    for pa, pb in itertools.product(range(2, 32), repeat=2):
        for terms in (1, 2, 3, 100, 4096, 4097, 1 << 20, (1 << 32) + 1):
            low = limits.split_f64(pa, pb, terms)
            if low:
                assert terms * ((1 << low) - 1) * limits.largest(pb) <= limits.F64_MOST
                assert terms * max(1, limits.largest(pa) >> low) * limits.largest(pb) <= limits.F64_MOST
