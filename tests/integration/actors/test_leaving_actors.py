"""Honest actors leave at the worst moments: what they say is locked is what the vault holds, and all comes back."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from assay.protocol.rounds.terms import NEVER
from assay.protocol.types import Round
from assay.sponsor.charters import AuditRates
from assay.status.locks import still_locked
from assay_ledger.agents.heartbeat import Activity, read_heartbeats
from assay_ledger.agents.stalls import winds_down_at
from assay_ledger.rounds.view import RunView
from assay_solver.cheats import solver_cheat_named
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain

RATES = AuditRates(audit_ppm=1_000_000, capacity=10, shifts=5, drawn_bounty_ppm=1_000_000)
"""One ticket a shift, which is drawn for every commitment."""


class Leave:
    """Some actors of a run that leave from now on, and what they say of their locks."""

    def __init__(self, made: WholeRun, names: Sequence[str]) -> None:
        self.made, self.names = made, names
        self.times: dict[str, dict[str, int]] = {name: {} for name in names}
        for name in names:
            made.players[name].agent.leaving = True

    def is_over(self, _: RunView) -> bool:
        """Whether all are out; checks what they say on the way."""
        over, locks = True, self.made.locks()
        for name in self.names:
            agent, view = self.made.players[name].agent, self.made.players[name].agent.see()
            said = still_locked(view)
            held = sum(amount for owner, amount in locks.values() if owner == agent.me)
            # Refunds of moves come out of a bond while its game lasts.
            bonds = sum(lock.amount for lock in said if lock.kind == "game")
            assert 0 <= sum(lock.amount for lock in said) - held < (bonds or 1), (name, said)
            for what in set(self.times[name]) - {lock.what for lock in said}:
                at, is_stopped = self.times[name].pop(what), view.state.money.is_stopped
                assert at <= view.now or is_stopped, f"{name} said that {what} comes back later than it did"
            self.times[name] |= {lock.what: lock.end.earliest for lock in said if lock.end.earliest is not None}
            over = over and agent.is_finished(view)
            assert agent.is_finished(view) <= (held == 0)
        return over


def gained(made: WholeRun, name: str) -> int:
    """What an actor has free more than it brought, in wei."""
    return made.free(made.address(name)) - made.players[name].brought


def staffed(made: WholeRun) -> None:
    """Two honest solvers and two honest auditors whose tickets count."""
    for name in ("ada", "bob"):
        made.solver(name)
    made.auditor("vera", tickets=3)
    made.auditor("viktor", tickets=2)
    made.enrol()


EVERYBODY = ("ada", "bob", "vera", "viktor")


@pytest.mark.long
def test_who_leaves_before_its_commitment_commits_first_and_keeps_its_fee(stage: SharedChain, tmp_path: Path) -> None:
    made = new_whole_run(stage, tmp_path, seats=2, rounds=6, rates=RATES)
    staffed(made)
    made.fund()
    made.launch()
    made.settle(lambda view: view.round == 1 and not view.works(Round(1)))
    leave = Leave(made, EVERYBODY)
    for lock in still_locked(made.players["ada"].agent.see()):
        assert "its commitment to round 1" in (lock.end.waits_for or "")
        assert lock.end.earliest == made.view.commit_until(Round(1))
    view = made.settle(leave.is_over)
    assert view.round is not None and view.round < 5 and len(view.works(Round(1))) == 2
    assert not any(t.fee_gone for t in view.books.tenures.tenures.values())
    pay, e = made.run.charter.price + made.run.charter.economics.merge_pay, made.run.charter.economics
    works = len(view.works(view.round))
    assert [gained(made, name) for name in ("ada", "bob")] == [pay * (view.round + (works == 2))] * 2
    assert [gained(made, name) for name in ("vera", "viktor")] == [
        len(made.wages(name)) * e.wage for name in ("vera", "viktor")
    ]
    assert not made.view.books.registry.tickets and not made.fines("vera") + made.fines("viktor")


@pytest.mark.long
def test_who_leaves_amid_accusations_and_games_pursues_them_first(stage: SharedChain, tmp_path: Path) -> None:
    made = new_whole_run(stage, tmp_path, seats=2, rounds=3, rates=RATES)
    made.solver("ada")
    made.solver("mallory", solver_cheat_named("false-step", 0))
    made.auditor("vera", tickets=3)
    made.auditor("viktor", tickets=2)
    made.enrol()
    made.fund()
    made.launch()
    made.settle(lambda view: bool(view.state.accusations))
    leave = Leave(made, ("ada", "vera", "viktor"))
    view = made.settle(leave.is_over)
    (game,) = view.games.values()
    assert game.defender == made.address("mallory") and game.verdict is not None
    assert game.verdict.loser == game.defender
    accuser = next(name for name in ("vera", "viktor") if made.address(name) == game.challenger)
    assert gained(made, accuser) > made.run.charter.economics.seat_lock * 99 // 100
    assert all(gained(made, name) >= 0 for name in ("ada", "vera", "viktor"))
    assert not made.fines("vera") + made.fines("viktor")


@pytest.mark.long
def test_who_leaves_before_the_run_opens_gets_all_back(stage: SharedChain, tmp_path: Path) -> None:
    made = new_whole_run(stage, tmp_path, seats=2, rates=RATES)
    staffed(made)
    view = made.settle(Leave(made, EVERYBODY).is_over)
    assert all(t.until != NEVER and t.released for t in view.books.tenures.tenures.values())
    assert [gained(made, name) for name in EVERYBODY] == [0] * 4


def stop(made: WholeRun, stage: SharedChain, end: str) -> None:
    """The run is cancelled before its launch, or wound down after its first round."""
    if end == "cancelled":
        made.chain.send(stage.sponsor, made.run.escrow.cancel())
        return
    made.fund()
    made.launch()
    view = made.settle(lambda view: view.round == 1)
    made.chain.rpc("evm_mine", hex(winds_down_at(view)))
    made.chain.send(stage.sponsor, made.run.escrow.wind_down())


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("end", ["cancelled", "wound down"])
def test_who_leaves_a_stopped_run_gets_all_back(end: str, stage: SharedChain, tmp_path: Path) -> None:
    made = new_whole_run(stage, tmp_path, seats=2, rounds=6, rates=RATES)
    staffed(made)
    stop(made, stage, end)
    view = made.settle(Leave(made, EVERYBODY).is_over)
    assert view.state.money.is_stopped and not view.books.registry.tickets
    assert all(gained(made, name) >= 0 for name in EVERYBODY)


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("how", ["cancelled", "wound down"])
def test_where_a_run_stops_before_its_last_round_every_actor_ends_by_itself(
    stage: SharedChain, tmp_path: Path, how: str
) -> None:
    """An operator is told that all is out; a process that waits for ever has to be looked after."""
    made = new_whole_run(stage, tmp_path, seats=2, rounds=6, rates=RATES)
    staffed(made)
    stop(made, stage, how)
    view = made.end()
    left = {owner for owner, _ in made.locks().values()}
    assert view.state.money.phase.words == how and not view.is_over and left <= {made.run.escrow.address}
    ended = {name: player.agent.is_finished(player.agent.see()) for name, player in made.players.items()}
    assert ended == dict.fromkeys(EVERYBODY, True)
    for player in made.players.values():
        player.agent.run(threading.Event())
    beats = read_heartbeats(made.store, made.run.address, [made.address(name) for name in EVERYBODY])
    assert {(beat.activity, beat.doing) for beat in beats.values()} == {(Activity.DONE, "finished")}
