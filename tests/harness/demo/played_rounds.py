"""A run that was really played, in process: release contracts, real solvers and auditors.

One solver opens a false root, which the others challenge; an auditor accuses falsely whatever it is drawn for; the
model earns something.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from assay.explorer.app import make_app
from assay.explorer.reader import RunReader
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Wei
from assay.sponsor.charters import AuditRates
from assay.watchdog.alarms import AlarmKind
from assay.watchdog.looking import WatchOptions
from assay.watchdog.watch import Watchdog
from assay_ledger.bindings.payments import FindingPaid
from assay_ledger.chain.client import address_of
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import open_store
from assay_solver.cheats import solver_cheat_named
from assay_verifier.cheats import AuditCheat
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import COMPUTE, SharedChain, actors_artifacts

REVENUE = Wei(1000 * 10**18)
SOLVERS = ("mallory", "ada", "bob", "cleo")
"""In the order in which they act: the liar opens its root before three others have merged without it."""

LIAR, SLANDERER = "mallory", "iago"
ENDED = (AccusationStatus.UPHELD, AccusationStatus.REJECTED, AccusationStatus.LAPSED, AccusationStatus.EXCUSED)


@dataclass(frozen=True)
class Glimpse:
    """The first game while it was open: its page, its document, and what watchdogs said of it.

    By whom they watch for: "nobody" is the one that computed what is true, and `dog`; "stranger" has an empty store.
    """

    page: str
    document: dict[str, Any]
    alarms: dict[str, set[AlarmKind]]
    dog: Watchdog
    written: set[str]
    """Files of the store that came while they looked."""


@dataclass(frozen=True)
class PlayedRounds:
    """The run after its last step."""

    made: WholeRun
    view: RunView
    glimpse: Glimpse

    @property
    def run(self) -> Run:
        """The run."""
        return self.made.run

    @property
    def names(self) -> dict[Address, str]:
        """Names by address."""
        return {player.agent.me: name for name, player in self.made.players.items()}

    def reader(self) -> RunReader:
        """A reader of its own."""
        return RunReader(self.run, self.made.store, self.names)


@contextmanager
def play_rounds(folder: Path) -> Iterator[PlayedRounds]:
    """Plays the run on a node of its own, which lives as long as the block."""
    with actors_artifacts(folder / "artifacts"):
        stage = SharedChain()
        try:
            # More rounds than there will be: chance decides when the slanderer is drawn, and not whether.
            rates = AuditRates(audit_ppm=1_000_000, reaudit_ppm=300_000)
            made = new_whole_run(stage, folder, rounds=12, rates=rates)
            for name in SOLVERS:
                made.solver(name, solver_cheat_named("false-root", 1) if name == LIAR else None)
            made.auditor("vera", tickets=6, reports=True)
            made.auditor("viktor", tickets=6)
            made.auditor(SLANDERER, tickets=4, cheat=AuditCheat.FALSE_ACCUSER)
            made.enrol()
            made.fund()
            made.launch()
            made.settle(lambda view: any(game.ref.kind is ClaimKind.OUTER for game in view.games.values()))
            glimpse = look_at_open_game(made)
            made.settle(lambda view: _is_paid_and_judged(view) and _earns_wages(made))
            pay_revenue(made)
            yield PlayedRounds(made, made.view, glimpse)
        finally:
            stage.close()


def look_at_open_game(made: WholeRun) -> Glimpse:
    """What explorer and watchdog say of game 1, in which the liar defends a false root."""
    run, store, chain = made.run, made.store, made.chain
    client = TestClient(make_app(RunReader(run, store)))
    page, document = client.get("/games/1").text, client.get("/api/v1/games/1").json()
    liar = WatchOptions(frozenset({made.address(LIAR)}))
    mover = WatchOptions(frozenset({run.games.game(1).state.party(run.games.game(1).state.turn)}))
    dogs = {
        "nobody": Watchdog(run, store, COMPUTE),
        "liar": Watchdog(run, store, COMPUTE, liar),
        "stranger": Watchdog(run, open_store(made.folder / "empty"), COMPUTE),
    }
    stored = set(map(str, (made.folder / "store").rglob("*")))
    alarms = {name: alarms_about(dog, "game 1") for name, dog in dogs.items()}
    written = set(map(str, (made.folder / "store").rglob("*"))) - stored
    snapshot, deadline = chain.rpc("evm_snapshot"), run.games.game(1).state.deadline
    for name, at in (("mover in time", deadline), ("mover too late", deadline + 1)):
        chain.rpc("evm_mine", hex(at))
        alarms[name] = alarms_about(Watchdog(run, options=mover), "game 1")
    assert chain.rpc("evm_revert", snapshot)
    return Glimpse(page, document, alarms, dogs["nobody"], written)


def alarms_about(dog: Watchdog, about: str) -> set[AlarmKind]:
    """What a watchdog says of one thing."""
    return {alarm.kind for alarm in dog.look().values() if alarm.about == about}


def _is_paid_and_judged(view: RunView) -> bool:
    """All work of a round and some finding were paid, and a slander is over."""
    accusations, money = view.books.duties.attestations.accusations.values(), view.state.money
    return any(a.status in ENDED for a in accusations) and bool(
        len(SOLVERS) in money.work_settled.values() and money.findings_paid
    )


def _earns_wages(made: WholeRun) -> bool:
    """Some finding was paid for; of work on a base that was cut none is."""
    return any(found.event.pay for found in made.chain.events(FindingPaid.search(made.run.payments.address), 0))


def pay_revenue(made: WholeRun) -> None:
    """The sponsor pays revenue."""
    chain, sponsor, run = made.chain, made.stage.sponsor, made.run
    chain.send(sponsor, run.token.mint(address_of(sponsor), REVENUE))
    chain.send(sponsor, run.token.approve(run.revenue.address, REVENUE))
    chain.send(sponsor, run.revenue.deposit(made.stage.token, REVENUE))
