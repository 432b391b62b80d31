"""Clocks of the dispute game, and the bound that no game outlives."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.errors import InvariantError
from assay.protocol.game.clock import (
    DEFERRALS,
    LARGEST,
    Clocks,
    Shape,
    Timing,
    bisections,
    longest_game,
    most_moves,
    nearing,
    needs_replay,
    openings,
    timing,
)
from assay.protocol.game.descent import position
from assay.protocol.game.element import chunk, part_count
from assay.protocol.game.machine import process_move
from assay.protocol.game.table import TABLE, Side, Stage
from assay.protocol.trees.merkle import Tree
from assay.protocol.types import Digest
from tests.harness.games import (
    CLOCKS,
    ETHER,
    GameWorld,
    Log,
    bound_of,
    config,
    honest_trace,
    lie_at,
    play_out,
    player,
    silent_after,
)
from tests.harness.programs import counting, every_family
from tests.harness.recorded import HONEST, LIAR, rules_of


def test_time_above_the_extension_comes_out_of_the_movers_budget_only() -> None:
    world = GameWorld(counting().program)
    trace = honest_trace(counting(), 5)
    game_id = world.challenge(world.claim(trace, LIAR, ETHER), HONEST)
    defends = player(Side.DEFENDER, trace)
    rules, state = rules_of(world), world.state(game_id)
    assert state.deadline == CLOCKS.budget + CLOCKS.replay
    free = process_move(state, LIAR, defends(state, None), CLOCKS.replay, rules)
    assert free.budget_left == (CLOCKS.budget, CLOCKS.budget)
    late = process_move(state, LIAR, defends(state, None), CLOCKS.replay + 7, rules)
    assert late.budget_left == (CLOCKS.budget - 7, CLOCKS.budget)
    assert late.deadline == CLOCKS.replay + 7 + CLOCKS.budget + CLOCKS.replay


def test_a_replay_is_granted_at_steps_and_nodes_and_to_every_opening() -> None:
    for turn in TABLE:
        expected = turn.stage in (Stage.STEPS, Stage.NODES) or turn.side is Side.DEFENDER
        assert needs_replay(turn) is expected
        assert CLOCKS.extension(turn) == (CLOCKS.replay if expected else CLOCKS.move)


@pytest.mark.parametrize("steps", (1, 2, 5, 17))
@pytest.mark.parametrize("arity", (2, 4, 64))
def test_the_slowest_game_takes_no_longer_than_its_bound(steps: int, arity: int) -> None:
    """Both sides use every second and every deferral that they have, down to the deepest leaf."""
    example = counting(2000)
    world = GameWorld(example.program, config(arity))
    lie = lie_at(example, 1, steps, steps)
    game_id = world.challenge(world.claim(lie, LIAR, ETHER), HONEST)
    log = Log()
    end = play_out(
        world,
        game_id,
        player(Side.DEFENDER, lie, arity),
        player(Side.CHALLENGER, honest_trace(example, steps), arity),
        delay=lambda state: state.deadline - state.turn_started,
        log=log,
        defer=True,
    )
    assert end.verdict is not None
    assert end.deferrals == (DEFERRALS, DEFERRALS)
    bound = bound_of(example.program, steps, world.settings)
    assert bound - 2 * CLOCKS.replay * (steps.bit_length() + 6) - 2 <= log.ended - log.started <= bound


@given(st.integers(0, 5000), st.integers(0, DEFERRALS), st.booleans())
def test_who_is_to_move_waits_then_defers_then_moves_at_any_fee(left: int, deferred: int, expensive: bool) -> None:
    for turn in TABLE:
        what = timing(turn, 10_000, deferred, 10_000 - left, expensive, CLOCKS)
        near = left <= CLOCKS.extension(turn) + CLOCKS.budget // 2
        assert (what is Timing.WAIT) == (expensive and not near)
        late = left <= CLOCKS.extension(turn)
        assert (what is Timing.DEFER) == (expensive and near and not late and deferred < DEFERRALS)
        assert what is Timing.MOVE or not late
        # However long the fee stays above the cap, a turn's whole extension is left when it is time to act.
        assert 10_000 - nearing(10_000, turn, CLOCKS) >= CLOCKS.extension(turn)


def test_silence_at_any_move_ends_the_game_within_its_bound() -> None:
    example = every_family()
    lie, truth = lie_at(example, 25), honest_trace(example)
    for moves in range(14):
        for side in (Side.DEFENDER, Side.CHALLENGER):
            world = GameWorld(example.program)
            game_id = world.challenge(world.claim(lie, LIAR, ETHER), HONEST)
            players = {Side.DEFENDER: player(Side.DEFENDER, lie), Side.CHALLENGER: player(Side.CHALLENGER, truth)}
            players[side] = silent_after(players[side], moves)
            log = Log()
            end = play_out(world, game_id, players[Side.DEFENDER], players[Side.CHALLENGER], log=log)
            assert end.verdict is not None
            assert log.ended - log.started <= bound_of(example.program, 1, world.settings)


@given(st.integers(1, 1 << 40), st.sampled_from((2, 4, 16, 64)))
def test_bisection_halves_as_its_bound_says(width: int, arity: int) -> None:
    rounds, lo, hi = 0, 0, width
    while hi - lo > 1:
        m = min(arity, hi - lo)
        cuts = [position(lo, hi, i, m) for i in range(m + 1)]
        assert cuts[0] == lo and cuts[-1] == hi and all(a < b for a, b in pairwise(cuts))
        lo, hi = max(pairwise(cuts), key=lambda c: c[1] - c[0])
        rounds += 1
    assert rounds == bisections(width, arity)


@given(st.integers(2, 1 << 40), st.sampled_from((2, 4, 16, 64)))
def test_parts_are_at_most_the_arity_and_their_depth_is_that_of_bisection(terms: int, arity: int) -> None:
    size, rounds = terms, 0
    while size > 1:
        assert 2 <= part_count(size, arity) <= arity
        assert chunk(size, arity) * arity >= size
        size, rounds = chunk(size, arity), rounds + 1
    assert rounds == bisections(terms, arity)


@given(st.integers(0, 300), st.sampled_from((2, 4, 64)))
def test_openings_reach_the_leaves_in_as_many_moves_as_the_bound_says(count: int, arity: int) -> None:
    tree = Tree([Digest(bytes([i % 256]) * 32) for i in range(count)])
    level, rounds = len(tree.levels) - 1, 0
    while True:
        level, rounds = max(level - arity.bit_length() + 1, 0), rounds + 1
        if level == 0:
            break
    assert rounds == openings(count, arity)


def test_the_bound_grows_with_every_dimension_of_the_claim() -> None:
    shape, clocks = Shape(5, 100, 10, 100, 5), Clocks(10, 5, 1)
    base = longest_game(shape, 4, clocks)
    for name, larger in (("steps", 100), ("nodes", 5000), ("leaves", 1000), ("terms", 10**6)):
        assert longest_game(replace(shape, **{name: larger}), 4, clocks) > base
    assert longest_game(shape, 64, clocks) < base
    assert most_moves(LARGEST, 64) == (32, 33)


@pytest.mark.parametrize("arity", (0, 1, 3, 48, 128))
def test_an_arity_that_is_no_power_of_two_up_to_64_is_refused(arity: int) -> None:
    with pytest.raises(InvariantError):
        config(arity)


def test_half_of_a_bond_survives_the_longest_defence() -> None:
    for arity in (2, 4, 8, 16, 32, 64):
        settings = config(arity)
        assert 0 < most_moves(LARGEST, arity)[0] * settings.move_refund * 2 <= settings.bond
