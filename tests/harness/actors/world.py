"""A whole run in one process: one anvil, real contracts, actors stepped round-robin, chain time moved as a runner does.

No threads, no sleeps. `ActorWorld.settle` steps every actor until all are idle at one head, then mines one block at the
earliest chain time that one of them waits for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from eth_account import Account

from assay.engine.runtime.values.state_io import to_lists_of_bytes
from assay.protocol.program.program import Program
from assay.protocol.run.charter import Charter, ProgramRef
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Address, Digest, Wei
from assay.sponsor.charters import Genesis, make_charter
from assay.sponsor.preparing import Prepared, prepare
from assay.training.presets import TINY
from assay.training.rounds import TorchCompute
from assay_ledger.agents.agent import Agent
from assay_ledger.bindings.token import TokenContract
from assay_ledger.bindings.vault import Locked
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.chain.node import Anvil
from assay_ledger.deployment.deploy import deploy_run, deploy_seed, deploy_token
from assay_ledger.deployment.places import LEAVES, MODULE_CONTRACTS, ROUND_CONTRACTS
from assay_ledger.index.records import GameRecord, RunState
from assay_ledger.index.run import Run
from assay_ledger.keys.bls import BlsKey
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.store.blobs import BlobStore, open_store
from assay_ledger.store.objects import Objects, root_of_list
from assay_solver.agent import SolverAgent
from assay_solver.cheating import CheatingSolver
from assay_solver.cheats import Cheat, cheat_named
from assay_verifier.agent import VerifierAgent
from assay_verifier.cheats import LazyVerifier
from assay_whistleblower.agent import WhistleblowerAgent
from tests.harness.actors.programs import outer_program, update_program
from tests.harness.contracts.fresh import fresh_artifacts
from tests.harness.programs import Example, mlp_step

ETHER = 10**18
START = 1_800_000_000
STAKE = 2_000 * ETHER
CONTRACTS = [
    *MODULE_CONTRACTS.values(),
    *LEAVES.values(),
    "Deployer",
    "Charter",
    "TestToken",
    "PrevrandaoSeed",
    "Arbiter",
    # of the second design
    *ROUND_CONTRACTS.values(),
    "RunDeployer",
    "RunCharter",
    "StageCharter",
    "RoundsBench",
    "PuppetGame",
    "DrandSeed",
]


@dataclass(frozen=True)
class TrainedWork:
    """What a run trains: the three programs and where it starts."""

    step: Program
    update: Program
    outer: Program
    parameters: tuple[bytes, ...]
    optimizer: tuple[bytes, ...]
    data: bytes
    inner_steps: int
    learning_rate: int

    @property
    def specs(self) -> list[TensorSpec]:
        """The parameters' types and dims."""
        return [self.step.specs[k] for k in self.step.input_nodes[0]]


@cache
def small_work() -> TrainedWork:
    """A hand-written perceptron on bytes: two steps per interval."""
    example: Example = mlp_step()
    parameters, optimizer, scalars = example.state
    specs = [example.program.specs[k] for k in example.program.input_nodes[0]]
    rate = int.from_bytes(scalars[1], "little")
    # Bytes that differ from place to place, so that other data gives another update.
    data = sha256(b"data").digest() + b"".join(sha256(bytes([k])).digest() for k in range(len(scalars[-1]) // 32 - 1))
    return TrainedWork(
        example.program, update_program(specs), outer_program(specs), parameters, optimizer, data, 10, rate
    )


@cache
def tiny_prepared() -> Prepared:
    """What a run of the `tiny` preset starts from, a character GPT with AdamW, on a page of text."""
    text = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(120))
    return prepare(TINY, text)


@cache
def tiny_work() -> TrainedWork:
    """The same as work."""
    return work_of(tiny_prepared())


def work_of(prepared: Prepared) -> TrainedWork:
    """The captured programs of a run and the bytes that they start from."""
    lists = to_lists_of_bytes([prepared.parameters, prepared.optimizer, [prepared.data]])
    genesis = prepared.genesis
    return TrainedWork(*prepared.programs, lists[0], lists[1], lists[2][0], genesis.inner_steps, genesis.learning_rate)


@contextmanager
def actors_artifacts(folder: Path) -> Iterator[None]:
    """The contracts of a run as the sources stand now, unless ASSAY_ARTIFACTS names others."""
    if "ASSAY_ARTIFACTS" in os.environ:
        yield
        return
    with fresh_artifacts(folder, CONTRACTS):
        yield


class SharedChain:
    """A node with what any number of runs share: token, seed source, arbiter, and a rich sponsor."""

    def __init__(self) -> None:
        self.node = Anvil(accounts=1, genesis_time=START)
        self.chain = Chain(self.node.url)
        self.sponsor = Account.from_key(self.node.dev_keys[0])
        self.token = deploy_token(self.chain, self.sponsor)
        self.seed = deploy_seed(self.chain, self.sponsor)
        self.worlds = 0

    def close(self) -> None:
        """Ends the node."""
        self.node.close()

    def rich(self, account: Any, run: Run | None = None) -> None:
        """Coin for gas, tokens, and stake in a run's vault."""
        if account.address != self.sponsor.address:
            self.chain.transfer(self.sponsor, account.address, 10 * ETHER)
        token = TokenContract(self.token)
        self.chain.send(account, token.mint(address_of(account), STAKE))
        if run is not None:
            self.chain.send(account, token.approve(run.vault.address, STAKE))
            self.chain.send(account, run.vault.deposit(STAKE))


@dataclass
class Actor:
    """One actor and how to make it again after its process died."""

    name: str
    make: Callable[[], Agent]
    agent: Agent
    wealth: int = 0


@dataclass
class ActorWorld:
    """One run with its store and its actors."""

    stage: SharedChain
    folder: Path
    work: TrainedWork
    run: Run
    store: BlobStore
    players: dict[str, Actor] = field(default_factory=dict)
    stops: int = 0

    # --- people

    def keys(self, name: str) -> ActorKeys:
        """Fresh keys with money behind them."""
        account = Account.create()
        self.stage.rich(account, self.run)
        return ActorKeys(name, account, BlsKey.generate())

    def add(self, name: str, make: Callable[[ActorKeys, Path], Agent]) -> Agent:
        """An actor with a key and a data folder of its own."""
        keys, folder = self.keys(name), self.folder / name
        player = Actor(name, lambda: make(keys, folder), make(keys, folder))
        self.players[name] = player
        return player.agent

    def solver(
        self, name: str, cheat: str | Cheat | None = None, store: BlobStore | None = None, **options: Any
    ) -> Agent:
        """A solver; with a store of its own its publications are not found."""
        kind = SolverAgent if cheat is None else partial(CheatingSolver, cheat=cheat)
        return self.add(name, lambda k, d: kind(self.run, k, store or self.store, d, compute=COMPUTE, **options))

    def verifier(self, name: str, lazy: bool = False, **options: Any) -> Agent:
        """A verifier that registers itself."""
        stake = options.pop("stake", self.run.charter.economics.verifier_bond)
        kind = LazyVerifier if lazy else VerifierAgent
        return self.add(
            name, lambda k, d: kind(self.run, k, self.store, d, compute=COMPUTE, stake=Wei(stake), **options)
        )

    def whistleblower(self, name: str) -> Agent:
        """A whistleblower that registers itself."""
        stake = self.run.charter.economics.verifier_bond
        return self.add(
            name, lambda k, d: WhistleblowerAgent(self.run, k, self.store, d, compute=COMPUTE, stake=Wei(stake))
        )

    def restart(self, name: str) -> Agent:
        """The actor's process dies and a fresh one goes on over the same folder."""
        player = self.players[name]
        player.agent.close()
        player.agent = player.make()
        return player.agent

    def address(self, name: str) -> Address:
        """An actor's address."""
        return self.players[name].agent.me

    def name_of(self, who: Address) -> str:
        """The actor behind an address."""
        return next((p.name for p in self.players.values() if p.agent.me == who), who.hex())

    # --- time

    def enrol(self) -> None:
        """Everybody takes a seat or registers before the first round opens."""
        for _ in range(2):
            for player in self.players.values():
                player.agent.step()

    def settle(self, until: Callable[[RunState], bool] = lambda _: False, stops: int = 400) -> RunState:
        """Steps everybody until the condition holds or no actor waits for anything; chain time moves when all rest."""
        for _ in range(stops):
            while self.sweep():
                if until(self.state):
                    return self.state
            if until(self.state):
                return self.state
            times = [p.agent.deadline for p in self.players.values() if p.agent.deadline is not None]
            now = self.stage.chain.head().timestamp
            waiting = min((t for t in times if t > now), default=None)
            if waiting is None:
                return self.state
            self.stops += 1
            self.stage.chain.rpc("evm_mine", hex(waiting))
        raise AssertionError("the run does not come to rest")

    def sweep(self) -> bool:
        """One step of every actor; False when all are idle at one head."""
        head = self.stage.chain.head()
        acted = [player.agent.step() for player in list(self.players.values())]
        return any(acted) or self.stage.chain.head() != head

    @property
    def state(self) -> RunState:
        """The records, as the actor that saw most of the chain has them."""
        return max((p.agent.state for p in self.players.values()), key=lambda s: s.head.number)

    # --- figures

    def wealth(self, name: str) -> int:
        """Everything that an actor has in the vault: free, locked or leaving, in wei."""
        who = self.address(name)
        vault = self.run.vault
        free = self.stage.chain.ask(vault.free(who))
        return free + sum(amount for owner, amount in self.locks().values() if owner == who)

    def locks(self) -> dict[bytes, tuple[Address, int]]:
        """Every lock of the vault that exists, from its events."""
        found = {}
        locked = self.stage.chain.events(Locked.search(self.run.vault.address), self.run.first_block)
        for key in {log.event.id for log in locked}:
            owner, amount = self.stage.chain.ask(self.run.vault.lock_of(key))
            if amount:
                found[key] = owner, amount
        return found

    def verdicts(self) -> list[GameRecord]:
        """Games that are over."""
        return [g for _, g in sorted(self.state.games.items()) if g.is_over]

    def pending_shares(self, name: str) -> int:
        """Shares credited and not vested."""
        return self.stage.chain.ask(self.run.vesting.pending_of(self.address(name)))

    def shares(self, name: str) -> int:
        """Shares that an actor holds."""
        return self.stage.chain.ask(self.run.shares.balance_of(self.address(name)))


COMPUTE = TorchCompute()
"""One plan per program for all actors of a process."""


def new_world(
    stage: SharedChain,
    folder: Path,
    work: TrainedWork,
    rounds: int = 2,
    change: Callable[[Charter], Charter] = lambda c: c,
) -> ActorWorld:
    """Deploys a run, publishes what it starts from, and fills its escrow."""
    stage.worlds += 1
    store = open_store(folder / "store")
    charter = change(make_test_charter(stage, work, rounds))
    publish(Objects(store), work)
    run = deploy_run(stage.chain, stage.sponsor, charter)
    fill_escrow(stage, run)
    return ActorWorld(stage, folder, work, run, store)


def with_a_bit_flipper(stage: SharedChain, folder: Path) -> ActorWorld:
    """A round of an honest solver, a bit-flipper and two verifiers, who note what they have at its start."""
    founders = {"first_seats": 2, "first_verifiers": 2}
    world = new_world(stage, folder, small_work(), rounds=1)
    world.solver("ada", **founders)
    world.solver("mallory", cheat=cheat_named("bit-flip", 1), **founders)
    world.verifier("vera", **founders)
    world.verifier("viktor", **founders)
    for player in world.players.values():
        player.wealth = world.wealth(player.name)
    return world


def fill_escrow(stage: SharedChain, run: Run) -> None:
    """The sponsor pays for work and wages."""
    escrow = 100 * STAKE
    token = TokenContract(stage.token)
    stage.chain.send(stage.sponsor, token.mint(address_of(stage.sponsor), escrow))
    stage.chain.send(stage.sponsor, token.approve(run.vault.address, escrow))
    stage.chain.send(stage.sponsor, run.vault.deposit(escrow))
    stage.chain.send(stage.sponsor, run.settlement.fund(escrow))


def make_test_charter(stage: SharedChain, work: TrainedWork, rounds: int) -> Charter:
    """The default charter for this work."""
    data_spec = work.step.specs[work.step.input_nodes[2][-1]]
    optimizer_specs = [work.step.specs[k] for k in work.step.input_nodes[1]]
    zeros = [s.zeros() for s in work.specs]
    genesis = Genesis(
        step=ProgramRef.of(work.step),
        update=ProgramRef.of(work.update),
        outer=ProgramRef.of(work.outer),
        parameters=root_of_list(work.specs, work.parameters),
        momentum=root_of_list(work.specs, zeros),
        zero_optimizer=root_of_list(optimizer_specs, work.optimizer),
        zero_update=root_of_list(work.specs, zeros),
        data=tensor_root(data_spec, work.data),
        data_length=data_spec.numel,
        inner_steps=work.inner_steps,
        learning_rate=work.learning_rate,
    )
    return make_charter(
        genesis,
        name=f"world {stage.worlds}",
        sponsor=address_of(stage.sponsor),
        token=stage.token,
        seed=stage.seed,
        now=stage.chain.head().timestamp,
        rounds=rounds,
    )


def publish(objects: Objects, work: TrainedWork) -> None:
    """Everything that a run starts from."""
    for program in (work.step, work.update, work.outer):
        objects.put_program(program)
    objects.put_tensor(work.step.specs[work.step.input_nodes[2][-1]], work.data)
    objects.put_list(work.specs, work.parameters)
    objects.put_list([work.step.specs[k] for k in work.step.input_nodes[1]], work.optimizer)


def with_economics(**changes: Any) -> Callable[[Charter], Charter]:
    """A change of a charter's rates and prices."""
    return lambda charter: replace(charter, economics=replace(charter.economics, **changes))


def roots_of(values: Sequence[bytes]) -> list[Digest]:
    """Digests from raw bytes."""
    return [Digest(bytes(v)) for v in values]
