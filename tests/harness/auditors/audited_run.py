"""Audits on a real node: real tickets, epochs, commitments, charter and beacon, auditors stepped in
turn, chain time moved as needed.

Seats are the test's: it commits what they are told to, true unless told otherwise, and merges nothing, so that every
round starts from the first parameters. Gate and money are the bench's. No threads, no sleeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.address import to_checksum_address

from assay.protocol.program.witness import witnessed_program
from assay.protocol.rounds.ids import seal_digest
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import TicketId, ticket_lock
from assay.protocol.run.beacon import LOCAL
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.trees.tensors import tensor_root
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay.training.long_runs import LongRun, MemoryProgress
from assay_ledger.agents.agent import Agent
from assay_ledger.bindings.token import TokenContract
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.contract import Call, selector
from assay_ledger.deployment.deploy import deploy_arbiter, deploy_beacon
from assay_ledger.deployment.places import create_address
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.index import RunIndex
from assay_ledger.rounds.nodes import over_of
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore, open_store
from assay_ledger.store.objects import Objects, root_of_list
from assay_verifier.cheats import AuditCheat
from assay_whistleblower.agent import AuditorAgent
from assay_whistleblower.cheating import CheatingAuditor
from tests.harness.actors.world import COMPUTE, ETHER, SharedChain, TrainedWork, publish
from tests.harness.rounds.charters import DAY, HOUR, RUN
from tests.harness.rounds.staged import modules_at

NAMES: Final = (
    *("RunCharter", "Vault", "Tickets", "Tenures", "Commitments", "Generations", "Duties", "Attestations"),
    *("RoundsBench", "Game"),
)
"""Contracts of a run, in the order in which they are deployed."""

ROUNDS, SEATS, UNITS, STEPS = 2, 8, 2, 2
CHANGED: Final = Digest(b"changed".ljust(32, b"\0"))


def audited_charter(stage: SharedChain, work: TrainedWork, beacon: Address, rounds: int) -> RunCharter:
    """Eight seats; every ticket on call shares a rate of one, so that each claim is audited once an epoch."""
    now, specs = stage.chain.head().timestamp, work.specs
    data = work.step.specs[work.step.input_nodes[2][-1]]
    zeros = root_of_list(specs, [s.zeros() for s in specs])
    optimizer = [work.step.specs[k] for k in work.step.input_nodes[1]]
    return replace(
        RUN,
        name=Digest(stage.worlds.to_bytes(32, "big")),
        sponsor=address_of(stage.sponsor),
        token=stage.token,
        beacon=beacon,
        rounds=rounds,
        expiry=now + 365 * DAY,
        training=replace(
            RUN.training, seats=SEATS, min_units=UNITS, max_units=UNITS, steps_per_unit=STEPS, shards=8,
            shard_length=data.numel // 8, learning_rate=work.learning_rate, data=tensor_root(data, work.data),
            parameters=root_of_list(specs, work.parameters), momentum=zeros, zero_update=zeros,
            zero_optimizer=root_of_list(optimizer, work.optimizer),
        ),
        timing=replace(RUN.timing, audits_from=now + HOUR),
        economics=replace(
            RUN.economics,
            unit_price=Wei(ETHER),
            audit_ppm=1_000_000,
            reaudit_ppm=999_999,
            ticket_bond=Wei(3000 * ETHER),
        ),
        launch=replace(RUN.launch, open_from=now + HOUR, seats=SEATS),
        step=ProgramRef.of(work.step),
        update=ProgramRef.of(work.update),
        merge=ProgramRef.of(work.outer),
        witness=ProgramRef.of(witnessed_program(work.step)),
    )  # fmt: skip


@dataclass
class AuditActor:
    """An actor, and how to make it again after its process died."""

    make: Callable[[], Agent]
    agent: Agent


@dataclass
class AuditedRun:
    """One run with its store, its seats and its auditors."""

    stage: SharedChain
    folder: Path
    work: TrainedWork
    run: Run
    store: BlobStore
    at: dict[str, Address]
    seats: list[LocalAccount] = field(default_factory=list)
    players: dict[str, AuditActor] = field(default_factory=dict)
    index: RunIndex = field(init=False)

    def __post_init__(self) -> None:
        self.index = RunIndex(self.run)

    @property
    def chain(self) -> Chain:
        """The node."""
        return self.stage.chain

    @property
    def view(self) -> RunView:
        """The run as a bystander sees it."""
        return RunView(self.run.charter, self.run.facts, address_of(self.stage.sponsor), self.index.sync())

    def rich(self) -> LocalAccount:
        """A fresh account with coin for gas, and stake."""
        account = Account.create()
        stake = Wei(3 * self.run.charter.economics.ticket_bond)
        self.chain.transfer(self.stage.sponsor, account.address, 10 * ETHER)
        token = TokenContract(self.stage.token)
        self.chain.send(account, token.mint(address_of(account), stake))
        self.chain.send(account, token.approve(self.run.vault.address, stake))
        self.chain.send(account, self.run.vault.deposit(stake))
        return account

    # --- actors

    def auditor(self, name: str, cheat: AuditCheat | None = None, **options: Any) -> AuditorAgent:
        """An auditor, honest or not."""
        kind = AuditorAgent if cheat is None else partial(CheatingAuditor, cheat=cheat)
        agent = self.add(name, kind, **options)
        assert isinstance(agent, AuditorAgent)
        return agent

    def add(self, name: str, kind: Callable[..., Agent], **options: Any) -> Agent:
        """An actor with a key, stake for three tickets and a data folder of its own."""
        keys, folder = ActorKeys(name, self.rich()), self.folder / name
        make = lambda: kind(self.run, keys, self.store, folder, compute=COMPUTE, **options)  # noqa: E731
        self.players[name] = AuditActor(make, make())
        return self.players[name].agent

    def restart(self, name: str) -> Agent:
        """An actor's process dies, and another goes on over the same folder."""
        player = self.players[name]
        player.agent.close()
        player.agent = player.make()
        return player.agent

    def settle(self, until: Callable[[RunView], bool], stops: int = 300) -> RunView:
        """Steps everybody until the condition holds; time moves when all rest."""
        for _ in range(stops):
            while self.sweep():
                if until(view := self.view):
                    return view
            if until(view := self.view):
                return view
            self.pass_time()
        raise AssertionError("it does not come to that")

    def pass_time(self) -> None:
        """A block at the earliest time that anybody waits for."""
        now = self.chain.head().timestamp
        times = [p.agent.deadline for p in self.players.values() if p.agent.deadline is not None]
        waiting = min((t for t in times if t > now), default=None)
        assert waiting is not None, "nobody waits for anything"
        self.chain.rpc("evm_mine", hex(waiting))

    def sweep(self) -> bool:
        """One step of every auditor; False when all are idle at one head."""
        head = self.chain.head()
        acted = [player.agent.step() for player in list(self.players.values())]
        return any(acted) or self.chain.head() != head

    def address(self, name: str) -> Address:
        """An actor's address."""
        return self.players[name].agent.me

    def ticket(self, name: str) -> TicketId:
        """An actor's first ticket."""
        tickets = self.view.books.registry.tickets
        return next(number for number, held in sorted(tickets.items()) if held.owner == self.address(name))

    def wealth(self, name: str) -> int:
        """Everything that an actor has in the vault: free, and locked behind its tickets, in wei."""
        who, vault, found = self.address(name), self.run.vault, 0
        for number, held in self.view.books.registry.tickets.items():
            if held.owner == who:
                found += self.chain.ask(vault.lock_of(ticket_lock(number)))[1]
        return found + self.chain.ask(vault.free(who))

    # --- seats

    def sit(self, count: int = SEATS) -> None:
        """The test takes seats."""
        for _ in range(count):
            self.seats.append(self.rich())
            self.chain.send(self.seats[-1], self.run.tenures.join())

    def begin(self) -> None:
        """Round 0 opens."""
        self.chain.send(self.stage.sponsor, Call(self.at["RoundsBench"], selector("begin()"), "begin", ()))

    def play_round(self, change: Callable[[Seat, SeatWork], SeatWork] = lambda seat, work: work) -> Round:
        """Every seat commits, what it says as `change` alters it, and opens the first parameters as the next base."""
        view = self.view
        round_ = view.round
        assert round_ is not None
        base = view.base(round_)
        for seat, account in enumerate(self.seats):
            work = change(Seat(seat), self.true_work(round_, Seat(seat)))
            self.chain.send(account, self.run.commitments.commit(round_, Seat(seat), seat + 1, base.root, work))
        self.chain.rpc("evm_mine")
        acc = self.view.group(round_, 0).acc
        for seat, account in enumerate(self.seats):
            held = Wei((1 << len(self.seats)) - 1)
            self.chain.send(account, self.run.commitments.hold(round_, 0, 1 << seat, acc, held))
        self.chain.rpc("evm_mine")
        salt, over = Digest(b"salt".ljust(32, b"\0")), over_of(self.view, round_ + 1)
        for seat, account in enumerate(self.seats):
            seal = seal_digest(round_, Seat(seat), base.root, over, salt, address_of(account))
            self.chain.send(account, self.run.generations.seal(round_, Seat(seat), seal))
        self.chain.rpc("evm_mine")
        for seat, account in enumerate(self.seats):
            opened = self.run.generations.open(round_, Seat(seat), base.parameters, base.momentum, salt)
            self.chain.send(account, opened)
        return round_

    def true_work(self, round_: Round, seat: Seat) -> SeatWork:
        """What a seat's work really comes to; its marks are published."""
        scalars = self.run.facts.round_scalars(round_, seat).values()
        start = (self.work.parameters, self.work.optimizer, (*(scalars[s] for s in sorted(scalars)), self.work.data))
        made = LongRun(COMPUTE, self.work.step, start, STEPS, MemoryProgress(), room=0)
        for _ in range(UNITS):
            made.advance()
        update = COMPUTE.run(self.work.update, (start[0], made.lists[0]), 1)[0]
        parameters, optimizer, scalars_root = made.ends
        marks = Objects(self.store).put_marks(made.marks)
        return SeatWork(UNITS, marks, (parameters, optimizer, scalars_root), root_of_list(self.work.specs, update))


def new_audited_run(stage: SharedChain, folder: Path, work: TrainedWork, rounds: int = ROUNDS) -> AuditedRun:
    """Deploys a run and publishes what it starts from."""
    stage.worlds += 1
    beacon = deploy_beacon(stage.chain, stage.sponsor, LOCAL)
    charter = audited_charter(stage, work, beacon, rounds)
    arbiter = deploy_arbiter(stage.chain, stage.sponsor)
    nonce = stage.chain.read(lambda: stage.chain.w3.eth.get_transaction_count(stage.sponsor.address))
    made = [create_address(address_of(stage.sponsor), nonce + k) for k in range(len(NAMES))]
    at = dict(zip(NAMES, made, strict=True))
    text = {name: to_checksum_address(place) for name, place in at.items()}
    named = {name.lower(): place for name, place in text.items()}
    modules = modules_at(
        text["RoundsBench"],
        **{**named, "charter": text["RunCharter"], "game": text["Game"], "beacon": to_checksum_address(beacon)},
    )
    first = stage.chain.head().number
    arguments: dict[str, tuple[Any, ...]] = {
        "RunCharter": (charter.as_tuple(), astuple(modules)),
        "RoundsBench": (astuple(modules),),
        "Game": (text["RunCharter"], to_checksum_address(arbiter)),
    }
    for name in NAMES:
        place, _ = stage.chain.deploy(stage.sponsor, name, *arguments.get(name, (text["RunCharter"],)))
        assert place == at[name]
    store = open_store(folder / "store")
    objects = Objects(store)
    publish(objects, work)
    objects.put_program(witnessed_program(work.step))
    return AuditedRun(stage, folder, work, Run(stage.chain, at["RunCharter"], first), store, at)
