"""Bonds, locks, refunds and reserves of games: `Game.sol` and the model agree to the last unit."""

from __future__ import annotations

import random

import pytest

from assay.protocol.game.book import advance_account, game_lock
from assay.protocol.game.players import Posted, posted_by
from assay.protocol.game.table import Side
from assay.protocol.types import Wei
from tests.harness.contracts.battles import HONEST, LIAR, battle, fresh
from tests.harness.contracts.game_chain import ANYBODY, ref_tuple
from tests.harness.games import ETHER, address, honest_trace, lie_at, play_out, player
from tests.harness.programs import counting
from tests.harness.tournaments import Tournament, TournamentGame


def test_three_honest_winners_are_all_made_whole_on_chain() -> None:
    twin, lie, truth = fresh(counting()), lie_at(counting(), 1), honest_trace(counting())
    ref = twin.claim(lie, LIAR, 3000 * ETHER)
    names = [address(f"honest {i}") for i in range(3)]
    games = [twin.challenge(ref, who) for who in names]
    players = {Side.DEFENDER: player(Side.DEFENDER, lie), Side.CHALLENGER: player(Side.CHALLENGER, truth)}
    # Side by side, so that all three have advanced refunds when the first conviction takes the lock.
    t = Tournament(twin, random.Random(1), 1, [TournamentGame(g, ref, False, True, players) for g in games])
    t.run()
    advanced = [twin.state(g).advanced for g in games]
    assert all(advanced)
    wealth = sorted(twin.vault.wealth(who) for who in names)
    assert wealth == [twin.settings.bond] * 2 + [twin.settings.bond + 1500 * ETHER - sum(advanced)]
    assert twin.vault.burned == 1500 * ETHER
    twin.check_money()


def test_refunds_beyond_a_small_lock_wait_in_the_bond_for_a_truthful_defender() -> None:
    twin, truth, lie = fresh(counting()), honest_trace(counting()), lie_at(counting(), 1)
    end = battle(twin, truth, lie, 1, lock=20 * ETHER)
    assert end.advanced > 0
    assert end.held > 0
    refund, bond = twin.settings.move_refund, twin.settings.bond
    assert end.advanced <= 5 * ETHER < end.advanced + refund
    rest = bond - end.advanced - end.held
    assert twin.vault.free[address("defender 1")] == end.advanced + end.held + rest // 2
    assert twin.vault.burned == rest - rest // 2
    twin.check_money()


@pytest.mark.parametrize("new_first", (True, False))
def test_a_lock_posted_anew_has_an_account_of_its_own(new_first: bool) -> None:
    twin, lie, truth = fresh(counting()), lie_at(counting(), 1), honest_trace(counting())
    defends, challenges = player(Side.DEFENDER, lie), player(Side.CHALLENGER, truth)
    ref = twin.claim(lie, LIAR, 1000 * ETHER)
    old = [twin.challenge(ref, address(f"old {i}")) for i in range(2)]
    # One old game gets as far as an advance, the other is won and takes the lock.
    opening = defends(twin.state(old[1]), Posted())
    assert opening is not None
    selection = challenges(twin.book.move(old[1], LIAR, opening, 1), posted_by(opening))
    assert selection is not None
    twin.book.move(old[1], address("old 1"), selection, 2)
    play_out(twin, old[0], defends, challenges)
    lock_id = twin.state(old[0]).claim.lock_id
    assert twin.vault.lock_amount(advance_account(lock_id, 0)) == twin.settings.move_refund
    # The liar puts up a smaller lock of the same name, and a claim under it.
    for world in (twin.vault, twin.games):
        world.deposit(LIAR, 400 * ETHER)
    twin.vault.lock(lock_id, LIAR, Wei(400 * ETHER))
    twin.claims.fallen.remove(lock_id)
    twin.games.call(ANYBODY, "renew", lock_id, LIAR, 400 * ETHER, contract=twin.games.book)
    new = twin.challenge(ref, address("new"), 100)
    later = (lambda: play_out(twin, new, defends, challenges, now=100), lambda: twin.book.timeout(old[1], 2000))
    for play in later if new_first else reversed(later):
        play()
    assert twin.vault.burned == 500 * ETHER + 200 * ETHER
    winners = [twin.vault.wealth(address(name)) - twin.settings.bond for name in ("old 1", "new")]
    if new_first:
        assert winners == [0, 200 * ETHER - twin.state(new).advanced]
    else:
        # The old game's conviction comes first and takes the new lock; the new game's advances are not in it yet.
        assert winners == [200 * ETHER, 0]
    twin.check_money()


def test_locks_of_games_and_reserves_are_named_as_the_model_names_them() -> None:
    twin = fresh(counting())
    ref = twin.claim(lie_at(counting(), 1), LIAR, ETHER)
    game_id = twin.challenge(ref, HONEST)
    assert twin.games.lock_amount(game_lock(game_id)) == twin.settings.bond
    assert twin.games.view("moveRefund") == twin.settings.move_refund
    assert twin.games.view("openGames", ref_tuple(ref), contract=twin.games.book) == 1
