"""A disk that is full while a game is played: who is honest answers from memory, and goes on once there is room."""

from __future__ import annotations

import logging

import pytest

from assay_ledger.agents.journal import FILE
from tests.harness.actors.disputed import Puppet, again, aside, check_judged, is_judged
from tests.harness.actors.whole_run import WholeRun
from tests.harness.full_disks import writing_nothing


def test_whoever_is_challenged_answers_though_its_disk_takes_nothing(
    disputed: WholeRun, caplog: pytest.LogCaptureFixture
) -> None:
    with aside(disputed), caplog.at_level(logging.WARNING):
        puppet, before = Puppet(disputed), disputed.wealth("ada")
        game_id = puppet.challenge()
        ada = again(disputed, "ada")
        with writing_nothing():
            while not (view := disputed.view).games[game_id].is_over:
                if not ada.step():
                    assert ada.deadline is not None
                    disputed.chain.rpc("evm_mine", hex(ada.deadline))
        game = view.games[game_id]
        assert not game.convicted and game.verdict is not None and game.verdict.loser == puppet.address
        assert disputed.wealth("ada") >= before


def test_a_disk_that_is_full_for_a_while_ends_no_actor_and_saves_no_lie(
    disputed: WholeRun, caplog: pytest.LogCaptureFixture
) -> None:
    with aside(disputed), caplog.at_level(logging.WARNING):
        vera = again(disputed, "vera")
        before = (disputed.folder / "vera" / FILE).read_bytes()
        with writing_nothing():
            # Results of replays are computed, games opened and played to the leaf, with nothing written.
            check_judged(disputed, disputed.settle(is_judged))
        assert (disputed.folder / "vera" / FILE).read_bytes() == before
        assert "goes on from memory" in caplog.text
        vera.close()
        assert len((disputed.folder / "vera" / FILE).read_bytes()) > len(before)
