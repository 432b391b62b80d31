"""Games on witnessed steps: a lie about a draw, a sample or the accumulator loses to the contract's own number."""

from __future__ import annotations

from functools import cache

import pytest

from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay.protocol.program.nodes import Dot, Family
from assay.protocol.program.trace import ReferenceTrace, flip_bit
from assay.protocol.program.witness import witness_lists
from tests.harness.contracts.battles import battle, fresh
from tests.harness.games import honest_trace
from tests.harness.programs import WITNESS_KEY, witnessed_mlp

EXAMPLE = witnessed_mlp()
PROGRAM = EXAMPLE.program
STEPS = 2

OWN = {
    "draws": (18, Family.RANDOM),
    "sizes": (19, Family.CONST),
    "positions": (20, Family.MAP),
    "a sample of an activation": (30, Family.GATHER),
    "hashes": (71, Family.MAP),
    "hashes joined": (73, Family.MAP),
    "bytes": (75, Family.MAP),
    "an exponent of bytes": (76, Family.CONST),
    "the sum": (77, Family.SUM),
    "the accumulator": (78, Family.MAP),
}
"""The nodes that a witness adds, and what the contract computes to judge them."""


def test_the_nodes_below_are_those_that_the_witness_adds() -> None:
    for name, (k, family) in OWN.items():
        assert PROGRAM.nodes[k].family is family, name
    assert PROGRAM.nodes[PROGRAM.output_nodes[4][0]].node == OWN["the accumulator"][0]  # type: ignore[union-attr]


@cache
def lie_in(k: int) -> ReferenceTrace:
    """A trace whose lie begins in this node of the first step and reaches the end: the lowest bit that does."""
    honest = honest_trace(EXAMPLE, STEPS).state_root(STEPS)
    lies = (EXAMPLE.trace(STEPS, flip_bit(1, k, bit)) for bit in range(8 * PROGRAM.specs[k].nbytes))
    return next(lie for lie in lies if lie.state_root(STEPS) != honest)


@pytest.mark.parametrize("arity", (4, 64))
def test_a_lie_in_any_node_of_a_witness_loses_to_a_computed_element(arity: int) -> None:
    twin, truth = fresh(EXAMPLE, arity), honest_trace(EXAMPLE, STEPS)
    for number, (name, (k, family)) in enumerate(OWN.items()):
        lie = lie_in(k)
        for defends, challenges, loser in ((lie, truth, Side.DEFENDER), (truth, lie, Side.CHALLENGER)):
            end = battle(twin, defends, challenges, 10 * number + loser)
            assert end.verdict is not None, name
            assert (end.verdict.side, end.verdict.outcome, end.verdict.family) == (loser, Outcome.LEAF, family), name
            assert end.verdict.node == k, name
    twin.check_money()


@cache
def copied() -> ReferenceTrace:
    """The true run, but that its end has the accumulator of somebody else's key."""
    state = (*EXAMPLE.state[:3], *witness_lists((1, 2)))
    theirs = ReferenceTrace(PROGRAM, state, STEPS).node_bytes(STEPS, OWN["the accumulator"][0])

    def tamper(t: int, at_list: int, at: int, data: bytes) -> bytes:
        return theirs if (t, at_list, at) == (STEPS, 4, 0) else data

    return EXAMPLE.trace(STEPS, tamper_slot=tamper)


@cache
def invented() -> ReferenceTrace:
    """The true run, but that the accumulator jumps to words that nobody computed."""

    def tamper(t: int, k: int, data: bytes) -> bytes:
        return bytes(range(32)) if (t, k) == (STEPS, OWN["the accumulator"][0]) else data

    return EXAMPLE.trace(STEPS, tamper)


@pytest.mark.parametrize(
    ("lie", "family"), [(copied, Family.OUTPUT), (invented, Family.MAP)], ids=["copied", "invented"]
)
def test_an_accumulator_that_was_not_computed_under_the_own_key_is_refuted(lie: object, family: Family) -> None:
    twin, truth = fresh(EXAMPLE), honest_trace(EXAMPLE, STEPS)
    false = lie()  # type: ignore[operator]
    assert false.list_roots(STEPS)[:4] == truth.list_roots(STEPS)[:4], "all but the accumulator is true"
    end = battle(twin, false, truth, 1)
    assert end.verdict is not None
    assert (end.verdict.side, end.verdict.outcome, end.verdict.family) == (Side.DEFENDER, Outcome.LEAF, family)
    twin.check_money()


def test_a_product_that_was_not_computed_is_the_disputed_node_itself() -> None:
    """An auditor who takes zeros for one product and goes on from there: the end state is another, and so are words."""
    product = next(k for k, node in enumerate(PROGRAM.nodes) if isinstance(node, Dot))
    lie = EXAMPLE.trace(STEPS, lambda t, k, data: bytes(len(data)) if (t, k) == (1, product) else data)
    end = battle(fresh(EXAMPLE), lie, honest_trace(EXAMPLE, STEPS), 1)
    assert end.verdict is not None
    assert (end.verdict.side, end.verdict.family, end.verdict.node) == (Side.DEFENDER, Family.DOT, product)


def test_a_witnessed_state_covers_key_and_accumulator() -> None:
    roots = {
        EXAMPLE.trace().state_root(0),
        ReferenceTrace(PROGRAM, (*EXAMPLE.state[:3], *witness_lists((1, 2))), 1).state_root(0),
        ReferenceTrace(PROGRAM, (*EXAMPLE.state[:4], (bytes(31) + b"\1",)), 1).state_root(0),
    }
    assert len(roots) == 3
    assert witness_lists(WITNESS_KEY) == EXAMPLE.state[3:]
