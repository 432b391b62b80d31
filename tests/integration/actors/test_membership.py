"""Members that join, leave, vanish, are cut off, fall behind and die, by one description, in one run that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Round
from assay.sponsor.charters import Pace
from assay.sponsor.preparing import prepare_rounds
from assay.training.presets import TINY
from tests.harness.actors.membership import faults_of, faulty
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import SharedChain
from tools.recompute.bases import false_merges
from tools.recompute.chain import RecordedRun
from tools.recompute.store import Store

TEXT = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(120))
PACE = Pace(units=5, least=2, steps=2, commit=600)
ROUNDS = 6

FAULTS = """
    dan  1 slow
    cleo 1 away 2
    eve  2 join
    bob  2 restart
    dan  3 gone
    ada  4 leave
"""


@pytest.mark.long
def test_a_run_goes_on_while_members_come_and_go(stage: SharedChain, tmp_path: Path) -> None:
    prepared = prepare_rounds(TINY, TEXT, 5)
    made = faulty(
        new_whole_run(stage, tmp_path, rounds=ROUNDS, pace=PACE, prepared=prepared, seats=5), faults_of(FAULTS)
    )
    for name in ("ada", "bob", "cleo", "dan"):
        made.first_solver(name)
    made.auditor("vera", tickets=3)
    made.auditor("viktor", tickets=2)
    made.enrol()
    made.fund()
    made.launch()
    view = made.end()
    assert len(made.happened) == len(made.faults) and view.state.money.phase is RunPhase.OVER and not view.games
    addresses = {p.agent.me: name for name, p in [*made.players.items(), *((n, p) for n, (_, p) in made.out.items())]}
    there = []  # of each round, units by who committed
    for r in range(ROUNDS):
        units = {addresses[view.books.tenures.existing(w.tenure).holder]: w.work.units for w in view.works(Round(r))}
        there.append(units)
        assert len(view.counted(Round(r))[0]) == len(units) - sum(w.late for w in view.works(Round(r)))
    everybody = {"ada": 5, "bob": 5, "cleo": 5, "eve": 5}
    assert there == [
        {"ada": 5, "bob": 5, "cleo": 5, "dan": 5},
        {"ada": 5, "bob": 5, "dan": 2},
        # Cleo is back when the next one has begun; the window of this one still takes the least: paid, without weight.
        {"ada": 5, "bob": 5, "cleo": 2, "dan": 5},
        everybody,
        everybody,
        {"bob": 5, "cleo": 5, "eve": 5},
    ]
    assert all(view.status(g) is GenerationStatus.FINAL for g in range(1, ROUNDS + 1))
    recorded = RecordedRun(made.chain.url, "0x" + made.run.address.hex())
    assert list(false_merges(recorded, Store(made.folder / "store"))) == []
