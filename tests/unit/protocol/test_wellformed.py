"""Well-formedness: the examples obey every rule, and every single fault is named."""

from __future__ import annotations

import dataclasses
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.protocol.errors import InvariantError
from assay.protocol.program import families
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import (
    Const,
    Dot,
    Family,
    Gather,
    Input,
    Map,
    Max,
    Node,
    Operand,
    Output,
    Random,
    Rank,
    RowExp,
    ScatterSum,
    Sum,
    operands,
    reads,
)
from assay.protocol.program.program import Program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.program.views import View
from assay.protocol.program.wellformed import Rule, is_canonical, is_well_formed, violations
from assay.protocol.trees.tensors import TensorSpec, leaf_digests, tensor_root
from assay.protocol.types import Digest, DType
from tests.harness.programs import all_examples, every_family, f32_bytes, unary

EXAMPLE = every_family()
PROGRAM = EXAMPLE.program


def with_node(program: Program, k: int, node: Node) -> Program:
    """The program with one node replaced."""
    return replace(program, nodes=(*program.nodes[:k], node, *program.nodes[k + 1 :]))


def rules(program: Program, node: int | None = None) -> set[Rule]:
    """The rules that a program breaks (at one node)."""
    return {v.rule for v in violations(program) if node is None or v.node == node}


def first(family: Family) -> tuple[int, Node]:
    """The first node of a family in the example."""
    k = EXAMPLE.nodes_of(family)[0]
    return k, PROGRAM.nodes[k]


@pytest.mark.parametrize("which", all_examples(), ids=lambda e: e.name)
def test_the_examples_are_well_formed(which: object) -> None:
    assert violations(which.program) == ()  # type: ignore[attr-defined]


def test_every_family_is_in_the_example() -> None:
    assert {node.family for node in PROGRAM.nodes} == set(Family)


def view_of(node: Node) -> Operand:
    return operands(node)[0][0]


def changed_view(family: Family, **changes: object) -> Program:
    """The example with the first operand of the first node of a family changed."""
    k, node = first(family)
    operand = view_of(node)
    other = replace(operand, view=replace(operand.view, **changes))
    names = [f.name for f in dataclasses.fields(node) if getattr(node, f.name) is operand]
    if names:
        return with_node(PROGRAM, k, replace(node, **{names[0]: other}))
    assert isinstance(node, Map)
    return with_node(PROGRAM, k, replace(node, operands=(other, *node.operands[1:])))


def test_view_faults_are_named() -> None:
    _, node = first(Family.DOT)
    view = view_of(node).view
    rank = view.rank
    assert rules(changed_view(Family.DOT, offset=-1)) == {Rule.ADDRESS}
    assert rules(changed_view(Family.DOT, offset=view.offset + 1)) == {Rule.ADDRESS}
    assert rules(changed_view(Family.DOT, strides=tuple(s + 1 for s in view.strides))) == {Rule.ADDRESS}
    assert rules(changed_view(Family.DOT, hi=tuple(h + 1 for h in view.hi))) == {Rule.BOUNDS}
    assert rules(changed_view(Family.DOT, lo=(-1,) * rank)) == {Rule.BOUNDS}
    assert rules(changed_view(Family.DOT, lo=view.hi, hi=(0,) * rank)) == {Rule.BOUNDS}
    assert rules(changed_view(Family.DOT, fill=0x7FC00001)) == {Rule.FILL}
    assert rules(changed_view(Family.DOT, fill=1 << 32)) == {Rule.FILL}
    assert rules(changed_view(Family.DOT, fill=1 << 64)) == {Rule.ENCODING}
    assert rules(changed_view(Family.DOT, strides=view.strides[1:])) == {Rule.ENCODING}
    assert rules(changed_view(Family.DOT, offset=1 << 63)) == {Rule.ENCODING}
    # An index space that the bounds exclude altogether reads no address, wherever it would point.
    assert rules(changed_view(Family.DOT, lo=(0,) * rank, hi=(0,) * rank, offset=-5)) == set()


NODE_FAULTS: list[tuple[Family, Callable[[Node], Node], Rule]] = [
    (Family.DOT, lambda n: replace(n, precision_a=1), Rule.ENCODING),
    (Family.DOT, lambda n: replace(n, precision_a=31, precision_b=31), Rule.TERMS),
    (Family.DOT, lambda n: replace(n, spec=TensorSpec(DType.I32, n.spec.dims)), Rule.DTYPE),
    (Family.DOT, lambda n: replace(n, exponent_a=n.exponent_b, b=replace(n.b, node=n.exponent_a.node)), Rule.DTYPE),
    (Family.SUM, lambda n: replace(n, spec=TensorSpec(DType.F32, ())), Rule.ENCODING),
    (Family.SUM, lambda n: replace(n, spec=TensorSpec(DType.F32, (n.spec.dims[0] - 1,))), Rule.BOUNDS),
    (Family.SUM, lambda n: replace(n, red=(1 << 33,)), Rule.TERMS),
    (Family.SUM, lambda n: replace(n, red=(1 << 41,)), Rule.ENCODING),
    (Family.ROWEXP, lambda n: replace(n, red=(0,)), Rule.TERMS),
    (Family.ROWEXP, lambda n: replace(n, spec=TensorSpec(DType.F32, n.spec.dims)), Rule.DTYPE),
    (Family.MAX, lambda n: replace(n, red=(0,)), Rule.TERMS),
    (Family.MAX, lambda n: replace(n, spec=TensorSpec(DType.I32, n.spec.dims)), Rule.DTYPE),
    (Family.MAX, lambda n: replace(n, spec=TensorSpec(DType.U8, n.spec.dims)), Rule.DTYPE),
    (Family.GATHER, lambda n: replace(n, spec=TensorSpec(DType.F32, n.spec.dims)), Rule.DTYPE),
    (Family.GATHER, lambda n: replace(n, size=n.size - 1), Rule.BOUNDS),
    (Family.GATHER, lambda n: replace(n, index=replace(n.index, node=0)), Rule.DTYPE),
    (Family.SCATTER_SUM, lambda n: replace(n, index=replace(n.index, node=0)), Rule.DTYPE),
    (Family.SCATTER_SUM, lambda n: replace(n, spec=TensorSpec(DType.I32, n.spec.dims)), Rule.DTYPE),
    (Family.RANK, lambda n: replace(n, red=(n.red[0] - 1,)), Rule.SHAPE),
    (Family.RANK, lambda n: replace(n, spec=TensorSpec(DType.F32, n.spec.dims)), Rule.DTYPE),
    (Family.RANDOM, lambda n: replace(n, key=0), Rule.SHAPE),
    (Family.RANDOM, lambda n: replace(n, step=0), Rule.SHAPE),
    (Family.RANDOM, lambda n: replace(n, spec=TensorSpec(DType.I32, (1 << 35,))), Rule.SHAPE),
    (Family.RANDOM, lambda n: replace(n, spec=TensorSpec(DType.F32, n.spec.dims)), Rule.DTYPE),
    (Family.MAP, lambda n: replace(n, code=n.code[:-1]), Rule.ENCODING),
    (Family.MAP, lambda n: replace(n, code=b"\xff" + n.code[1:]), Rule.SCALAR),
    (Family.MAP, lambda n: replace(n, operands=()), Rule.SCALAR),
    (Family.MAP, lambda n: replace(n, spec=TensorSpec(DType.F32, n.spec.dims)), Rule.DTYPE),
    (Family.CONST, lambda n: replace(n, root=Digest(bytes(32))), Rule.CONST),
    (Family.CONST, lambda n: replace(n, root=Digest(bytes(31))), Rule.ENCODING),
    (Family.CONST, lambda n: replace(n, spec=TensorSpec(DType.U16, n.spec.dims)), Rule.CONST),
    (Family.INPUT, lambda n: replace(n, index=1), Rule.LAYOUT),
    (Family.INPUT, lambda n: replace(n, list_index=1), Rule.LAYOUT),
    (Family.OUTPUT, lambda n: replace(n, index=9), Rule.LAYOUT),
    (Family.OUTPUT, lambda n: replace(n, node=0, spec=PROGRAM.specs[1]), Rule.SHAPE),
]


@pytest.mark.parametrize(("family", "change", "rule"), NODE_FAULTS, ids=lambda x: getattr(x, "name", None))
def test_node_faults_are_named_where_they_stand(family: Family, change: Callable[[Node], Node], rule: Rule) -> None:
    k, node = first(family)
    assert rule in rules(with_node(PROGRAM, k, change(node)), k)


def test_a_node_reads_earlier_nodes_only() -> None:
    for k, node in enumerate(PROGRAM.nodes):
        for later in (k, k + 1, (1 << 32) - 1):
            match node:
                case Output():
                    changed: Node = replace(node, node=later)
                case Random():
                    changed = replace(node, key=later)
                case Map():
                    changed = replace(node, operands=(replace(node.operands[0], node=later), *node.operands[1:]))
                case Gather():
                    changed = replace(node, table=replace(node.table, node=later))
                case Dot():
                    changed = replace(node, a=replace(node.a, node=later))
                case RowExp() | Max() | Rank() | Sum() | ScatterSum():
                    changed = replace(node, x=replace(node.x, node=later))
                case Input() | Const():
                    continue
            assert rules(with_node(PROGRAM, k, changed), k) == {Rule.ORDER}


def test_faults_of_the_layout_are_named() -> None:
    nodes = PROGRAM.nodes
    assert rules(replace(PROGRAM, inputs=(*PROGRAM.inputs, 1))) == {Rule.LAYOUT}
    assert rules(replace(PROGRAM, inputs=(1, 1, *PROGRAM.inputs[1:]))) == {Rule.LAYOUT}
    assert rules(replace(PROGRAM, outputs=PROGRAM.outputs[:-1])) >= {Rule.LAYOUT}
    assert rules(replace(PROGRAM, inputs=(len(nodes),))) == {Rule.LISTS}
    assert rules(replace(PROGRAM, inputs=(-1,))) == {Rule.LISTS}
    assert rules(replace(PROGRAM, outputs=(0,) * 256)) == {Rule.LISTS}
    swapped = replace(PROGRAM, nodes=(nodes[1], nodes[0], *nodes[2:]))
    assert rules(swapped, 0) == rules(swapped, 1) == {Rule.LAYOUT}
    k = sum(PROGRAM.inputs)
    assert Rule.LAYOUT in rules(with_node(PROGRAM, k, nodes[0]), k)
    assert rules(Program((), (), ())) == {Rule.NODE_COUNT}
    assert rules(Program((nodes[k + 1],) * ((1 << 20) + 1), (), ())) == {Rule.NODE_COUNT}


def test_constants_are_there_and_canonical() -> None:
    assert rules(replace(PROGRAM, consts={})) == {Rule.CONST}
    assert is_canonical(DType.F32, f32_bytes(1.0, float("inf")) + b"\0\0\xc0\x7f")
    assert not is_canonical(DType.F32, b"\1\0\xc0\x7f")
    assert not is_canonical(DType.F32, b"\0\0\xc0\xff")
    assert is_canonical(DType.BOOL, b"\0\1")
    assert not is_canonical(DType.BOOL, b"\0\2\1")


def test_a_constant_is_hashed_once_however_many_nodes_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []

    def counted(spec: TensorSpec, data: bytes) -> list[Digest]:
        hashed.append(len(data))
        return leaf_digests(spec, data)

    monkeypatch.setattr(families, "leaf_digests", counted)
    data = f32_bytes(*range(512))
    flat, square = TensorSpec(DType.F32, (512,)), TensorSpec(DType.F32, (2, 256))
    root = tensor_root(flat, data)
    nodes = (*[Const(flat, root)] * 20, *[Const(square, root)] * 20, Const(TensorSpec(DType.I32, (512,)), root))
    found = violations(Program(nodes, (), (), {root: data}))
    assert [(v.node, v.number) for v in found] == [(k, "WF-24") for k in range(20, 41)]
    assert hashed == [2048]


def test_a_large_constant_is_looked_through_in_little_memory() -> None:
    data = f32_bytes(1.0) * (1 << 18)
    tracemalloc.start()
    try:
        assert is_canonical(DType.F32, data)
        assert not is_canonical(DType.F32, data + b"\1\0\xc0\x7f")
        assert tracemalloc.get_traced_memory()[1] < 4 * len(data)
    finally:
        tracemalloc.stop()


def test_bounds_of_exact_sums_are_sharp() -> None:
    def program(p_a: int, p_b: int, terms: int) -> Program:
        b = ProgramBuilder([[TensorSpec(DType.F32, ()), TensorSpec(DType.I32, ())]])
        x, e = b.input(0, 0), b.input(0, 1)
        return b.build([[b.dot(x, x, e, e, (), (terms,), p_a, p_b)]])

    assert is_well_formed(program(31, 31, 4))
    with pytest.raises(InvariantError, match="above 62 bits"):
        program(31, 31, 5)
    assert is_well_formed(program(22, 15, 1 << 27))
    with pytest.raises(InvariantError, match="above 62 bits"):
        program(22, 15, (1 << 27) + 1)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_any_changed_field_is_another_program_and_never_an_exception(data: st.DataObject) -> None:
    k = data.draw(st.integers(0, len(PROGRAM.nodes) - 1))
    node = PROGRAM.nodes[k]
    integers = st.integers(-(1 << 65), 1 << 65) | st.integers(-3, 70)

    def change(value: object) -> object:
        match value:
            case DType():
                return data.draw(st.sampled_from(list(DType)))
            case int():
                return data.draw(integers)
            case bytes():
                return data.draw(st.binary(max_size=40) | st.just(value[:-8]))
            case TensorSpec() | Operand() | View():
                field = data.draw(st.sampled_from([f.name for f in dataclasses.fields(value)]))
                return replace(value, **{field: change(getattr(value, field))})
            case tuple() if value:
                at = data.draw(st.integers(0, len(value) - 1))
                return (*value[:at], change(value[at]), *value[at + data.draw(st.integers(0, 1)) :])
            case _:
                return data.draw(st.lists(integers, max_size=9).map(tuple))

    field = data.draw(st.sampled_from([f.name for f in dataclasses.fields(node)]))
    changed = replace(node, **{field: change(getattr(node, field))})
    program = with_node(PROGRAM, k, changed)
    found = violations(program)
    if changed == node:
        assert not found
    elif not found:
        # What is accepted runs.
        assert program.root != PROGRAM.root
        if changed.spec.numel * getattr(changed, "terms", 1) < 100_000:
            state = [[bytes(program.specs[j].nbytes) for j in slots] for slots in program.input_nodes]
            ReferenceExecutor(program).run(state)


def test_reads_and_operands_agree() -> None:
    for node in PROGRAM.nodes:
        if not isinstance(node, Random | Output):
            assert reads(node) == tuple(operand.node for operand, _ in operands(node))


def test_a_builder_refuses_an_ill_formed_program_and_names_the_fault() -> None:
    b = ProgramBuilder([[TensorSpec(DType.I32, (3,))]])
    wrong = b.map(unary(DType.F32, "neg"), [b.input(0, 0)], (3,))
    with pytest.raises(InvariantError, match="node 1: scalar: instruction 0: F32_NEG takes"):
        b.build([[wrong]])
    with pytest.raises(InvariantError, match="window"):
        b.build([[b.input(0, 0).slice(0, 0, 2)]])


def test_one_code_is_judged_by_the_types_that_it_reads_each_time() -> None:
    b = ProgramBuilder([[TensorSpec(DType.F32, (3,)), TensorSpec(DType.I32, (3,))]])
    code = unary(DType.F32, "neg")
    right, wrong, again = (b.map(code, [b.input(0, k)], (3,)) for k in (0, 1, 1))
    for _ in range(2):
        with pytest.raises(InvariantError) as caught:
            b.build([[right, wrong, again]])
        assert "node 2" not in str(caught.value)
        assert all(f"node {k}: scalar: instruction 0: F32_NEG takes" in str(caught.value) for k in (3, 4))
