"""Update and outer programs for any parameters, built by hand: what capture makes of `training.outer`, for tests."""

from __future__ import annotations

from collections.abc import Sequence

from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import SEATS, DType
from tests.harness.programs import binary

F32 = DType.F32


def update_program(specs: Sequence[TensorSpec]) -> Program:
    """update = start - end."""
    b = ProgramBuilder([list(specs), list(specs)])
    subtract = binary((F32, F32), "sub")
    return b.build([[b.map(subtract, [b.input(0, i), b.input(1, i)], s.dims) for i, s in enumerate(specs)]])


def outer_program(specs: Sequence[TensorSpec]) -> Program:
    """The mean of the included updates, and a Nesterov step on it (0.7 / 0.9); nobody included: nothing changes."""
    b = ProgramBuilder([list(specs)] * (2 + SEATS) + [[TensorSpec(F32, (SEATS,))]])
    mask = b.input(2 + SEATS, 0)
    weights = [mask.select(0, k).unsqueeze(0) for k in range(SEATS)]
    count = b.map(binary((F32, F32), "add"), [_sum(b, weights[:4], (1,)), _sum(b, weights[4:], (1,))], (1,))
    s = ScalarBuilder([F32])
    share = b.map(s.build(s.div(s.f32(1.0), s.maximum(s.operand(0), s.f32(1.0)))), [count], (1,))
    parameters, momentum = [], []
    for i, spec in enumerate(specs):
        updates = [b.input(2 + k, i) for k in range(SEATS)]
        halves = [_sum(b, updates[:4], spec.dims), _sum(b, updates[4:], spec.dims)]
        total = b.map(binary((F32, F32), "add"), halves, spec.dims)
        flat_share, flat_count = _scalar(share, spec.dims), _scalar(count, spec.dims)
        mean = b.map(binary((F32, F32), "mul"), [total, flat_share], spec.dims)
        s = ScalarBuilder([F32, F32, F32])
        velocity = s.add(s.mul(s.operand(0), s.f32(0.9)), s.operand(1))
        kept = s.select(s.lt(s.f32(0.0), s.operand(2)), velocity, s.operand(0))
        new_momentum = b.map(s.build(kept), [b.input(1, i), mean, flat_count], spec.dims)
        s = ScalarBuilder([F32, F32, F32, F32])
        step = s.mul(s.add(s.operand(1), s.mul(s.operand(2), s.f32(0.9))), s.f32(0.7))
        moved = s.select(s.lt(s.f32(0.0), s.operand(3)), s.sub(s.operand(0), step), s.operand(0))
        reads = [b.input(0, i), mean, new_momentum, flat_count]
        parameters.append(b.map(s.build(moved), reads, spec.dims))
        momentum.append(new_momentum)
    return b.build([parameters, momentum])


def _sum(b: ProgramBuilder, parts: Sequence[Ref], dims: tuple[int, ...]) -> Ref:
    s = ScalarBuilder([F32] * len(parts))
    total = s.operand(0)
    for k in range(1, len(parts)):
        total = s.add(total, s.operand(k))
    return b.map(s.build(total), parts, dims)


def _scalar(ref: Ref, dims: tuple[int, ...]) -> Ref:
    """An f32[1] read everywhere over some dims."""
    while len(ref.dims) > len(dims):
        ref = ref.select(0, 0)
    while len(ref.dims) < len(dims):
        ref = ref.unsqueeze(0)
    return ref.expand(*dims)
