"""`assay solver leave` and `assay verifier leave`: real processes join, work, are stopped, leave, and lose nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from assay.cli.leaving import ActorRunning
from assay.demo.timekeeper import Timekeeper
from assay.protocol.errors import ExitCode
from assay.protocol.rounds.terms import NEVER
from assay.protocol.types import Address
from assay.sponsor.charters import AuditRates
from assay.sponsor.launching import mint_tokens, stake_of
from assay_ledger.rounds.view import RunView
from tests.harness.actors.desk import Desk, open_desk
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import ETHER
from tools.house import PACKAGES

TICKETS = 5
ROUNDS, LAST = 12, 2
"""Rounds of the run, and the one in which both leave."""

BROUGHT = 10**6 * ETHER
"""Tokens of each actor, in wei, more than it locks."""

SOURCE = os.pathsep.join(str(Path(__file__).parents[3] / where) for where in PACKAGES.values())
LIMIT_S = 150.0


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with open_desk(tmp_path_factory.mktemp("desk")) as found:
        yield found


@dataclass
class ActorShells:
    """People at shells of their own in one run, whose time passes while their actors wait."""

    desk: Desk
    made: WholeRun
    people: dict[str, Address] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def add(self, name: str) -> None:
        """Somebody with a key, coins and tokens."""
        at = ("--keys-dir", str(self.desk.folder / "keys"), "--password-file", str(self.desk.folder / "password"))
        who = self.desk.json("key", "new", name, "--kdf", "pbkdf2", *at)["address"]
        self.people[name] = Address(bytes.fromhex(who[2:]))
        self.made.chain.transfer(self.made.stage.sponsor, who, 10 * ETHER)
        mint_tokens(self.made.chain, self.made.stage.sponsor, self.made.run.token, self.people[name], BROUGHT)

    def words(self, name: str) -> tuple[str, ...]:
        """Who acts, and in which run."""
        where = ("--rpc-url", self.made.chain.url, "--run", "0x" + self.made.run.address.hex())
        return (*where, *("--key", name, *self.desk.key_words[2:]))

    def start(self, name: str, *words: str, folder: str = "") -> None:
        """A command of an actor as a process."""
        data, store = str(self.made.folder / (folder or name)), str(self.made.folder / "store")
        self.running[name] = subprocess.Popen(
            [sys.executable, "-m", "assay", *words, *self.words(name), "--store", store, "--data-dir", data],
            env=os.environ | {"PYTHONPATH": SOURCE, "ASSAY_CONFIG": "/dev/null", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait(self, until: Callable[[RunView], bool]) -> RunView:
        """Time passes until the run is so far."""
        keeper = Timekeeper(
            *(self.made.chain, self.made.store, self.made.run.address),
            frozenset(self.people[name] for name in self.running),
        )
        end = time.monotonic() + LIMIT_S
        while not until(view := self.made.view):
            failed = [name for name, process in self.running.items() if process.poll() not in (None, 0)]
            assert time.monotonic() < end and not failed, self.end()
            keeper.tick()
            time.sleep(0.05)
        return view

    def ended(self, name: str) -> tuple[int, str, str]:
        """How a process ended, what it printed and what it said."""
        process = self.running.pop(name)
        output, said = process.communicate(timeout=60)
        return process.returncode, output, said

    def end(self) -> dict[str, str]:
        """Ends all that still run; what they said last."""
        said = {}
        for name in list(self.running):
            self.running[name].kill()
            said[name] = self.ended(name)[2][-3000:]
        return said

    def paid_out(self, name: str) -> int:
        """What somebody holds after unstaking what nothing locks, and the exit delay, in wei."""
        chain, at = self.made.chain, self.words(name)
        free = self.made.free(self.people[name])
        amount = f"{free // ETHER}.{free % ETHER:018d}"
        asked = self.desk.json("ledger", "unstake", amount, "--yes", *at)
        chain.rpc("evm_mine", hex(max(asked["not_before"], chain.head().timestamp) + 1))
        return int(self.desk.json("ledger", "withdraw", *at)["held"])


@pytest.fixture
def shells(desk: Desk, tmp_path: Path) -> Iterator[ActorShells]:
    made = new_whole_run(desk.stage, tmp_path, seats=2, rounds=ROUNDS, rates=AuditRates(audit_ppm=900_000))
    found = ActorShells(desk, made)
    try:
        yield found
    finally:
        found.end()


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
    assert code == ExitCode.INTERRUPTED and "seat 0 holds" in said and "`assay solver leave`" in said, said
    shells.running["vera"].send_signal(signal.SIGTERM)
    code, _, said = shells.ended("vera")
    assert code == ExitCode.OK and "of chain time at the earliest: `assay verifier leave`" in said, said
    assert all(f"ticket {number}" in said for number in range(1, TICKETS + 1)), said

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
        assert "`assay ledger unstake" in last and "`assay ledger withdraw`" in last and " for " in said, said
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
