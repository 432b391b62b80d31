"""The witnessed step: what it samples, that its accumulator is what the rules say, and that no other program passes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.conformance.witness import accumulators, derivations
from assay.protocol.arithmetic.philox import random_word
from assay.protocol.arithmetic.scalar import INSTRUCTION_SIZE
from assay.protocol.arithmetic.words import from_bytes
from assay.protocol.program.nodes import Const, Dot, Gather, Map, Node, Random, Sum
from assay.protocol.program.program import Program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.program.trace import ReferenceTrace
from assay.protocol.program.views import View
from assay.protocol.program.wellformed import is_well_formed
from assay.protocol.program.witness import STREAM, WrongWitness, check_witness, witness_lists, witnessed_program
from assay.protocol.program.witness_rows import LANES, MOST_ROWS, NoWitness, sampled_products, witness_rows
from assay.protocol.rounds.duty_draws import witness_key, witnessed_state
from assay.protocol.rounds.duty_types import DutyKind
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.trees.state import ListBytes, Scalar
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Digest, DType
from tests.harness.programs import Example, every_family, i32_bytes, mlp_step, witnessed_mlp
from tools import witness_vectors
from tools.check_docs import rules as rules_of_the_text

M32 = 0xFFFFFFFF
PLAIN, WITNESSED = mlp_step().program, witnessed_mlp().program
EXAMPLES = {example.name: example for example in (mlp_step(), every_family())}
KEYS = st.tuples(st.integers(0, M32), st.integers(0, M32))


def after(example: Example, key: tuple[int, int], steps: int = 1) -> ListBytes:
    """The lists of Y of the witnessed program after some steps."""
    program, state = witnessed_program(example.program), (*example.state, *witness_lists(key))
    for _ in range(steps):
        values = ReferenceExecutor(program).run(state)
        state = tuple(tuple(values[k] for k in part) for part in program.output_nodes)
    return state


# --- the rules, in other words


def mixed(x: int) -> int:
    """The permutation of the rules."""
    x ^= x >> 16
    x = x * 0x7FEB352D & M32
    x ^= x >> 15
    x = x * 0x846CA68B & M32
    return x ^ x >> 16


def expected(example: Example, key: tuple[int, int], steps: int) -> bytes:
    """The accumulator from the plain program's own values."""
    plain, state = example.program, example.state
    lanes = [0] * LANES
    for _ in range(steps):
        values = ReferenceExecutor(plain).run(state)
        low, high = (w & M32 for w in from_bytes(DType.I32, state[2][Scalar.STEP]))
        total = [0] * LANES
        for r, row in enumerate(witness_rows(plain)):
            words = from_bytes(DType.F32, values[row.node])
            for lane in range(LANES):
                drawn = random_word(LANES * r + lane, STREAM, (low, high), key)
                total[lane] += mixed(words[row.start + (drawn * row.size >> 32)] ^ drawn)
        lanes = [mixed(a + t & M32) for a, t in zip(lanes, total, strict=True)]
        state = tuple(tuple(values[k] for k in part) for part in plain.output_nodes)
    return i32_bytes(*lanes)


@pytest.mark.parametrize("name", EXAMPLES)
@given(key=KEYS)
@settings(max_examples=10, deadline=None)
def test_the_accumulator_is_what_the_rules_say_of_the_plain_values(name: str, key: tuple[int, int]) -> None:
    assert after(EXAMPLES[name], key, 3)[4][0] == expected(EXAMPLES[name], key, 3)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_witnessed_step_trains_as_the_plain_one_and_keeps_its_key(name: str) -> None:
    example = EXAMPLES[name]
    values = ReferenceExecutor(example.program).run(example.state)
    plain = tuple(tuple(values[k] for k in part) for part in example.program.output_nodes)
    found = after(example, (5, 6))
    assert found[:3] == plain
    assert found[3] == witness_lists((5, 6))[0]
    assert witnessed_program(example.program).is_iterable()


# --- what is sampled


def test_every_product_of_the_training_is_sampled_and_64_words_at_least() -> None:
    rows = witness_rows(PLAIN)
    products = [k for k, node in enumerate(PLAIN.nodes) if isinstance(node, Dot)]
    assert sorted({row.node for row in rows}) == products
    assert len(rows) * LANES >= 64
    assert len(witness_rows(every_family().program)) == 8
    assert all((row.start, row.size) == (0, PLAIN.specs[row.node].numel) for row in rows)


def test_what_is_known_beforehand_is_not_sampled() -> None:
    plain = witness_vectors.partly_still()
    products = [k for k, node in enumerate(plain.nodes) if isinstance(node, Dot)]
    assert len(products) == 3
    assert sampled_products(plain) == (products[1],)


def test_as_many_rows_as_bytes_add_up_exactly_and_not_one_more() -> None:
    assert 255 * MOST_ROWS < 1 << 24 <= 255 * (MOST_ROWS + 1)
    small = witness_vectors.chain(8)
    k = sampled_products(small)[0]
    most = replace(small, nodes=(*small.nodes[:k], *[small.nodes[k]] * (MOST_ROWS - 8), *small.nodes[k:]))
    assert len(witness_rows(most)) == MOST_ROWS
    with pytest.raises(NoWitness, match=r"\(WT-3\)"):
        witness_rows(replace(most, nodes=(*most.nodes[: k + 1], *most.nodes[k:])))


# --- nothing computed, nothing known


SAMPLES = [k for k, node in enumerate(WITNESSED.nodes) if isinstance(node, Gather) and node.spec.dims == (LANES,)]


@given(row=st.integers(0, len(SAMPLES) - 1), lane=st.integers(0, LANES - 1), bit=st.integers(0, 31), key=KEYS)
@settings(max_examples=40, deadline=None)
def test_any_bit_of_any_sample_changes_its_word_of_the_accumulator(
    row: int, lane: int, bit: int, key: tuple[int, int]
) -> None:
    def alter(k: int, data: bytes) -> bytes:
        if k != SAMPLES[row]:
            return data
        at = 4 * lane + bit // 8
        return data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1 :]

    state = (*mlp_step().state, *witness_lists(key))
    honest, other = (ReferenceExecutor(WITNESSED).run(state, a)[-1] for a in (None, alter))
    differing = [n for n in range(LANES) if honest[4 * n : 4 * n + 4] != other[4 * n : 4 * n + 4]]
    assert differing == [lane]


@given(a=KEYS, b=KEYS)
@settings(max_examples=10, deadline=None)
def test_two_keys_have_two_accumulators(a: tuple[int, int], b: tuple[int, int]) -> None:
    if a != b:
        assert after(mlp_step(), a, 2)[4] != after(mlp_step(), b, 2)[4]


def test_calculating_in_lower_precision_gives_another_accumulator() -> None:
    coarse = mlp_step(precision=13)
    assert after(coarse, (1, 2), 4)[0] != after(mlp_step(), (1, 2), 4)[0], "else there is nothing to notice"
    assert after(coarse, (1, 2), 4)[4] != after(mlp_step(), (1, 2), 4)[4]


@pytest.mark.parametrize("product", sampled_products(PLAIN))
def test_a_product_that_is_skipped_in_one_step_of_four_is_noticed(product: int) -> None:
    """An auditor who takes zeros for one product, the first time, and computes everything else."""
    at = [k for k, node in enumerate(WITNESSED.nodes) if isinstance(node, Dot)][sampled_products(PLAIN).index(product)]
    state: ListBytes = (*mlp_step().state, *witness_lists((1, 2)))
    for t in range(4):
        lie = (lambda k, data: bytes(len(data)) if k == at else data) if t == 0 else None
        values = ReferenceExecutor(WITNESSED).run(state, lie)
        state = tuple(tuple(values[k] for k in part) for part in WITNESSED.output_nodes)
    assert state[4] != after(mlp_step(), (1, 2), 4)[4]


def test_no_step_can_be_left_out_or_taken_twice() -> None:
    found = [after(mlp_step(), (1, 2), steps)[4] for steps in range(1, 5)]
    assert len(set(found)) == 4


def test_one_replay_yields_the_accumulators_of_several_keys_each_as_alone() -> None:
    program = witnessed_program(WITNESSED)
    state: ListBytes = (*mlp_step().state, *witness_lists((1, 2)), *witness_lists((3, 4)))
    for _ in range(3):
        values = ReferenceExecutor(program).run(state)
        state = tuple(tuple(values[k] for k in part) for part in program.output_nodes)
    assert state[4] == after(mlp_step(), (1, 2), 3)[4]
    assert state[6] == after(mlp_step(), (3, 4), 3)[4]


def test_the_states_that_attestations_name_are_those_of_the_witnessed_program() -> None:
    """A re-audit's two keys, a claim each: X and Y as the contract builds them, from digests alone."""
    secret, seed, target = (Digest(bytes([n]) * 32) for n in (1, 2, 3))
    keys = tuple(witness_key(secret, seed, target, TicketId(n), DutyKind.REAUDIT) for n in (4, 5))
    both = (*mlp_step().state, *(slots for key in keys for slots in ((key[:8],), (bytes(32),))))
    together = ReferenceTrace(witnessed_program(WITNESSED), both, 2)
    for n, key in enumerate(keys):
        state: ListBytes = (*mlp_step().state, (key[:8],), (bytes(32),))
        trace = ReferenceTrace(WITNESSED, state, 2)
        word = Digest(trace.slot_bytes(2, 4, 0))
        assert word == together.slot_bytes(2, 4 + 2 * n, 0), "a run under several keys gives each one's accumulator"
        for t, filled in ((0, Digest(bytes(32))), (2, word)):
            assert witnessed_state(trace.list_roots(t)[:3], key, filled) == trace.state_root(t)


# --- a sponsor's own witness


def replaced(kind: type, change: Callable[[Any], Node], which: int = 0) -> Program:
    """The witnessed program with another node in place of one of a kind."""
    nodes = list(WITNESSED.nodes)
    k = [k for k, node in enumerate(nodes) if isinstance(node, kind)][which]
    nodes[k] = change(nodes[k])
    return replace(WITNESSED, nodes=tuple(nodes))


def constant(values: list[int]) -> Program:
    """The witnessed program with other sizes, from which positions are drawn."""
    spec, data = TensorSpec(DType.I32, (len(values),)), i32_bytes(*values)
    found = replaced(Const, lambda node: replace(node, root=tensor_root(spec, data)))
    return replace(found, consts={**WITNESSED.consts, tensor_root(spec, data): data})


def without_mixing(node: Map) -> Map:
    """The last instruction alone, on the accumulator twice: nothing that was sampled is in it."""
    return replace(node, code=node.code[-INSTRUCTION_SIZE:-7] + bytes((0, 0)) + node.code[-5:])


def reread(node: Gather) -> Gather:
    """A sample of one fixed element."""
    return replace(node, table=replace(node.table, view=replace(node.table.view, strides=(0, 1))))


def of_a_parameter(node: Gather) -> Gather:
    """A sample of the first parameter, which is public in s_0."""
    view = View(0, (1, 0), (0, 0), (1, LANES))
    return replace(node, size=1, table=replace(node.table, node=0, view=view))


ROWS = witness_rows(PLAIN)
DOCTORED: dict[str, Callable[[], Program]] = {
    "the plain program itself": lambda: PLAIN,
    "another stream": lambda: replaced(Random, lambda node: replace(node, stream=STREAM + 1), 0),
    "positions under the key of the training": lambda: replaced(Random, lambda node: replace(node, key=10), 0),
    "positions in the first half": lambda: constant([row.size // 2 or 1 for row in ROWS]),
    "one element in place of a product": lambda: replaced(Gather, reread, -1),
    "a parameter in place of a product": lambda: replaced(Gather, of_a_parameter, -1),
    "a row's second sample is its first": lambda: replaced(
        Gather, lambda node: replace(node, index=replace(node.index, view=replace(node.index.view, strides=(0,)))), -1
    ),
    "an accumulator of nothing": lambda: replaced(Map, without_mixing, -1),
    "the sum of one row": lambda: replaced(Sum, lambda node: replace(node, red=(1,), x=_first(node.x)), -1),
    "a second witness": lambda: witnessed_program(WITNESSED),
}


def _first(operand: Any) -> Any:
    view = operand.view
    return replace(operand, view=replace(view, hi=(*view.hi[:-1], 1)))


@pytest.mark.parametrize("name", DOCTORED)
def test_a_sponsors_doctored_witness_is_refused_though_well_formed(name: str) -> None:
    doctored = DOCTORED[name]()
    assert is_well_formed(doctored), "else another rule refuses it"
    with pytest.raises(WrongWitness, match="part at node") as caught:
        check_witness(PLAIN, doctored)
    assert "0x" + PLAIN.root.hex() in str(caught.value)
    check_witness(PLAIN, WITNESSED)


def test_the_witness_of_another_step_is_refused() -> None:
    with pytest.raises(WrongWitness):
        check_witness(mlp_step(precision=13).program, WITNESSED)


# --- known answers


def test_the_published_file_is_up_to_date() -> None:
    assert witness_vectors.PATH.read_text() == witness_vectors.text()


def test_every_rule_that_refuses_a_step_has_a_vector_and_python_gives_every_answer() -> None:
    document = json.loads(witness_vectors.PATH.read_text())
    known = {case["rule"] for case in document["cases"]} - {None}
    assert known == {r for r in rules_of_the_text() if re.match(r"WT-[123]$", r)}
    reference = ReferenceExecutor

    def run(program: Program, x: Any) -> list[list[bytes]]:
        values = reference(program).run(x)
        return [[values[k] for k in part] for part in program.output_nodes]

    checked = [*derivations(document), *accumulators(document, run)]
    assert len(checked) > len(document["cases"])
    for what, got, answer in checked:
        assert got == answer, what
