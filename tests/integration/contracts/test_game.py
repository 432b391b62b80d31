"""The same games on `Game.sol` and in the model: same stages, same clocks, same verdicts, same errors, same money.

A `Twin` makes every call on both and compares; here are the games that it is put through.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.protocol.game import errors
from assay.protocol.game.moves import AnyMove, BisectDigests, OpenLeaf, OpenNode, PostDigests
from assay.protocol.game.players import Posted
from assay.protocol.game.state import GameState, Outcome
from assay.protocol.game.table import TABLE, Move, Side, Turn
from assay.protocol.program.nodes import Family
from assay.protocol.types import Digest
from tests.harness.contracts.battles import HONEST, LIAR, battle, fresh
from tests.harness.contracts.game_chain import ANYBODY, Twin
from tests.harness.damage import flipped
from tests.harness.games import (
    ETHER,
    GameWorld,
    address,
    config,
    honest_trace,
    lie_at,
    lie_in_slot,
    play_out,
    player,
    silent_after,
)
from tests.harness.programs import counting, every_family
from tests.harness.tournaments import check, tournament


@cache
def lies() -> tuple[tuple[Family, object], ...]:
    """A lie in a node of every family."""
    example = every_family()
    return tuple(
        (f, next(x for x in (lie_at(example, k) for k in example.nodes_of(f)) if x is not None)) for f in Family
    )


# --- tournaments


@given(seed=st.integers(0, 2**32), steps=st.integers(1, 6))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
def test_tournaments_come_out_alike_on_contract_and_model(seed: int, steps: int) -> None:
    twin = fresh(counting())
    t = tournament(twin, counting(), steps, seed, 2)
    t.run()
    check(t, counting())
    twin.check_money()


@given(seed=st.integers(0, 2**32), arity=st.sampled_from((2, 4, 64)))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
def test_tournaments_on_every_family_come_out_alike(seed: int, arity: int) -> None:
    twin = fresh(every_family(), arity)
    t = tournament(twin, every_family(), 1, seed, 2)
    t.run()
    check(t, every_family())
    twin.check_money()


# --- every family, every turn


@pytest.mark.parametrize("arity", (4, 64))
def test_every_family_convicts_the_lying_side_on_chain(arity: int) -> None:
    twin, truth = fresh(every_family(), arity), honest_trace(every_family())
    for family, lie in lies():
        for defends, challenges, loser in ((lie, truth, Side.DEFENDER), (truth, lie, Side.CHALLENGER)):
            end = battle(twin, defends, challenges, 10 * family + loser)
            assert end.verdict is not None
            assert (end.verdict.side, end.verdict.outcome, end.verdict.family) == (loser, Outcome.LEAF, family)
    end = battle(twin, lie_in_slot(every_family(), 1, 0), truth, 999)
    assert end.verdict is not None
    assert (end.verdict.side, end.verdict.family) == (Side.DEFENDER, Family.OUTPUT)
    twin.check_money()


def test_every_bit_of_the_final_proof_counts_on_chain() -> None:
    twin, truth = fresh(every_family()), honest_trace(every_family())
    tried: dict[str, int] = {}

    def watch(state: GameState, move: AnyMove | None) -> None:
        if move is None or move.kind not in (Move.PROVE_ROOT, Move.PROVE_TERM, Move.SELECT_ELEMENT):
            return
        for damaged in flipped(move):
            with pytest.raises(errors.GameError):
                twin.book.move(state.game_id, state.challenger, damaged, state.turn_started)
            tried[move.kind.name] = tried.get(move.kind.name, 0) + 1

    for family, lie in lies():
        battle(twin, lie, truth, int(family), watch)
    battle(twin, lie_in_slot(every_family(), 0, 0), truth, 999, watch)
    assert set(tried) == {"PROVE_ROOT", "PROVE_TERM", "SELECT_ELEMENT"}
    assert sum(tried.values()) > 500


def test_every_illegal_move_in_every_turn_is_refused_by_the_same_name() -> None:
    example = every_family()
    twin, truth = fresh(example, 2), honest_trace(example)
    moves: dict[Move, AnyMove] = {}
    seen: set[Turn] = set()

    def collect(state: GameState, move: AnyMove | None) -> None:
        assert move is not None
        moves.setdefault(move.kind, move)

    def pester(state: GameState, due: AnyMove | None) -> None:
        if state.whose in seen:
            return
        seen.add(state.whose)
        now, late = state.turn_started, state.deadline + 1
        for kind, move in sorted(moves.items()):
            for who in (state.defender, state.challenger, ANYBODY):
                if due is None or kind is not due.kind or who != state.party(state.turn):
                    with pytest.raises((errors.WrongStage, errors.NotYourTurn)):
                        twin.book.move(state.game_id, who, move, now)
        assert due is not None
        with pytest.raises(errors.TooLate):
            twin.book.move(state.game_id, state.party(state.turn), due, late)
        with pytest.raises(errors.TooEarly):
            twin.book.timeout(state.game_id, state.deadline)

    games = [(lie, truth) for _, lie in lies()] + [(lie_in_slot(example, 2, 0), truth)]
    model = GameWorld(example.program, config(2))
    for number, (lie, true) in enumerate(games):
        battle(model, lie, true, number, collect)
    for number, (lie, true) in enumerate(games):
        battle(twin, lie, true, number, pester)
    steps = Twin(counting().program, config(2))
    twin = steps
    battle(steps, lie_at(counting(), 1, 2, 3), honest_trace(counting(), 3), 1, pester)
    assert seen == set(TABLE)
    assert set(moves) == set(Move)


def disputed_map(twin: Twin, digests: tuple[Digest, ...]) -> GameState:
    """A game on the counting program whose claimant posted these digests and in which node 1, the map, is disputed."""
    game_id = twin.challenge(twin.claim(lie_at(counting(), 0), LIAR, 1000 * ETHER), HONEST)
    twin.book.move(game_id, LIAR, PostDigests(digests), 1)
    return twin.book.move(game_id, HONEST, BisectDigests(1, digests), 2)


def test_an_earlier_value_cannot_be_exchanged_between_two_prefixes() -> None:
    """Binding (a): P_1 is the true one, P_2 the liar's, whose input was another from the start."""
    twin, lie, truth = fresh(counting()), lie_at(counting(), 0), honest_trace(counting())
    digests = (truth.prefix_root(1, 1), lie.prefix_root(1, 2), lie.prefix_root(1, 3), lie.state_root(1))
    state = disputed_map(twin, digests)
    opening = player(Side.DEFENDER, lie)(state, Posted())
    assert isinstance(opening, OpenNode)
    with pytest.raises(errors.WrongDigest):
        twin.book.move(state.game_id, LIAR, opening, 3)


def test_a_node_cannot_be_opened_as_another_of_the_same_shape() -> None:
    """Binding (b): the output has type and dims of the map, and would make its value right whatever it is."""
    twin, lie, truth = fresh(counting()), lie_at(counting(), 1), honest_trace(counting())
    game_id = twin.challenge(twin.claim(lie, LIAR, 1000 * ETHER), HONEST)
    digests = (*(lie.prefix_root(1, k) for k in (1, 2, 3)), lie.state_root(1))
    twin.book.move(game_id, LIAR, PostDigests(digests), 1)
    state = twin.book.move(game_id, HONEST, BisectDigests(1, digests), 2)
    assert state.node == 1
    opening = player(Side.DEFENDER, lie)(state, Posted())
    assert isinstance(opening, OpenNode)
    program = truth.program
    for other in (0, 2):
        swapped = replace(opening, node=program.descriptors[other], program_path=program.tree.path(other))
        with pytest.raises(errors.GameError):
            twin.book.move(game_id, LIAR, swapped, 3)
        with pytest.raises(errors.WrongDigest):
            twin.book.move(game_id, LIAR, replace(opening, node=program.descriptors[other]), 3)
    assert twin.book.move(game_id, LIAR, opening, 3).family == Family.MAP


def test_a_finished_game_and_one_that_never_was_take_no_moves() -> None:
    twin = fresh(counting())
    end = battle(twin, lie_at(counting(), 1), honest_trace(counting()), 1)
    for game_id in (end.game_id, 77):
        with pytest.raises(errors.WrongStage):
            twin.book.timeout(game_id, 10**7)
        with pytest.raises(errors.WrongStage):
            twin.book.move(game_id, end.defender, OpenLeaf(b""), 10**7)


@pytest.mark.parametrize("side", (Side.DEFENDER, Side.CHALLENGER))
def test_silence_at_every_move_comes_out_alike(side: Side) -> None:
    example = counting()
    twin, lie, truth = fresh(example), lie_at(example, 1, 2, 3), honest_trace(example, 3)
    for moves in range(7):
        ref = twin.claim(lie, address(f"d{moves}"), 500 * ETHER, moves + 1)
        game_id = twin.challenge(ref, address(f"c{moves}"))
        players = {Side.DEFENDER: player(Side.DEFENDER, lie), Side.CHALLENGER: player(Side.CHALLENGER, truth)}
        players[side] = silent_after(players[side], moves)
        end = play_out(twin, game_id, players[Side.DEFENDER], players[Side.CHALLENGER])
        assert end.verdict is not None
    twin.check_money()
