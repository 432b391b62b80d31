"""A real round up to where its claims can be challenged, and games about single claims from there.

`open_claims` lets agents play the round; every game is then played `aside`, and the chain put back. Solvers lie as
`LiesInNodes` says; a stranger with money lies about what is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from assay.protocol.digests import ZERO
from assay.protocol.game.moves import AnyMove
from assay.protocol.game.state import Verdict
from assay.protocol.game.table import Side
from assay.protocol.program.nodes import Family
from assay.protocol.program.trace import ReferenceTrace, Trace
from assay.protocol.run.claims import ClaimRef, challenge_commitment
from assay.protocol.types import Address, Digest, Round
from assay.sponsor.posting import post_run
from assay.sponsor.preparing import Prepared
from assay_ledger.agents.actions import Challenge
from assay_ledger.agents.game_player import GamePlayer
from assay_ledger.agents.participant import Participant
from assay_ledger.chain.client import CALLDATA_CAP, TRANSACTION_GAS_CAP
from assay_ledger.index.archive import Computation
from assay_ledger.index.games import Game
from assay_ledger.index.run import Run
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.store.blobs import open_store
from assay_solver.cheating import CheatingSolver
from assay_solver.cheats import Cheat, Scene
from assay_solver.lies import Lie
from assay_verifier.attesting import RESULT_BLOCKS
from tests.harness.actors.families import NodeLie, lie_in
from tests.harness.actors.round_claims import Liar
from tests.harness.actors.world import ActorWorld, SharedChain, fill_escrow, tiny_prepared, work_of

MOVE_GAS = 1_000_000
"""No move of a game may need more."""


class LiesInNodes(Cheat):
    """Lies in every interval, each time in a node of another family, in every step in turn."""

    name = "lies-in-nodes"

    def __init__(self, families: Sequence[Family]) -> None:
        super().__init__(Round(0))
        self.families = families
        self.lies: dict[int, NodeLie] = {}

    def lie(self, scene: Scene, number: int, job: Computation) -> Lie | None:
        """See Cheat."""
        if number >= len(self.families):
            return None
        if number not in self.lies:
            self.lies[number] = lie_in(scene.compute, job, self.families[number], 1 + number % job.steps)
        return self.lies[number].tamper


@dataclass
class ClaimsRun:
    """A run with one honest solver, liars and a verifier, whose claims can all be challenged."""

    world: ActorWorld
    stranger: ActorKeys
    """Somebody with money and no role."""
    truths: dict[tuple[ClaimRef, int], ReferenceTrace] = field(default_factory=dict)

    def participant(self, name: str) -> Participant:
        """An actor of the run."""
        agent = self.world.players[name].agent
        assert isinstance(agent, Participant)
        return agent

    def ref(self, name: str, number: int) -> ClaimRef:
        """An interval that a solver claims."""
        agent = self.participant(name)
        view = agent.see()
        record = view.state.rounds[0]
        own = next(c for c in record.commitments.values() if c.solver == agent.me)
        return view.duty(record, own, number).ref

    def lie_of(self, family: Family) -> tuple[str, ClaimRef, NodeLie]:
        """Who lies in a node of this family, in which claim, and how."""
        for name, player in self.world.players.items():
            cheat = player.agent.cheat if isinstance(player.agent, CheatingSolver) else None
            if isinstance(cheat, LiesInNodes) and family in cheat.families:
                number = cheat.families.index(family)
                return name, self.ref(name, number), cheat.lies[number]
        raise AssertionError(f"nobody lies in {family.name}")

    def job(self, ref: ClaimRef) -> Computation:
        """Program, X and steps of a claim, from what is published."""
        vera = self.participant("vera")
        return vera.archive.job(vera.see(), vera.duty_of(ref, vera.see()))

    def truth(self, ref: ClaimRef, step: int) -> ReferenceTrace:
        """The run behind a claim up to a step, by the reference."""
        if (ref, step) not in self.truths:
            job = self.job(ref)
            self.truths[ref, step] = ReferenceTrace(job.program, job.lists, step)
        return self.truths[ref, step]

    def player(self, who: Participant) -> GamePlayer:
        """The player of an actor."""
        return who._player(who.see())

    def liar(self, keys: ActorKeys, trace: Trace) -> Liar:
        """The agents' player over one false run."""
        return Liar(self.world.run.games, keys.account, self.arity, lambda _: trace)

    @property
    def arity(self) -> int:
        """A."""
        return self.world.run.charter.clocks.arity

    def accuse(self, ref: ClaimRef) -> int:
        """The verifier challenges, as its agent does on finding a claim false; returns the game's number."""
        vera = self.participant("vera")
        vera.perform(Challenge(ref), vera.see())
        return self.world.run.games.count()

    def challenge_as_third_party(self, ref: ClaimRef, own_root: Digest) -> int:
        """The stranger commits to a challenge and reveals it; returns the game's number."""
        chain, game = self.world.stage.chain, self.world.run.game
        commitment = challenge_commitment(ref, own_root, ZERO, self.stranger.address)
        chain.send(self.stranger.account, game.commit_challenge(commitment))
        for _ in range(RESULT_BLOCKS):
            chain.rpc("evm_mine")
        chain.send(self.stranger.account, game.reveal_challenge(ref, own_root, ZERO))
        return self.world.run.games.count()

    def play(
        self,
        game_id: int,
        defender: GamePlayer,
        challenger: GamePlayer,
        watch: Callable[[Game, AnyMove], None] | None = None,
    ) -> tuple[Verdict, int]:
        """Plays a game to its verdict, as it stands on chain; also how many moves the defender made."""
        games, replies = self.world.run.games, 0
        while not (game := games.game(game_id)).state.is_over:
            defends = game.state.turn is Side.DEFENDER
            replies += defends
            player = defender if defends else challenger
            if watch is not None:
                move = player.next_move(game)
                assert move is not None
                watch(game, move)
            assert player.move(game) is not None
        found = games.verdict(game_id)
        assert found is not None
        return found[0], replies

    def wealth(self) -> dict[Address, int]:
        """What everybody has in the vault, free or locked."""
        run, chain = self.world.run, self.world.stage.chain
        locks = list(self.world.locks().values())
        people = {p.agent.me for p in self.world.players.values()} | {self.stranger.address}
        people |= {run.modules.game, run.modules.settlement, run.charter.sponsor, *(owner for owner, _ in locks)}
        free = {who: chain.ask(run.vault.free(who)) for who in people}
        return {who: free[who] + sum(amount for owner, amount in locks if owner == who) for who in people}

    def check_transactions(self, first: int, last: int) -> int:
        """Every transaction of these blocks is within the caps, every one to the game contract below a million gas."""
        chain, game, count = self.world.stage.chain, "0x" + self.world.run.modules.game.hex(), 0
        for number in range(first, last + 1):
            block = chain.rpc("eth_getBlockByNumber", hex(number), True)
            for transaction in block["transactions"]:
                gas = int(chain.rpc("eth_getTransactionReceipt", transaction["hash"])["gasUsed"], 16)
                assert gas <= TRANSACTION_GAS_CAP
                assert len(transaction["input"]) // 2 - 1 <= CALLDATA_CAP
                assert gas <= MOVE_GAS or transaction["to"] != game
                count += 1
        return count


def posted_world(stage: SharedChain, folder: Path) -> ActorWorld:
    """A run of the `tiny` preset."""
    return world_of(stage, folder, tiny_prepared(), rounds=1)


def world_of(stage: SharedChain, folder: Path, prepared: Prepared, rounds: int) -> ActorWorld:
    """A run published and deployed by the very code behind `assay run post`, as in the demo."""
    store = open_store(folder / "store")
    address = post_run(stage.chain, stage.sponsor, store, prepared, name="posted", rounds=rounds, token=stage.token)
    run = Run(stage.chain, address)
    fill_escrow(stage, run)
    return ActorWorld(stage, folder, work_of(prepared), run, store)


def open_claims(world: ActorWorld, liars: Mapping[str, Sequence[Family]]) -> ClaimsRun:
    """A round that everybody took part in, up to where its claims can be challenged and nobody has done so."""
    founders = {"first_seats": 1 + len(liars), "first_verifiers": 1}
    # The verifier steps first, so that everybody after it sees what it revealed before it accuses anybody.
    vera = world.verifier("vera", **founders)
    world.solver("ada", **founders)
    for name, families in liars.items():
        world.solver(name, cheat=LiesInNodes(families), **founders)
    claims = ClaimsRun(world, world.keys("stranger"))
    world.settle(lambda state: bool(state.rounds) and any(a.leaves for a in state.rounds[0].attendance.values()))
    vera.refresh(vera.see())
    assert not vera.state.games
    assert len(vera.state.rounds[0].commitments) == 1 + len(liars)
    return claims


@contextmanager
def aside(claims: ClaimsRun) -> Iterator[None]:
    """What happens here on chain has not happened afterwards."""
    snapshot = claims.world.stage.chain.rpc("evm_snapshot")
    try:
        yield
    finally:
        assert claims.world.stage.chain.rpc("evm_revert", snapshot)
