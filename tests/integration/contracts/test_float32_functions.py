"""Whole scalar programs in the contract: the transcendental functions, random programs, and what they cost."""

from __future__ import annotations

import random

import pytest

from assay.protocol.arithmetic.scalar import ScalarProgram, evaluate
from tests.harness.contracts.harness import MAX_DEPLOYED, Evm, EvmContract
from tests.harness.scalars import FLOAT_EDGES, random_program, word
from tests.unit.protocol.test_functions import ORACLES, SPECIAL_VALUES, inputs, programs

MASK = 2**256 - 1
GAS_PER_INSTRUCTION = 1500
"""Mean over a function's instructions, constants included; a binary32 addition or product alone is within it too."""

GAS_OF_A_MAP = 100_000


@pytest.fixture(scope="module")
def harness() -> EvmContract:
    return Evm().deploy("ScalarHarness")


def check(harness: EvmContract, program: ScalarProgram, rows: list[list[int]]) -> None:
    """Contract and reference on rows of operand words."""
    code = program.encode()
    computed = harness.call("evaluateRows", code, [[w & MASK for w in row] for row in rows])
    assert [hex(w) for w in computed] == [hex(evaluate(code, row) & MASK) for row in rows]


@pytest.mark.parametrize("name", ORACLES)
def test_functions_equal_the_reference(name: str, harness: EvmContract) -> None:
    maps = programs(name)
    signed_edges = [e | s << 31 for e in FLOAT_EDGES for s in (0, 1)]
    rows = [[x] for x in (*signed_edges, *SPECIAL_VALUES[name], *inputs(name, 100))]
    for program in maps:
        check(harness, program, rows)
        rows = [[*row, evaluate(program.encode(), row)] for row in rows]


def test_random_programs_equal_the_reference(harness: EvmContract) -> None:
    source = random.Random(271828)
    for _ in range(40):
        program = random_program(source, source.randrange(1, 65))
        check(harness, program, [[word(source, d) for d in program.operands] for _ in range(8)])


@pytest.mark.parametrize("name", ORACLES)
def test_a_map_costs_little_beside_the_opening_of_its_operands(name: str, harness: EvmContract) -> None:
    for program in programs(name):
        row = [0x3FC90FDB, 0x3E951A39][: len(program.operands)]
        gas = harness.call("gasOf", program.encode(), row)
        assert gas <= min(GAS_OF_A_MAP, 3000 + GAS_PER_INSTRUCTION * len(program.instructions))


def test_the_longest_map_of_the_most_expensive_operation_stays_small(harness: EvmContract) -> None:
    root = bytes((0x14, 0, 0, 0, 0, 0, 0, 0)) * 64  # square roots
    assert harness.call("gasOf", root, [0x3FC90FDB]) < 3 * GAS_OF_A_MAP // 2


def test_the_machine_leaves_room_in_a_leaf_contract(harness: EvmContract) -> None:
    assert len(harness.artifact.deployed) < MAX_DEPLOYED // 2
