"""Exact ways to multiply matrices of bounded integers, chosen by inequalities and proved on this machine at start.

A variant is exact by arithmetic, not by hope: its inequality (`limits`) bounds every partial sum. The self-test then
runs each variant on the extremes of its range, because a library may be wrong where arithmetic is right
(`torch._int_mm` without VNNI is, for digits near 127). A variant that fails is not used in this process, and a slower
exact one is.

Shapes: B batch, M rows of A, N rows of B, K terms; of `_karatsuba`'s and `int8_product`'s there is one batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from assay.engine.runtime.exact import limits
from assay.engine.runtime.exact.limits import INT8_CHUNK, KARATSUBA_JOINED, f64_is_exact


@dataclass(frozen=True)
class ProductVariant:
    """One way to compute sum_k qa[b, m, k] qb[b, n, k] exactly.

    multiply: [B, M, K] and [B, N, K], f32 or f64, holding integers, to [B, M, N]: f64 when below 2^53, else int64.
    """

    name: str
    multiply: Callable[[Tensor, Tensor], Tensor]


def _f64(qa_BMK: Tensor, qb_BNK: Tensor) -> Tensor:
    qa_BMK, qb_BNK = qa_BMK.to(torch.float64), qb_BNK.to(torch.float64)
    if qa_BMK.shape[0] == 1:
        return torch.mm(qa_BMK[0], qb_BNK[0].t())[None]
    return torch.bmm(qa_BMK, qb_BNK.transpose(1, 2))


def _split_f64(low_bits: int, qa_BMK: Tensor, qb_BNK: Tensor) -> Tensor:
    """A in two digits of base 2^low_bits, each times B in f64, joined in int64."""
    base = 2.0**low_bits
    qa_BMK = qa_BMK.to(torch.float64)
    high_BMK = (qa_BMK * (1 / base)).floor_()
    low_BMK = qa_BMK - high_BMK * base
    return (_f64(high_BMK, qb_BNK).to(torch.int64) << low_bits) + _f64(low_BMK, qb_BNK).to(torch.int64)


def _int64(qa_BMK: Tensor, qb_BNK: Tensor) -> Tensor:
    return torch.bmm(qa_BMK.to(torch.int64), qb_BNK.to(torch.int64).transpose(1, 2))


def digits(q: Tensor) -> tuple[Tensor, Tensor]:
    """q = 128 h + l with h in [-64, 64], l in [-64, 63], both i8, for |q| <= 2^13."""
    shifted = q.to(torch.int16).add_(64)
    low = shifted.to(torch.int8).bitwise_and_(127).sub_(64)
    return shifted.bitwise_right_shift_(7).to(torch.int8), low


def _karatsuba(qa_1MK: Tensor, qb_1NK: Tensor) -> Tensor:
    """Three int8 products instead of four: (h+l)(h'+l') - hh' - ll' is the middle digit."""
    a_high_MK, a_low_MK = digits(qa_1MK[0])
    b_high_NK, b_low_NK = digits(qb_1NK[0])
    pairs = ((a_high_MK, b_high_NK), (a_high_MK + a_low_MK, b_high_NK + b_low_NK), (a_low_MK, b_low_NK))
    high_MN, both_MN, low_MN = (int8_product(a, b) for a, b in pairs)
    if qa_1MK.shape[2] <= KARATSUBA_JOINED:
        # 128 (127 hh' + (h+l)(h'+l') - ll') + ll' is the same sum, and the bracket still fits 32 bits.
        rest_MN = high_MN.mul_(127).add_(both_MN).sub_(low_MN).to(torch.float64)
        return rest_MN.mul_(128.0).add_(low_MN.to(torch.float64))[None]
    middle_MN = both_MN.sub_(high_MN).sub_(low_MN)
    return high_MN.to(torch.float64).mul_(16384.0).add_(middle_MN.to(torch.float64).mul_(128.0)).add_(low_MN)[None]


def int8_product(a: Tensor, b: Tensor) -> Tensor:
    """a [M, K] times b [N, K] transposed, exact, i32 while K <= 65,536, i64 above; pads what `_int_mm` cannot take."""
    (m, k), n = a.shape, b.shape[0]
    if k > INT8_CHUNK:
        parts = [
            int8_product(a[:, i : i + INT8_CHUNK], b[:, i : i + INT8_CHUNK]).to(torch.int64)
            for i in range(0, k, INT8_CHUNK)
        ]
        return torch.stack(parts).sum(0)
    # CUDA wants more than 16 rows and multiples of 8; zeros change nothing.
    pad_m, pad_n, pad_k = max(17 - m, 0), -n % 8, -k % 8
    if pad_m or pad_k:
        a = torch.nn.functional.pad(a, (0, pad_k, 0, pad_m))
    if pad_n or pad_k:
        b = torch.nn.functional.pad(b, (0, pad_k, 0, pad_n))
    return torch._int_mm(a, b.t())[:m, :n]


F64 = ProductVariant("fp64", _f64)
INT64 = ProductVariant("int64", _int64)
KARATSUBA = ProductVariant("int8x3", _karatsuba)


def choose(pa: int, pb: int, batch: int, m: int, n: int, k: int, *, other: bool = False) -> ProductVariant:
    """The fastest variant that is exact for these precisions and sizes and passed its self-test.

    other: one that shares no product with it, for a cross-check.
    """
    # Beside the products, int8 digits cost passes over the operands and over the result (measured with AVX-512).
    saves = batch == 1 and m * n * k > 64 * (m + n) * k + 140 * m * n
    usual = _choose(pa, pb, saves, k)
    return _another(usual, pa, pb, batch, k) if other else usual


@cache
def _choose(pa: int, pb: int, saves: bool, k: int) -> ProductVariant:
    if f64_is_exact(pa, pb, k):
        if saves and pa == pb == 14 and not failure(KARATSUBA):
            return KARATSUBA
        return F64
    low = limits.split_f64(pa, pb, k)
    if low:
        return ProductVariant("fp64x2", lambda qa, qb: _split_f64(low, qa, qb))
    return INT64


@cache
def _another(usual: ProductVariant, pa: int, pb: int, batch: int, k: int) -> ProductVariant:
    if usual is KARATSUBA:
        return F64
    if batch == 1 and pa == pb == 14 and not failure(KARATSUBA):
        return KARATSUBA
    if usual is not F64:
        return INT64
    half = pa // 2
    return ProductVariant("fp64x2", lambda qa, qb: _split_f64(half, qa, qb))


@cache
def failure(product_variant: ProductVariant) -> str:
    """What this variant gets wrong on this machine; empty when it passes its self-test."""
    for name, qa, qb in _vectors():
        if not torch.equal(product_variant.multiply(qa, qb).to(torch.int64), _int64(qa, qb)):
            return f"product variant {product_variant.name} is wrong for {name}"
    return ""


def _vectors() -> list[tuple[str, Tensor, Tensor]]:
    """Extremes of 14-bit operands in several shapes: where saturating or wrapping instructions go wrong."""
    found = []
    edges = ((1, 1, KARATSUBA_JOINED), (1, 1, KARATSUBA_JOINED + 1), (1, 1, INT8_CHUNK), (1, 1, INT8_CHUNK + 1))
    for m, n, k in ((1, 1, 1), (17, 8, 8), (33, 24, 96), (16, 40, 1000), (3, 5, 4099), *edges):
        for name, a, b in (
            ("all 8192", 8192.0, 8192.0),
            ("8192 by -8192", 8192.0, -8192.0),
            ("digits 63, 63", 8127.0, 8127.0),
            ("digits -64, -64", -8192.0 - 0.0, 8127.0),
            ("low digits -64", -64.0, -8128.0 - 64.0),
        ):
            found.append((f"{name} at {m}x{n}x{k}", torch.full((1, m, k), a, dtype=torch.float64), _filled(n, k, b)))
        ramp = (torch.arange(m * k, dtype=torch.float64) * 7919 % 16385 - 8192).reshape(1, m, k)
        found.append(
            (f"ramp at {m}x{n}x{k}", ramp, (torch.arange(n * k).double() * 104729 % 16385 - 8192).reshape(1, n, k))
        )
    return found


def _filled(n: int, k: int, value: float) -> Tensor:
    return torch.full((1, n, k), value, dtype=torch.float64)
