"""Products on the native kernels equal the stock formulas bit by bit, on every instruction set of this machine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from math import prod

import pytest
import torch
from torch import Tensor

from assay.engine.runtime.exact import exponents
from assay.engine.runtime.native.build import INSTRUCTION_SETS
from assay.engine.runtime.native.library import native, processor_flags
from assay.engine.runtime.products import native_dot, native_selftest
from assay.engine.runtime.products.dot import _by_element, dot, groups
from assay.engine.runtime.products.native_dot import DotKernels, NativeDot, kernels_of
from assay.engine.runtime.products.packed_pool import PackedPool
from assay.protocol.program.nodes import Dot, Input, Operand
from assay.protocol.program.program import Program
from assay.protocol.program.views import View
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

pytestmark = pytest.mark.skipif(native("dot").handle is None, reason=native("dot").reason or "-")

VARIANTS = [(name, False) for name, found in INSTRUCTION_SETS.items() if found.needs <= processor_flags()]
if "amx_int8" in processor_flags():
    VARIANTS.insert(0, ("vnni", True))

PRECISIONS = [(14, 14), (22, 14), (14, 22), (8, 8), (15, 15), (22, 22), (24, 9), (2, 3)]


@pytest.fixture(params=VARIANTS, ids=lambda variant: f"{variant[0]}{'-amx' if variant[1] else ''}")
def kernels(request: pytest.FixtureRequest) -> DotKernels:
    instruction_set, tiles = request.param
    return kernels_of(instruction_set, tiles=tiles)


@pytest.fixture(params=[1, 3], ids=["1 thread", "3 threads"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    before = torch.get_num_threads()
    monkeypatch.setattr(native_dot, "_ONE_THREAD", 0)
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def same(ours: Tensor, stock: Tensor) -> bool:
    """Whether all bits agree, any NaN being the one NaN."""
    a, b = (torch.where(t.isnan(), float("nan"), t).contiguous().view(torch.int32) for t in (ours, stock))
    return torch.equal(a, b)


def check(kernels: DotKernels, operands: tuple[Tensor, ...], pa: int, pb: int) -> None:
    """Sums and results of both orders of storage, against the general formulas."""
    a, ea, b, eb = operands
    shape = (*a.shape[:2], b.shape[1], a.shape[2])
    if kernels.refuses(pa, pb, shape[3]):
        return
    sums, results = native_selftest.expected((a, ea, b, eb), pa, pb)
    for turned in (False, True):
        program, node = native_selftest.matrix_program(shape, pa, pb)
        values = [a, ea, b, eb]
        if turned:
            program, node = columns_first(shape, pa, pb)
            values = [a.transpose(1, 2).contiguous(), ea, b.transpose(1, 2).contiguous(), eb]
        product = NativeDot(kernels, program, node, ((0,), (1,), (2,)))
        assert same(product.run(values), results), (product.name, shape, pa, pb, turned)
        fine = (ea < 129)[:, :, None] & (eb < 129)[:, None, :]
        assert torch.equal(torch.where(fine, product.sums(values).to(torch.int64), 0), torch.where(fine, sums, 0))


def columns_first(shape: tuple[int, int, int, int], pa: int, pb: int) -> tuple[Program, Dot]:
    """As `matrix_program`, with operands [B, K, M] and [B, K, N]."""
    batch, rows, columns, terms = shape
    _, node = native_selftest.matrix_program(shape, pa, pb)
    specs = ((batch, terms, rows), (batch, rows), (batch, terms, columns), (batch, columns))
    inputs = tuple(Input(TensorSpec(DType.I32 if k % 2 else DType.F32, dims), 0, k) for k, dims in enumerate(specs))
    views = (
        View(0, (rows * terms, 1, 0, rows), (0,) * 4, shape),
        View(0, (columns * terms, 0, 1, columns), (0,) * 4, shape),
    )
    turned = Dot(
        node.spec, node.red, pa, pb, Operand(0, views[0]), Operand(2, views[1]), node.exponent_a, node.exponent_b
    )
    return Program(inputs, (4,), ()), turned


@pytest.mark.parametrize(("pa", "pb"), [(14, 14), (22, 14), (8, 8)])
def test_a_product_whose_columns_are_kept_packed_is_the_same(kernels: DotKernels, threads: int, pa: int, pb: int):
    generator = torch.Generator().manual_seed(pa)
    for rows, columns, terms in ((1, 50, 70), (19, 33, 129)):
        values = list(with_exponents(normal(generator, 1, rows, terms), normal(generator, 1, columns, terms)))
        program, node = native_selftest.matrix_program((1, rows, columns, terms), pa, pb)
        fresh, kept = (NativeDot(kernels, program, node, ((0,), (1,), (2,))) for _ in range(2))
        x, e = (values[j] for j in kept.columns)
        assert kept.keep_columns(x, e, PackedPool())
        assert same(kept.run(values), fresh.run(values))
        assert torch.equal(kept.sums(values), fresh.sums(values))
        assert same(kept.checked(values, (1, 2)), fresh.run(values))
        # What is given later is not read by the product, and its check sees that it is not what was packed.
        x[0, 3] *= -1.0
        assert kept.checked(values, (1, 2)) is None


def test_columns_of_several_batches_are_not_kept(kernels: DotKernels):
    program, node = native_selftest.matrix_program((2, 3, 4, 5), 14, 14)
    product = NativeDot(kernels, program, node, ((0,), (1,), (2,)))
    assert not product.keep_columns(torch.zeros(2, 4, 5), torch.zeros(2, 4, dtype=torch.int32), PackedPool())


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    """Normal values whose rows differ in size by many powers of two."""
    x = torch.randn(*shape, generator=generator)
    return x * torch.randint(-40, 40, (*shape[:-1], 1), generator=generator).to(torch.float32).exp2()


def with_exponents(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    ea, eb = (exponents.exponent_of_magnitude(x).amax(2) for x in (a, b))
    return a, ea, b, eb


@pytest.mark.parametrize(("pa", "pb"), PRECISIONS)
def test_products_of_every_precision_and_shape_are_exact(kernels: DotKernels, threads: int, pa: int, pb: int):
    generator = torch.Generator().manual_seed(pa * 32 + pb)
    for shape in ((1, 1, 1, 1), (3, 5, 2, 7), (1, 33, 50, 103), (9, 16, 16, 64), (2, 40, 17, 129), (1, 70, 65, 700)):
        batch, rows, columns, terms = shape
        check(
            kernels,
            with_exponents(normal(generator, batch, rows, terms), normal(generator, batch, columns, terms)),
            pa,
            pb,
        )


@pytest.mark.parametrize(("pa", "pb"), [(14, 14), (22, 14), (22, 22)])
def test_sums_wait_for_terms_that_are_packed_later(kernels: DotKernels, threads: int, pa: int, pb: int):
    """Four panels of rows take 2,048 terms of one digit at a time, or 1,024 of two; one panel 8,192 or 4,096."""
    generator = torch.Generator().manual_seed(pa + pb)
    for shape in ((1, 70, 65, 2048), (1, 70, 65, 2049), (1, 64, 33, 4200), (2, 9, 17, 8193), (1, 17, 40, 8300)):
        batch, rows, columns, terms = shape
        a, b = normal(generator, batch, rows, terms), normal(generator, batch, columns, terms)
        check(kernels, with_exponents(a, b), pa, pb)


def test_sums_of_as_many_columns_as_there_is_room_for():
    """Of four panels by 8,192 columns all sums wait for more terms; of one column more none do, of fewer panels."""
    found = native_dot.kernels()
    assert found is not None
    generator = torch.Generator().manual_seed(11)
    for columns in (8192, 8193):
        operands = with_exponents(normal(generator, 1, 49, 2050), normal(generator, 1, columns, 2050))
        qa, qb = (exponents.quantize(x, e[..., None], 14).double() for x, e in (operands[:2], operands[2:]))
        program, node = native_selftest.matrix_program((1, 49, columns, 2050), 14, 14)
        product = NativeDot(found.on("int16x1"), program, node, ((0,), (1,), (2,)))
        assert torch.equal(product.sums(list(operands)), torch.bmm(qa, qb.transpose(1, 2)))


@pytest.mark.gate_takes(12)
@pytest.mark.parametrize(("pa", "pb"), PRECISIONS)
def test_extremes_of_all_digits_pass_the_self_test(kernels: DotKernels, pa: int, pb: int):
    assert native_dot.failure.__wrapped__(kernels, pa, pb, kernels.product_variant(pa, pb, 1)) == ""


@pytest.mark.skipif("avx512_vnni" not in processor_flags(), reason="no VNNI")
def test_byte_operands_are_multiplied_as_bytes_while_32_bits_hold_their_sums():
    kernels = kernels_of("vnni")
    assert kernels.product_variant(8, 8, 131_071) == "int8x1/vnni"
    assert kernels.product_variant(8, 8, 131_072) == kernels.product_variant(9, 8, 64) == "int16x1/vnni"
    assert kernels.on("int16x1/vnni").product_variant(8, 8, 64) == "int16x1/vnni"
    assert kernels_of("avx512").product_variant(8, 8, 64) == "int16x1/avx512"


@pytest.mark.gate_takes(12)
@pytest.mark.parametrize("terms", [65_535, 65_536, 65_537, 131_073])
def test_many_terms_of_one_sign_do_not_overflow(kernels: DotKernels, threads: int, terms: int):
    for pa, pb, x, y in (
        (14, 14, 1.0, 1.0),
        (14, 14, 1.0, -1.0),
        (8, 8, -1.0, -1.0),
        (15, 15, 1.0, 1.0),
        (22, 14, 1.0, 1.0),
    ):
        # The exponent is that of the largest value, whose q is the limit itself.
        a, b = torch.full((1, 3, terms), x), torch.full((1, 2, terms), y)
        zero = torch.zeros(1, 3, dtype=torch.int32)
        check(kernels, (a, zero, b, zero[:, :2]), pa, pb)


@pytest.mark.gate_takes(40)
@pytest.mark.parametrize("largest", [4094, 4095, 4096, 4097, 5791, 5793, 8191])
@pytest.mark.parametrize("terms", [31, 127, 128, 129, 256, 511, 512, 513, 1200])
def test_runs_that_norms_allow_end_before_32_bits_are_full(kernels: DotKernels, largest: int, terms: int):
    """128 squares of 4095 are the most that a segment may hold; large terms among small ones are the other case."""
    e = torch.full((1, 17), 13, dtype=torch.int32)
    a, b = torch.full((1, 17, terms), float(largest)), torch.full((1, 16, terms), float(largest))
    check(kernels, (a, e, b, e[:, :16]), 14, 14)
    check(kernels, (a, e, -b, e[:, :16]), 14, 14)
    a[:, ::2, terms // 2 :] = 3.0
    b[:, :, : terms // 3] = -8192.0
    check(kernels, (a, e, b, e[:, :16]), 14, 14)


def test_runs_of_terms_packed_later_end_by_norms_of_their_own(kernels: DotKernels):
    """Four panels take 2,048 terms at a time: here zeros, then ones of which 64 pairs are more than 32 bits hold."""
    x, e = torch.zeros(1, 49, 2560), torch.full((1, 49), 13, dtype=torch.int32)
    x[..., 2048:] = 4300.0
    check(kernels, (x, e, x[:, :17].contiguous(), e[:, :17]), 14, 14)


def test_rows_of_every_exponent_keep_subnormals_and_overflow(kernels: DotKernels):
    generator = torch.Generator().manual_seed(5)
    edges = (-149, -148, -140, -127, -126, -125, -114, -113, -98, -97, -1, 0, 1, 2, 127, 128)
    e = torch.tensor([[*edges, *edges[:5]]], dtype=torch.int32)  # a panel and a part of one
    x = torch.rand(1, e.shape[1], 40, generator=generator).add_(1.0).mul_(0.5)
    x = (x.double() * exponents.power_of_two(e)[..., None]).float()
    for pa, pb in ((14, 14), (22, 14), (8, 8)):
        check(kernels, with_exponents(x, -x), pa, pb)
        check(kernels, with_exponents(x, x[:, :, :1].clone().expand(1, e.shape[1], 40).contiguous()), pa, pb)


def test_exponents_that_are_not_the_rows_own_clamp_or_vanish(kernels: DotKernels):
    generator = torch.Generator().manual_seed(6)
    a, ea, b, eb = with_exponents(normal(generator, 2, 20, 50), normal(generator, 2, 18, 50))
    for change in (-3, 5, -200, 260, -(2**31) + 200, 2**30):
        check(kernels, (a, (ea.long() + change).clamp(-(2**31), 2**31 - 1).int(), b, eb), 14, 14)
        check(kernels, (a, ea, b, (eb.long() + change).clamp(-(2**31), 2**31 - 1).int()), 22, 14)


def test_what_is_not_finite_is_nan_or_nothing(kernels: DotKernels):
    generator = torch.Generator().manual_seed(7)
    a, b = torch.randn(2, 20, 50, generator=generator), torch.randn(2, 18, 50, generator=generator)
    a[0, 3, 7], a[1, 19, 49], b[0, 0, 0], b[1, 17, 30] = float("nan"), float("inf"), float("-inf"), float("nan")
    check(kernels, with_exponents(a, b), 14, 14)
    small = torch.full((2, 20), 2, dtype=torch.int32)  # exponents that say nothing of it
    check(kernels, (a, small, b, small[:, :18]), 14, 14)
    check(kernels, (a, small, b, small[:, :18]), 22, 14)


def test_sums_near_a_tie_are_rounded_once(kernels: DotKernels):
    """Sums of 25 and more bits whose lowest bits are a half, one less and one more."""
    rng = random.Random(8)
    terms, rows = 64, 48
    a = torch.tensor([[[rng.randint(-8192, 8192) for _ in range(terms)] for _ in range(rows)]]).float()
    b = torch.full((1, 3, terms), 8191.0)
    b[:, :, -1] = 1.0
    e = torch.full((1, rows), 13, dtype=torch.int32)
    for row in range(rows):
        head = int(a[0, row, :-1].sum()) * 8191
        width = max(abs(head).bit_length() - 24, 1)
        wanted = (head >> width << width) + (1 << (width - 1)) + row % 3 - 1
        a[0, row, -1] = max(-8192, min(8192, wanted - head))
    check(kernels, (a, e, b, e[:, :3]), 14, 14)
    check(kernels, (a, e - 140, b, e[:, :3] - 20), 14, 14)  # and where the result is subnormal


def test_results_whose_factors_leave_the_normal_numbers(kernels: DotKernels):
    """By factors at the ends of the normal numbers and one beyond: ties that are subnormal, zeros of large rows."""
    odd = [float(n) for n in (1, 3, 8191, 4097)]
    a = torch.tensor(odd).repeat_interleave(4).reshape(1, 16, 1).repeat(1, 2, 4)
    a[:, 16:, :2] *= -1.0  # their sums are zeros
    b = torch.tensor(odd).repeat(4).reshape(1, 16, 1).repeat(1, 1, 4)
    for total in (*range(-160, -120), *range(120, 132)):
        for left in (total // 2, total + 30, -126, -127, 127, 128):
            ea, eb = (torch.full((1, n), e + 13, dtype=torch.int32) for n, e in ((32, left), (16, total - left)))
            if ea.max() > 129 or eb.max() > 129:
                continue
            scaled = [x.double() * exponents.power_of_two(e - 13)[..., None] for x, e in ((a, ea), (b, eb))]
            check(kernels, (scaled[0].float(), ea, scaled[1].float(), eb), 14, 14)


def random_view(rng: random.Random, over: tuple[int, ...], own: set[int]) -> tuple[View, int]:
    """A view that depends on some dimensions, in any order, direction and spacing, with bounds; the source's size."""
    order = [d for d in range(len(over)) if d in own]
    rng.shuffle(order)
    strides, at = [0] * len(over), 1
    for d in order:
        strides[d] = at * rng.choice((1, 1, 1, 2))
        at = strides[d] * over[d]
    offset = rng.randint(0, 3)
    for d in order:
        if rng.random() < 0.25:
            offset += strides[d] * (over[d] - 1)
            strides[d] = -strides[d]
    lo, hi = [0] * len(over), list(over)
    for d in order:
        if rng.random() < 0.25:
            lo[d], hi[d] = sorted((rng.randint(0, over[d]), rng.randint(0, over[d])))
    fill = rng.choice((0, 0, 0x3F800000, 0x7FC00000, 0x80000000))
    return View(offset, tuple(strides), tuple(lo), tuple(hi), fill), offset + at * 2 + 4


def random_node(rng: random.Random) -> tuple[Program, Dot, list[Tensor]]:
    rank, inner = rng.randint(1, 4), rng.randint(1, 2)
    dims = tuple(rng.choice((1, 2, 3, 5, 16, 17, 33)) for _ in range(rank))
    red = tuple(rng.choice((1, 2, 7, 31, 32, 64, 96)) for _ in range(inner))
    over, terms = dims + red, set(range(rank, rank + inner))
    own_a = {d for d in range(rank) if rng.random() < 0.6}
    own_b = {d for d in range(rank) if d not in own_a or rng.random() < 0.3}
    values: list[Tensor] = []
    operands: list[Operand] = []
    for own in (own_a, own_b):
        view, size = random_view(rng, over, own | terms)
        x = torch.randn(size) * 2.0 ** rng.randint(-20, 20)
        x[torch.rand(size) < 0.01] = float("inf")
        values.append(x)
        operands.append(Operand(len(values) - 1, view))
        view, size = random_view(rng, dims, own)
        if view.fill == 0x3F800000:
            view = View(view.offset, view.strides, view.lo, view.hi, 3)
        values.append(torch.randint(-25, 25, (size,), dtype=torch.int32))
        operands.append(Operand(len(values) - 1, view))
    inputs = tuple(
        Input(TensorSpec(DType.I32 if k % 2 else DType.F32, tuple(v.shape)), 0, k) for k, v in enumerate(values)
    )
    pa, pb = rng.choice(PRECISIONS)
    a, ea, b, eb = operands
    return Program(inputs, (4,), ()), Dot(TensorSpec(DType.F32, dims), red, pa, pb, a, b, ea, eb), values


@pytest.mark.gate_takes(1)
def test_any_views_are_read_and_stored_as_stock_torch_does(kernels: DotKernels, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native_dot, "_ONE_THREAD", 1 << 14)  # some on one thread, some on more
    rng = random.Random(9)
    torch.manual_seed(9)
    compared = 0
    for _ in range(80):
        program, node, values = random_node(rng)
        parts = groups(node)
        if parts is None or prod(node.spec.dims) * prod(node.red) > 1 << 19:
            continue
        if kernels.refuses(node.precision_a, node.precision_b, prod(node.red)):
            continue
        ours = NativeDot(kernels, program, node, parts)
        assert same(ours.run(values), _by_element(program, node)(values)), (node, ours.name)
        stock, _ = dot(program, node, trusted=False)
        assert same(ours.run(values), stock(values))
        compared += 1
    assert compared > 40


def test_flushing_of_subnormals_by_a_library_changes_nothing(kernels: DotKernels):
    a = torch.full((1, 4, 8), 3.0 * 2.0**-149)
    operands = with_exponents(a, torch.ones(1, 2, 8))
    expected = native_selftest.expected(operands, 14, 14)[1]
    program, node = native_selftest.matrix_program((1, 4, 2, 8), 14, 14)
    product = NativeDot(kernels, program, node, ((0,), (1,), (2,)))
    assert torch.set_flush_denormal(True)
    try:
        ours = product.run(list(operands))
    finally:
        torch.set_flush_denormal(False)
    assert expected.count_nonzero() and same(ours, expected)
    assert not torch.set_flush_denormal(False) or (torch.tensor([2.0**-140]) * 0.5).item() != 0.0


def test_a_product_that_fails_its_self_test_is_named_and_not_used(monkeypatch: pytest.MonkeyPatch):
    program, node = native_selftest.matrix_program((1, 40, 40, 40), 14, 14)
    found = native_dot.kernels()
    assert found is not None
    assert native_dot.native_dot(found, program, node, ((0,), (1,), (2,))) is not None
    honest = NativeDot.sums
    monkeypatch.setattr(NativeDot, "sums", lambda self, values: honest(self, values).clamp_(max=2.0**27))
    native_dot.failure.cache_clear()
    try:
        product_variant = found.product_variant(14, 14, 40)
        assert product_variant in native_dot.failure(found, 14, 14, product_variant)
        assert native_dot.native_dot(found, program, node, ((0,), (1,), (2,))) is None
        assert dot(program, node, native=found)[1] == "fp64"
    finally:
        monkeypatch.undo()
        native_dot.failure.cache_clear()


def test_what_the_kernels_cannot_hold_is_left_to_stock_torch():
    kernels = native_dot.kernels()
    assert kernels is not None
    assert not kernels.refuses(14, 14, 1 << 20)
    assert kernels.refuses(14, 14, (1 << 20) + 1)
    assert not kernels.refuses(22, 14, 1 << 18)
    assert kernels.refuses(22, 14, (1 << 18) + 1)
    assert kernels.refuses(25, 2, 1)
    assert kernels.refuses(14, 14, 0)


def test_a_due_check_sees_the_native_sums_and_changes_no_bit(kernels: DotKernels):
    torch.manual_seed(10)
    program, node = native_selftest.matrix_program((2, 30, 20, 50), 14, 14)
    values = list(with_exponents(torch.randn(2, 30, 50), torch.randn(2, 20, 50)))
    seen: list[Tensor] = []
    kernel, product_variant = dot(
        program, node, trusted=False, native=kernels, check=lambda qa, qb, s: seen.append(s), due=lambda: True
    )
    idle, _ = dot(program, node, native=kernels, check=lambda *_: pytest.fail("not due"), due=lambda: False)
    assert product_variant.startswith("int")
    assert same(kernel(values), idle(values))
    a, ea, b, eb = values
    assert torch.equal(seen[0].to(torch.int64), native_selftest.expected((a, ea, b, eb), 14, 14)[0])
