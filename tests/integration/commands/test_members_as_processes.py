"""Members as real processes that are killed, stopped and cut off, join and leave, by one description, in one run.

The same description in process: tests/integration/actors/test_membership.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Round
from assay.sponsor.charters import Pace
from assay.sponsor.preparing import prepare_rounds
from assay.training.presets import TINY
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.faulty_shells import FaultyShells
from tests.harness.actors.membership import NEVER, FaultKind, faults_of
from tests.harness.actors.whole_run import new_whole_run
from tools.recompute.bases import false_merges
from tools.recompute.chain import RecordedRun
from tools.recompute.store import Store

TEXT = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(120))
PACE = Pace(units=5, least=2, steps=2, commit=600)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path / "desk") as found:
        yield found


def played(desk: Desk, folder: Path, faults: str, names: tuple[str, ...], seats: int, until: int) -> FaultyShells:
    """A run in which these faults happen up to the beginning of a round; its processes still run."""
    prepared = prepare_rounds(TINY, TEXT, seats)
    made = new_whole_run(desk.stage, folder, rounds=until + 2, pace=PACE, prepared=prepared, seats=seats)
    shells = FaultyShells(desk, made, faults=faults_of(faults))
    try:
        for name in names:
            shells.solver(name)
        shells.auditor("vera", 5)
        made.fund()
        shells.wait(lambda v: v.books.tenures.seated_at(Round(0)) == len(names) and len(v.books.registry.tickets) == 5)
        ripe = max(held.from_ for held in made.view.books.registry.tickets.values())
        shells.wait(lambda v: v.now > ripe)
        made.launch()
        shells.wait(lambda v: v.round == until)
    except BaseException:
        shells.close()
        raise
    return shells


def check_rounds(shells: FaultyShells, names: tuple[str, ...], rounds: int) -> None:
    """Who trained in which round, against the description.

    Processes act while nobody looks: in the round in which one is struck or leaves it may have done its work before,
    and one that joins in a round may still get into it.
    """
    view, people = shells.made.view, {who: name for name, who in shells.people.items()}
    for r in map(Round, range(rounds)):
        works = {people[view.books.tenures.existing(w.tenure).holder]: w for w in view.works(r)}
        units = {name: w.work.units for name, w in works.items() if not w.late}
        assert len(view.counted(r)[0]) == len(units)
        # Who comes back while the window of a round that it missed goes on commits the least, without weight.
        absent = [f for f in shells.faults if f.kind in {FaultKind.AWAY, FaultKind.FROZEN}]
        back = {f.actor for f in absent if f.round <= r <= f.round + f.rounds}
        assert works.keys() - units.keys() <= back
        must, may = set(names), set[str]()
        for fault in shells.faults:
            ends = {FaultKind.GONE: NEVER, FaultKind.LEAVE: NEVER, FaultKind.AWAY: 0, FaultKind.FROZEN: 0}
            if fault.kind is FaultKind.JOIN and r >= fault.round:
                (may if r == fault.round else must).add(fault.actor)
            elif fault.kind in ends and fault.round <= r < max(fault.round + fault.rounds, ends[fault.kind]):
                must.discard(fault.actor)
                may |= {fault.actor} if r == fault.round else set()
        slow = {f.actor for f in shells.faults if f.kind is FaultKind.SLOW and f.round == r}
        assert must <= units.keys() <= must | may, (r, units)
        assert units == {name: PACE.least if name in slow else PACE.units for name in units}


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_run_goes_on_while_a_process_is_killed_and_another_stands_still(desk: Desk, tmp_path: Path) -> None:
    faults, names = "ada 1 restart\nbob 1 frozen 2", ("ada", "bob")
    shells = played(desk, tmp_path, faults, names, seats=2, until=4)
    try:
        assert shells.happened == shells.faults
        check_rounds(shells, names, 4)
    finally:
        shells.close()


FAULTS = """
    dan  1 slow
    cleo 1 away 2
    eve  2 join
    bob  2 restart
    dan  3 gone
    finn 3 frozen 2
    ada  4 leave
"""


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_run_goes_on_while_processes_come_and_go(desk: Desk, tmp_path: Path) -> None:
    names = ("ada", "bob", "cleo", "dan", "finn")
    shells = played(desk, tmp_path, FAULTS, names, seats=6, until=6)
    made = shells.made
    try:
        assert len(shells.happened) == len(shells.faults)
        check_rounds(shells, names, 6)
        view = shells.wait(lambda v: all(v.status(g) is GenerationStatus.FINAL for g in range(1, 5)))
        assert not view.games
    finally:
        shells.close()
    recorded = RecordedRun(made.chain.url, "0x" + made.run.address.hex())
    assert list(false_merges(recorded, Store(made.folder / "store"))) == []
