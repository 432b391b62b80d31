"""Auditors whose machine is slow, once or always: they answer what they can, and open every call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.digests import state_digest
from assay.protocol.program.program import Program
from assay.protocol.program.trace import OnStep
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.trees.state import ListBytes
from assay.protocol.types import Digest, Seat
from assay_ledger.rounds.view import RunView
from assay_ledger.store.objects import Objects
from tests.harness.actors.world import SharedChain, small_work
from tests.harness.auditors import audited_run
from tests.harness.auditors.audited_run import AuditedRun, new_audited_run
from tests.harness.auditors.slow_compute import SlowClock, SlowCompute

pytestmark = pytest.mark.timeout(300)


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("what", ["a false first mark", "a stall of two hours"])
def test_one_slow_unit_keeps_an_auditor_from_none_of_its_duties(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(audited_run, "UNITS", 4)
    made = new_audited_run(stage, tmp_path, small_work(), 4)
    # A commitment takes half an hour; a unit by stock torch and one thread two hours.
    clock = SlowClock()
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


WITHOUT_MARKS = Digest(b"nowhere".ljust(32, b"\0"))


class Slowly:
    """An auditor's compute by which the chain's time passes, and all others act meanwhile."""

    def __init__(self, made: AuditedRun, name: str, step_s: float, recheck_s: float) -> None:
        self.made, self.name, self.clock = made, name, SlowClock()
        self.compute = SlowCompute(self.takes, step_s, recheck_s)
        self.compute.serve(made.auditor(name, clock=self.clock))

    def takes(self, seconds: float) -> None:
        """Some seconds go by."""
        self.clock.now += seconds
        chain = self.made.chain
        until = chain.head().timestamp + int(seconds)
        while (now := chain.head().timestamp) < until:
            chain.rpc("evm_mine", hex(min(until, now + 600)))
            for name, player in self.made.players.items():
                while name != self.name and player.agent.step():
                    pass


def slow_and_alone(
    stage: SharedChain, folder: Path, marks: str, slower: int
) -> tuple[AuditedRun, SlowCompute, RunView, int]:
    """The only ticket, drawn for a true and a false commitment; the run once its call, and the next two, are over.

    A commitment takes 40 minutes, and so many times that by other kernels; a call lasts five hours. Also what the
    ticket's owner had before, in wei.
    """
    made = new_audited_run(stage, folder, small_work(), 2)
    slowly = Slowly(made, "vera", 600.0, slower * 600.0)
    made.auditor("wilma", reports=True, tickets=0)
    made.settle(lambda view: len(view.books.registry.tickets) == 1 and len(view.epochs) > 3)
    made.sit(2)
    made.begin()
    before = made.wealth("vera")

    def lie(seat: Seat, work: SeatWork) -> SeatWork:
        if seat != 1:
            return work
        ends, objects = (audited_run.CHANGED, *work.ends[1:]), Objects(made.store)
        shown = objects.put_marks((*objects.marks(work.marks, work.units)[:-1], state_digest(ends)))
        return replace(work, ends=ends, marks=shown if marks == "with marks" else WITHOUT_MARKS)

    made.play_round(lie)
    first = len(made.view.epochs) - 1
    view = made.settle(lambda view: len(view.epochs) >= first + 4)
    called = [epoch for epoch in view.epochs[first:-1] if epoch.on_call]
    assert len(called) >= 2 and all(epoch.opened == epoch.on_call and not epoch.repeats for epoch in called)
    return made, slowly.compute, view, before


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("marks", ["with marks", "without marks"])
def test_an_auditor_that_finds_false_work_opens_its_call_and_accuses(
    stage: SharedChain, tmp_path: Path, marks: str
) -> None:
    made, compute, view, before = slow_and_alone(stage, tmp_path, marks, slower=2)
    assert {a.seat for a in view.state.attestations.values()} == {0, 1}
    assert compute.rechecks == (1 if marks == "with marks" else 2)
    made.settle(lambda view: bool(view.books.tenures.tenures[2].convicted_at))
    assert made.wealth("vera") >= before


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("marks", ["with marks", "without marks"])
def test_what_cannot_be_computed_again_in_time_is_left_out_of_its_call(
    stage: SharedChain, tmp_path: Path, marks: str
) -> None:
    made, _, view, before = slow_and_alone(stage, tmp_path, marks, slower=16)
    assert {a.seat for a in view.state.attestations.values()} == {0}
    assert not view.state.accusations and before - made.wealth("vera") == 3 * view.terms.wage


class ErringOnce(SlowCompute):
    """Its usual kernels flip a bit of the first parameter in the first unit that they compute."""

    def run(
        self, program: Program, lists: ListBytes, steps: int = 1, tamper: None = None, on_step: OnStep | None = None
    ) -> ListBytes:
        """See Compute."""
        end = super().run(program, lists, steps, tamper, on_step)
        if steps == 1 or self.runs > 1:
            return end
        return ((bytes([end[0][0][0] ^ 1]) + end[0][0][1:], *end[0][1:]), *end[1:])


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("marks", ["with marks", "without marks"])
def test_a_machine_that_erred_once_does_its_pass_again_and_accuses_nobody(
    stage: SharedChain, tmp_path: Path, marks: str, killed: bool
) -> None:
    made = new_audited_run(stage, tmp_path, small_work(), 2)
    erring = ErringOnce(lambda seconds: None, 1.0, 1.0)
    erring.serve(made.auditor("vera"))
    made.settle(lambda view: len(view.books.registry.tickets) == 1 and len(view.epochs) > 3)
    made.sit(2)
    made.begin()
    made.play_round(lambda seat, work: work if marks == "with marks" else replace(work, marks=WITHOUT_MARKS))
    made.settle(lambda view: bool(erring.rechecks))
    if killed:  # its journal says what was found wrong, its folder keeps nothing of that
        made.restart("vera")
    view = made.settle(lambda view: len(view.state.attestations) == 2)
    assert killed or erring.runs > 4
    assert not view.state.accusations
