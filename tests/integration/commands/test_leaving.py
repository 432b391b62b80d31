"""`assay solver leave` and `assay verifier leave`: real processes join, work, are stopped, leave, and lose nothing."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.cli.leaving import ActorRunning
from assay.planning.outlook import away_words
from assay.protocol.errors import ExitCode
from assay.protocol.rounds.terms import NEVER
from assay.sponsor.charters import AuditRates
from assay.sponsor.launching import stake_of
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.shells import BROUGHT, ActorShells
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import ETHER

TICKETS = 5
ROUNDS, LAST = 12, 2
"""Rounds of the run, and the one in which both leave."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as found:
        yield found


@pytest.fixture
def shells(desk: Desk, tmp_path: Path) -> Iterator[ActorShells]:
    made = new_whole_run(desk.stage, tmp_path, seats=2, rounds=ROUNDS, rates=AuditRates(audit_ppm=900_000))
    found = ActorShells(desk, made)
    try:
        yield found
    finally:
        found.end()


@pytest.mark.long
@pytest.mark.timeout(400)
def test_a_solver_and_a_verifier_leave_and_every_token_comes_back(desk: Desk, shells: ActorShells) -> None:
    made, charter = shells.made, shells.made.run.charter
    deposit = {"sol": stake_of(charter, seats=1), "vera": stake_of(charter, tickets=TICKETS)}
    for name in ("sol", "vera"):
        shells.add(name)
    shells.start("sol", "solver", "start", "--deposit", str(deposit["sol"] // ETHER + 100))
    more = ("--tickets", str(TICKETS), "--deposit", str(deposit["vera"] // ETHER + 100))
    shells.start("vera", "verifier", "start", *more)
    made.fund()
    shells.wait(lambda v: len(v.books.registry.tickets) == TICKETS and v.free_seats == 1)
    ripe = max(held.from_ for held in made.view.books.registry.tickets.values())
    shells.wait(lambda v: v.now > ripe)
    made.launch()
    # Amid rounds, with commitments that nobody has audited and tickets that will be called.
    shells.wait(lambda v: v.round == LAST)

    # Beside the process that is at work nobody leaves: it would take again what this one gives back.
    at = (*shells.words("vera"), "--store", str(made.folder / "store"))
    assert isinstance(desk.refused("verifier", "leave", *at, "--data-dir", str(made.folder / "other")), ActorRunning)
    assert not (made.folder / "other").exists()

    # --- stopped: what is locked, and how it gets out
    shells.running["sol"].send_signal(signal.SIGINT)
    code, _, said = shells.ended("sol")
    assert code == ExitCode.INTERRUPTED and "seat 0, fee of seat 0 (" in said and "`assay solver leave`" in said, said
    shells.running["vera"].send_signal(signal.SIGTERM)
    code, _, said = shells.ended("vera")
    assert code == ExitCode.INTERRUPTED and "at the earliest: `assay verifier leave`" in said, said
    assert all(f"ticket {number}" in said for number in range(1, TICKETS + 1)), said
    assert away_words(charter) in said, said

    # --- left
    shells.start("sol", "solver", "leave", "--json")
    shells.start("vera", "verifier", "leave", "--json")
    shells.wait(lambda _: all(process.poll() is not None for process in shells.running.values()))
    documents: dict[str, Any] = {}
    for name in ("sol", "vera"):
        code, output, said = shells.ended(name)
        assert code == ExitCode.OK, said
        documents[name] = json.loads(output)
        assert documents[name] == {"free": made.free(shells.people[name]), "locked": []}
        last = said.splitlines()[-1]
        assert "`assay ledger unstake" in last and "`assay ledger withdraw`" in last and " waits for " in said, said
    view = made.view
    assert not view.books.registry.tickets and all(t.until != NEVER for t in view.books.tenures.tenures.values())
    assert view.round is not None and view.round < ROUNDS - 1, "they left amid rounds"

    # --- paid out: what was brought, and all that was earned
    works, wages = len(view.state.works), len(view.state.money.findings_paid)
    assert works > LAST and wages == len(view.state.attestations)
    earned = {
        "sol": works * charter.price + len(view.state.money.openings_paid) * charter.economics.merge_pay,
        "vera": wages * charter.economics.wage,
    }
    for name in ("sol", "vera"):
        assert shells.paid_out(name) == BROUGHT + earned[name]
