"""A watch whose own calculation of a disputed claim takes long: it tells of clocks meanwhile, and then who is right."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from assay.protocol.program.trace import Trace
from assay.training.rounds import TorchCompute
from assay.watchdog.alarms import AlarmKind
from assay.watchdog.looking import WatchOptions
from assay.watchdog.watch import Watchdog
from assay_ledger.chain.client import Chain
from assay_ledger.rounds.run import Run
from tests.harness.actors.disputed import Puppet, aside
from tests.harness.actors.whole_run import WholeRun
from tests.harness.browser import wait_for

pytestmark = pytest.mark.long


class HeldUp(TorchCompute):
    """Runs nothing that a game asks about before it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()

    def trace(self, *arguments: Any, **options: Any) -> Trace:
        """See TorchCompute."""
        assert self.may.wait(60)
        return super().trace(*arguments, **options)


def test_clocks_are_told_while_a_claim_is_still_computed(disputed: WholeRun) -> None:
    with aside(disputed):
        game_id = Puppet(disputed).challenge()
        compute, made = HeldUp(), disputed
        run = Run(Chain(made.chain.url), made.run.address, made.run.first_block)
        dog = Watchdog(run, made.store, compute, WatchOptions(waits=False))

        def kinds() -> set[AlarmKind]:
            return {kind for kind, about in dog.look() if about == f"game {game_id}"}

        assert kinds() == {AlarmKind.CANNOT_CHECK}
        assert "still being computed" in dog.alarms[AlarmKind.CANNOT_CHECK, f"game {game_id}"].text
        made.chain.rpc("evm_mine", hex(run.games.game(game_id).state.deadline - 60))
        assert kinds() == {AlarmKind.CANNOT_CHECK, AlarmKind.DEADLINE_NEAR}
        compute.may.set()
        wait_for(lambda: kinds() == {AlarmKind.DEADLINE_NEAR}, 60, "the claim is computed")
