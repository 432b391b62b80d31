"""`assay bench dispute`: moves are counted as the bounds say, prices are those measured, a real game is measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assay.bench import gpt2
from assay.bench.arena import play
from assay.bench.dispute import (
    CHALLENGE,
    GPT2_STEPS,
    MOST_EXPENSIVE,
    Rates,
    bytes_kept,
    computed_row,
    measured_row,
    moves_of,
    moves_to_a_slot,
    work,
    worst,
)
from assay.protocol.game.clock import Shape, most_moves
from assay.protocol.game.table import Move, Side
from assay.protocol.program.nodes import Family
from assay.protocol.program.program import Program
from assay.sponsor.charters import ARITY
from assay.training.presets import TINY
from tests.harness.bench.verdicts import check_verdict
from tests.harness.games import GameWorld, address, config, honest_trace, lie_at, play_out, player
from tests.harness.programs import every_family

ROOT = Path(__file__).resolve().parents[3]
RATES = Rates(dict.fromkeys(Family, 1e-9), 1e-9)


@pytest.fixture(scope="module")
def small() -> Program:
    """The very module of GPT-2, small in every direction."""
    return gpt2.program_of(gpt2.shapes_only(1, 16, 2, 8, 50), batch=2, data=1000)


def test_gpt2_small_has_its_published_size() -> None:
    assert gpt2.parameters_of(gpt2.shapes_only()) == 124_439_808


def test_prices_are_those_of_the_table_that_a_test_measures() -> None:
    text = (ROOT / "docs" / "game.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| [\d,]+ \| ([\d,]+) \| ([\d,]+) \|$", text, re.MULTILINE)
    assert {name: tuple(int(v.replace(",", "")) for v in values) for name, *values in rows} == MOST_EXPENSIVE
    assert {m.function for m in Move} | {CHALLENGE} == set(MOST_EXPENSIVE)


@pytest.mark.parametrize("arity", (4, 64))
def test_no_game_that_is_played_is_longer_than_its_count_and_stubborn_ones_reach_it(arity: int) -> None:
    example = every_family()
    program, truth, reached = example.program, honest_trace(example), 0
    lies = [next((k, x) for k in example.nodes_of(f) if (x := lie_at(example, k)) is not None) for f in Family]
    for k, lie in lies:
        node = program.nodes[k]
        world = GameWorld(program, config(arity))
        game_id = world.challenge(world.claim(lie, address("d"), 10**21), address("c"))
        made: list[Move] = []

        def noted(inner, made=made):
            def play_(state, posted):
                move = inner(state, posted)
                made.append(move.kind)
                return move

            return play_

        play_out(
            world,
            game_id,
            noted(player(Side.DEFENDER, lie, arity)),
            noted(player(Side.CHALLENGER, truth, arity)),
        )
        most = moves_of(node, program.specs[k].leaf_count, 1, len(program.nodes), arity)
        assert all(made.count(m) <= most[m] for m in Move)
        reached += len(made) == most.total()
    assert reached >= len(lies) // 2


def test_counts_are_within_the_bound_that_the_constructor_checks(small: Program) -> None:
    n = len(small.nodes)
    for k, node in enumerate(small.nodes):
        counts = moves_of(node, small.specs[k].leaf_count, GPT2_STEPS, n)
        shape = Shape(GPT2_STEPS, n, small.specs[k].leaf_count, getattr(node, "terms", 1), 1)
        assert counts.total() <= sum(most_moves(shape, ARITY))
    slots = moves_to_a_slot(max(small.outputs), GPT2_STEPS, n)
    assert slots.total() <= sum(most_moves(Shape(GPT2_STEPS, n, 1, 1, max(small.outputs)), ARITY))


def test_a_computed_row_is_the_worst_node_at_highest_prices_marked_as_estimate(small: Program) -> None:
    row = computed_row("small", 1, small, GPT2_STEPS, RATES)
    counts, _ = worst(small, GPT2_STEPS, MOST_EXPENSIVE)
    assert (
        row.transactions
        == 1 + counts.total()
        == 1
        + max(
            moves_of(node, small.specs[k].leaf_count, GPT2_STEPS, len(small.nodes)).total()
            for k, node in enumerate(small.nodes)
        )
    )
    assert row.gas_total == MOST_EXPENSIVE[CHALLENGE][0] + sum(
        MOST_EXPENSIVE[m.function][0] * c for m, c in counts.items()
    )
    assert row.seconds_at_2s_blocks == 2 * row.transactions
    assert {"gas_total", "retrace_seconds"} <= set(row.estimated)
    assert "transactions" not in row.estimated
    assert row.bytes_kept == bytes_kept(small) > sum(small.specs[k].nbytes for k in small.input_nodes[0])


def test_an_estimate_grows_with_the_work(small: Program) -> None:
    larger = gpt2.program_of(gpt2.shapes_only(1, 16, 2, 8, 50), batch=4, data=1000)
    assert RATES.seconds(larger) > RATES.seconds(small) > 0
    assert sum(map(work, small.nodes)) > sum(n.spec.numel for n in small.nodes if n.family is Family.MAP)


@pytest.mark.long
def test_a_real_dispute_is_measured_as_it_was_mined() -> None:
    text = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(120))
    dispute = play(TINY, text, Family.DOT)
    row = measured_row("tiny", 1, dispute)
    check_verdict(dispute, Family.DOT)
    sent = [s.function for s in dispute.transactions]
    assert sent[0] == CHALLENGE and sent[-1] == "proveTerm" and "postParts" in sent
    assert 10 <= row.transactions <= 20
    assert row.gas_max_move <= 1_000_000 and row.gas_total <= 4_000_000
    assert row.levels == sum(s in {m.function for m in Move if m.side is Side.CHALLENGER} for s in sent)
    most = moves_of(
        dispute.program.nodes[dispute.verdict.node],
        dispute.program.specs[dispute.verdict.node].leaf_count,
        dispute.steps,
        len(dispute.program.nodes),
    )
    assert row.transactions <= 1 + most.total()
    assert row.bytes_kept > 0 and row.retrace_seconds > 0 and row.estimated == ()
