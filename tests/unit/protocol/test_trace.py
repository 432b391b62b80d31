"""Traces: every commitment opens, and a lie begins in exactly one place."""

from __future__ import annotations

import pytest

from assay.protocol.digests import ZERO
from assay.protocol.errors import InvariantError
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Family, Input, Output
from assay.protocol.program.trace import ReferenceTrace, Trace, flip_bit
from assay.protocol.trees import prefix, state
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import DType
from tests.harness.programs import Example, all_examples, counting, every_family, unary


def first_difference(a: Trace, b: Trace, t: int) -> int:
    """The first k at which the prefix roots of a step differ."""
    return next(k for k in range(len(a.program.nodes) + 1) if a.prefix_root(t, k) != b.prefix_root(t, k))


@pytest.mark.parametrize("example", all_examples(), ids=lambda e: e.name)
def test_everything_that_a_trace_commits_to_opens(example: Example) -> None:
    trace: Trace = example.trace(steps=2)
    program = example.program
    n = len(program.nodes)
    assert trace.steps == 2
    for t in (1, 2):
        assert trace.prefix_root(t, 0) == prefix.EMPTY
        for k, node in enumerate(program.nodes):
            root = trace.node_root(t, k)
            assert tensor_root(node.spec, trace.node_bytes(t, k)) == root
            path = trace.prefix_path(t, k, k)
            assert prefix.verify_append(trace.prefix_root(t, k), trace.prefix_root(t, k + 1), root, k, path)
            assert prefix.verify_path(trace.prefix_root(t, n), root, k, trace.prefix_path(t, n, k))
            if isinstance(node, Input):
                assert trace.slot_roots(t - 1, node.list_index)[node.index] == root
            if isinstance(node, Output):
                assert trace.slot_roots(t, node.list_index)[node.index] == root == trace.node_root(t, node.node)
    for t in range(3):
        assert state.state_root([trace.slot_roots(t, i) for i in range(len(program.outputs))]) == trace.state_root(t)
        assert trace.list_roots(t) == state.list_roots([trace.slot_roots(t, i) for i in range(len(program.outputs))])


@pytest.mark.parametrize("family", list(Family), ids=lambda f: f.name)
def test_a_lie_in_a_node_begins_there_and_is_consistent_afterwards(family: Family) -> None:
    example = every_family()
    honest = example.trace(steps=3)
    for k in example.nodes_of(family)[:2]:
        liar = example.trace(steps=3, tamper=flip_bit(2, k))
        assert [liar.state_root(t) == honest.state_root(t) for t in (0, 1)] == [True, True]
        assert first_difference(honest, liar, 2) == k + 1
        assert liar.node_bytes(2, k) != honest.node_bytes(2, k)
        for later in range(k + 1, len(example.program.nodes)):
            node = example.program.nodes[later]
            if isinstance(node, Output):
                # Even the lie ends in the state that its own trace leads to.
                assert liar.slot_roots(2, node.list_index)[node.index] == liar.node_root(2, later)


def test_a_lie_in_a_slot_stands_behind_the_outputs() -> None:
    example = counting(10)

    def tamper(t: int, number: int, index: int, data: bytes) -> bytes:
        return bytes(len(data)) if t == 1 else data

    honest, liar = example.trace(steps=2), example.trace(steps=2, tamper_slot=tamper)
    n = len(example.program.nodes)
    assert liar.prefix_root(1, n) == honest.prefix_root(1, n)
    assert liar.state_root(1) != honest.state_root(1)
    assert liar.node_bytes(2, 0) == liar.slot_bytes(1, 0, 0) == bytes(40)
    assert liar.slot_roots(1, 0)[0] != liar.node_root(1, n - 1)


def test_a_program_whose_y_is_no_x_runs_once_only() -> None:
    b = ProgramBuilder([[TensorSpec(DType.F32, (4,))]])
    program = b.build([[b.sum(b.input(0, 0), 1)]])
    trace = ReferenceTrace(program, [[bytes(16)]])
    assert len(trace.slot_roots(1, 0)) == 1
    with pytest.raises(InvariantError):
        ReferenceTrace(program, [[bytes(16)]], steps=2)


def test_a_trace_does_not_depend_on_what_ran_before() -> None:
    example = every_family()
    roots = [example.trace(steps=2).state_root(2) for _ in range(2)]
    example.trace(steps=1, tamper=flip_bit(1, 12, 3))
    assert {*roots, example.trace(steps=2).state_root(2)} == {roots[0]}
    assert roots[0] != ZERO


@pytest.mark.parametrize(
    "end", [TensorSpec(DType.I32, (4,)), TensorSpec(DType.F32, (4, 1)), TensorSpec(DType.F32, (4,))]
)
def test_a_program_can_be_repeated_only_if_every_slot_keeps_its_type_and_dims(end: TensorSpec) -> None:
    start = TensorSpec(DType.F32, (4,))
    b = ProgramBuilder([[start]])
    x = b.input(0, 0)
    last = (
        b.rowexp(x.unsqueeze(1), 1)
        if end.dtype is DType.I32
        else b.map(unary(DType.F32, "neg"), [x.split(0, *end.dims)], end.dims)
    )
    assert b.build([[last]]).is_iterable() == (end == start)
