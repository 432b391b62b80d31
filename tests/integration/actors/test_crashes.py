"""Processes die: between any two actions, before a transaction is sent, after it was mined. Nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from assay_ledger.agents.journal import JournalInUse
from assay_ledger.agents.loop import ActorLoop
from assay_ledger.contract import Call
from tests.harness.actors.disputed import aside, check_judged, is_judged
from tests.harness.actors.whole_run import WholeRun
from tests.harness.soak.soaked_run import Killed


def step_all(made: WholeRun) -> bool:
    """One step of everybody; an actor that is killed in it is started again over the same folder."""
    head, acted = made.chain.head(), False
    for name, player in list(made.players.items()):
        try:
            acted |= player.agent.step()
        except Killed:
            acted = True
            made.restart(name)
    return acted or made.chain.head() != head


@pytest.mark.timeout(600)
def test_everybody_is_killed_at_every_transaction_of_a_dispute(
    disputed: WholeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    struck: set[tuple[bytes, str]] = set()
    send, send_all = ActorLoop.send, ActorLoop.send_all

    def dies(self: ActorLoop[Any, Any], calls: Sequence[Call], go: Callable[[], Any]) -> Any:
        # By turns before it is sent, and when it is mined.
        place = bytes(self.me), "".join(f"{call.name}{call.arguments}" for call in calls)
        if place in struck:
            return go()
        struck.add(place)
        if len(struck) % 2:
            go()
        raise Killed

    def dies_at_one(self: ActorLoop[Any, Any], call: Call, **options: Any) -> Any:
        return dies(self, [call], lambda: send(self, call, **options))

    def dies_at_several(self: ActorLoop[Any, Any], calls: Sequence[Call]) -> Any:
        return dies(self, calls, lambda: send_all(self, calls))

    monkeypatch.setattr(ActorLoop, "send", dies_at_one)
    monkeypatch.setattr(ActorLoop, "send_all", dies_at_several)
    with aside(disputed):
        monkeypatch.setattr(disputed, "sweep", lambda: step_all(disputed))
        check_judged(disputed, disputed.settle(is_judged))
    assert len(struck) > 20


def test_two_processes_do_not_share_a_data_folder(disputed: WholeRun) -> None:
    with pytest.raises(JournalInUse):
        disputed.players["ada"].make()
    assert disputed.restart("ada").me == disputed.address("ada")
