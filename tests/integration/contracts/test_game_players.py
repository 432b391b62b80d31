"""Players who spoil a game, their own or another's: garbage, wrong selections, sock puppets, on contract and model."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from assay.protocol.game import errors
from assay.protocol.game.moves import AnyMove, OpenLeaf, OpenNode, OpenState, OpenSubtree, PostDigests, PostParts
from assay.protocol.game.players import Posted
from assay.protocol.game.state import GameState, Outcome
from assay.protocol.game.table import Side
from assay.protocol.program.nodes import Family
from assay.protocol.program.trace import Trace
from assay.protocol.types import Digest
from tests.harness.contracts.battles import HONEST, LIAR, battle, fresh
from tests.harness.damage import flipped
from tests.harness.games import (
    ETHER,
    Player,
    address,
    honest_trace,
    lie_at,
    lie_in_slot,
    play_out,
    player,
    silent_after,
)
from tests.harness.honest_rules import hp4_the_truth_wins
from tests.harness.programs import every_family

PUPPET, BYSTANDER = address("puppet"), address("bystander")
LOCK = 1000 * ETHER
OPENINGS = (OpenNode, OpenSubtree, OpenLeaf, OpenState)


@cache
def lie_in(family: Family) -> Trace:
    """A lie that begins in a node of this family and reaches the end."""
    found = (lie_at(every_family(), k) for k in every_family().nodes_of(family))
    return next(lie for lie in found if lie is not None)


# --- garbage


def test_garbage_in_any_field_of_an_opening_is_refused_by_name_and_changes_nothing() -> None:
    twin, truth = fresh(every_family()), honest_trace(every_family())
    tried: dict[str, int] = {}

    def watch(state: GameState, move: AnyMove | None) -> None:
        if not isinstance(move, OPENINGS):
            return
        for garbage in flipped(move):
            with pytest.raises((errors.WrongDigest, errors.WrongCount)):
                twin.book.move(state.game_id, state.party(Side.DEFENDER), garbage, state.turn_started)
            tried[move.kind.name] = tried.get(move.kind.name, 0) + 1
        assert twin.state(state.game_id) == state

    for number, lie in enumerate((lie_in(Family.SUM), lie_in(Family.MAP), lie_in_slot(every_family(), 0, 0))):
        end = battle(twin, lie, truth, number, watch)
        hp4_the_truth_wins(end.verdict, Side.CHALLENGER)
    assert {"OPEN_NODE", "OPEN_LEAF", "OPEN_STATE", "OPEN_SUBTREE"} <= set(tried) and sum(tried.values()) > 50
    twin.check_money()


@pytest.mark.parametrize("kind", (*OPENINGS, PostDigests, PostParts))
def test_a_defender_that_has_only_garbage_left_loses_by_its_clock(kind: type) -> None:
    twin, truth = fresh(every_family()), honest_trace(every_family())
    lie = lie_in_slot(every_family(), 0, 0) if kind in (OpenState, OpenSubtree) else lie_in(Family.SUM)
    game_id = twin.challenge(twin.claim(lie, LIAR, LOCK), HONEST)
    inner = player(Side.DEFENDER, lie)

    def garbling(state: GameState, posted: Posted) -> AnyMove | None:
        move = inner(state, posted)
        if not isinstance(move, kind) or move is None:
            return move
        if isinstance(move, PostDigests):
            return PostDigests((*move.digests[:-1], Digest(b"\x99" * 32)))
        if isinstance(move, PostParts):
            return replace(move, parts=(0x123456, *move.parts[1:]))
        return next(iter(flipped(move)))

    end = play_out(twin, game_id, garbling, player(Side.CHALLENGER, truth))
    assert end.verdict is not None
    assert (end.verdict.loser, end.verdict.outcome) == (LIAR, Outcome.DEFAULT)
    assert twin.vault.wealth(HONEST) > twin.settings.bond
    twin.check_money()


# --- selecting elsewhere


@cache
def right_selections() -> tuple[tuple[str, int, int], ...]:
    """Move, index and choices of every selection of an honest challenger against a lie in a sum."""
    twin, seen = fresh(every_family()), []

    def watch(state: GameState, move: AnyMove | None) -> None:
        count = len(getattr(move, "digests", ())) or len(getattr(move, "parts", ()))
        if move is not None and hasattr(move, "index") and count > 1:
            seen.append((move.kind.name, move.index, count))

    battle(twin, lie_in(Family.SUM), honest_trace(every_family()), 1, watch)
    return tuple(seen)


def misled_at(inner: Player, turn: int, index: int) -> Player:
    """A player whose selection number `turn` is another one."""
    made = [0]

    def play(state: GameState, posted: Posted) -> AnyMove | None:
        try:
            move = inner(state, posted)
        except (LookupError, ValueError):
            return None  # it agrees with everything that is left
        if move is not None and hasattr(move, "index") and (len(posted.digests) > 1 or len(posted.parts) > 1):
            made[0] += 1
            if made[0] == turn + 1:
                return replace(move, index=index)
        return move

    return play


def test_a_challenger_at_a_wrong_position_loses_its_bond_and_the_next_one_convicts() -> None:
    twin, truth, lie = fresh(every_family()), honest_trace(every_family()), lie_in(Family.SUM)
    ref = twin.claim(lie, LIAR, LOCK)
    selections = right_selections()
    assert {kind for kind, _, _ in selections} >= {"BISECT_DIGESTS", "SELECT_PART"} and len(selections) >= 3
    lost = 0
    for turn, (_, right, count) in enumerate(selections):
        for index in {0, right - 1, right + 1, count - 1} - {right, -1, count}:
            who = address(f"misled {turn} {index}")
            game_id = twin.challenge(ref, who)
            wrong = misled_at(player(Side.CHALLENGER, truth), turn, index)
            end = play_out(twin, game_id, player(Side.DEFENDER, lie), wrong)
            assert end.verdict is not None and end.verdict.loser == who
            assert twin.vault.wealth(who) == 0
            lost += 1
    assert lost >= 5 and not twin.claims.fallen
    game_id = twin.challenge(ref, HONEST)
    end = play_out(twin, game_id, player(Side.DEFENDER, lie), player(Side.CHALLENGER, truth))
    assert end.verdict is not None and (end.verdict.loser, end.verdict.outcome) == (LIAR, Outcome.LEAF)
    assert twin.vault.wealth(HONEST) > twin.settings.bond
    twin.check_money()


# --- both sides of one purse


@pytest.mark.parametrize("is_true", (True, False), ids=("true work", "a lie"))
def test_losing_to_oneself_on_purpose_burns_ones_own_money_and_no_other(is_true: bool) -> None:
    example = every_family()
    twin, truth, lie = fresh(example), honest_trace(example), lie_in(Family.SUM)
    claimed, other = (truth, lie) if is_true else (lie, truth)
    ref = twin.claim(claimed, LIAR, LOCK)
    twin.vault.deposit(BYSTANDER, ETHER)
    twin.games.deposit(BYSTANDER, ETHER)
    puppet = twin.challenge(ref, PUPPET)
    honest = None if is_true else twin.challenge(ref, HONEST)
    before = {who: twin.vault.wealth(who) for who in (LIAR, PUPPET, HONEST, BYSTANDER)}
    defends = player(Side.DEFENDER, claimed)
    end = play_out(twin, puppet, silent_after(defends, 2), player(Side.CHALLENGER, other))
    assert end.verdict is not None and (end.verdict.loser, end.verdict.outcome) == (LIAR, Outcome.DEFAULT)
    assert twin.claims.views[ref].claim.lock_id in twin.claims.fallen
    # An honest challenger of the lie has its own game, and wins it although the lock is gone.
    if honest is not None:
        mine = play_out(twin, honest, defends, player(Side.CHALLENGER, truth))
        assert mine.verdict is not None and mine.verdict.loser == LIAR
    gains = {who: twin.vault.wealth(who) - amount for who, amount in before.items()}
    assert gains[LIAR] + gains[PUPPET] <= -(LOCK - LOCK * twin.settings.bounty_ppm // 10**6)
    assert gains[HONEST] >= 0 and gains[BYSTANDER] == 0
    twin.check_money()
