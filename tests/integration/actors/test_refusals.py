"""What an actor does where nothing goes on: it tries again by the clock, and says whom the run waits for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from assay.cli.acting import TellsStanding
from assay.protocol.errors import RejectedError, UnavailableError
from assay.protocol.types import Wei
from assay.sponsor.launching import deposit, mint_tokens
from assay_ledger.agents.loop import BLOCK_S
from assay_ledger.agents.round_actions import Choice
from assay_ledger.rounds.view import RunView
from assay_solver.actions import TakeSeat
from assay_solver.agent import Solver
from tests.harness.actors.whole_run import GAMES, new_whole_run
from tests.harness.actors.world import SharedChain
from tests.harness.clocks import MovedClock


def test_a_refused_action_is_tried_again_by_the_clock_though_no_block_comes(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, clock = new_whole_run(stage, tmp_path), MovedClock()
    e = made.run.charter.economics
    poor = made.add("poor", Solver, 1 - GAMES * (e.challenge_bond + e.challenge_deposit), clock=clock)
    monkeypatch.setattr(poor, "candidates", lambda _view: [TakeSeat()])
    head, times = made.chain.head(), []
    for wait in (BLOCK_S, 2 * BLOCK_S, 4 * BLOCK_S):
        assert poor.step() and not poor.step(), "it asks for a seat once, and is refused for want of stake"
        times.append(poor._parked[TakeSeat()].times)
        clock.now += wait - 0.01
        assert not poor.step()
        clock.now += 0.02
    assert times == [1, 2, 3] and made.chain.head() == head
    assert poor._doing == "waiting", "nothing holds up those who move time"


@pytest.mark.parametrize("code", ["GroupsOpen", "MaskOpen", "RevealTooEarly", "TooEarly"])
def test_what_is_too_early_is_asked_again_at_each_block_however_often_it_was(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """A clock that leaps, or a block that is late, must not cost the few blocks that a window has left."""
    made, clock = new_whole_run(stage, tmp_path), MovedClock()
    ada = made.solver("ada", clock=clock)
    monkeypatch.setattr(ada, "perform", refuses := Mock(side_effect=RejectedError("Not yet.", code=code)))
    for times in range(1, 8):
        assert ada.step() and not ada.step() and refuses.call_count == times
        if times % 3:
            clock.now += BLOCK_S
        else:
            made.chain.rpc("evm_mine")
    assert [parked.times for parked in ada._parked.values()] == [1], "nothing else waits longer for it"


def test_a_defect_in_what_can_wait_holds_up_nothing_that_is_urgent(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = new_whole_run(stage, tmp_path)
    ada = made.solver("ada")

    def candidates(view: RunView) -> Iterator[Choice]:
        if view.tenure is None:
            yield TakeSeat()
        raise KeyError("a case that nobody thought of")

    monkeypatch.setattr(ada, "candidates", candidates)
    assert ada.step() and ada.see().tenure is not None
    with pytest.raises(KeyError):
        ada.step()


def test_a_node_that_fails_while_an_actor_looks_has_nothing_tried_sooner(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = new_whole_run(stage, tmp_path)
    e = made.run.charter.economics
    poor = made.add("poor", Solver, 1 - GAMES * (e.challenge_bond + e.challenge_deposit))
    monkeypatch.setattr(poor, "candidates", lambda _view: [TakeSeat()])
    assert poor.step() and not poor.step() and poor._parked[TakeSeat()].times == 1
    made.chain.rpc("evm_mine")
    monkeypatch.setattr(poor, "candidates", Mock(side_effect=UnavailableError("No answer.", code="NodeUnreachable")))
    with pytest.raises(UnavailableError):
        poor.step()
    assert poor._parked[TakeSeat()].times == 1


def test_a_solver_without_the_stake_of_a_seat_tries_none_until_it_is_there(stage: SharedChain, tmp_path: Path) -> None:
    made = new_whole_run(stage, tmp_path)
    e = made.run.charter.economics
    poor = made.add("poor", Solver, 1 - GAMES * (e.challenge_bond + e.challenge_deposit))
    assert isinstance(poor, Solver) and not poor.step() and TakeSeat() not in poor._parked and poor.free == 1
    account, missing = poor.keys.account, Wei(e.seat_lock + e.seat_fee - 1)
    mint_tokens(made.chain, account, made.run.token, poor.me, missing)
    deposit(made.chain, account, made.run, missing)
    assert poor.step() and poor.see().tenure is not None


def test_an_actor_that_rests_says_once_why_the_run_stands_still(stage: SharedChain, tmp_path: Path) -> None:
    made, said = new_whole_run(stage, tmp_path), list[str]()
    ada = made.solver("ada")
    ada.on_rest = TellsStanding(said.append)
    while made.sweep():
        pass
    assert len(said) == 2
    assert said[0].startswith("the run stands still: 0 tickets of auditors count, 5 must before a round opens")
    assert said[1].startswith("the run stands still: The escrow has 0 tokens free") and "`assay run fund" in said[1]
    made.chain.rpc("evm_mine")
    made.sweep()
    assert len(said) == 2
    made.fund()
    while made.sweep():
        pass
    assert len(said) == 3 and said[2] == said[0]


def test_who_is_told_to_take_a_seat_again_forgets_what_it_had_when_it_began(stage: SharedChain, tmp_path: Path) -> None:
    made = new_whole_run(stage, tmp_path)
    ada, bob = made.solver("ada", again=True), made.solver("bob")
    assert ada.step() and bob.step()
    assert [one.own(one.see()).forgiven for one in (ada, bob)] == [0, 0]
    first, _ = ada.see().tenure or (0, None)
    for name, forgiven in (("ada", first), ("bob", 0)):
        again = made.restart(name)
        assert isinstance(again, Solver) and first and again.own(again.see()).forgiven == forgiven
