"""The foot of an actor's terminal: what it does, what is next and by when, and what its events say that it earned."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from assay.amounts import TEST_MONEY, Currency
from assay.cli import live_role
from assay.cli.live_role import LiveRole
from assay.protocol.rounds.terms import WorkStatus
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay.sponsor.charters import AuditRates
from assay.status.deadlines import deadlines_of
from assay_ledger.bindings import bounties, payments
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import SharedChain
from tests.harness.clocks import MovedClock

ME, OTHER = Address(b"\x01" * 20), Address(b"\x02" * 20)
USDC = Currency(6, "USDC")
TOKEN, SHARE = 10**6, 10**18


def test_it_says_what_is_done_and_how_far_that_is() -> None:
    doing = ["waiting"]
    live = LiveRole(lambda: doing[0], USDC)
    assert live.line() == "now: waiting"
    live.on_progress("training round 3", 2, 5)
    assert live.line() == "now: training round 3 (2 of 5)"
    live.on_progress("training round 3", 5, 5)
    doing[0] = ""
    assert live.line() == "now: looking"


def test_what_events_say_was_earned_is_summed() -> None:
    live, name = LiveRole(lambda: "waiting", USDC), Digest(bytes(32))
    live.on_event(payments.WorkPaid(Round(0), Seat(0), 1, WorkStatus.FINAL, Wei(3 * TOKEN), Wei(2 * SHARE)), ME)
    live.on_event(payments.FindingPaid(name, TicketId(1), Wei(TOKEN), Wei(SHARE // 2)), ME)
    live.on_event(payments.OpeningPaid(1, name, Wei(TOKEN // 4)), ME)
    live.on_event(bounties.PartPaid(name, ME, Wei(10 * TOKEN)), ME)
    live.on_event(bounties.PartPaid(name, OTHER, Wei(99 * TOKEN)), ME)
    assert live.line() == "now: waiting | earned: 14.25 tokens, 2.50 shares"


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "file"])
def test_a_terminal_alone_has_a_foot_and_it_is_taken_away(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=is_terminal, width=80, highlight=False)
    monkeypatch.setattr(live_role, "talk", console)
    with LiveRole(lambda: "waiting", USDC):
        console.print("round 1 opens")
    said = file.getvalue()
    assert "round 1 opens" in said and ("now: waiting" in said) is is_terminal
    assert not is_terminal or said.rstrip().endswith("\x1b[2K"), "the foot is taken away"


def test_the_next_deadline_is_said_and_comes_nearer(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = new_whole_run(stage, tmp_path, seats=2, rounds=2, rates=AuditRates(audit_ppm=100_000, shifts=5))
    for who in ("ada", "bob"):
        made.solver(who)
    made.auditor("vera", tickets=5)
    made.enrol()
    made.fund()
    made.launch()
    view = made.players["ada"].agent.see()
    due, clock = deadlines_of(view, {})[0], MovedClock()
    live = LiveRole(lambda: "waiting", TEST_MONEY, clock)
    live.on_look(view)
    assert due.text.startswith("commit to round 0") and due.text in live.line()
    before = live.line()
    clock.now += due.until - view.now
    assert live.line() != before and "next, within 0 s: commit" in live.line()
