"""Triton's products at the limits between which exponents need no care: every bit, on both sides of each limit."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

from assay.engine.runtime.exact import exponents
from assay.engine.runtime.triton.products import GROUP, PART, Blocks, by_digits
from assay.engine.runtime.triton.routes import Carrier, Route, route
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Dot
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

LOW, HIGH = -75, 65
"""Those of `kernels.product`, written again: powers of two of a row or a column."""

TERMS = 9


def product(
    a: Tensor,
    b: Tensor,
    ea: Tensor,
    eb: Tensor,
    precisions: tuple[int, int] = (14, 14),
    *,
    found: Route | None = None,
    cut: Blocks | None = None,
) -> tuple[Tensor, Tensor]:
    """f32 [M, N] as Triton's kernel has it, and as the exact integers do. a [M, K], b [N, K] f32; ea, eb i32."""
    specs = [TensorSpec(DType.F32, tuple(t.shape)) for t in (a, b)]
    specs += [TensorSpec(DType.I32, tuple(t.shape)) for t in (ea, eb)]
    builder = ProgramBuilder([specs])
    pa, pb = precisions
    x, y, ex, ey = (builder.input(0, k) for k in range(4))
    dims = (a.shape[0], b.shape[0])
    dot = builder.dot(x.unsqueeze(1), y.unsqueeze(0), ex.unsqueeze(1), ey.unsqueeze(0), dims, (a.shape[1],), pa, pb)
    program = builder.build([[dot]])
    node = program.nodes[-2]
    assert isinstance(node, Dot)
    found = found or route(pa, pb)
    assert found is not None
    ours = by_digits(program, node, found, ((), (0,), (1,)), packed=True, cut=cut)([a, b, ea, eb])
    qa, qb = (exponents.quantize(x, e[:, None], p).to(torch.int64) for x, e, p in ((a, ea, pa), (b, eb, pb)))
    powers = (ea.to(torch.int64) - (pa - 1))[:, None] + (eb.to(torch.int64) - (pb - 1))[None, :]
    wanted = exponents.finish((qa[:, None] * qb[None]).sum(-1), powers)
    return ours, exponents.finish_nan(wanted, ea[:, None].expand(dims), eb[None, :].expand(dims))


def integers(rows: int, p: int, seed: int) -> Tensor:
    """Integers i64 [rows, TERMS] of at most p - 1 bits, of every length, so that sums have from 1 bit to all."""
    generator = torch.Generator().manual_seed(seed)
    bits = torch.arange(rows)[:, None] % p
    q = (torch.rand(rows, TERMS, generator=generator, dtype=torch.float64) * 2.0 ** bits.double()).to(torch.int64)
    q *= 1 - 2 * torch.randint(0, 2, q.shape, generator=generator)
    q[: p // 2, 1:] = 0
    return q


def sides(pa: int, pb: int, a: int, b: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Operands of 40 by 70 rows whose integers are every kind, under exponents whose powers of two are a and b."""
    qa, qb = integers(40, pa, 1), integers(70, pb, 2)
    x, y = (exponents.power_of_two(torch.tensor(n)) * q.double() for n, q in ((a, qa), (b, qb)))
    ea, eb = torch.full((40,), a + pa - 1, dtype=torch.int32), torch.full((70,), b + pb - 1, dtype=torch.int32)
    return x.float(), y.float(), ea, eb


def same_bits(found: tuple[Tensor, Tensor]) -> bool:
    ours, wanted = (t.contiguous() for t in found)
    nan = ours.isnan() & wanted.isnan()
    return torch.equal(ours.view(torch.int32).where(~nan, 0), wanted.view(torch.int32).where(~nan, 0))


@pytest.mark.gate_takes(12)
@pytest.mark.parametrize("precisions", [(14, 14), (8, 8), (22, 14), (14, 8)], ids=str)
@pytest.mark.parametrize(
    ("a", "b"),
    [
        *((LOW, LOW), (LOW - 1, LOW), (LOW - 1, LOW - 1), (LOW - 5, LOW - 5), (LOW, HIGH)),
        *((HIGH, 40), (HIGH + 1, 40), (HIGH, HIGH), (HIGH + 35, HIGH - 125)),
    ],
    ids=str,
)
def test_rows_at_and_past_the_limits_have_the_bits_of_exact_integers(precisions: tuple[int, int], a: int, b: int):
    ours, wanted = product(*sides(*precisions, a, b), precisions)
    assert same_bits((ours, wanted))
    magnitudes = ours.abs()
    if a + b <= 2 * LOW:
        assert int(((magnitudes > 0) & (magnitudes < 2.0**-126)).sum()) > 10
    if a + b > 126 - 12:
        assert bool(magnitudes.isinf().any())
    if a + b <= 127:
        assert bool((magnitudes.isfinite() & (magnitudes > 0)).any())


def test_a_total_of_more_than_24_bits_is_rounded_once_by_two_powers():
    """Sums 2^24 + 1 + 2 m of 25 bits at the lowest powers are normal, and ties between f32 values at most."""
    a, b = torch.zeros(8, 3), torch.zeros(8, 3)
    a[:, 0], b[:, 0], a[:, 1], b[:, 1] = 4096.0, 4096.0, 1.0, 1.0 + 2.0 * torch.arange(8)
    e = torch.full((8,), LOW + 13, dtype=torch.int32)
    for down in (0, 1, 2, 3):
        scale = torch.tensor(LOW - down)
        x, y = ((t.double() * exponents.power_of_two(scale)).float() for t in (a, b))
        assert same_bits(product(x, y, e - down, e - down))


def test_rows_of_zeros_are_plus_zero_beside_rows_that_need_no_care():
    a, b, ea, eb = sides(14, 14, -20, -12)
    a[5], a[6], b[7], b[69] = 0.0, -0.0, 0.0, 0.0
    ea[5], ea[6], eb[7], eb[69] = (exponents.E_ZERO,) * 4
    ours, wanted = product(a, b, ea, eb)
    assert same_bits((ours, wanted))
    assert ours[5].view(torch.int32).tolist() == ours[6].view(torch.int32).tolist() == [0] * 70
    assert ours[:, 69].view(torch.int32).tolist() == [0] * 40


@pytest.mark.parametrize("e", [exponents.E_ZERO, -(2**31), LOW + 12, HIGH + 14, 128, 129, 130, 2**31 - 1], ids=str)
@pytest.mark.gate_takes(3)
def test_a_row_whose_exponent_was_replaced_has_the_bits_of_exact_integers(e: int):
    """Its elements are at the limit under a low one, so its totals are not 0, and 0 under a high one; NaN from 129."""
    for b_power in (-20, 65):
        a, b, ea, eb = sides(14, 14, -20, b_power)
        row, column = ea.clone(), eb.clone()
        row[5], column[66] = e, e
        found = product(a, b, row, eb)
        assert same_bits(found)
        assert bool(found[0][5].isnan().all()) == (e >= 129)
        assert same_bits(product(a, b, ea, column))
        assert same_bits(product(a, b, row, column))


@pytest.mark.parametrize("bits", [7, 8])
def test_places_are_joined_in_32_bits_up_to_the_last_term_that_they_hold(bits: int):
    """The largest integers of either sign, up to one term past that."""
    found = Route(Carrier.I8, 2, 2, bits, 1 << 16)
    most = found.narrow_terms(14, 14)
    assert 4000 < most < 9000
    for terms in (most, most + 1):
        x = torch.full((3, terms), 8192.0)
        x[1], x[2, ::2] = -8192.0, 8191.0
        e = torch.full((3,), 13, dtype=torch.int32)
        assert same_bits(product(x, x, e, e, found=found))


@pytest.mark.parametrize("rows", [16, 64], ids=str)
@pytest.mark.parametrize("columns", [16, 64, 128], ids=str)
@pytest.mark.gate_takes(2)
def test_every_cut_has_the_same_bits(rows: int, columns: int):
    """More rows of blocks than are computed together, and as many parts as a block of so many columns has."""
    cut = Blocks(rows, columns, 32, 4, 2)
    assert cut.constants["PARTS"] == max(1, columns // PART)
    q = integers(rows * (GROUP + 1) + 3, 14, 3), integers(150, 14, 4)
    e = [torch.randint(-9, 30, (len(x),), dtype=torch.int32) for x in q]
    a, b = (x.double().mul(exponents.power_of_two(n - 13)[:, None]).float() for x, n in zip(q, e, strict=True))
    assert same_bits(product(a, b, *e, cut=cut))
