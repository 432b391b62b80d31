"""Whom a game favours, and what the watchdog says of a game: pure, over games played on the model."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import example as pinned
from hypothesis import strategies as st

from assay.amounts import TEST_MONEY
from assay.protocol.errors import ExitCode
from assay.protocol.game.moves import AnyMove, BisectDigests, PostDigests
from assay.protocol.game.players import Posted, posted_by
from assay.protocol.game.state import GameState
from assay.protocol.game.table import TABLE, Side, Stage, Turn
from assay.protocol.program.trace import Trace
from assay.protocol.types import Address, Wei
from assay.watchdog.alarms import (
    Alarm,
    AlarmKind,
    CommittedFacts,
    GameFacts,
    GameTerms,
    changes,
    exit_code_of,
    judge_committed,
    judge_game,
)
from assay.watchdog.standing import favoured
from tests.harness.games import (
    ETHER,
    GameWorld,
    Player,
    address,
    config,
    corrupted,
    honest_trace,
    lie_at,
    lie_in_slot,
    misled,
    play_out,
    player,
    try_move,
)
from tests.harness.honest_rules import hp4_the_truth_wins
from tests.harness.programs import Example, counting, every_family

TERMS = GameTerms(Wei(640 * ETHER), 0.25, 1_000_000, TEST_MONEY)


def lies(example: Example, steps: int) -> list[Trace]:
    found = [lie_at(example, k, steps, steps) for k in range(len(example.program.nodes))]
    slots = [lie_in_slot(example, n, 0, steps, steps) for n in range(len(example.program.outputs))]
    return [lie for lie in (*found, *slots) if lie is not None]


def opened(example: Example, arity: int, defends: Trace) -> tuple[GameWorld, int]:
    world = GameWorld(example.program, config(arity))
    return world, world.challenge(world.claim(defends, address("d"), 1000 * ETHER), address("c"))


# --- standing


@pytest.mark.parametrize("arity", (2, 64))
def test_in_every_turn_the_side_that_plays_the_true_run_is_favoured(arity: int) -> None:
    seen: set[Turn] = set()

    def watched(inner: Player, example: Example, truth: Trace, wins: Side) -> Player:
        def play(state: GameState, posted: Posted) -> AnyMove | None:
            assert favoured(state, posted, truth, arity) is wins, state.whose
            seen.add(state.whose)
            return inner(state, posted)

        return play

    for example, steps in ((every_family(), 1), (counting(), 5)):
        truth = honest_trace(example, steps)
        for lie in lies(example, steps):
            for defends, challenges, wins in ((lie, truth, Side.CHALLENGER), (truth, lie, Side.DEFENDER)):
                world, game_id = opened(example, arity, defends)
                sides = ((Side.DEFENDER, defends), (Side.CHALLENGER, challenges))
                players = [watched(player(s, t, arity), example, truth, wins) for s, t in sides]
                end = play_out(world, game_id, *players)
                hp4_the_truth_wins(end.verdict, wins)
    assert arity != 2 or seen == set(TABLE)


@given(seed=st.integers(0, 2**32), arity=st.sampled_from((2, 4, 64)))
@pinned(seed=3202, arity=64)  # a challenger agrees to an untrue state, and an input of the step is disputed
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
def test_whoever_is_favoured_after_any_moves_wins_by_playing_on_from_the_truth(seed: int, arity: int) -> None:
    rng = random.Random(seed)
    example, steps = rng.choice(((every_family(), 1), (counting(), 6)))
    truth = honest_trace(example, steps)
    traces = [truth, *lies(example, steps)]
    own = {Side.DEFENDER: rng.choice(traces), Side.CHALLENGER: rng.choice(traces)}
    world, game_id = opened(example, arity, own[Side.DEFENDER])
    posted = Posted()
    for _ in range(rng.randrange(8)):
        state = world.state(game_id)
        if state.is_over:
            return
        inner = player(state.turn, own[state.turn], arity)
        hand = rng.choice((inner, misled(inner, rng, 0.5), corrupted(inner, rng, 0.5)))
        move = hand(state, posted)
        if try_move(world, game_id, move, state.turn_started) and state.turn is Side.DEFENDER:
            assert move is not None
            posted = posted_by(move)
    state = world.state(game_id)
    if state.is_over:
        return
    side = favoured(state, posted, truth, arity)
    if side is Side.NONE:
        return
    own[side] = truth
    while not (state := world.state(game_id)).is_over:
        move = player(state.turn, own[state.turn], arity)(state, posted)
        if not try_move(world, game_id, move, state.turn_started):
            world.book.timeout(game_id, state.deadline + 1)
        elif state.turn is Side.DEFENDER:
            assert move is not None
            posted = posted_by(move)
    hp4_the_truth_wins(state.verdict, side)


def test_a_challenger_that_agrees_to_something_untrue_favours_nobody() -> None:
    example = counting()
    lie, truth = lie_at(example, 0), honest_trace(example)
    assert lie is not None
    world, game_id = opened(example, 4, lie)
    move = player(Side.DEFENDER, lie)(world.state(game_id), Posted())
    assert move is not None
    world.book.move(game_id, address("d"), move, 0)
    state = world.state(game_id)
    posted = posted_by(move)
    assert favoured(state, posted, truth, 4) is Side.CHALLENGER
    wrong = replace(player(Side.CHALLENGER, truth)(state, posted), index=len(posted.digests) - 1)  # type: ignore[type-var]
    world.book.move(game_id, address("c"), wrong, 0)
    assert favoured(world.state(game_id), posted, truth, 4) is Side.NONE


def test_who_agrees_to_an_untrue_state_is_favoured_in_no_stage_of_the_step() -> None:
    """What its inputs hold is proven by that state alone, whose digest no later stage names as agreed."""
    counted, steps = counting(), 6
    lie, truth = lie_at(counted, 0, steps, steps), honest_trace(counted, steps)
    assert lie is not None
    world, game_id = opened(counted, 64, lie)
    posted, seen = Posted(), set[Stage]()
    while (state := world.state(game_id)).stage not in (Stage.ROOT, Stage.LEAF):
        if state.stage is not Stage.STEPS:
            assert favoured(state, posted, truth, 64) is Side.NONE, state.stage
            seen.add(state.stage)
        move = player(state.turn, lie, 64)(state, posted)
        if state.stage is Stage.STEPS and state.turn is Side.DEFENDER:
            assert isinstance(move, PostDigests)
            move = replace(move, digests=(*move.digests[:4], bytes(32), move.digests[5]))
        elif state.turn is Side.CHALLENGER:
            last = len(posted.digests) - 1 if state.stage is Stage.STEPS else 0
            move = BisectDigests(last, posted.digests)
        assert try_move(world, game_id, move, state.turn_started)
        if state.turn is Side.DEFENDER:
            assert move is not None
            posted = posted_by(move)
    assert {Stage.NODES, Stage.NODE} <= seen
    assert favoured(state, posted, truth, 64) is Side.NONE


# --- alarms


def facts(**changes: Any) -> GameFacts:
    """A game in order: the defender is honest and to move, with all the money that it may need."""
    example = counting()
    world, game_id = opened(example, 4, honest_trace(example))
    base = GameFacts(
        state=world.state(game_id),
        honest=Side.DEFENDER,
        favoured=Side.DEFENDER,
        standing_known=True,
        bond_locked=Wei(640 * ETHER),
        coin=Wei(ETHER),
        gas_price=Wei(10**9),
        moves_left=10,
    )
    return replace(base, **changes)


def kinds(game: GameFacts, now: int = 0) -> set[AlarmKind]:
    return {alarm.kind for alarm in judge_game(game, now, TERMS)}


def test_a_game_in_order_is_no_alarm() -> None:
    assert kinds(facts()) == set()


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"favoured": Side.CHALLENGER}, AlarmKind.HONEST_LOSING),
        ({"favoured": Side.NONE}, AlarmKind.HONEST_LOSING),
        ({"bond_locked": Wei(640 * ETHER - 1)}, AlarmKind.BOND_SHORT),
        ({"coin": Wei(10**16 - 1)}, AlarmKind.GAS_SHORT),
    ],
)
def test_each_thing_that_is_wrong_has_its_alarm(wrong: dict[str, Any], kind: AlarmKind) -> None:
    assert kinds(facts(**wrong)) == {kind}


def test_uncomputed_work_is_not_lost() -> None:
    assert kinds(facts(favoured=Side.NONE, standing_known=False)) == set()


def test_refunds_paid_to_the_defender_are_not_missing_and_waiting_ones_are_a_note() -> None:
    base = facts()
    paid = replace(base.state, advanced=Wei(ETHER), held=Wei(ETHER))
    (note,) = judge_game(replace(base, state=paid, bond_locked=Wei(639 * ETHER)), 0, TERMS)
    assert note.kind is AlarmKind.REFUND_WAITS and note.is_note


def test_a_deadline_is_near_by_its_share_of_the_clock_and_missed_strictly_after_it() -> None:
    game = facts()
    whole = game.state.deadline - game.state.turn_started
    near = game.state.deadline - whole // 4
    assert kinds(game, near - 1) == set()
    assert kinds(game, near) == kinds(game, game.state.deadline) == {AlarmKind.DEADLINE_NEAR}
    assert kinds(game, game.state.deadline + 1) == {AlarmKind.DEADLINE_MISSED}
    (alarm,) = judge_game(game, near, TERMS)
    assert dict(alarm.figures)["seconds_left"] == whole // 4
    assert dict(alarm.figures)["share_left"] == pytest.approx(0.25, abs=1e-3)


def test_a_clock_alarms_for_a_party_that_may_be_right_and_for_no_other() -> None:
    liar = facts(honest=Side.CHALLENGER, favoured=Side.CHALLENGER, coin=Wei(0))
    assert kinds(liar, liar.state.deadline) == set()
    assert kinds(liar, liar.state.deadline + 1) == {AlarmKind.TIMEOUT_DUE}
    unknown = facts(honest=Side.NONE, favoured=Side.NONE, standing_known=False)
    assert kinds(unknown, unknown.state.deadline) == {AlarmKind.DEADLINE_NEAR}


def test_a_committed_challenge_alarms_before_its_deposit_burns_or_its_bond_is_short() -> None:
    committed = CommittedFacts(b"\1" * 32, Address(b"\2" * 20), 1000, Wei(640 * ETHER))

    def found(facts: CommittedFacts, now: int) -> set[AlarmKind]:
        return {a.kind for a in judge_committed(facts, now, TERMS)}

    assert found(committed, 1000) == set()
    assert found(committed, 1000 + 2700) == {AlarmKind.DEADLINE_NEAR}
    assert found(committed, 1000 + 3600) == {AlarmKind.DEADLINE_NEAR}
    assert found(committed, 1000 + 3601) == {AlarmKind.DEADLINE_MISSED}
    assert found(replace(committed, free=Wei(640 * ETHER - 1)), 1000) == {AlarmKind.BOND_SHORT}


def test_the_exit_code_is_the_gravest_alarms_and_unavailability_is_never_fraud() -> None:
    def code(*found: AlarmKind) -> ExitCode:
        return exit_code_of(Alarm(k, "x", "") for k in found)

    assert code() == code(AlarmKind.REFUND_WAITS, AlarmKind.TIMEOUT_DUE) == ExitCode.OK
    assert code(AlarmKind.CHAIN_UNREACHABLE, AlarmKind.CANNOT_CHECK, AlarmKind.HEAD_STALE) == ExitCode.NETWORK
    assert code(AlarmKind.CHAIN_UNREACHABLE, AlarmKind.BOND_SHORT) == ExitCode.FUNDS
    assert code(AlarmKind.BOND_SHORT, AlarmKind.DEADLINE_NEAR) == ExitCode.DEADLINE
    assert code(AlarmKind.DEADLINE_MISSED, AlarmKind.HONEST_LOSING, AlarmKind.CHAIN_UNREACHABLE) == ExitCode.FRAUD
    assert all(code(k) is not ExitCode.OK for k in AlarmKind if not Alarm(k, "", "").is_note)


def test_one_line_per_change() -> None:
    first, second = Alarm(AlarmKind.HEAD_STALE, "chain", "60 s"), Alarm(AlarmKind.BOND_SHORT, "game 1", "")
    later = replace(first, text="61 s")
    before, after = {first.key: first}, {later.key: later, second.key: second}
    assert changes({}, before) == [(True, first)]
    assert changes(before, after) == [(True, second)]
    assert changes(after, {}) == [(False, second), (False, later)]
