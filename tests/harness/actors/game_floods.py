"""An honest solver on hardware as slow as its clocks allow, and puppets that challenge one of its intervals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.engine.runtime.executor import Executor
from assay.protocol.errors import AssayError
from assay.protocol.game.players import Challenger
from assay.protocol.game.table import Side
from assay.protocol.program.trace import ReferenceTrace, flip_bit
from assay.protocol.run.claims import ClaimRef, challenge_commitment
from assay.protocol.types import Digest
from assay.training.rounds import TorchCompute
from assay_ledger.agents.game_player import encode_move
from assay_ledger.agents.participant import Participant
from assay_ledger.chain.client import Chain
from assay_ledger.contract import Call
from assay_ledger.keys.keystore import ActorKeys
from assay_solver.agent import SolverAgent
from assay_verifier.attesting import RESULT_BLOCKS
from tests.harness.actors.world import STAKE, ActorWorld, SharedChain, new_world, small_work

FOUNDERS = {"first_seats": 1, "first_verifiers": 1}


class SlowExecutor(Executor):
    """Every step takes chain time."""

    chain: Chain
    seconds: int
    steps = 0

    def run(self, *args: Any, **options: Any) -> Any:
        """See Executor."""
        self.steps += 1
        self.chain.rpc("evm_mine", hex(self.chain.head().timestamp + self.seconds))
        return super().run(*args, **options)


class SlowCompute(TorchCompute):
    """Executes traces on the slowest hardware that meets the charter; counts them and their steps."""

    def __init__(self, chain: Chain, seconds_per_step: int) -> None:
        super().__init__()
        self._chain, self._seconds = chain, seconds_per_step
        self.slow: list[SlowExecutor] = []

    def trace(self, program: Any, lists: Any, *args: Any, **options: Any) -> Any:
        """See TorchCompute."""
        executor = SlowExecutor(program)
        executor.chain, executor.seconds = self._chain, self._seconds
        self.slow.append(executor)
        return super().trace(executor, lists, *args, **options)

    def _executor(self, program: Any) -> Executor:
        return program if isinstance(program, Executor) else super()._executor(program)


class Flood:
    """Puppets of one key, each with a game of its own on the same interval of an honest solver."""

    def __init__(self, world: ActorWorld, keys: ActorKeys, ref: ClaimRef, count: int) -> None:
        self.world, self.keys, self.count = world, keys, count
        chain, game = world.stage.chain, world.run.game
        vera = world.players["vera"].agent
        assert isinstance(vera, Participant)
        view = vera.see()
        duty = vera.duty_of(ref, view)
        job = vera.archive.job(view, duty)
        self.lies = []
        for node in range(len(job.program.nodes)):
            lie = ReferenceTrace(job.program, job.lists, job.steps, flip_bit(1 + node % job.steps, node))
            if lie.state_root(job.steps) != duty.y:
                self.lies.append(lie)
        salts = [Digest(bytes([k]) * 32) for k in range(count)]
        root = self.lies[0].state_root(job.steps)
        committed = [game.commit_challenge(challenge_commitment(ref, root, salt, keys.address)) for salt in salts]
        self.send(committed)
        for _ in range(RESULT_BLOCKS):
            chain.rpc("evm_mine")
        self.send([game.reveal_challenge(ref, root, salt) for salt in salts])
        assert world.run.games.count() == count

    def send(self, calls: list[Call]) -> None:
        """All at once."""
        for result in self.world.stage.chain.send_all(self.keys.account, calls):
            if isinstance(result, AssayError):
                raise result

    def games(self) -> Iterator[Any]:
        """Those that are being played."""
        games = (self.world.run.games.game(number) for number in range(1, self.count + 1))
        return (game for game in games if not game.state.is_over)

    def select(self) -> bool:
        """Every puppet whose turn it is moves, all together; False when no game is left."""
        calls, left = [], False
        for game in self.games():
            left = True
            if game.state.turn is Side.CHALLENGER:
                lie = self.lies[game.game_id % len(self.lies)]
                arity = self.world.run.charter.clocks.arity
                move = Challenger(lie, arity).next_move(game.state, self.world.run.games.posted(game.state))
                calls.append(encode_move(self.world.run.game, game.game_id, move))
        self.send(calls)
        return left


def flooded(stage: SharedChain, folder: Path, count: int) -> tuple[ActorWorld, SlowCompute, Flood]:
    """An honest solver on slow hardware whose first interval is challenged `count` times at once."""
    world = new_world(stage, folder, small_work(), rounds=1)
    charter = world.run.charter
    compute = SlowCompute(stage.chain, charter.clocks.replay // charter.training.steps_per_interval)
    world.verifier("vera", **FOUNDERS)
    world.add("ada", lambda k, d: SolverAgent(world.run, k, world.store, d, compute=compute, **FOUNDERS))
    keys = world.keys("puppets")
    need = count * (charter.economics.challenge_bond + charter.economics.challenge_deposit)
    for _ in range(need // STAKE):
        stage.rich(keys.account, world.run)
    vera = world.players["vera"].agent
    world.settle(lambda state: bool(state.rounds) and any(a.leaves for a in state.rounds[0].attendance.values()))
    vera.refresh(vera.see())
    record = vera.state.rounds[0]
    ref = vera.see().duty(record, record.commitments[0], 0).ref  # type: ignore[index]
    return world, compute, Flood(world, keys, ref, count)
