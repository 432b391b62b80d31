"""An honest solver on hardware as slow as its clocks allow, and puppets that challenge its commitment many times."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from assay.engine.runtime.executor import Executor
from assay.protocol.game.players import Challenger
from assay.protocol.game.table import Side
from assay.protocol.program.trace import Trace, flip_bit
from assay.training.rounds import TorchCompute
from assay_ledger.agents.game_player import encode_move
from assay_ledger.chain.client import Chain
from assay_ledger.index.games import Game
from assay_ledger.keys.keystore import ActorKeys
from tests.harness.actors.claims import RoundClaims, open_round
from tests.harness.actors.world import COMPUTE, SharedChain


class DelayedExecutor(Executor):
    """Every step takes chain time."""

    chain: Chain
    seconds: int
    steps = 0

    def run(self, *args: Any, **options: Any) -> Any:
        """See Executor."""
        self.steps += 1
        self.chain.rpc("evm_mine", hex(self.chain.head().timestamp + self.seconds))
        return super().run(*args, **options)


class DelayedCompute(TorchCompute):
    """Executes traces on slow hardware; counts them and their steps."""

    def __init__(self, chain: Chain) -> None:
        super().__init__()
        self._chain = chain
        self.seconds_per_step = 0
        self.slow: list[DelayedExecutor] = []

    def trace(self, program: Any, lists: Any, *args: Any, **options: Any) -> Any:
        """See TorchCompute."""
        executor = DelayedExecutor(program)
        executor.chain, executor.seconds = self._chain, self.seconds_per_step
        self.slow.append(executor)
        return super().trace(executor, lists, *args, **options)

    def _executor(self, program: Any, lists: Any) -> Executor:
        return program if isinstance(program, Executor) else super()._executor(program, lists)


class PuppetGames:
    """Puppets of one key, each with a game of its own on the commitment of an honest solver."""

    def __init__(self, claims: RoundClaims, keys: ActorKeys, count: int) -> None:
        self.claims, self.keys, self.count = claims, keys, count
        self.lies = list(islice(self._lies(), count))
        claims.prepare_adas()
        root = self.lies[0].state_root(claims.steps)
        assert claims.challenge(keys, claims.ref("ada"), root, count) == count

    def _lies(self) -> Iterator[Trace]:
        """Each in another node, so that nothing below the lists is shared."""
        job = self.claims.job_of("ada")
        truth = COMPUTE.trace(job.program, job.lists, job.steps).state_root(job.steps)
        for node in range(len(job.program.nodes)):
            lie = COMPUTE.trace(job.program, job.lists, job.steps, flip_bit(1 + node % job.steps, node))
            if lie.state_root(job.steps) != truth:
                yield lie

    def games(self) -> Iterator[Game]:
        """Those that are being played."""
        games = (self.claims.made.run.games.game(number) for number in range(1, self.count + 1))
        return (game for game in games if not game.state.is_over)

    def select(self) -> bool:
        """Every puppet whose turn it is moves, all together; False when no game is left."""
        run, calls, left = self.claims.made.run, [], False
        for game in self.games():
            left = True
            if game.state.turn is Side.CHALLENGER:
                lie = self.lies[game.game_id % len(self.lies)]
                move = Challenger(lie, self.claims.arity).next_move(game.state, run.games.posted(game.state))
                calls.append(encode_move(run.game, game.game_id, move))
        self.claims.send_all(self.keys, calls)
        return left


def flooded(stage: SharedChain, folder: Path, count: int) -> tuple[RoundClaims, DelayedCompute, PuppetGames]:
    """An honest solver on the slowest hardware that its charter allows, whose commitment is challenged so often."""
    compute = DelayedCompute(stage.chain)
    claims = open_round(stage, folder, compute=compute)
    compute.seconds_per_step = claims.made.run.charter.clocks.replay // claims.steps
    return claims, compute, PuppetGames(claims, claims.add_stranger(bonds=count), count)
