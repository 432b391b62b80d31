"""What the moves of a game cost as transactions on a node, at arity 64, where they cost most: none a million gas."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.economics.limits import CHALLENGER_MOVE_GAS, REPLY_GAS
from assay.protocol.game.clock import LARGEST, legs, most_moves
from assay.protocol.game.state import GameState
from assay.protocol.game.table import TABLE, Move, Side, Stage, Turn
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.nodes import Family
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.contracts import snapshots
from tests.harness.contracts.game_chain import START, ChainGames, Gas, Twin
from tests.harness.contracts.harness import MAX_MOVE_GAS, MAX_TRANSACTION_GAS
from tests.harness.contracts.node_chain import NodeChain
from tests.harness.games import ETHER, address, config, honest_trace, lie_at, lie_in_slot, play_out, player
from tests.harness.honest_rules import hp4_the_truth_wins
from tests.harness.programs import Example, counting, every_family, normal

MAX_CALLDATA = 128 * 1024
ARITY = 64
F32 = DType.F32


@cache
def wide() -> Example:
    """As large as games get in every direction: a map of 8 operands and 63 instructions over 80 leaves, a sum of 4,096
    terms, more than 64 nodes."""
    dims, operands = (5, 4096), 8
    b = ProgramBuilder([[TensorSpec(F32, dims)] * operands])
    s = ScalarBuilder([F32] * operands)
    total = s.operand(0)
    for i in range(1, operands):
        total = s.add(total, s.operand(i))
    for i in range(56):
        total = s.div(total, s.operand(i % operands)) if i % 2 else s.mul(total, s.operand((i + 3) % operands))
    mixed = b.map(s.build(total), [b.input(0, i) for i in range(operands)], dims)
    row = b.sum(mixed, 1)
    s = ScalarBuilder([F32])
    increment = s.build(s.add(s.operand(0), s.f32(1.0)))
    for _ in range(70):
        row = b.map(increment, [row], (5,))
    program = b.build([[row, mixed]])
    values = normal(5, dims[0] * dims[1] * operands, 1.0)
    size = 4 * dims[0] * dims[1]
    return Example("wide", program, (tuple(values[i * size : (i + 1) * size] for i in range(operands)),))


@pytest.fixture(scope="module")
def table() -> Iterator[dict[str, list[Gas]]]:
    """Gas per function over a game for every family and over the widest games."""
    gas: dict[str, list[Gas]] = {}
    example = every_family()
    lies = [lie_at(example, k) for f in Family for k in example.nodes_of(f)[:1]] + [lie_in_slot(example, 2, 0)]
    broad = wide()
    nodes = (broad.nodes_of(Family.MAP)[0], broad.nodes_of(Family.SUM)[0], broad.nodes_of(Family.MAP)[-1])
    games = [
        (example, 1, [lie for lie in lies if lie is not None]),
        (broad, 1, [lie_at(broad, k) for k in nodes]),
        (counting(8), 64 * 64, [lie_at(counting(8), 1, 1234, 64 * 64)]),
    ]
    for source, steps, traces in games:
        with NodeChain(START) as node:
            # Chain time of a node only goes forward: each game begins after the last has ended.
            settings = config(ARITY)
            chain = ChainGames(source.program, settings, node, steps=steps)
            twin, now = Twin(source.program, settings, chain), 0
            for number, trace in enumerate(traces):
                now = duel(twin, trace, honest_trace(source, steps), number, now + 1000)
            for function, found in twin.gas.items():
                gas.setdefault(function, []).extend(found)
    yield gas


def duel(twin: Twin, lie, truth, number: int, now: int) -> int:
    """One game; returns when it ended."""
    defender, challenger = address(f"defender {number}"), address(f"challenger {number}")
    ref = twin.claim(lie, defender, 1000 * ETHER, number + 1)
    game_id = twin.challenge(ref, challenger, now)
    ends: list[int] = []

    def delay(state: GameState) -> int:
        ends.append(state.turn_started + 1)
        return 1

    end = play_out(
        twin, game_id, player(Side.DEFENDER, lie, ARITY), player(Side.CHALLENGER, truth, ARITY), now=now, delay=delay
    )
    hp4_the_truth_wins(end.verdict, Side.CHALLENGER)
    return ends[-1]


def test_no_move_costs_a_million_gas_or_a_large_transaction(table: dict[str, list[Gas]]) -> None:
    assert {m.function for m in Move} <= set(table)
    for function, found in table.items():
        assert max(g.transaction for g in found) <= min(MAX_MOVE_GAS, MAX_TRANSACTION_GAS), function
        assert max(g.calldata for g in found) <= MAX_CALLDATA, function


def test_the_table_of_moves_holds(table: dict[str, list[Gas]]) -> None:
    rows = {}
    for function in ["challenge", *(m.function for m in Move)]:
        found = [g.transaction for g in table[function]]
        most_expensive = max(table[function], key=lambda g: g.transaction)
        rows[f"`{function}`"] = {
            "least": min(found),
            "most": max(found),
            "calldata of the largest": most_expensive.calldata,
        }
    snapshots.check("moves", rows)


def test_bonds_are_sized_for_more_gas_than_either_side_of_a_game_can_need(table: dict[str, list[Gas]]) -> None:
    worst = {function: max(g.transaction for g in found) for function, found in table.items()}
    assert max(worst[m.function] for m in Move if m.side is Side.DEFENDER) <= REPLY_GAS
    # The challenger's longest game, every move at its highest price, the opening and a timeout beside it.
    begin, ways = legs(LARGEST, ARITY)
    side = Side.CHALLENGER
    most_expensive = {
        stage: max(worst[t.move.function] for turn, t in TABLE.items() if turn == Turn(stage, side))
        for stage in Stage
        if Turn(stage, side) in TABLE
    }
    total = max(sum(count * most_expensive.get(stage, 0) for stage, _, count in (*begin, *way)) for way in ways)
    total += 2 * worst["challenge"] + worst["proveRoot"]
    print(f"challenger: {total:,} of {most_moves(LARGEST, ARITY)[1] * CHALLENGER_MOVE_GAS:,} gas")
    assert total <= most_moves(LARGEST, ARITY)[1] * CHALLENGER_MOVE_GAS


def test_the_largest_moves_were_really_made(table: dict[str, list[Gas]]) -> None:
    def largest(function: str) -> int:
        return max(g.calldata for g in table[function])

    assert largest("postDigests") > 64 * 32
    assert largest("openNode") > (64 + 20 + 6) * 32
    assert largest("postParts") > 64 * 32
    assert largest("selectElement") > 8 * 1024
