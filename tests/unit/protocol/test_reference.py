"""The reference executor: equal to the element rule on every element, and close to ordinary arithmetic."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.protocol.arithmetic import words
from assay.protocol.arithmetic.philox import random_word
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.errors import InvariantError
from assay.protocol.program import leaf
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.leaf import Read
from assay.protocol.program.nodes import Const, Input, Max, Operand, Output
from assay.protocol.program.program import Program
from assay.protocol.program.reference import ReferenceExecutor, load
from assay.protocol.program.views import View, fill_bits
from assay.protocol.trees.tensors import TensorSizeError, TensorSpec
from assay.protocol.types import DType
from tests.harness.programs import (
    Example,
    all_examples,
    counting_training,
    every_family,
    i32_bytes,
    mlp_step,
    round_scalars,
)

F32, I32 = DType.F32, DType.I32


def floats(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<f4").astype(np.float64)


def check_against_the_element_rule(program: Program, values: tuple[bytes, ...], limit: int, but: int = -1) -> int:
    """Compares elements of every computed node except `but`, evenly spread; returns how many."""
    loaded = [load(spec.dtype, data) for spec, data in zip(program.specs, values, strict=True)]

    def value_of(read: Read) -> int:
        return read.fill if read.is_fill else loaded[read.node][read.address]

    compared = 0
    for k, node in enumerate(program.nodes):
        if k == but or isinstance(node, Input | Const | Output):
            continue
        raw = words.from_bytes(node.spec.dtype, values[k])
        for o in range(0, node.spec.numel, max(node.spec.numel // limit, 1)):
            assert leaf.element(node, o, value_of) == raw[o], f"node {k} ({node.family.name}), element {o}"
            compared += 1
    return compared


@pytest.mark.parametrize("example", all_examples(), ids=lambda e: e.name)
def test_the_executor_computes_the_element_rule(example: Example) -> None:
    values = ReferenceExecutor(example.program).run(example.state)
    assert check_against_the_element_rule(example.program, values, 12) > 0


dtypes = st.sampled_from([F32, I32])
bits = st.sampled_from([0, 1, 0x3F800000, 0x80000000, 0x7F800000, 0xFFC00001, 0x7F7FFFFF, 0x00800000]) | st.integers(
    0, (1 << 32) - 1
)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_the_executor_computes_the_element_rule_on_any_bits_and_windows(data: st.DataObject) -> None:
    m, n, k = (data.draw(st.integers(1, 4)) for _ in range(3))
    specs = [TensorSpec(F32, (m, k)), TensorSpec(F32, (n, k)), TensorSpec(I32, (m, k)), TensorSpec(I32, (2,))]
    b = ProgramBuilder([specs])
    x, y, index, pair = (b.input(0, i) for i in range(4))
    before, after = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))
    fill = fill_bits(F32, data.draw(bits))
    wide = x.pad(1, before, after, fill)
    wide = wide.slice(1, wide.dims[1] - 1, -1, -1)
    padded = y.pad(1, 0, before + after, fill)
    precisions = data.draw(st.integers(2, 22)), data.draw(st.integers(2, 22))
    product = b.matmul(wide, padded, *precisions)
    b.rank(wide)
    b.max(wide.permute(1, 0), 1)
    b.max(index, 2)
    total = b.sum(padded, 2)
    b.gather(y.permute(1, 0), index.unsqueeze(2), (m, k, n))
    b.scatter_sum(
        x.permute(1, 0).unsqueeze(0),
        index.permute(1, 0).unsqueeze(0),
        index.slice(0, 0, 1).slice(1, 0, 1),
        (3, k),
        (m,),
    )
    b.random(2, pair, pair, (5,))
    s = ScalarBuilder([F32, F32, I32])
    b.map(
        s.build(s.scale2(s.add(s.operand(0), s.operand(1)), s.operand(2))),
        [product, total, pair.slice(0, 0, 1)],
        (m, n),
    )
    program = b.build([[product]])
    words_of = st.integers(-3, 5) | bits
    state = [
        [
            words.to_bytes(s.dtype, [data.draw(bits if s.dtype is F32 else words_of) for _ in range(s.numel)])
            for s in specs
        ]
    ]
    values = ReferenceExecutor(program).run(state)
    assert check_against_the_element_rule(program, values, 1000) > 0


def test_addresses_outside_an_ill_formed_source_read_zero() -> None:
    b = ProgramBuilder([[TensorSpec(I32, (3,))]])
    node = Max(TensorSpec(I32, (5,)), (1,), Operand(0, View(-1, (1, 0), (0, 0), (5, 1))))
    program = Program((*b.nodes, node), (1,), ())
    assert words.from_bytes(I32, ReferenceExecutor(program).run([[i32_bytes(7, 8, 9)]])[1]) == [0, 7, 8, 9, 0]


@pytest.mark.parametrize(("precision", "bound"), [(8, 2e-2), (14, 4e-4), (22, 3e-6)])
def test_a_matmul_is_close_to_float64(precision: int, bound: float) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((6, 40)), rng.standard_normal((5, 40))
    specs = [TensorSpec(F32, (6, 40)), TensorSpec(F32, (5, 40))]
    b = ProgramBuilder([specs])
    program = b.build([[b.matmul(b.input(0, 0), b.input(0, 1), precision, precision)]])
    values = ReferenceExecutor(program).run([[v.astype("<f4").tobytes() for v in (x, y)]])
    expected = x @ y.T
    found = floats(values[-1]).reshape(6, 5)
    assert np.linalg.norm(found - expected) / np.linalg.norm(expected) < bound


def test_the_mlp_step_is_the_step_that_float64_takes() -> None:
    example = mlp_step(precision=22)
    values = ReferenceExecutor(example.program).run(example.state)
    after = [[values[k] for k in nodes] for nodes in example.program.output_nodes]
    w1, b1, w2, b2 = (
        floats(p).reshape(s) for p, s in zip(example.state[0], [(16, 8), (16,), (1, 16), (1,)], strict=True)
    )
    data = np.frombuffer(example.state[2][-1], np.uint8)
    scalars = round_scalars(example.state[2][-1])
    key, step = words.from_bytes(I32, example.state[2][2]), words.from_bytes(I32, example.state[2][0])
    first, span = scalars.shard * scalars.shard_length, scalars.shard_length - 9
    drawn = [random_word(i, 1, (step[0], step[1]), (key[0], key[1])) for i in range(4)]
    starts = [first + (word * span >> 32) for word in drawn]
    rows = np.stack([data[s : s + 9] for s in starts]) / 256
    x, t = rows[:, :8], rows[:, 8:]
    before = x @ w1.T + b1
    h = np.maximum(before, 0)
    dy = (h @ w2.T + b2 - t) / 4
    dh = dy @ w2 * (before > 0)
    gradients = [dh.T @ x, dh.sum(0), dy.T @ h, dy.sum(0)]
    for i, (p, g) in enumerate(zip((w1, b1, w2, b2), gradients, strict=True)):
        assert np.allclose(floats(after[1][i]).reshape(g.shape), g, rtol=1e-4, atol=1e-6)
        assert np.allclose(floats(after[0][i]).reshape(g.shape), p - 0.05 * g, rtol=1e-5, atol=1e-6)
    assert words.from_bytes(I32, after[2][0]) == [1, 0]
    assert after[2][1:] == list(example.state[2][1:])


def test_training_lowers_the_loss() -> None:
    example = mlp_step()
    trace = example.trace(steps=30)
    _, _, error = [k for k, spec in enumerate(example.program.specs) if spec.dims == (4, 1)]

    def loss(t: int) -> float:
        return float((floats(trace.node_bytes(t, error)) ** 2).mean())

    assert np.mean([loss(t) for t in range(26, 31)]) < np.mean([loss(t) for t in range(1, 6)])


def test_the_step_counter_carries_into_its_high_word() -> None:
    example = counting_training()
    scalars = [i32_bytes(-1, 4), *example.state[2][1:]]
    values = ReferenceExecutor(example.program).run([*example.state[:2], scalars])
    assert values[example.program.output_nodes[2][0]] == i32_bytes(0, 5)


def test_an_altered_value_is_what_later_nodes_read() -> None:
    example = every_family()
    program = example.program
    honest = ReferenceExecutor(program).run(example.state)
    k = sum(program.inputs) + 3

    def alter(node: int, data: bytes) -> bytes:
        return bytes(len(data)) if node == k else data

    altered = ReferenceExecutor(program).run(example.state, alter)
    assert altered[:k] == honest[:k]
    assert altered[k] == bytes(len(honest[k]))
    assert altered[k + 1 :] != honest[k + 1 :]
    assert check_against_the_element_rule(program, altered, 3, but=k) > 0


def test_values_of_another_size_or_layout_are_refused() -> None:
    example = counting_training()
    executor = ReferenceExecutor(example.program)
    with pytest.raises(TensorSizeError):
        executor.run([[b"\0" * 60], *example.state[1:]])
    with pytest.raises(InvariantError):
        executor.run(example.state[:2])


def test_tampered_bits_are_read_as_a_reader_reads_them() -> None:
    b = ProgramBuilder([[TensorSpec(F32, (2,))]])
    program = b.build([[b.max(b.input(0, 0), 1)]])
    payload = struct.pack("<2I", 0xFFC12345, 0)
    assert ReferenceExecutor(program).run([[payload]])[-1] == struct.pack("<I", 0x7FC00000)
