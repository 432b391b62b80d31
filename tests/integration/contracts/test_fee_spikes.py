"""Fees inside a game: what a deferral gives and costs, and that below the cap gas costs an honest party nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from assay.protocol.economics.limits import PPM, REPLY_GAS
from assay.protocol.economics.run_times import min_challenge_bond, min_kept
from assay.protocol.game import errors
from assay.protocol.game.clock import DEFERRAL, DEFERRALS
from assay.protocol.game.players import Posted
from assay.protocol.game.table import Move, Side
from assay.protocol.types import Wei
from tests.harness.contracts.battles import HONEST, LIAR
from tests.harness.contracts.game_chain import START, ChainGames, Twin
from tests.harness.contracts.node_chain import NodeChain
from tests.harness.games import CHAIN, ETHER, EXPENSIVE, config, honest_trace, lie_at, play_out, player
from tests.harness.honest_rules import hp4_the_truth_wins
from tests.harness.programs import Example, counting, every_family
from tests.harness.tournaments import check, tournament

ARITY = 64
GAS_PRICE = Wei(10**12)


@pytest.fixture(scope="module")
def node() -> Iterator[NodeChain]:
    with NodeChain(START) as made:
        yield made


@pytest.mark.parametrize("truthful", (Side.DEFENDER, Side.CHALLENGER))
def test_a_fee_spike_is_waited_out_and_gains_nobody_a_verdict(node: NodeChain, truthful: Side) -> None:
    example, steps = counting(), 5
    twin, truth, lie = on(node, example), honest_trace(example, steps), lie_at(example, 1, 3, steps)
    assert lie is not None
    claimed, other = (truth, lie) if truthful is Side.DEFENDER else (lie, truth)
    now = clock_of(node)
    game_id = twin.challenge(twin.claim(claimed, LIAR, 1000 * ETHER), HONEST, now)
    # Every clock is let run down to its last second, and deferred there as long as that is possible.
    players = player(Side.DEFENDER, claimed, ARITY), player(Side.CHALLENGER, other, ARITY)
    end = play_out(twin, game_id, *players, delay=lambda s: s.deadline - s.turn_started, defer=True)
    assert end.deferrals == (DEFERRALS, DEFERRALS)
    hp4_the_truth_wins(end.verdict, truthful)
    twin.check_money()


def test_a_turn_is_deferred_by_its_side_alone_above_the_cap_and_thrice(node: NodeChain) -> None:
    twin, lie, now = on(node, counting()), lie_at(counting(), 1), clock_of(node)
    game_id = twin.challenge(twin.claim(lie, LIAR, 1000 * ETHER), HONEST, now)
    deadline = twin.state(game_id).deadline
    with pytest.raises(errors.FeeNotAboveCap):
        twin.book.defer(game_id, LIAR, now + 1, CHAIN.fee_cap)
    with pytest.raises(errors.NotYourTurn):
        twin.book.defer(game_id, HONEST, now + 2, EXPENSIVE)
    for count in range(1, DEFERRALS + 1):
        assert twin.book.defer(game_id, LIAR, now + 2 + count, EXPENSIVE).deadline == deadline + count * DEFERRAL
        (event,) = twin.games.events("Deferred")
        assert event["left"] == DEFERRALS - count
    with pytest.raises(errors.NoDeferralLeft):
        twin.book.defer(game_id, LIAR, now + 9, EXPENSIVE)
    # The opponent cannot end the game in the hours that were taken, and can a second later.
    with pytest.raises(errors.TooEarly):
        twin.book.timeout(game_id, deadline + DEFERRALS * DEFERRAL)
    last = deadline + DEFERRALS * DEFERRAL + 1
    with pytest.raises(errors.TooLate):
        twin.book.defer(game_id, LIAR, last, EXPENSIVE)
    end = twin.book.timeout(game_id, last + 1)
    assert end.verdict is not None and end.verdict.loser == LIAR
    for nothing in (game_id, game_id + 1):
        with pytest.raises(errors.WrongStage):
            twin.book.defer(nothing, LIAR, last + 2, EXPENSIVE)
    twin.check_money()


def test_on_a_node_whose_fee_spikes_a_deferral_costs_little_and_keeps_the_budget(node: NodeChain) -> None:
    example, settings = counting(), config(ARITY)
    twin, lie, now = on(node, example), lie_at(example, 1), clock_of(node)
    game_id = twin.challenge(twin.claim(lie, LIAR, 1000 * ETHER), HONEST, now)
    state = twin.state(game_id)
    with pytest.raises(errors.FeeNotAboveCap):
        twin.book.defer(game_id, LIAR, now + 1, CHAIN.fee_cap)
    deferred = twin.book.defer(game_id, LIAR, state.deadline, EXPENSIVE)
    move = player(Side.DEFENDER, lie, ARITY)(deferred, Posted())
    assert move is not None
    moved = twin.book.move(game_id, LIAR, move, deferred.turn_started + settings.clocks.replay)
    assert moved.budget_left == state.budget_left
    gas = [g.transaction for g in twin.gas["defer"]]
    print(f"defer: {max(gas):,} gas")
    assert max(gas) < 60_000


@pytest.mark.parametrize("truthful", (Side.DEFENDER, Side.CHALLENGER))
def test_at_the_cap_the_honest_side_gets_back_at_least_its_gas(node: NodeChain, truthful: Side) -> None:
    """With bond and lock at the least that a charter admits, and gas worth what it says."""
    example = every_family()
    chain = replace(CHAIN, gas_price=GAS_PRICE)
    settings = config(ARITY, min_challenge_bond(chain, ARITY))
    assert settings.move_refund == REPLY_GAS * GAS_PRICE
    lock = 2 * min_kept(chain, ARITY) * PPM // settings.bounty_ppm
    twin = Twin(example.program, settings, ChainGames(example.program, settings, node))
    truth, lie = honest_trace(example), lie_at(example, 25)
    assert lie is not None
    claimed, other = (truth, lie) if truthful is Side.DEFENDER else (lie, truth)
    now = clock_of(node)
    game_id = twin.challenge(twin.claim(claimed, LIAR, lock), HONEST, now)
    honest = LIAR if truthful is Side.DEFENDER else HONEST
    before = twin.vault.wealth(honest)
    play_out(twin, game_id, player(Side.DEFENDER, claimed, ARITY), player(Side.CHALLENGER, other, ARITY), now=now)
    sides = {m.function: m.side for m in Move} | {"challenge": Side.CHALLENGER}
    spent = sum(g.transaction for name, found in twin.gas.items() if sides[name] is truthful for g in found)
    gained = twin.vault.wealth(honest) - before
    print(f"{truthful.name}: {spent:,} gas spent, {gained // GAS_PRICE:,} gas worth of tokens received")
    assert gained >= spent * GAS_PRICE
    twin.check_money()


@pytest.mark.parametrize("seed", range(2))
def test_tournaments_under_fee_spikes_come_out_alike_on_contract_and_model(node: NodeChain, seed: int) -> None:
    example = counting()
    twin = on(node, example)
    t = tournament(twin, example, 1, seed, 4, now=clock_of(node))
    t.run()
    check(t, example)
    assert any(any(twin.state(s.game_id).deferrals) for s in t.seats)
    twin.check_money()


def on(node: NodeChain, example: Example) -> Twin:
    """A run of its own on the node and in the model."""
    settings = config(ARITY)
    return Twin(example.program, settings, ChainGames(example.program, settings, node))


def clock_of(node: NodeChain) -> int:
    """A chain time, counted from the start, that the node has not reached."""
    return int(node.rpc("eth_getBlockByNumber", "latest", False)["timestamp"], 16) - START + 1000
