"""Updates on the wire: what each keeps, what it costs, and the same bits on every executor."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.values.state_io import input_specs, output_specs, to_lists_of_bytes
from assay.training.initialize import initialize
from assay.training.merge import MergeRule
from assay.training.presets import DEMO
from assay.training.programs import merge_program, update_program
from assay.training.step import preset_step
from assay.training.updates import (
    COMPUTE_UPDATE,
    LARGEST,
    UpdateWire,
    compute_update,
    compute_update_int8,
    received,
    zero_update,
)
from assay_ledger.store.listfile import pack, unpack
from tests.harness.engine.helpers import differing_nodes, same_lists

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")

SHAPES = ((4, 64), (4, 63), (70,), (2, 8, 9), ())
ROWS = [4, 1, 1, 2, 1]


def random_list(seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in SHAPES]


def test_an_i8_update_has_a_scale_for_each_long_row_and_one_for_any_other_tensor() -> None:
    (sent,) = compute_update_int8(random_list(1), random_list(2))
    values, scales = sent[: len(SHAPES)], sent[len(SHAPES) :]
    assert [(v.dtype, v.shape) for v in values] == [(torch.int8, torch.Size(shape)) for shape in SHAPES]
    assert [(s.dtype, list(s.shape)) for s in scales] == [(torch.float32, [rows]) for rows in ROWS]
    assert same_lists([zero_update(random_list(1), UpdateWire.INT8)], [[torch.zeros_like(t) for t in sent]])


def test_what_is_received_is_within_half_a_step_of_each_rows_largest_magnitude() -> None:
    start, end = random_list(1), random_list(2)
    (exact,), (sent,) = compute_update(start, end), compute_update_int8(start, end)
    for x, got, rows in zip(exact, received(sent, UpdateWire.INT8, SHAPES), ROWS, strict=True):
        largest = x.reshape(rows, -1).abs().amax(1, keepdim=True)
        error = (x - got).reshape(rows, -1).abs()
        assert bool((error <= largest / LARGEST * 0.500001).all())
        assert bool((error > largest / LARGEST * 0.25).any()) or x.numel() == 1
        assert float(got.abs().max()) == pytest.approx(float(x.abs().max()), rel=1e-6)


def test_half_a_step_is_rounded_to_even_and_the_largest_is_127() -> None:
    start = [torch.tensor([127.0, -127.0, 0.5, 1.5, 2.5, -0.5, 0.0])]
    (sent,) = compute_update_int8(start, [torch.zeros(7)])
    assert sent[0].tolist() == [127, -127, 0, 2, 2, 0, 0]
    assert sent[1].tolist() == [1.0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_sent_as_zero_and_its_row_is_kept(value: float) -> None:
    (sent,) = compute_update_int8([torch.tensor([value, 254.0, -2.0])], [torch.zeros(3)])
    assert [t.tolist() for t in sent] == [[0, 127, -1], [2.0]]


@pytest.mark.parametrize(("value", "sent"), [(0.0, 0), (1e-45, 0), (8.8e-44, 0), (9.1e-44, 65), (3e-43, 107)])
def test_a_row_too_small_for_a_scale_is_sent_as_zeros(value: float, sent: int) -> None:
    (update,) = compute_update_int8([torch.full((3,), value)], [torch.zeros(3)])
    assert update[0].tolist() == [sent] * 3


def test_an_f32_update_is_received_as_it_is_sent() -> None:
    update = [torch.tensor([math.nan, -0.0, math.inf, 1.0])]
    assert same_lists([received(update, UpdateWire.F32, [(4,)])], [update])


@pytest.mark.parametrize("wire", list(UpdateWire))
@pytest.mark.parametrize("hostile", [False, True])
@pytest.mark.gate_takes(3)
def test_update_programs_have_the_bits_of_stock_pytorch_on_every_executor(wire: UpdateWire, hostile: bool) -> None:
    start, end = random_list(1), random_list(2)
    if hostile:
        for k, value in enumerate((math.nan, math.inf, 3.4e38, 1e-45)):
            start[k].view(-1)[k] = value
            end[k].view(-1)[k] = -value
    program = update_program(random_list(0), wire)
    expected = COMPUTE_UPDATE[wire](start, end)
    for variant in KernelVariant:
        found = Executor(program, variant=variant).run([start, end])
        if wire is UpdateWire.POWERSGD:
            # Products of matrices are exact in a program and rounded in torch, so that its bits are near.
            for a, b in zip(*(received(sent[0], wire, SHAPES) for sent in (found, expected)), strict=True):
                assert 0.0 < float(b.norm()) < math.inf and float((a - b).norm()) <= 0.03 * float(b.norm())
        else:
            assert same_lists(found, expected)
        assert differing_nodes(program, [start, end], variant) == []


BARS = {
    "f32": 4.1,
    "bf16": 2.1,
    "int8": 1.1,
    "int4": 0.6,
    "sparse": 0.05,
    "sign": 0.15,
    "powersgd": 0.16,
    "cocktail": 0.05,
}


QUICK = ("f32", "bf16", "int8", "int4", "sparse")


@pytest.mark.parametrize(
    ("wire", "bar"),
    [pytest.param(*item, marks=() if item[0] in QUICK else pytest.mark.long, id=item[0]) for item in BARS.items()],
)
def test_an_update_on_the_wire_takes_no_more_bytes_a_parameter_than_its_bar(wire: str, bar: float) -> None:
    step = preset_step(DEMO, 100)
    start, end = initialize(step.module, 1), initialize(step.module, 2)
    program = update_program(start, UpdateWire(wire))
    sent = Executor(program).run([start, end])
    (specs,), (tensors,) = output_specs(program), to_lists_of_bytes(sent)
    data = pack(specs, tensors)
    assert unpack(specs, data) == tensors
    assert len(data) / sum(p.numel() for p in start) < bar


@pytest.mark.gate_takes(2)
@pytest.mark.parametrize("wire", list(UpdateWire))
def test_a_merge_reads_what_an_update_program_writes(wire: UpdateWire) -> None:
    shapes = random_list(0)
    (written,) = output_specs(update_program(shapes, wire))
    assert input_specs(merge_program(shapes, 2, MergeRule(limit=1.0), wire))[2:4] == [written, written]
