"""A true reply is mined again after a reorganization in which the challenger selected another element."""

from __future__ import annotations

from copy import deepcopy

import pytest

from assay.protocol.game import errors
from assay.protocol.game.moves import PostParts, SelectElement
from assay.protocol.game.players import Posted
from assay.protocol.game.table import Side, Stage
from assay.protocol.program.nodes import Family
from assay.protocol.program.trace import Trace
from tests.harness.contracts.battles import HONEST, LIAR, fresh
from tests.harness.contracts.game_chain import Twin
from tests.harness.games import ETHER, Player, flip_bit, honest_trace, play_out, player, posted_by, try_move
from tests.harness.programs import every_family


def two_lies_in_one_leaf(truth: Trace) -> tuple[Trace, Trace]:
    """Runs that differ from the true one in two elements of one leaf of one node."""
    example = every_family()
    for node in example.nodes_of(Family.DOT) + example.nodes_of(Family.SUM):
        found: dict[int, Trace] = {}
        for at in range(0, min(1024, example.program.specs[node].nbytes), 4):
            for bit in range(8 * at, 8 * at + 24):
                lie = example.trace(1, flip_bit(1, node, bit))
                if lie.state_root(1) != truth.state_root(1):
                    found.setdefault(at // 4, lie)
            if len(found) == 2:
                first, second = found.values()
                return first, second
    raise AssertionError("no node has two elements that reach the end")


def test_parts_mined_again_over_another_element_convict_nobody() -> None:
    example = every_family()
    twin, truth = fresh(example, 64), honest_trace(example)
    first, second = (player(Side.CHALLENGER, lie, 64) for lie in two_lies_in_one_leaf(truth))
    honest = player(Side.DEFENDER, truth, 64)
    ref = twin.claim(truth, HONEST, 1000 * ETHER)
    game = twin.challenge(ref, LIAR)
    now, shown = _up_to_the_leaf(twin, game, honest, first)
    evm, books = twin.games.chain.evm, deepcopy(twin.book.games)
    kept = evm.snapshot()

    selection = first(twin.state(game), shown)
    assert isinstance(selection, SelectElement) and try_move(twin, game, selection, now)
    reply = honest(twin.state(game), Posted())
    assert isinstance(reply, PostParts)

    evm.revert(kept)
    twin.book.games.clear()
    twin.book.games.update(books)
    other = second(twin.state(game), shown)
    assert isinstance(other, SelectElement) and other != selection
    assert try_move(twin, game, other, now)
    before = twin.state(game)
    with pytest.raises(errors.PartsMismatch):
        twin.book.move(game, before.party(Side.DEFENDER), reply, now + 1)
    assert not try_move(twin, game, reply, now + 1)
    assert twin.state(game) == before and before.verdict is None

    end = play_out(twin, game, honest, second)
    assert end.verdict is not None and end.verdict.loser == LIAR
    assert twin.games.lock_amount(twin.claims.views[ref].claim.lock_id) == 1000 * ETHER
    twin.check_money()


def _up_to_the_leaf(twin: Twin, game: int, honest: Player, challenger: Player) -> tuple[int, Posted]:
    """The second that follows, and what was posted, once the challenger is to select an element."""
    posted, now = Posted(), 1
    while True:
        state = twin.state(game)
        shown = twin.posted(state, posted)
        if state.stage is Stage.LEAF and state.turn is Side.CHALLENGER:
            return now, shown
        move = honest(state, posted) if state.turn is Side.DEFENDER else challenger(state, shown)
        assert move is not None and try_move(twin, game, move, now)
        if state.turn is Side.DEFENDER:
            posted = posted_by(move)
        now += 1
