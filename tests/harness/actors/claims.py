"""Round 0 of a whole run, up to where its claims can be challenged, and games about single claims from there.

Ada is a real solver whose commitment is true. Mallory commits by hand to whatever a test says, and a stranger with
money challenges. Every game is played `aside`, and the chain put back. Contracts, players and moves are those of
releases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from eth_account import Account

from assay.protocol.digests import keccak
from assay.protocol.game.moves import AnyMove
from assay.protocol.game.state import Verdict
from assay.protocol.game.table import Side
from assay.protocol.program.trace import ReferenceTrace, Trace
from assay.protocol.rounds.ids import tenure_lock
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.run.claims import ClaimKind, ClaimRef, challenge_commitment
from assay.protocol.types import Digest, Round, Seat, Wei
from assay.sponsor.charters import Pace
from assay.sponsor.launching import deposit
from assay.sponsor.preparing import PreparedRounds
from assay_ledger.agents.game_player import GamePlayer
from assay_ledger.chain.client import TRANSACTION_GAS_CAP, address_of
from assay_ledger.contract import Call
from assay_ledger.index.computing import Computation, Compute
from assay_ledger.index.games import Game
from assay_ledger.keys.keystore import ActorKeys
from assay_solver.agent import Solver
from assay_solver.cheats import solver_cheat_named
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import COMPUTE, ETHER, SharedChain

MOVE_GAS = 1_000_000
"""No move of a game may need more."""

CALLDATA_CAP = 128 * 1024
"""What common transaction pools accept, in bytes."""

PACE = Pace(units=5, least=1, steps=2, commit=36_000)
"""One unit makes a commitment, so that a claim has two steps; a round is long, since many games are played in one."""

ROUND = Round(0)


class Liar(GamePlayer):
    """Sends what its false run says, whatever the reference computes."""

    def confirm(self, game: Game, move: AnyMove) -> None:
        """See GamePlayer."""


@dataclass
class RoundClaims:
    """A run whose round 0 is open; ada has committed to one unit."""

    made: WholeRun
    ada: Solver
    strangers: list[ActorKeys] = field(default_factory=list)
    """People with money and no role."""

    def __post_init__(self) -> None:
        tenures = self.made.view.books.tenures.tenures
        holders = {held.holder: (number, held.seat) for number, held in tenures.items()}
        self.places = {name: holders[self.made.address(name)] for name in ("ada", "mallory")}
        self.job_of = cache(self._job_of)
        self.truth = cache(self._truth)

    # --- what is claimed

    @property
    def steps(self) -> int:
        """Of a claim."""
        return PACE.least * PACE.steps

    def seat(self, name: str) -> Seat:
        """An actor's seat."""
        return self.places[name][1]

    def tenure(self, name: str) -> int:
        """Its tenure's number."""
        return self.places[name][0]

    def ref(self, name: str) -> ClaimRef:
        """The claim about all steps of an actor's commitment."""
        return ClaimRef(ClaimKind.INTERVAL, ROUND, self.seat(name))

    def _job_of(self, name: str) -> Computation:
        """Program, X and steps of the same."""
        parameters = self.ada.archive.fetch_parameters(self.ada.see(), 0)
        return Computation(
            self.ada.archive.step, self.ada.archive.start(ROUND, self.seat(name), parameters), self.steps
        )

    def _truth(self, name: str, step: int) -> ReferenceTrace:
        """The run behind an actor's claim up to a step, by the reference."""
        job = self.job_of(name)
        return ReferenceTrace(job.program, job.lists, step)

    # --- who claims and challenges

    def add_stranger(self, bonds: int = 4) -> ActorKeys:
        """Somebody who can pay for so many challenges."""
        account, e = Account.create(), self.made.run.charter.economics
        money = Wei(bonds * (e.challenge_bond + e.challenge_deposit))
        self.made.chain.transfer(self.made.stage.sponsor, account.address, 10 * ETHER)
        self.made.chain.send(account, self.made.run.token.mint(address_of(account), money))
        deposit(self.made.chain, account, self.made.run, money)
        self.strangers.append(ActorKeys(f"stranger {len(self.strangers)}", account))
        return self.strangers[-1]

    def commit(self, claimed: Trace | None) -> None:
        """Mallory commits to the end of a run, None to one that nobody knows, and the round's mask closes."""
        mallory, run = self.made.players["mallory"].agent, self.made.run
        ends = (
            tuple(Digest(keccak(bytes([k]))) for k in range(3)) if claimed is None else claimed.list_roots(self.steps)
        )
        work = SeatWork(PACE.least, Digest(keccak(b"marks")), (ends[0], ends[1], ends[2]), Digest(keccak(b"update")))
        base = self.made.chain.ask(run.commitments.round_of(ROUND)).base
        seat, tenure = self.seat("mallory"), self.tenure("mallory")
        self.made.chain.send(mallory.account, run.commitments.commit(ROUND, seat, tenure, base, work))
        self.made.chain.rpc("evm_mine")
        self.prepare("mallory", work)

    def prepare(self, name: str, work: SeatWork) -> None:
        """Has X of an actor's claim built."""
        call = self.made.run.commitments.prepare(ClaimKind.INTERVAL, ROUND, self.seat(name), work)
        self.made.chain.send(self.made.stage.sponsor, call)

    def prepare_adas(self) -> None:
        """Has X of ada's claim built, whose mask mallory's commitment closes."""
        self.commit(None)
        work = self.ada.see().work(ROUND, self.seat("ada"))
        assert work is not None
        self.prepare("ada", work.work)

    def challenge(self, who: ActorKeys, ref: ClaimRef, own_root: Digest, count: int = 1) -> int:
        """A stranger commits to challenges of a claim and reveals them, all at once; the last game's number."""
        made, contract = self.made, self.made.run.challenges
        salts = [Digest(bytes([k]) * 32) for k in range(count)]
        names = [challenge_commitment(ref, own_root, salt, who.address) for salt in salts]
        self.send_all(who, [contract.commit_challenge(name) for name in names])
        made.chain.rpc("evm_mine", hex(made.chain.head().timestamp + made.run.charter.chain.reorg_depth + 1))
        made.chain.rpc("evm_mine")
        self.send_all(who, [contract.reveal_challenge(ref, own_root, salt) for salt in salts])
        return made.run.games.count()

    def send_all(self, who: ActorKeys, calls: list[Call]) -> None:
        """Transactions of one account, all at once."""
        for result in self.made.chain.send_all(who.account, calls):
            if isinstance(result, Exception):
                raise result

    # --- games

    @property
    def arity(self) -> int:
        """A."""
        return self.made.run.charter.clocks.arity

    def player(self, keys: ActorKeys, trace: Trace) -> GamePlayer:
        """The agents' player over a run."""
        return GamePlayer(self.made.run.games, keys.account, self.arity, lambda _: trace)

    def liar(self, keys: ActorKeys, trace: Trace) -> Liar:
        """The same over a false run."""
        return Liar(self.made.run.games, keys.account, self.arity, lambda _: trace)

    @property
    def mallory(self) -> ActorKeys:
        """Mallory's account."""
        return self.made.players["mallory"].agent.keys

    def adas_player(self) -> GamePlayer:
        """The player of ada's own process, over the states that it kept."""
        return self.ada._player(self.ada.see())

    def play(
        self,
        game_id: int,
        defender: GamePlayer,
        challenger: GamePlayer,
        watch: Callable[[Game, AnyMove], None] = lambda game, move: None,
        until: Callable[[Game], bool] = lambda game: False,
    ) -> Verdict | None:
        """Plays a game to its verdict, as it stands on chain, or until something holds."""
        games = self.made.run.games
        while not (game := games.game(game_id)).state.is_over:
            if until(game):
                return None
            player = defender if game.state.turn is Side.DEFENDER else challenger
            move = player.next_move(game)
            assert move is not None
            watch(game, move)
            assert player.move(game) is not None
        found = games.verdict(game_id)
        assert found is not None
        return found[0]

    def lock_of(self, name: str) -> int:
        """What is locked behind an actor's tenure, in wei."""
        return self.made.chain.ask(self.made.run.vault.lock_of(tenure_lock(self.tenure(name))))[1]

    def check_transactions(self, first: int) -> int:
        """Every transaction since a block is within the caps, every move of a game below a million gas; how many."""
        chain, game, count = self.made.chain, "0x" + self.made.run.modules.game.hex(), 0
        for number in range(first, chain.head().number + 1):
            for transaction in chain.rpc("eth_getBlockByNumber", hex(number), True)["transactions"]:
                gas = int(chain.rpc("eth_getTransactionReceipt", transaction["hash"])["gasUsed"], 16)
                assert gas <= TRANSACTION_GAS_CAP
                assert len(transaction["input"]) // 2 - 1 <= CALLDATA_CAP
                assert gas <= MOVE_GAS or transaction["to"] != game
                count += 1
        return count


def open_round(
    stage: SharedChain, folder: Path, prepared: PreparedRounds | None = None, compute: Compute = COMPUTE
) -> RoundClaims:
    """A launched run of two seats in which ada has committed."""
    made = new_whole_run(stage, folder, seats=2, rounds=2, pace=PACE, prepared=prepared)
    ada = made.solver("ada", solver_cheat_named("squatter", 0), compute=compute)
    made.solver("mallory")
    made.auditor("vera", tickets=5)
    made.enrol()
    made.fund()
    made.launch()
    claims = RoundClaims(made, ada)
    while not made.view.works(ROUND):
        if not ada.step():
            assert ada.deadline is not None
            made.chain.rpc("evm_mine", hex(max(ada.deadline, made.chain.head().timestamp + 1)))
    (work,) = made.view.works(ROUND)
    assert (work.seat, work.work.units) == (claims.seat("ada"), PACE.least)
    return claims


@contextmanager
def aside(claims: RoundClaims) -> Iterator[None]:
    """What happens here on chain has not happened afterwards."""
    snapshot = claims.made.chain.rpc("evm_snapshot")
    try:
        yield
    finally:
        assert claims.made.chain.rpc("evm_revert", snapshot)
