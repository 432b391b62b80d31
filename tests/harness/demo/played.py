"""A run that was really played, in process: cheats of several kinds, every kind of claim disputed, all settled.

One game each: an interval lost at an element, an interval lost by silence, an update, a false attestation, an outer
step that cannot be defended, and a true interval whose challenger falls silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eth_account import Account

from assay.protocol.digests import keccak
from assay.protocol.program.trace import Tamper
from assay.protocol.run.claims import ClaimKind, ClaimRef, challenge_commitment
from assay.protocol.types import Digest, Round
from assay_ledger.bindings.token import TokenContract
from assay_ledger.chain.client import address_of
from assay_ledger.index.archive import Computation
from assay_ledger.index.records import GameRecord, RunState
from assay_ledger.index.run import Run
from assay_solver.cheats import Cheat, Scene
from assay_solver.lies import Lie, output_source
from tests.harness.actors.world import ActorWorld, SharedChain, actors_artifacts, new_world, small_work, with_economics

REVENUE = 1000 * 10**18
DAY = 86_400


class BentUpdate(Cheat):
    """An update that its own intervals do not give: one bit of one element."""

    name = "bent-update"

    def lie(self, scene: Scene, number: int, job: Computation) -> Tamper | None:
        if number != scene.intervals:
            return None
        return Lie({(1, output_source(job.program, 0)): lambda data: bytes((data[0] ^ 1,)) + data[1:]})


SOLVERS: dict[str, str | Cheat | None] = {
    "ada": None,
    "bob": None,
    "flip": "bit-flip",
    "mute": "silent",
    "bent": BentUpdate(Round(1)),
}


@dataclass(frozen=True)
class Played:
    """The world after its last game, and its records."""

    world: ActorWorld
    state: RunState

    @property
    def run(self) -> Run:
        return self.world.run

    def games(self, kind: ClaimKind) -> list[GameRecord]:
        return [g for _, g in sorted(self.state.games.items()) if g.ref.kind is kind]


@contextmanager
def play(folder: Path) -> Iterator[Played]:
    """Plays the run on a node of its own, which lives as long as the block."""
    with actors_artifacts(folder / "artifacts"):
        stage = SharedChain()
        try:
            # Every duty is drawn by every verifier: what is found does not hang on chance.
            drawn = with_economics(audit_ppm=3_000_000)
            world = new_world(stage, folder, small_work(), rounds=2, change=drawn)
            seats = {"first_seats": len(SOLVERS), "first_verifiers": 3}
            for name, cheat in SOLVERS.items():
                world.solver(name, cheat, **seats)
            world.verifier("vera", **seats)
            world.verifier("viktor", **seats)
            world.verifier("lazy", lazy=True, **seats)
            world.whistleblower("wilma")
            world.settle(lambda state: len(state.rounds) == 2)
            post_false_outer(world, "bob")
            challenge_falsely(world, "ada")
            world.settle()
            pay_revenue(world)
            yield Played(world, world.settle())
        finally:
            stage.close()


def post_false_outer(world: ActorWorld, name: str) -> None:
    """Posts an outer step after round 0 that ends nowhere, from the account of somebody who cannot defend it."""
    agent = world.players[name].agent
    record = world.state.rounds[0]
    nowhere = Digest(keccak(b"nowhere"))
    base, (_, x) = next(iter(record.inclusions.items()))
    world.stage.chain.send(agent.account, world.run.outers.post_outer(0, base, x, nowhere, nowhere))


def challenge_falsely(world: ActorWorld, name: str) -> None:
    """A stranger commits to a challenge of a true interval of round 0, and reveals it."""
    stranger, chain, game = Account.create(), world.stage.chain, world.run.game
    world.stage.rich(stranger, world.run)
    seat = world.state.rounds[0].seat_of(world.address(name))
    assert seat is not None
    ref = ClaimRef(ClaimKind.INTERVAL, Round(0), seat, 1)
    own, salt = Digest(keccak(b"own")), Digest(keccak(b"salt"))
    chain.send(stranger, game.commit_challenge(challenge_commitment(ref, own, salt, address_of(stranger))))
    chain.rpc("anvil_mine", hex(2))
    chain.send(stranger, game.reveal_challenge(ref, own, salt))


def pay_revenue(world: ActorWorld) -> None:
    """The sponsor pays revenue, four weeks pass, and two owners claim."""
    chain, sponsor, run = world.stage.chain, world.stage.sponsor, world.run
    token = TokenContract(world.stage.token)
    chain.send(sponsor, token.mint(address_of(sponsor), REVENUE))
    chain.send(sponsor, token.approve(run.revenue.address, REVENUE))
    chain.send(sponsor, run.revenue.deposit(world.stage.token, REVENUE))
    chain.rpc("evm_mine", hex(chain.head().timestamp + 36 * DAY))
    for name in ("ada", "vera"):
        chain.send(world.players[name].agent.account, run.revenue.claim(world.stage.token))
