"""Clocks that convict a party for one slow moment are refused; the shortest admitted can be met."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.economics.limits import MIN_TURN, MIN_WINDOW
from assay.protocol.economics.run_bounds import check_run
from assay.protocol.errors import RejectedError
from assay.protocol.game import errors
from assay.protocol.game.clock import Clocks
from assay.protocol.game.players import Posted
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from tests.harness.contracts.battles import HONEST, LIAR
from tests.harness.contracts.game_chain import ChainGames, Twin
from tests.harness.games import ETHER, config, honest_trace, player
from tests.harness.programs import counting
from tests.harness.rounds.charters import RUN, changed
from tests.harness.rounds.samples import START

SHORTEST = Clocks(budget=MIN_WINDOW, replay=MIN_TURN, move=MIN_TURN)
NONE = Clocks(budget=0, replay=0, move=1)


def test_a_puppet_that_challenges_true_work_cannot_call_its_timeout_a_second_later() -> None:
    """Played on the first version: opened at one second, convicted at the next, half of S for the puppet."""
    with pytest.raises(RejectedError) as refused:
        check_run(changed(RUN, "clocks", budget=0, replay=0, move=1), START)
    assert (refused.value.code, refused.value.details["what"]) == ("WindowTooShort", "budget")
    with pytest.raises(RuntimeError, match="Revert"):
        ChainGames(counting().program, replace(config(4), clocks=NONE))


def test_shortest_clocks_leave_the_first_answer_eleven_minutes_and_each_its_own() -> None:
    twin = Twin(counting().program, replace(config(4), clocks=SHORTEST))
    truth = honest_trace(counting())
    honest, puppet = LIAR, HONEST  # as the helpers name them: here the claim is true, and its challenger lies
    game = twin.challenge(twin.claim(truth, honest, 1000 * ETHER), puppet, 0)
    last = MIN_WINDOW + MIN_TURN
    with pytest.raises(errors.TooEarly):
        twin.book.timeout(game, last)
    answer = player(Side.DEFENDER, truth, 4)
    posted = answer(twin.state(game), Posted())
    assert posted is not None
    # In the last second of its turn, with nothing left of the budget; the puppet takes its whole turn too.
    state = twin.book.move(game, honest, posted, last)
    assert state.turn is Side.CHALLENGER
    with pytest.raises(errors.TooEarly):
        twin.book.timeout(game, 2 * last)
    state = twin.book.timeout(game, 2 * last + 1)
    assert state.verdict is not None
    assert (state.verdict.outcome, state.verdict.loser) == (Outcome.DEFAULT, puppet)
