"""Auditors on a real node: what they answer, whom they accuse, and what becomes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.rounds.duty_types import Accusation, AccusationStatus, DutyKind
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Seat, Wei
from assay_ledger.bindings.tickets import TicketFined, TicketToppedUp
from assay_ledger.rounds.view import RunView
from assay_verifier.answering import ReplayUnit
from assay_verifier.cheats import AuditCheat
from assay_verifier.ticket_keeping import ShowSecret
from assay_whistleblower.agent import AuditorAgent
from tests.harness.actors.world import SharedChain, small_work
from tests.harness.auditors.audited_run import CHANGED, ROUNDS, SEATS, AuditedRun, new_audited_run

HONEST = ("vera", "viktor", "wilma")


def audited(
    stage: SharedChain,
    folder: Path,
    cheat: AuditCheat | None = None,
    honest: tuple[str, ...] = HONEST,
    seats: int = SEATS,
    rounds: int = ROUNDS,
) -> AuditedRun:
    """Honest auditors, and one that cheats; their tickets count, and the test has seats."""
    made = new_audited_run(stage, folder, small_work(), rounds)
    for name in honest:
        made.auditor(name, reports=name == "wilma")
    if cheat is not None:
        made.auditor("mallory", cheat)
    made.settle(lambda view: len(view.books.registry.tickets) == len(made.players) and len(view.epochs) > 3)
    made.sit(seats)
    made.begin()
    return made


ALIVE = (AccusationStatus.RECORDED, AccusationStatus.TRIED)


def accusations(view: RunView) -> list[Accusation]:
    """All that there ever were."""
    return list(view.books.duties.attestations.accusations.values())


def open_games(view: RunView) -> list[int]:
    """Games without a verdict."""
    return [number for number, game in view.games.items() if not game.is_over]


def after(made: AuditedRun, epochs: int) -> RunView:
    """The run some epochs later."""
    first = len(made.view.epochs)
    return made.settle(lambda view: len(view.epochs) >= first + epochs)


def test_honest_auditors_answer_every_call_and_lose_nothing(stage: SharedChain, tmp_path: Path) -> None:
    made = audited(stage, tmp_path)
    before = {name: made.wealth(name) for name in HONEST}
    first = len(made.view.epochs) - 1
    made.play_round()
    # One that comes while the run is under way is called once its ticket counts, and not before.
    made.auditor("tardy")
    made.play_round()
    view = after(made, 4)
    late = view.books.registry.tickets[made.ticket("tardy")]
    called = [epoch for epoch in view.epochs[first:-1] if epoch.on_call]
    assert all(epoch.opened == epoch.on_call == 3 + (epoch.start >= late.from_) for epoch in called)
    assert {epoch.on_call for epoch in called} == {3, 4} and all(epoch.fines for epoch in called)
    kinds = {record.kind for record in view.state.attestations.values()}
    assert {DutyKind.WORK, DutyKind.REAUDIT} <= kinds and not view.state.accusations and not view.games
    assert {name: made.wealth(name) for name in HONEST} == before
    assert all(not view.books.registry.missing[number] for number in view.books.registry.tickets)


def test_who_comes_back_shows_what_it_missed_before_it_replays(stage: SharedChain, tmp_path: Path) -> None:
    """Bad luck: a secret that is hidden when a second epoch closes costs the stake, and replays may last as long."""
    made = audited(stage, tmp_path, honest=("vera", "viktor", "viola"))
    away, found = made.players.pop("vera").agent, list[type]()

    def is_back(_: RunView) -> bool:
        away.refresh(view := away.see())
        found[:] = [type(action) for action in away.candidates(view)]
        return ShowSecret in found and ReplayUnit in found

    made.play_round()
    made.settle(is_back)
    assert found.index(ShowSecret) < found.index(ReplayUnit)


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("what", [ClaimKind.UPDATE, ClaimKind.INTERVAL])
def test_a_false_commitment_is_accused_by_who_is_drawn_and_its_seat_loses_its_lock(
    stage: SharedChain, tmp_path: Path, what: ClaimKind
) -> None:
    # Alone on call, it is drawn for all four commitments, which is as many as it answers.
    made = audited(stage, tmp_path, honest=("vera",), seats=2)

    def lie(seat: Seat, work: SeatWork) -> SeatWork:
        if seat != 1:
            return work
        false = replace(work, ends=(CHANGED, *work.ends[1:]))
        return replace(work, update=CHANGED) if what is ClaimKind.UPDATE else false

    before = made.wealth("vera")
    for _ in range(2):
        made.play_round(lie)
    view = made.settle(lambda view: bool(view.books.tenures.tenures[2].convicted_at))
    assert {(game.ref.kind, game.ref.seat) for game in view.games.values()} == {(what, Seat(1))}
    assert [number for number, t in view.books.tenures.tenures.items() if t.convicted_at] == [2]
    # What is still played or accused ends without a fine.
    view = made.settle(lambda view: not any(a.status in ALIVE for a in accusations(view)) and not open_games(view))
    assert {a.status for a in accusations(view)} <= {AccusationStatus.UPHELD, AccusationStatus.EXCUSED}
    assert made.wealth("vera") > before


@pytest.mark.long
@pytest.mark.parametrize("cheat", [AuditCheat.BLIND, AuditCheat.COPYING])
def test_who_signs_without_computing_is_accused_by_honest_auditors_alone(
    stage: SharedChain, tmp_path: Path, cheat: AuditCheat
) -> None:
    # Of two rounds' commitments it attests too little now and then: in 2 of 80 runs nobody was drawn to look again.
    made = audited(stage, tmp_path, cheat, rounds=5)
    for _ in range(5):
        made.play_round()
    view = made.settle(lambda view: bool(view.state.accusations))
    honest = {made.ticket(name) for name in HONEST}
    assert {(a.is_work, a.accused) for a in accusations(view)} == {(False, made.ticket("mallory"))}
    assert {a.ticket for a in accusations(view)} <= honest


@pytest.mark.long
def test_who_never_opens_is_fined_and_then_loses_its_ticket(stage: SharedChain, tmp_path: Path) -> None:
    made = audited(stage, tmp_path, AuditCheat.ABSENT)
    made.play_round()
    before, ticket = made.wealth("mallory"), made.ticket("mallory")
    wage, capacity = made.view.terms.wage, made.view.terms.capacity
    made.settle(lambda view: made.wealth("mallory") < before)
    assert (before - made.wealth("mallory")) % (3 * wage + 3 * wage * capacity // 2) == 0
    view = made.settle(lambda view: view.books.registry.tickets[ticket].convicted_at != 0)
    assert before - made.wealth("mallory") >= made.run.charter.economics.ticket_bond and not view.games


@pytest.mark.long
def test_who_drops_a_duty_is_fined_for_it_and_others_do_it(stage: SharedChain, tmp_path: Path) -> None:
    made = audited(stage, tmp_path, AuditCheat.DROPPING)
    before = made.wealth("mallory")
    for _ in range(2):
        made.play_round()
    view = made.settle(lambda view: made.wealth("mallory") < before)
    assert (before - made.wealth("mallory")) % (3 * view.terms.wage) == 0
    view = made.settle(lambda view: any(a.kind is DutyKind.MISSED for a in view.state.attestations.values()))
    assert not view.state.accusations


@pytest.mark.long
def test_an_auditor_killed_at_every_transaction_opens_every_call_once(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = audited(stage, tmp_path)
    made.play_round()
    before = {name: made.wealth(name) for name in HONEST}
    first = len(made.view.epochs)
    while len(made.view.epochs) < first + 3:
        for name in HONEST:
            made.restart(name)
        while made.sweep():
            for name in HONEST:
                made.restart(name)
        made.pass_time()
    view = made.view
    assert all(epoch.opened == epoch.on_call for epoch in view.epochs[first:-1])
    assert {name: made.wealth(name) for name in HONEST} == before


def test_a_ticket_that_fines_had_drained_answers_once_it_is_topped_up(stage: SharedChain, tmp_path: Path) -> None:
    made = audited(stage, tmp_path, honest=("vera",), seats=1)
    vera, ticket = made.players["vera"].agent, made.ticket("vera")
    assert isinstance(vera, AuditorAgent)
    made.settle(lambda view: view.epochs[-1].seed is not None and view.is_called(ticket, len(view.epochs) - 1))
    view, bond = vera.see(), made.run.facts.tickets.bond
    registry, taken = view.books.registry, Wei(bond // 2 + 1)
    registry.on_fined(TicketFined(ticket, taken, vera.me), view.now)
    vera.refresh(view)
    assert vera.calls == ()
    registry.on_topped_up(TicketToppedUp(ticket, taken))
    vera.refresh(view)
    assert [call.ticket for call in vera.calls] == [ticket]
