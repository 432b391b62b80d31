"""An actor that is started again by the command of its first start, with part of its stake gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.cli import acting
from assay.protocol.errors import FundsError
from assay.protocol.types import Wei
from assay_ledger.keys.keystore import ActorKeys
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain


@pytest.fixture
def made(stage: SharedChain, tmp_path: Path) -> WholeRun:
    """A run with a solver's seat and an auditor's tickets, whose wallets have nothing left."""
    found = new_whole_run(stage, tmp_path, seats=1, rounds=3)
    found.solver("ada")
    found.auditor("vera", tickets=5)
    found.enrol()
    return found


def typed(made: WholeRun, name: str) -> str:
    """What stood behind --deposit at the first start."""
    return f"{made.players[name].brought}wei"


def test_who_lost_a_part_of_its_stake_starts_again_by_the_same_command(
    made: WholeRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Attack: one fine, and the service that starts the auditor again is refused until its tickets are lost."""
    for name in ("ada", "vera"):
        keys = made.players[name].agent.keys
        made.chain.send(keys.account, made.run.vault.request_exit(Wei(1)))
        capsys.readouterr()
        acting.bring(made.run, keys, tmp_path / name, typed(made, name), seats=int(name == "ada"))
        (line,) = [found for found in capsys.readouterr().err.splitlines() if "missing" in found]
        assert "deposits nothing and goes on" in line and "0.000000000000000001 are missing" in line
    with pytest.raises(FundsError):  # nothing is at stake yet: it does not begin
        acting.bring(made.run, ActorKeys("new", made.stage.sponsor), tmp_path / "new", f"{1 << 120}wei", seats=1)
