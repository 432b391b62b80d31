"""A run that was really played, in process: cheats of several kinds, and a dispute of every kind of claim, all judged.

The games: a commitment lost at an element, one lost by silence, an update, a false attestation, a
root that the merge does not give, and a true commitment whose challenger falls silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from eth_account import Account

from assay.protocol.digests import keccak
from assay.protocol.economics.limits import PPM
from assay.protocol.program.trace import Tamper
from assay.protocol.run.claims import ClaimKind, ClaimRef, challenge_commitment
from assay.protocol.types import Address, Digest, Round, Wei
from assay.sponsor.charters import AuditRates
from assay.sponsor.launching import deposit, stake_of
from assay_ledger.agents.game_actions import Defer, EndOverdue, Play
from assay_ledger.agents.round_actions import Choice
from assay_ledger.chain.client import address_of
from assay_ledger.index.computing import Computation
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.view import RunView
from assay_solver.cheats import CheatingSolver, FalseRoot, FalseStep, FalseUpdate
from assay_verifier.cheats import AuditCheat
from tests.harness.actors.whole_run import PACE, WholeRun, new_whole_run
from tests.harness.actors.world import ETHER, SharedChain, actors_artifacts

TICKETS = 5
REVENUE = Wei(1000 * 10**18)
RATES = AuditRates(
    audit_ppm=PPM, reaudit_ppm=140_000, capacity=14, shifts=TICKETS, tickets=TICKETS, drawn_bounty_ppm=PPM
)
"""An epoch calls one ticket, which is drawn for every commitment: chance decides when a liar is caught, not whether."""

ROUNDS = 120
"""The blind auditor is audited in one epoch of seven: after 3 to 38 rounds in 16 plays, in two more later than that."""

LOST = {
    ClaimKind.OUTER: {"fake"},
    ClaimKind.INTERVAL: {"flip", "mute"},
    ClaimKind.UPDATE: {"bent"},
    ClaimKind.ATTESTATION: {"blind"},
}
"""Who loses which kind of claim."""


class Relentless(CheatingSolver):
    """One that lies in every round, until it has lost its seat."""

    def lie(self, round_: Round) -> Tamper | None:
        """See CheatingSolver."""
        self.cheat.round = round_
        return super().lie(round_)

    def _update_lie(self, round_: Round, job: Computation) -> Tamper | None:
        self.cheat.round = round_
        return super()._update_lie(round_, job)

    def _merge_lie(self, round_: Round, job: Computation) -> Tamper | None:
        self.cheat.round = round_
        return super()._merge_lie(round_, job)


class Mute(Relentless):
    """One that lies and then lets the clock run out."""

    def play(self, view: RunView) -> Iterator[Choice]:
        """See Agent: it makes no move about its work. The liar about merges challenges its true ones, too."""
        for choice in super().play(view):
            assert isinstance(choice, Play | Defer | EndOverdue)
            if view.games[choice.game_id].ref.kind is not ClaimKind.INTERVAL:
                yield choice


LIARS = {
    "flip": (Relentless, FalseStep),
    "mute": (Mute, FalseStep),
    "bent": (Relentless, FalseUpdate),
    "fake": (Relentless, FalseRoot),
}


@dataclass(frozen=True)
class PlayedDisputes:
    """The run after its last game."""

    made: WholeRun
    view: RunView

    def name_of(self, who: Address) -> str:
        """Whose address it is; the stranger's has no name."""
        names = {player.agent.me: name for name, player in self.made.players.items()}
        return names.get(who, "stranger")

    def games(self, kind: ClaimKind) -> list[GameRecord]:
        """Games about claims of a kind."""
        return [game for _, game in sorted(self.view.games.items()) if game.ref.kind is kind]


@contextmanager
def play_disputes(folder: Path) -> Iterator[PlayedDisputes]:
    """Plays the run on a node of its own, which lives as long as the block."""
    with actors_artifacts(folder / "artifacts"):
        stage = SharedChain()
        try:
            pace = replace(PACE, commit=3600)
            made = new_whole_run(stage, folder, seats=2 + len(LIARS), rounds=ROUNDS, pace=pace, rates=RATES)
            for name in ("ada", "bob"):
                made.solver(name)
            for name, (kind, cheat) in LIARS.items():
                made.add(name, partial(kind, cheat=cheat(Round(0))), stake_of(made.run.charter, seats=1))
            made.auditor("vera", tickets=3)
            made.auditor("blind", tickets=2, cheat=AuditCheat.BLIND)
            made.enrol()
            made.fund()
            made.launch()
            made.settle(lambda view: any(view.games))
            challenge_silently(made, "ada")
            made.settle(lambda view: all_judged(made, view), stops=2_000)
            pay_revenue(made)
            yield PlayedDisputes(made, made.view)
        finally:
            stage.close()


def all_judged(made: WholeRun, view: RunView) -> bool:
    """Whether each liar was convicted, and no game is open."""
    names = {player.agent.me: name for name, player in made.players.items()}
    lost = {(g.ref.kind, names[g.defender]) for g in view.games.values() if g.convicted}
    wanted = {(kind, name) for kind, names in LOST.items() for name in names}
    return lost == wanted and all(g.is_over for g in view.games.values())


def pay_revenue(made: WholeRun) -> None:
    """The sponsor pays revenue."""
    chain, sponsor, run = made.chain, made.stage.sponsor, made.run
    chain.send(sponsor, run.token.mint(address_of(sponsor), REVENUE))
    chain.send(sponsor, run.token.approve(run.revenue.address, REVENUE))
    chain.send(sponsor, run.revenue.deposit(made.stage.token, REVENUE))


def challenge_silently(made: WholeRun, name: str) -> None:
    """A stranger commits to a challenge of a commitment of round 0, reveals it, and makes no move."""
    stranger, chain, run = Account.create(), made.chain, made.run
    e, view = run.charter.economics, made.view
    chain.transfer(made.stage.sponsor, stranger.address, 10 * ETHER)
    stake = Wei(e.challenge_bond + e.challenge_deposit)
    chain.send(stranger, run.token.mint(address_of(stranger), stake))
    deposit(chain, stranger, run, stake)
    work = next(w for w in view.works(Round(0)) if view.books.tenures.existing(w.tenure).holder == made.address(name))
    ref = ClaimRef(ClaimKind.INTERVAL, Round(0), work.seat)
    own, salt = Digest(keccak(b"own")), Digest(keccak(b"salt"))
    commitment = challenge_commitment(ref, own, salt, address_of(stranger))
    chain.send(stranger, run.challenges.commit_challenge(commitment))
    chain.send(stranger, run.commitments.prepare(ref.kind, ref.round, ref.seat, work.work))
    chain.rpc("anvil_mine", hex(2))
    chain.rpc("evm_mine", hex(chain.head().timestamp + run.charter.chain.reorg_depth))
    chain.send(stranger, run.challenges.reveal_challenge(ref, own, salt))
