"""`assay solver start --standby`: the first process is killed with its machine, and the second goes on in its seat."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.cli.standby import SILENT_S
from assay.sponsor.launching import stake_of
from tests.harness.actors.desk import open_desk
from tests.harness.actors.shells import ActorShells
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import ETHER

TICKETS = 5


@pytest.fixture
def shells(tmp_path: Path) -> Iterator[ActorShells]:
    with open_desk(tmp_path / "desk") as desk:
        found = ActorShells(desk, new_whole_run(desk.stage, tmp_path, seats=1, rounds=12))
        try:
            yield found
        finally:
            found.end()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_standby_waits_while_the_first_lives_and_keeps_its_seat_when_it_dies(shells: ActorShells) -> None:
    made, charter = shells.made, shells.made.run.charter
    for name in ("sol", "vera"):
        shells.add(name)
    stakes = stake_of(charter, seats=1), stake_of(charter, tickets=TICKETS)
    deposit, staked = (str(stake // ETHER + 100) for stake in stakes)
    shells.start("sol", "solver", "start", "--deposit", deposit)
    shells.start("vera", "verifier", "start", "--tickets", str(TICKETS), "--deposit", staked)
    shells.start("other", "solver", "start", "--standby", folder="other", key="sol")
    made.fund()
    shells.wait(lambda v: v.free_seats == 0 and len(v.books.registry.tickets) == TICKETS)
    ripe = max(held.from_ for held in made.view.books.registry.tickets.values())
    shells.wait(lambda v: v.now > ripe)
    made.launch()
    shells.wait(lambda v: v.round == 1)
    assert not (made.folder / "other" / "journal.jsonl").exists()
    process = shells.running.pop("sol")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    # The chain stands still meanwhile: how many rounds a silence costs is the run's to say, not this machine's.
    time.sleep(SILENT_S)
    view = shells.wait(lambda v: v.round == 3)
    assert (made.folder / "other" / "journal.jsonl").exists()
    (tenure,) = view.books.tenures.tenures.values()
    assert tenure.holder == shells.people["sol"] and {r for r, _ in view.state.works} >= {0, 1, 2}
    shells.running["other"].send_signal(signal.SIGINT)
    assert "this process takes over" in shells.ended("other")[2]
