"""Runs on a real node: contracts of rounds, solvers stepped in turn, chain time moved as needed.

Gate, payments, duties and games are the bench's (contracts/test/RoundsBench.sol, PuppetGame.sol); tenures, commitments,
generations and the vault are those of every run. No threads, no sleeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

from eth_account import Account
from eth_utils.address import to_checksum_address

from assay.amounts import TEST_MONEY
from assay.protocol.program.witness import witnessed_program
from assay.protocol.rounds.terms import RoundTerms
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import RunModules
from assay.protocol.trees.tensors import tensor_root
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.agents.round_actions import Choice, CloseEpoch, SeedEpoch, SubmitBeacon
from assay_ledger.bindings.token import TokenContract
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.contract import Call, selector
from assay_ledger.deployment.places import create_address
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.facts import BeaconTimes, RunFacts
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore, open_store
from assay_ledger.store.objects import Objects, root_of_list
from assay_solver.agent import Solver
from assay_solver.cheats import CheatingSolver
from tests.harness.actors.world import COMPUTE, ETHER, SharedChain, TrainedWork, publish
from tests.harness.rounds.chain import PERIOD
from tests.harness.rounds.charters import RUN
from tests.harness.rounds.duties import TERMS as DUTY_TERMS
from tests.harness.rounds.samples import TICKET_TERMS, terms_of
from tests.harness.rounds.staged import charter_arguments, modules_at

STAKE = 100 * ETHER
NAMES = ("StageCharter", "RoundsBench", "Tenures", "Commitments", "Generations", "Vault", "PuppetGame")
"""Contracts of a run, in the order in which they are deployed."""


def small_terms(work: TrainedWork, run: Digest, **changes: Any) -> RoundTerms:
    """Rounds of three units of two steps, of which two make a commitment; eight seats."""
    specs, optimizer = work.specs, [work.step.specs[k] for k in work.step.input_nodes[1]]
    data = work.step.specs[work.step.input_nodes[2][-1]]
    zeros = root_of_list(specs, [s.zeros() for s in specs])
    terms = terms_of(
        min_units=2, max_units=3, steps_per_unit=2, rounds=5, shards=8, shard_length=data.numel // 8,
        learning_rate=work.learning_rate, run=run, step_program=work.step.root, update_program=work.update.root,
        outer_program=work.outer.root, data=tensor_root(data, work.data),
        zero_optimizer=root_of_list(optimizer, work.optimizer), zero_update=zeros,
        parameters=root_of_list(specs, work.parameters), momentum=zeros,
    )  # fmt: skip
    return replace(terms, **changes)


class RoundsAlone(Solver):
    """A solver of a run without auditors: nobody seeds or closes its epochs."""

    def candidates(self, view: RunView) -> Iterator[Choice]:
        """See Solver."""
        audits = SubmitBeacon | SeedEpoch | CloseEpoch
        return (action for action in super().candidates(view) if not isinstance(action, audits))


class CheatAlone(CheatingSolver, RoundsAlone):
    """One that cheats in a run without auditors."""


@dataclass
class Actor:
    """A solver, and how to make it again after its process died."""

    make: Callable[[], Solver]
    agent: Solver


@dataclass
class RoundStageRun:
    """One run with its store and its solvers."""

    stage: SharedChain
    folder: Path
    work: TrainedWork
    run: Run
    store: BlobStore
    at: Mapping[str, Address]
    players: dict[str, Actor] = field(default_factory=dict)

    @property
    def chain(self) -> Chain:
        """The node."""
        return self.stage.chain

    def solver(self, name: str, kind: Callable[..., Solver] = RoundsAlone, **options: Any) -> Solver:
        """A solver with a key, stake and a data folder of its own."""
        account = Account.create()
        self.chain.transfer(self.stage.sponsor, account.address, 10 * ETHER)
        token = TokenContract(self.stage.token)
        self.chain.send(account, token.mint(address_of(account), Wei(STAKE)))
        self.chain.send(account, token.approve(self.run.vault.address, Wei(STAKE)))
        self.chain.send(account, self.run.vault.deposit(Wei(STAKE)))
        keys, folder, store = ActorKeys(name, account), self.folder / name, options.pop("store", self.store)
        make = lambda: kind(self.run, keys, store, folder, compute=COMPUTE, **options)  # noqa: E731
        self.players[name] = Actor(make, make())
        return self.players[name].agent

    def restart(self, name: str) -> Solver:
        """A solver's process dies, and another goes on over the same folder."""
        player = self.players[name]
        player.agent.close()
        player.agent = player.make()
        return player.agent

    def enrol(self) -> None:
        """Everybody takes a seat."""
        for _ in range(2):
            for player in self.players.values():
                player.agent.step()

    def begin(self) -> None:
        """Round 0 opens."""
        self.chain.send(self.stage.sponsor, Call(self.at["RoundsBench"], selector("begin()"), "begin", ()))

    def settle(
        self,
        until: Callable[[RoundStageRun], bool] = lambda _: False,
        stops: int = 400,
        revived: type[Exception] | tuple[()] = (),
    ) -> None:
        """Steps everybody until the condition holds or nobody waits for anything; time moves when all rest.

        Whoever dies of `revived` is made again over the same folder.
        """
        for _ in range(stops):
            while self.sweep(revived):
                if until(self):
                    return
            if until(self):
                return
            now = self.chain.head().timestamp
            times = [p.agent.deadline for p in self.players.values() if p.agent.deadline is not None]
            waiting = min((t for t in times if t > now), default=None)
            if waiting is None:
                return
            self.chain.rpc("evm_mine", hex(waiting))
        raise AssertionError("the run does not come to rest")

    def sweep(self, revived: type[Exception] | tuple[()] = ()) -> bool:
        """One step of every solver; False when all are idle at one head."""
        head, acted = self.chain.head(), False
        for name, player in list(self.players.items()):
            try:
                acted |= player.agent.step()
            except revived:
                self.restart(name)
                acted = True
        return acted or self.chain.head() != head

    @property
    def view(self) -> RunView:
        """The run as some solver sees it."""
        return next(iter(self.players.values())).agent.see()


def new_round_run(stage: SharedChain, folder: Path, work: TrainedWork, **changes: Any) -> RoundStageRun:
    """Deploys a run and publishes what it starts from."""
    stage.worlds += 1
    run_id = Digest(stage.worlds.to_bytes(32, "big"))
    terms = small_terms(work, run_id, **changes)
    nonce = stage.chain.read(lambda: stage.chain.w3.eth.get_transaction_count(stage.sponsor.address))
    made = [create_address(address_of(stage.sponsor), nonce + k) for k in range(len(NAMES))]
    at = dict(zip(NAMES, made, strict=True))
    text = {name: to_checksum_address(place) for name, place in at.items()}
    named = {name.lower(): place for name, place in text.items()}
    modules = modules_at(text["RoundsBench"], charter=text["StageCharter"], game=text["PuppetGame"], **named)
    lockers = [text[name] for name in ("Tenures", "Generations", "PuppetGame")]
    first = stage.chain.head().number
    for name in NAMES:
        if name == "StageCharter":
            arguments = charter_arguments(to_checksum_address(stage.token), modules, lockers, terms)
        else:
            arguments = (astuple(modules),) if name == "RoundsBench" else (text["StageCharter"],)
        place, _ = stage.chain.deploy(stage.sponsor, name, *arguments)
        assert place == at[name]
    run = staged_run(stage, work, terms, modules, first)
    store = open_store(folder / "store")
    objects = Objects(store)
    publish(objects, work)
    objects.put_program(witnessed_program(work.step))
    return RoundStageRun(stage, folder, work, run, store, at)


def staged_run(stage: SharedChain, work: TrainedWork, terms: RoundTerms, modules: RunModules, first: int) -> Run:
    """The run as actors address it; its charter is staged, so that its terms are not read from the chain."""
    witness = witnessed_program(work.step)
    named = (("step", work.step), ("update", work.update), ("merge", work.outer), ("witness", witness))
    programs = {name: ProgramRef.of(p) for name, p in named}
    run = Run.__new__(Run)
    run.chain, run.address, run.first_block, run.run_id = stage.chain, modules.charter, first, terms.run
    run.charter, run.modules = replace(RUN, token=stage.token, **programs), modules
    facts = (stage.chain.chain_id, run.address, terms.run, terms, DUTY_TERMS, TICKET_TERMS)
    run.facts = RunFacts(*facts, BeaconTimes(PERIOD, PERIOD), TEST_MONEY)
    return run
