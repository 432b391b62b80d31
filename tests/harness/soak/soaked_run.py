"""A whole run of many rounds in which everything fails at random, and liars come and go.

Honest actors are killed between actions and at transactions, each has a store, a node and a clock that fail, the chain
is reorganized under all, fees leap. Chain time moves when all rest, and never over the end of a fault.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest.mock import patch

import psutil
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt
from web3.exceptions import Web3Exception

from assay.protocol.errors import RejectedError, UnavailableError
from assay.protocol.types import Address, Round
from assay.sponsor.charters import AuditRates
from assay.sponsor.launching import stake_of
from assay_ledger.agents.agent import Agent
from assay_ledger.agents.loop import PATIENCE, ActorLoop
from assay_ledger.contract import Call
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore
from assay_ledger.store.folder import Folder
from assay_solver.agent import Solver
from assay_solver.cheats import solver_cheat_named
from assay_whistleblower.agent import AuditorAgent
from tests.harness.actors.whole_run import BLOCK_S, WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain
from tests.harness.soak.faults import Surroundings
from tests.harness.soak.soak_log import NotedSteps, SoakLog

RATES: Final = AuditRates(audit_ppm=1_000_000, capacity=10, shifts=5, drawn_bounty_ppm=1_000_000)
HONEST_SOLVERS: Final = ("ada", "bob", "cleo")
HONEST_AUDITORS: Final = {"vera": 3, "viktor": 2}
CHEATS: Final = ("false-step", "false-update")
STRIKE: Final = 0.02
"""How likely an actor's surroundings fail at each of its steps."""
KILL: Final = 0.005
KILL_AT_TRANSACTION: Final = 0.03
REORGANIZE: Final = 0.002
FEE_LEAP: Final = 0.005
LIAR_EVERY: Final = 20
"""Rounds."""

EVENTS: Final = "events.sqlite"
"""In an actor's folder, as the commands keep it."""
SEATS: Final = 5
CHAIN: Final = "l1"
"""Its shortest window, 660 s, outlasts a store that is dark for a minute and that a slow clock then lets rest for two
more: what an outage costs anybody beside a merge is a fault of ours."""


class Killed(BaseException):
    """The process is gone; nothing inside it may catch this."""


@dataclass(frozen=True)
class SoakRow:
    """How it stands after some rounds; sizes in MB."""

    rounds: int
    seconds: float
    memory: float
    store: float
    index: float
    folders: float
    blocks: int
    faults: int

    @staticmethod
    def header() -> str:
        """The head of the table."""
        return "rounds  minutes  memory MB  store MB  index MB  folder MB  blocks  faults"

    def line(self) -> str:
        """The row of the table."""
        sizes = f"{self.memory:9.0f}  {self.store:8.1f}  {self.index:8.1f}  {self.folders:9.1f}"
        return f"{self.rounds:6}  {self.seconds / 60:7.1f}  {sizes}  {self.blocks:6}  {self.faults:6}"


@dataclass
class SoakedRun:
    """The run, what surrounds everybody, and what was done to them."""

    made: WholeRun
    rng: Random
    log: SoakLog
    around: dict[str, Surroundings] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    rows: list[SoakRow] = field(default_factory=list)
    liars: list[str] = field(default_factory=list)
    departed: dict[str, tuple[Address, int]] = field(default_factory=dict)
    """Who left for good, with what it brought, in wei."""
    began: float = field(default_factory=time.monotonic)
    is_calm: bool = True
    _snapshot: tuple[object, int] | None = None
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def now(self) -> float:
        """Chain time, in seconds."""
        return float(self.made.chain.head().timestamp)

    # --- who takes part

    def enlist(self, name: str, kind: Callable[..., Agent], **options: Any) -> None:
        """An honest actor behind a store, a node and a clock of its own."""
        made = self.made
        folder = Folder(Path(made.store.location))
        told = partial(self.log.note, name)
        around = self.around[name] = Surroundings(made.stage.node.url, folder, self.rng, self.now, told)
        run = Run(around.chain, made.run.address, made.run.first_block)

        def build(_run: Run, keys: ActorKeys, _store: BlobStore, data: Path, **more: Any) -> Agent:
            kept = f"sqlite:///{data / EVENTS}"
            agent = kind(run, keys, around.store, data, clock=around.clock, index_url=kept, **more)
            agent.observer = NotedSteps(self.log, name)
            return agent

        terms = {"seats": 1} if kind is Solver else {"tickets": options["tickets"]}
        made.add(name, build, stake_of(made.run.charter, **terms), **options)

    def send_liar(self, round_: int) -> None:
        """Somebody takes a seat to lie in a round soon."""
        cheat = self.rng.choice(CHEATS)
        name = f"liar {next(self._numbers)} ({cheat})"
        self.made.solver(name, solver_cheat_named(cheat, round_))
        self.liars.append(name)

    def dismiss(self) -> None:
        """The processes of liars end that were convicted and are in no game: others do what is left."""
        view = self.made.view
        convicted = {t.holder for t in view.books.tenures.tenures.values() if t.convicted_at}
        for name in [name for name in self.liars if name in self.made.players]:
            who = self.made.address(name)
            if who in convicted and not view.state.open_games_of(who):
                player = self.made.players.pop(name)
                player.agent.close()
                self.departed[name] = who, player.brought

    # --- one step of everybody

    def sweep(self) -> bool:
        """See WholeRun."""
        made, acted, head = self.made, False, self.made.chain.head()
        now = self.log.now = float(head.timestamp)
        for name, player in list(made.players.items()):
            around = self.around.get(name)
            if around is not None:
                around.heal(now)
                if not self.is_calm and self.rng.random() < STRIKE:
                    around.strike()
            try:
                acted |= player.agent.step()
                # Whose node is behind looks again in a moment, and not at the next window's end.
                acted |= player.agent._seen.number < head.number
            except Killed:
                acted = True
                self.restart(name)
            except (UnavailableError, RejectedError, Web3Exception) as error:
                acted = True
                self.log.note(name, f"looks: {type(error).__name__}: {error}")
            if around is not None and not self.is_calm and self.rng.random() < KILL:
                self.counts["killed between actions"] += 1
                self.restart(name)
        if not self.is_calm:
            self.disturb()
        return acted or made.chain.head() != head

    def restart(self, name: str) -> None:
        """Another process over the same folder; it needs a node that answers to begin at all, and is started again."""
        self.log.note(name, "killed")
        around = self.around.get(name)
        if around is not None:
            around.node.turn()
        for attempt in Retrying(retry=retry_if_exception_type(UnavailableError), stop=stop_after_attempt(20)):
            with attempt:
                self.made.restart(name)

    def disturb(self) -> None:
        """What happens to all at once: a reorganization, fees that leap."""
        chain = self.made.chain
        if self._snapshot is None and self.rng.random() < REORGANIZE:
            self._snapshot = chain.rpc("evm_snapshot"), self.rng.randint(1, 6)
        elif self._snapshot is not None:
            snapshot, left = self._snapshot
            if left:
                self._snapshot = snapshot, left - 1
            else:
                gone = chain.head()
                assert chain.rpc("evm_revert", snapshot)
                kept = chain.head()
                chain.rpc("evm_mine", hex(kept.timestamp + 1))
                self.log.note("all", f"blocks {kept.number + 1} to {gone.number} of {gone.timestamp} are gone")
                self.counts["reorganizations"] += 1
                self.counts["blocks gone"] += gone.number - kept.number
                self._snapshot = None
        if self.rng.random() < FEE_LEAP:
            chain.rpc("anvil_setNextBlockBaseFeePerGas", hex(self.rng.choice((1, 3, 8, 20)) * 10**9))
            # On a chain a fee is seen before it is a thousand times as high: here in the block that has it.
            chain.rpc("evm_mine", hex(chain.head().timestamp + 1))
            self.counts["fee leaps"] += 1

    def pass_time(self) -> bool:
        """See WholeRun; never over the end of a fault."""
        ends = [around.ends_at for around in self.around.values() if around.ends_at is not None]
        now = self.made.chain.head().timestamp
        if ends:
            self.made.chain.rpc("evm_mine", hex(max(int(min(ends)), now + 1)))
            return True
        if self._snapshot is not None:
            # Time that is taken back would be taken from everybody's windows.
            self._snapshot = self._snapshot[0], 0
            self.disturb()
            return True  # at what was taken back nobody has looked yet
        # Whoever waits for a store or a node is busy, as its heartbeat says: no window ends over it meanwhile.
        return self._pass_a_block(PATIENCE) or WholeRun.pass_time(self.made) or self._pass_a_block()

    def _pass_a_block(self, times: int | None = None) -> bool:
        """Whoever asks a store or a node again does so in a moment, which nobody names as a chain time.

        times: only for those who asked less often.
        """
        agents = [player.agent for player in self.made.players.values()]
        again = [tried for agent in agents for tried in agent._parked.values() if tried.asks_again]
        if not any(times is None or tried.times < times for tried in again):
            return False
        self.made.chain.rpc("evm_mine", hex(self.made.chain.head().timestamp + BLOCK_S))
        return True

    # --- figures

    def note(self, rounds: int) -> SoakRow:
        """A row of the table."""
        gc.collect()
        made = self.made
        index = sum(_megabytes(made.folder / name, f"{EVENTS}*") for name in self.around)
        folders = sum(_megabytes(made.folder / name) for name in self.around) - index
        row = SoakRow(
            rounds,
            time.monotonic() - self.began,
            psutil.Process().memory_info().rss / 1e6,
            _megabytes(Path(made.store.location)),
            index / len(self.around),
            folders / len(self.around),
            made.chain.head().number,
            sum(self.counts.values()) + sum(sum(a.counts.values()) for a in self.around.values()),
        )
        self.rows.append(row)
        return row

    def faults(self) -> Counter[str]:
        """How often each fault came."""
        found = Counter(self.counts)
        for around in self.around.values():
            found.update(around.counts)
        return found


def _is_open(round_: Round, view: RunView) -> bool:
    return len(view.books.commitments.rounds) > round_


def _megabytes(folder: Path, names: str = "*") -> float:
    return sum(f.stat().st_size for f in folder.rglob(names) if f.is_file()) / 1e6


@contextmanager
def deaths(soaked: SoakedRun) -> Iterator[None]:
    """Within it a process may die before a transaction is sent, or when it is mined."""
    send, send_all = ActorLoop.send, ActorLoop.send_all
    honest = lambda loop: any(loop is soaked.made.players[name].agent for name in soaked.around)  # noqa: E731

    def dies(loop: ActorLoop[Any, Any], go: Callable[[], Any]) -> Any:
        if soaked.is_calm or not honest(loop) or soaked.rng.random() >= KILL_AT_TRANSACTION:
            return go()
        soaked.counts["killed at a transaction"] += 1
        if soaked.rng.random() < 0.5:
            go()
        raise Killed

    def at_one(self: ActorLoop[Any, Any], call: Call, **options: Any) -> Any:
        return dies(self, lambda: send(self, call, **options))

    def at_several(self: ActorLoop[Any, Any], calls: Sequence[Call]) -> Any:
        return dies(self, lambda: send_all(self, calls))

    with patch.object(ActorLoop, "send", at_one), patch.object(ActorLoop, "send_all", at_several):
        yield


def soak(
    stage: SharedChain, folder: Path, rounds: int, seed: int, every: int, told: Callable[[SoakRow], None]
) -> SoakedRun:
    """So many rounds under every fault; a row each `every` rounds is told as it is made."""
    made = new_whole_run(stage, folder, seats=SEATS, rounds=rounds, rates=RATES, kind=CHAIN)
    soaked = SoakedRun(made, Random(seed), SoakLog(folder / "soak.log"))
    made.sweep, made.pass_time = soaked.sweep, soaked.pass_time  # type: ignore[method-assign]
    with deaths(soaked):
        for name in HONEST_SOLVERS:
            soaked.enlist(name, Solver)
        for name, tickets in HONEST_AUDITORS.items():
            soaked.enlist(name, AuditorAgent, tickets=tickets)
        made.enrol()
        made.fund()
        made.launch()
        soaked.is_calm = False
        told(soaked.note(0))
        for reached in range(1, rounds + 1):
            if reached % LIAR_EVERY == 1 and reached + 3 < rounds:
                soaked.send_liar(reached + 2)
            if reached < rounds:
                made.settle(partial(_is_open, Round(reached)), stops=2_000)
            soaked.dismiss()
            if reached % every == 0:
                told(soaked.note(reached))
        made.end(stops=2_000)
        soaked.is_calm = True
        made.end(stops=2_000)
    for around in soaked.around.values():
        around.close()
    return soaked
