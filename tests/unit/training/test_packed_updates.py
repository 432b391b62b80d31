"""Four bits a parameter and one parameter in 64: which elements are sent, as what, and what hostile bytes mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.training.carried import compute_update_carried
from assay.training.merge import MergeRule, merge
from assay.training.nibbles import BLOCK, MOST, pack_int4, unpack_int4
from assay.training.programs import carried_update_program, merge_program
from assay.training.sparse import CHUNK, DECAY, SENT, pack_sparse, unpack_sparse
from assay.training.updates import COMPUTE_UPDATE, UpdateWire, compute_update, received, zero_update
from tests.harness.engine.helpers import both_executors, check_executors, differing_nodes, same_lists
from tools.recompute.wires import numbers

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")

SHAPES = ((128, 64), (65, 70), (4, 9), (5,), ())
PACKED = tuple(wire for wire in UpdateWire if wire not in (UpdateWire.F32, UpdateWire.BF16, UpdateWire.INT8))


def random_list(seed: int, shapes: tuple[tuple[int, ...], ...] = SHAPES) -> list[Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=draw) for shape in shapes]


@pytest.mark.parametrize("wire", list(UpdateWire))
def test_what_numpy_reads_from_the_bytes_is_what_a_merge_receives(wire: UpdateWire) -> None:
    (sent,) = COMPUTE_UPDATE[wire](random_list(1), random_list(2))
    wanted = numbers([t.numpy() for t in sent], list(SHAPES))
    for got, x in zip(received(sent, wire, SHAPES), wanted, strict=True):
        np.testing.assert_array_equal(got.numpy(), np.asarray(x, "f4"))


@pytest.mark.parametrize("wire", [UpdateWire.SPARSE, UpdateWire.COCKTAIL])
def test_numpy_reads_places_named_twice_and_scales_beyond_f32_as_a_merge_does(wire: UpdateWire) -> None:
    (sent,) = COMPUTE_UPDATE[wire](random_list(1), random_list(2))
    count, largest, infinite = len(SHAPES), 0x7F61, 0x7F80  # bfloat16 bits of 2.99e38, and of infinity
    for k, (rows, bits) in enumerate(zip(sent[:count], sent[count:], strict=True)):
        rows[:, : rows.shape[1] // 3] = 0  # the same place many times
        if wire is UpdateWire.COCKTAIL:  # of 7 and -7, and one -6: finite if added up in more than f32
            groups = next(n for n in range(1, SENT + 1) if n + (n + 1) // 2 + 1 == rows.shape[1])
            rows[:, :groups], rows[:, groups:], rows[:, groups] = 0, 0x97, 0xA7
            rows[:, -1] = 0
        scales = bits.view(-1)[: bits.numel() - 2] if wire is UpdateWire.COCKTAIL else bits.view(-1)
        scales[:] = torch.tensor([infinite if k % 2 else largest, 0x3F80] * bits.numel(), dtype=torch.uint16)[
            : len(scales)
        ]
    wanted = numbers([t.numpy() for t in sent], list(SHAPES))
    shown = received(sent, wire, SHAPES)
    for got, x in zip(shown, wanted, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            own = np.asarray(x, "f4")
        clean = [np.where(np.isfinite(a), a, 0) for a in (got.numpy(), own)]
        np.testing.assert_array_equal(*clean)


@pytest.mark.parametrize("wire", [UpdateWire.BF16, *PACKED])
def test_bytes_of_zero_are_the_update_of_zeros(wire: UpdateWire) -> None:
    zeros = zero_update(random_list(0), wire)
    (sent,) = COMPUTE_UPDATE[wire](random_list(1), random_list(2))
    assert [(t.shape, t.dtype) for t in zeros] == [(t.shape, t.dtype) for t in sent]
    assert not any(t.reshape(-1).view(torch.uint8).any() for t in zeros)
    assert not any(t.any() for t in received(zeros, wire, SHAPES))


# --- four bits


def test_int4_sends_each_block_within_half_a_step_of_its_own_scale() -> None:
    x = torch.randn(70, generator=torch.Generator().manual_seed(1))
    packed, bits = pack_int4(x)
    assert (packed.dtype, tuple(packed.shape), bits.dtype) == (torch.uint8, (2, BLOCK // 2), torch.uint16)
    for part, got in zip(x.split(BLOCK), unpack_int4(packed, bits, (70,)).split(BLOCK), strict=True):
        step = float(part.abs().max()) / MOST
        # A scale in bfloat16 is off by 1 / 256 at most, which moves the largest by that.
        assert float((part - got).abs().max()) <= step * (0.5 + MOST / 256)


def test_int4_rounds_halves_to_even_and_has_seven_of_either_sign() -> None:
    packed, bits = pack_int4(torch.tensor([7.0, -7.0, 0.5, 1.5, 2.5, -0.5, 0.0]))
    assert unpack_int4(packed, bits, (7,)).tolist() == [7, -7, 0, 2, 2, 0, 0]


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf, 1e-45])
def test_int4_sends_a_block_of_no_numbers_as_zeros(value: float) -> None:
    packed, bits = pack_int4(torch.full((6,), value))
    assert not packed.any() and unpack_int4(packed, bits, (6,)).tolist() == [0] * 6


# --- one in 64


def plainly(x: Tensor, side: int) -> np.ndarray:
    """What is received of a matrix of squares, by sorting in Python."""
    result = np.zeros(x.shape)
    for top in range(0, x.shape[0], side):
        for left in range(0, x.shape[1], side):
            own = x[top : top + side, left : left + side].flatten().tolist()
            sent = sorted(range(len(own)), key=lambda k: (-abs(own[k]), k))[:SENT]
            middle = math.fsum(abs(own[k]) for k in sent) / SENT
            sizes = [[abs(own[k]) for k in sent if (abs(own[k]) > middle) is high] for high in (True, False)]
            means = [math.fsum(s) / len(s) if s else 0.0 for s in sizes]
            high, low = torch.tensor(means).to(torch.bfloat16).tolist()
            for k in sent:
                level = high if abs(own[k]) > middle else low
                result[top + k // side, left + k % side] = math.copysign(level, own[k])
    return result


def test_the_64_largest_of_each_square_are_received_as_one_of_four_numbers() -> None:
    x = torch.randn((128, 192), generator=torch.Generator().manual_seed(3))
    rows, bits = pack_sparse(x)
    assert rows.numel() + 2 * bits.numel() == x.numel() // CHUNK * 103
    np.testing.assert_allclose(unpack_sparse(rows, bits, x.shape).numpy(), plainly(x, 64), rtol=1 / 128)
    assert 4 * x.numel() / (rows.numel() + 2 * bits.numel()) > 146


def test_of_equal_magnitudes_the_earlier_are_sent() -> None:
    rows, bits = pack_sparse(torch.cat([-torch.ones(200), torch.ones(CHUNK - 200)]).reshape(64, 64))
    assert unpack_sparse(rows, bits, (CHUNK,)).nonzero().flatten().tolist() == list(range(SENT))


def test_a_short_vector_is_sent_whole_and_odd_ones_keep_their_last_place() -> None:
    for size in (1, 5, 63, 64):
        x = torch.linspace(-1.0, 2.0, size)
        got = unpack_sparse(*pack_sparse(x), (size,))
        assert bool((got.sign() == x.sign()).all())


@pytest.mark.parametrize("wire", PACKED)
def test_any_bytes_are_an_update_and_are_merged_alike_everywhere(wire: UpdateWire) -> None:
    draw = torch.Generator().manual_seed(5)
    start, momentum = random_list(1), random_list(2)
    zeros, rule = zero_update(start, wire), MergeRule(limit=0.1)
    executors = both_executors(merge_program(start, 2, rule, wire))
    for _ in range(3):
        lie = [
            torch.randint(0, 1 << 8 * t.element_size(), t.shape, generator=draw, dtype=torch.int32).to(t.dtype)
            for t in zeros
        ]
        ends = [ex.run([start, momentum, lie, zeros, [torch.tensor([1.0, 0.0])]]) for ex in executors]
        assert same_lists(*ends)
        for before, after in zip(start, ends[0][0], strict=True):
            assert bool(after.isfinite().all()), before.shape


def test_a_place_that_a_short_chunk_lacks_is_nobodys() -> None:
    rows, bits = pack_sparse(torch.ones(5))
    rows[:, :5] = 200
    assert not unpack_sparse(rows, bits, (5,)).any()


@pytest.mark.parametrize("wire", PACKED)
@pytest.mark.gate_takes(1)
def test_merges_of_packed_updates_have_the_bits_of_stock_pytorch(wire: UpdateWire) -> None:
    start, momentum, rule = random_list(1), random_list(2), MergeRule(limit=0.5)
    sent = [COMPUTE_UPDATE[wire](start, random_list(3 + k))[0] for k in range(3)]
    lists = [start, momentum, *sent, [torch.tensor([1.0, 0.0, 1.0])]]
    check_executors(both_executors(merge_program(start, 3, rule, wire)), lists, merge(*lists, rule=rule, wire=wire))


# --- carried


@pytest.mark.parametrize("carrier", [UpdateWire.F32, UpdateWire.INT4])
def test_what_is_not_sent_is_kept_shrunk_and_sent_later(carrier: UpdateWire) -> None:
    start, end, nothing = random_list(1), random_list(2), zero_update(random_list(0), carrier)
    sent, kept = compute_update_carried(start, end, nothing, carrier=carrier)
    (update,) = compute_update(start, end)
    within = 0.01 if carrier is UpdateWire.F32 else 0.5
    arrived, rest = received(sent, UpdateWire.SPARSE, SHAPES), received(kept, carrier, SHAPES)
    for whole, a, b in zip(update, arrived, rest, strict=True):
        torch.testing.assert_close(a + b, whole, rtol=0, atol=within)
    # A round in which nothing is trained sends of what was kept.
    later, _ = compute_update_carried(start, start, kept, carrier=carrier)
    first = received(later, UpdateWire.SPARSE, SHAPES)[0]
    largest = rest[0].abs().max() * DECAY
    assert 0 < float(first.abs().max()) <= float(largest) * 1.01


@pytest.mark.long
@pytest.mark.parametrize("carrier", [UpdateWire.F32, UpdateWire.INT4])
def test_a_program_that_carries_has_the_bits_of_stock_pytorch(carrier: UpdateWire) -> None:
    start, end = random_list(1), random_list(2)
    kept = compute_update_carried(start, random_list(3), zero_update(start, carrier), carrier=carrier)[1]
    program, lists = carried_update_program(start, carrier), [start, end, kept]
    expected = compute_update_carried(*lists, carrier=carrier)
    for variant in (KernelVariant.STOCK, KernelVariant.FUSED):
        assert same_lists(Executor(program, variant=variant).run(lists), expected)
    assert differing_nodes(program, lists) == []
