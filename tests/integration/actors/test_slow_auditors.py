"""Auditors whose machine is slow, once or always: they answer what they can, and open every call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.rounds.terms import SeatWork
from assay.protocol.types import Digest, Seat
from assay_ledger.store.objects import Objects
from tests.harness.actors.world import SharedChain, small_work
from tests.harness.auditors import audited_run
from tests.harness.auditors.audited_run import new_audited_run
from tests.harness.auditors.slow_compute import SlowCompute, Watch

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("what", ["a false first mark", "a stall of two hours"])
def test_one_slow_unit_keeps_an_auditor_from_none_of_its_duties(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(audited_run, "UNITS", 4)
    made = new_audited_run(stage, tmp_path, small_work(), 4)
    # A commitment takes half an hour; a unit by stock torch and one thread two hours.
    clock = Watch()
    slow = SlowCompute(lambda seconds: setattr(clock, "now", clock.now + seconds), 225.0, 16 * 225.0)
    slow.serve(made.auditor("vera", clock=clock))
    made.settle(lambda view: len(view.books.registry.tickets) == 1 and len(view.epochs) > 3)
    made.sit(2)
    made.begin()
    before = made.wealth("vera")

    def lie(seat: Seat, work: SeatWork) -> SeatWork:
        if what != "a false first mark":
            return work
        objects = Objects(made.store)
        marks = (Digest(b"x" * 32), *objects.marks(work.marks, work.units)[1:])
        return replace(work, marks=objects.put_marks(marks))

    made.play_round(lie)
    slow.stall = 7200.0 if what.startswith("a stall") else 0.0
    made.play_round()  # what follows is true, and nothing is slow any more
    first = len(made.view.epochs)
    view = made.settle(lambda view: len(view.epochs) >= first + 4)
    assert slow.runs >= 16 and len(view.state.attestations) >= 4
    assert made.wealth("vera") == before
