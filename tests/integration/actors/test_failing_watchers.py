"""Whoever watches an actor fails at every word, while a game is played: no figure and no line is worth a game."""

from __future__ import annotations

import logging
from typing import Any, NoReturn

import pytest

from tests.harness.actors.disputed import Puppet, again, aside
from tests.harness.actors.whole_run import WholeRun


class Raising:
    """An observer that is at fault each time."""

    def turned(self, *_: Any) -> NoReturn:
        raise KeyError("a ticket that is gone")

    begun = tried = turned


@pytest.mark.long
def test_whoever_is_challenged_answers_though_all_that_watch_it_fail(
    disputed: WholeRun, caplog: pytest.LogCaptureFixture
) -> None:
    with aside(disputed), caplog.at_level(logging.WARNING):
        puppet, before = Puppet(disputed), disputed.wealth("ada")
        game_id = puppet.challenge()
        ada = again(disputed, "ada")
        ada.observer, ada.on_rest, ada._on_progress = Raising(), Raising().turned, Raising().turned
        while not (view := disputed.view).games[game_id].is_over:
            if not ada.step():
                assert ada.deadline is not None
                disputed.chain.rpc("evm_mine", hex(ada.deadline))
        game = view.games[game_id]
        assert not game.convicted and game.verdict is not None and game.verdict.loser == puppet.address
        assert disputed.wealth("ada") >= before and "the actor goes on" in caplog.text
