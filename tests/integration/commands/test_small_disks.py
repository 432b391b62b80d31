"""A solver as a process on a file system that fills up, as the system has one: it works on, and loses nothing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.protocol.types import Round, Seat
from assay.sponsor.launching import stake_of
from tests.harness.actors.desk import open_desk
from tests.harness.actors.shells import ActorShells
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import ETHER
from tests.harness.small_disks import small_disk

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

TICKETS, MIB, ROUNDS = 5, 8, 8
BLOCK_BYTES = 4096


@pytest.fixture
def shells(tmp_path: Path) -> Iterator[ActorShells]:
    with open_desk(tmp_path / "desk") as desk:
        found = ActorShells(desk, new_whole_run(desk.stage, tmp_path, seats=1, rounds=ROUNDS))
        try:
            yield found
        finally:
            found.end()


def test_a_full_disk_costs_a_solver_nothing_whether_it_works_dies_or_starts_on_it(shells: ActorShells) -> None:
    made, charter = shells.made, shells.made.run.charter
    for name in ("sol", "vera"):
        shells.add(name)
    deposit, staked = (
        str(stake // ETHER + 100) for stake in (stake_of(charter, seats=1), stake_of(charter, tickets=TICKETS))
    )
    with small_disk(made.folder / "sol", MIB) as disk:
        start = ("solver", "start", "--deposit", deposit)
        with disk.full():
            # With nothing in its folder yet.
            shells.start("sol", *start, through=disk.words)
            shells.wait(lambda v: v.free_seats == 0)
        shells.start("vera", "verifier", "start", "--tickets", str(TICKETS), "--deposit", staked)
        made.fund()
        shells.wait(lambda v: len(v.books.registry.tickets) == TICKETS)
        ripe = max(held.from_ for held in made.view.books.registry.tickets.values())
        shells.wait(lambda v: v.now > ripe)
        made.launch()
        shells.wait(lambda v: v.round == 1)
        journal = disk.seen / "journal.jsonl"
        with disk.full():
            shells.wait(lambda v: v.round == 3)
            # The file system gives its files no more; what fits into the last block of one is written.
            assert journal.stat().st_size <= BLOCK_BYTES and shells.running["sol"].poll() is None
            # Its process dies on the full disk, and another starts there.
            process = shells.running.pop("sol")
            process.send_signal(signal.SIGKILL)
            said = process.communicate()[1]
            assert "No space left" in said, said
            shells.start("sol", *start, through=disk.words)
            shells.wait(lambda v: v.round == 5)
        view = shells.wait(lambda v: v.is_over and all(v.work(Round(r), Seat(0)) for r in range(ROUNDS)))
        shells.wait(lambda v: not v.state.unsettled)
        (tenure,) = view.books.tenures.tenures.values()
        assert not tenure.convicted_at and not tenure.fee_gone
        assert {r for r, _ in made.view.state.works} == set(range(ROUNDS))
        assert journal.stat().st_size > BLOCK_BYTES
