"""What the fuzzer draws: well-formed programs of all families, the same for a seed, and states that are hostile."""

from __future__ import annotations

from assay.conformance.fuzz.programs import Limits, draw
from assay.protocol.arithmetic.scalar import Op
from assay.protocol.program.encoding import encode_node
from assay.protocol.program.nodes import Const, Dot, Family, Input, Map, Output, operands
from assay.protocol.program.wellformed import is_canonical, violations
from assay.protocol.trees.tensors import MAX_RANK
from assay.protocol.types import DType

SEEDS = range(300)
CASES = [draw(seed) for seed in SEEDS]


def test_every_drawn_program_is_well_formed_and_its_state_fits() -> None:
    for case in CASES:
        assert not violations(case.program), case.seed
        for nodes, datas in zip(case.program.input_nodes, case.state, strict=True):
            assert [len(d) for d in datas] == [case.program.specs[k].nbytes for k in nodes]


def test_a_seed_draws_the_same_case_again_and_another_one_another() -> None:
    again = draw(7)
    assert (again.program, again.state) == (CASES[7].program, CASES[7].state)
    assert len({case.program.root for case in CASES}) == len(CASES)


def test_all_families_types_operations_and_ranks_are_drawn() -> None:
    nodes = [node for case in CASES for node in case.program.nodes]
    assert {node.family for node in nodes} == set(Family)
    assert {node.spec.dtype for node in nodes if isinstance(node, Map | Input | Const)} == set(DType)
    assert {code for node in nodes if isinstance(node, Map) for code in node.code[::8]} == set(Op)
    assert max(len(node.spec.dims) for node in nodes) == MAX_RANK
    assert len({(n.precision_a, n.precision_b) for n in nodes if isinstance(n, Dot)}) > 8


def test_hostile_corners_are_drawn() -> None:
    views = [(operand.view, dims) for case in CASES for node in case.program.nodes for operand, dims in operands(node)]
    empty = [v for v, dims in views if v.extremes(dims) is None]
    assert any(abs(v.offset) > 1 << 60 for v in empty)
    assert any(abs(s) > 1 << 60 for v in empty for s in v.strides)
    assert any(v.fill for v, _ in views)
    assert any(s < 0 for v, _ in views for s in v.strides)
    assert any(0 in node.spec.dims for case in CASES for node in case.program.nodes)
    assert any(case.program.is_iterable() for case in CASES)
    odd = [
        (case, k)
        for case in CASES
        for nodes, datas in zip(case.program.input_nodes, case.state, strict=True)
        for k, data in zip(nodes, datas, strict=True)
        if not is_canonical(case.program.specs[k].dtype, data)
    ]
    assert {case.program.specs[k].dtype for case, k in odd} == {DType.F32, DType.BOOL}
    passed = [k for case, k in odd for n in case.program.nodes if isinstance(n, Output) and n.node == k]
    assert len(passed) > 20, "odd slots that go straight to an output"


def test_limits_bound_what_is_drawn() -> None:
    small = [draw(seed, Limits(nodes=2, elements=16, terms=4)) for seed in range(50)]
    assert max(len(case.program.nodes) for case in small) < max(len(case.program.nodes) for case in CASES)
    assert all(len(encode_node(node)) <= 8192 for case in small for node in case.program.nodes)
