"""Processes die: between any two actions, before a transaction is sent, after it was mined. Nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.game.state import Outcome
from assay.protocol.types import Status
from assay_ledger.agents.agent import Agent
from assay_ledger.agents.journal import JournalInUse
from assay_ledger.contract import Call
from tests.harness.actors.world import ActorWorld, SharedChain, new_world, small_work, with_a_bit_flipper


class Killed(BaseException):
    """The process is gone; nothing inside it may catch this."""


def check(world: ActorWorld) -> None:
    """The run ended as it does without a crash."""
    (record,) = world.state.rounds
    endings = {world.name_of(c.solver): c.status for c in record.commitments.values()}
    assert endings == {"ada": Status.FINAL, "mallory": Status.CONVICTED}
    (game,) = world.verdicts()
    assert game.outcome is Outcome.LEAF and game.verdict is not None
    assert world.name_of(game.verdict.loser) == "mallory"
    duties = 2 * world.run.charter.training.duties
    assert {len(a.leaves) for a in record.attendance.values()} == {duties}
    assert all(a.settled for a in record.attendance.values()) and record.settled
    terms = world.run.charter.economics
    assert world.shares("ada") == terms.units * terms.shares_per_unit
    assert world.shares("vera") == duties * terms.shares_per_duty


def sweep(world: ActorWorld) -> bool:
    """One step of everybody; an actor that is killed in it is started again over the same folder."""
    head = world.stage.chain.head()
    acted = False
    for name, player in list(world.players.items()):
        try:
            acted |= player.agent.step()
        except Killed:
            acted = True
            world.restart(name)
    return acted or world.stage.chain.head() != head


def test_everybody_is_killed_after_every_single_action(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = with_a_bit_flipper(stage, tmp_path)

    def sweep_and_kill() -> bool:
        head = world.stage.chain.head()
        acted = False
        for name, player in list(world.players.items()):
            if player.agent.step():
                acted = True
                world.restart(name)
        return acted or world.stage.chain.head() != head

    monkeypatch.setattr(world, "sweep", sweep_and_kill)
    world.settle()
    check(world)


@pytest.mark.parametrize("mined", [False, True], ids=["before it is sent", "after it was mined"])
def test_everybody_is_killed_at_every_transaction(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mined: bool
) -> None:
    world = with_a_bit_flipper(stage, tmp_path)
    struck: set[tuple[bytes, str]] = set()
    send, send_all = Agent.send, Agent.send_all

    def dies(self: Agent, calls: Sequence[Call], go: Callable[[], Any]) -> Any:
        places = {(bytes(self.me), f"{call.name}{call.arguments}") for call in calls}
        if places <= struck:
            return go()
        struck.update(places)
        if mined:
            go()
        raise Killed

    def dies_at_one(self: Agent, call: Call, **options: Any) -> Any:
        return dies(self, [call], lambda: send(self, call, **options))

    def dies_at_several(self: Agent, calls: Sequence[Call]) -> Any:
        return dies(self, calls, lambda: send_all(self, calls))

    monkeypatch.setattr(Agent, "send", dies_at_one)
    monkeypatch.setattr(Agent, "send_all", dies_at_several)
    monkeypatch.setattr(world, "sweep", lambda: sweep(world))
    world.settle()
    check(world)
    assert len(struck) > 20


def test_two_processes_do_not_share_a_data_folder(stage: SharedChain, tmp_path: Path) -> None:
    world = new_world(stage, tmp_path, small_work())
    world.solver("ada")
    with pytest.raises(JournalInUse):
        world.players["ada"].make()
    assert world.restart("ada").me == world.address("ada")
