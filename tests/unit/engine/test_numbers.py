"""Exponents, quantization, the final rounding and Philox on tensors equal the protocol's, vector by vector."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.engine.runtime.exact import exponents, philox
from assay.engine.runtime.exact.floats import check_float_environment, flushes_subnormals
from assay.engine.runtime.products import product_variants
from assay.engine.runtime.values.dtypes import canonical, fill_tensor, from_bytes, to_bytes
from assay.protocol.arithmetic import f32, rounding
from assay.protocol.arithmetic import philox as reference_philox
from assay.protocol.errors import InvariantError
from assay.protocol.types import DType


def patterns_of(t: torch.Tensor) -> list[int]:
    return [w & 0xFFFFFFFF for w in canonical(t).view(torch.int32).flatten().tolist()]


def tensor_of(patterns: list[int]) -> torch.Tensor:
    signed = [(p ^ 0x80000000) - 0x80000000 for p in patterns]
    return torch.tensor(signed, dtype=torch.int32).view(torch.float32)


EDGES = [0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, f32.NAN]
patterns = st.one_of(st.sampled_from(EDGES), st.integers(0, 0xFFFFFFFF))


@given(st.lists(patterns, min_size=1, max_size=40))
def test_exponents_are_those_of_the_protocol(found: list[int]):
    ours = exponents.exponent_of_magnitude(tensor_of(found)).tolist()
    assert ours == [f32.exponent(f32.canonical(p)) for p in found]


@given(st.lists(patterns, min_size=1, max_size=40), st.integers(2, 31), st.integers(-(2**31), 2**31 - 1))
def test_quantization_is_that_of_the_protocol_for_any_exponent(found: list[int], p: int, e: int):
    wide = [e, max(min(e, 200), -200)]
    for exponent in wide:
        ours = exponents.quantize(tensor_of(found), torch.tensor(exponent, dtype=torch.int32), p)
        assert ours.tolist() == [rounding.quantize(f32.canonical(x), p, exponent) for x in found]


@given(st.lists(st.integers(0, 0x7F7FFFFF), min_size=1, max_size=20), st.integers(2, 31))
def test_rows_quantized_by_their_own_exponent_agree_with_the_protocol(found: list[int], p: int):
    x = tensor_of(found)[None]
    e = exponents.exponent_of_magnitude(x).amax(1)
    q = exponents.quantize_row(x, exponents.row_scales(e, p), p, 1)
    assert q.tolist() == [[rounding.quantize(w, p, int(e)) for w in found]]


def hard_sums() -> list[int]:
    """Integers whose rounding to 24 bits is a near tie, up to 2^62."""
    rng = random.Random(3)
    found = [0, 1, -1, (1 << 62), -(1 << 62), (1 << 53) + 1, (1 << 53) - 1]
    for width in range(24, 63):
        for _ in range(6):
            top = (1 << 23 | rng.getrandbits(23)) << (width - 24)
            half = 1 << (width - 25) if width > 24 else 0
            found += [top + half + d for d in (-1, 0, 1)] + [-(top + half)]
    return [s for s in found if abs(s) <= 1 << 62]


@pytest.mark.parametrize(
    "n", [-338, -300, -200, -175, -174, -150, -149, -126, -30, 0, 40, 66, 75, 104, 256, -(10**6), 10**6]
)
def test_the_final_rounding_is_that_of_the_protocol(n: int):
    sums = hard_sums()
    expected = [rounding.finish(s, n) for s in sums]
    ours = exponents.finish(torch.tensor(sums, dtype=torch.int64), torch.tensor(n))
    assert patterns_of(ours) == expected
    small = [(s, e) for s, e in zip(sums, expected, strict=True) if abs(s) <= 1 << 53]
    ours = exponents.finish(torch.tensor([float(s) for s, _ in small], dtype=torch.float64), torch.tensor(n))
    assert patterns_of(ours) == [e for _, e in small]


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(1, 40))
@settings(max_examples=50)
def test_random_words_are_those_of_the_protocol(stream: int, key: int, step: int, count: int):
    pairs = [torch.tensor([v & 0xFFFFFFFF, v >> 32], dtype=torch.int64) for v in (key, step)]
    ours = philox.words(*pairs, stream, count).tolist()
    expected = [
        reference_philox.random_word(i, stream, (step & 0xFFFFFFFF, step >> 32), (key & 0xFFFFFFFF, key >> 32))
        for i in range(count)
    ]
    assert [w & 0xFFFFFFFF for w in ours] == expected


@pytest.mark.parametrize(
    "product_variant", [product_variants.F64, product_variants.KARATSUBA, product_variants.INT64], ids=lambda r: r.name
)
def test_every_product_variant_passes_the_self_test(product_variant: product_variants.ProductVariant):
    assert product_variants.failure(product_variant) == ""


def test_a_route_that_is_wrong_is_named_with_its_vector_and_not_taken(monkeypatch: pytest.MonkeyPatch):
    saturating = product_variants.ProductVariant(
        "int8x3", lambda qa, qb: product_variants.F64.multiply(qa, qb).clamp(-(2.0**27), 2.0**27)
    )
    assert "int8x3" in product_variants.failure(saturating)
    monkeypatch.setattr(product_variants, "KARATSUBA", saturating)
    product_variants._choose.cache_clear()
    assert product_variants.choose(14, 14, 1, 512, 512, 512).name == "fp64"
    monkeypatch.undo()
    product_variants._choose.cache_clear()
    assert product_variants.choose(14, 14, 1, 512, 512, 512).name == "int8x3"


def test_routes_follow_from_the_bits_of_the_sum():
    assert product_variants.choose(22, 14, 8, 4, 4, 1 << 18).name == "fp64"
    assert product_variants.choose(22, 22, 1, 4, 4, 1 << 11).name == "fp64"
    assert product_variants.choose(22, 22, 1, 4, 4, (1 << 11) + 1).name == "fp64x2"
    assert product_variants.choose(11, 31, 1, 4, 4, 1 << 22).name == "int64"


@pytest.mark.parametrize(
    ("pa", "pb", "k"), [(31, 31, 4), (22, 22, 5000), (14, 14, 70), (8, 31, 9), (29, 31, 16), (2, 2, 3)]
)
def test_the_chosen_route_is_exact_at_the_extremes_of_its_operands(pa: int, pb: int, k: int):
    rng = random.Random(k)
    limits = [1 << (pa - 1), 1 << (pb - 1)]
    for shape in (1, 2):
        product_variant = product_variants.choose(pa, pb, shape, 40, 40, k)
        a, b = (
            torch.tensor([rng.choice((-top, top, top - 1, rng.randint(-top, top))) for _ in range(shape * 3 * k)])
            .double()
            .reshape(shape, 3, k)
            for top in limits
        )
        exact = torch.bmm(a.long(), b.long().transpose(1, 2))
        assert torch.equal(product_variant.multiply(a, b).long(), exact), product_variant.name


def test_int8_products_are_exact_beyond_the_terms_that_fit_32_bits():
    k = 3 * product_variants.INT8_CHUNK + 5
    a = torch.full((2, k), -64, dtype=torch.int8)
    b = torch.full((3, k), -64, dtype=torch.int8)
    assert product_variants.int8_product(a, b).tolist() == [[4096 * k] * 3] * 2


@given(st.lists(st.integers(-(2**13), 2**13), min_size=1, max_size=50))
def test_digits_recompose(values: list[int]):
    high, low = product_variants.digits(torch.tensor(values, dtype=torch.float32))
    assert (high.int() * 128 + low.int()).tolist() == values
    assert -64 <= int(low.min()) <= int(low.max()) <= 63
    assert -64 <= int(high.min()) <= int(high.max()) <= 64


def test_flushing_of_subnormals_is_noticed_and_cleared():
    assert not flushes_subnormals()
    if not torch.set_flush_denormal(True):
        pytest.fail("this machine cannot flush subnormals, so the check cannot be tested")
    try:
        assert flushes_subnormals()
        check_float_environment()
        assert not flushes_subnormals()
    finally:
        torch.set_flush_denormal(False)


def test_flushing_that_cannot_be_cleared_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("assay.engine.runtime.exact.floats.flushes_subnormals", lambda: True)
    with pytest.raises(InvariantError) as caught:
        check_float_environment()
    assert caught.value.code == "FlushToZero"


@pytest.mark.parametrize("dtype", list(DType))
def test_bytes_of_every_element_type_come_back(dtype: DType):
    data = bytes([0, 1] * 8) if dtype is DType.BOOL else bytes(range(16))
    assert to_bytes(from_bytes(dtype, (16 // dtype.size,), data)) == data
    assert from_bytes(dtype, (0,), b"").shape == (0,)
    assert to_bytes(fill_tensor(dtype, 1))[0] == 1


def test_stores_write_the_one_nan():
    t = torch.tensor([0x7FC00001, -4194304, 0x7F800001, 0x7F800000, 0], dtype=torch.int32).view(torch.float32)
    assert patterns_of(t) == [f32.NAN, f32.NAN, f32.NAN, f32.INF, 0]
