"""A run of the second round that was really played, in process: release contracts, real solvers and auditors.

One solver opens a false root, which the others challenge; an auditor accuses falsely whatever it is drawn for; a
stranger commits to a challenge and never reveals it; the model earns something.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from assay.explorer.app import make_app
from assay.explorer.round_reader import RoundReader
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Wei
from assay.sponsor.round_charters import AuditRates
from assay_ledger.bindings.payments import FindingPaid
from assay_ledger.chain.client import address_of
from assay_ledger.rounds.round_view import RoundView
from assay_ledger.rounds.run import RoundRun
from assay_solver.round_cheats import round_cheat_named
from assay_verifier.round_cheats import AuditCheat
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain, actors_artifacts

REVENUE = Wei(1000 * 10**18)
SOLVERS = ("mallory", "ada", "bob", "cleo")
"""In the order in which they act: the liar opens its root before three others have merged without it."""

LIAR, SLANDERER = "mallory", "iago"
ENDED = (AccusationStatus.UPHELD, AccusationStatus.REJECTED, AccusationStatus.LAPSED, AccusationStatus.EXCUSED)


@dataclass(frozen=True)
class PlayedRounds:
    """The run after its last step. `glimpse` is the first game's page and document while it was open."""

    made: WholeRun
    view: RoundView
    glimpse: tuple[str, dict[str, Any]]

    @property
    def run(self) -> RoundRun:
        """The run."""
        return self.made.run

    @property
    def names(self) -> dict[Address, str]:
        """Names by address."""
        return {player.agent.me: name for name, player in self.made.players.items()}

    def reader(self) -> RoundReader:
        """A reader of its own."""
        return RoundReader(self.run, self.made.store, self.names)


@contextmanager
def play_rounds(folder: Path) -> Iterator[PlayedRounds]:
    """Plays the run on a node of its own, which lives as long as the block."""
    with actors_artifacts(folder / "artifacts"):
        stage = SharedChain()
        try:
            # Each commitment is somebody's duty once an epoch: over four rounds the slanderer is drawn.
            rates = AuditRates(audit_ppm=1_000_000, reaudit_ppm=300_000)
            made = new_whole_run(stage, folder, rounds=4, rates=rates)
            for name in SOLVERS:
                made.solver(name, round_cheat_named("false-root", 1) if name == LIAR else None)
            made.auditor("vera", tickets=6, reports=True)
            made.auditor("viktor", tickets=6)
            made.auditor(SLANDERER, tickets=4, cheat=AuditCheat.FALSE_ACCUSER)
            made.enrol()
            made.fund()
            made.launch()
            made.settle(lambda view: any(game.ref.kind is ClaimKind.OUTER for game in view.games.values()))
            client = TestClient(make_app(RoundReader(made.run, made.store)))
            glimpse = client.get("/games/1").text, client.get("/api/v1/games/1").json()
            made.settle(lambda view: _is_paid_and_judged(view) and _earns_wages(made))
            pay_revenue(made)
            yield PlayedRounds(made, made.view, glimpse)
        finally:
            stage.close()


def _is_paid_and_judged(view: RoundView) -> bool:
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
