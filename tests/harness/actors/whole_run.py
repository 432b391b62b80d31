"""Whole runs on a real node: release contracts, as a sponsor posts them, and real actors.

Everybody is stepped in turn in one process, and chain time moves when all rest. No threads, no sleeps, no stand-ins.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from eth_account import Account

from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.beacon import DrandNetwork
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Digest, Round, Wei
from assay.sponsor.charters import USUAL_COMMITTEE, USUAL_RATES, AuditRates, Committee, Pace
from assay.sponsor.launching import deposit, escrow_of, fund_run, launch_run, mint_tokens, stake_of
from assay.sponsor.posting import post_run
from assay.sponsor.preparing import PreparedRounds, prepare_rounds
from assay.training.presets import TINY
from assay_ledger.agents.agent import Agent
from assay_ledger.bindings.shares import ModelSharesContract
from assay_ledger.bindings.tickets import TicketFined, TicketRegistered
from assay_ledger.bindings.vault import Locked
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.index import RunIndex
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore, open_store
from assay_solver.agent import Solver
from assay_solver.cheats import CheatingSolver, SolverCheat
from assay_verifier.cheats import AuditCheat
from assay_whistleblower.agent import AuditorAgent
from assay_whistleblower.cheating import CheatingAuditor
from tests.harness.actors.world import COMPUTE, ETHER, SharedChain

PACE = Pace(units=5, least=3, steps=2, commit=600)
BLOCK_S = 12
TRIES = 3
"""After which a refused move is not waited for: some are refused for good."""

GAMES = 10
"""Bonds of games that each actor can pay at once, beside what it locks."""


@cache
def tiny_rounds(seats: int) -> PreparedRounds:
    """What a run of the `tiny` preset starts from: a character GPT with AdamW, on a page of text."""
    text = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(120))
    return prepare_rounds(TINY, text, seats)


@dataclass
class WholeActor:
    """An actor, how to make it again after its process died, and what it brought: wei in the vault."""

    make: Callable[[], Agent]
    agent: Agent
    brought: int


@dataclass
class WholeRun:
    """One run with its store and its actors."""

    stage: SharedChain
    folder: Path
    run: Run
    store: BlobStore
    players: dict[str, WholeActor] = field(default_factory=dict)
    index: RunIndex = field(init=False)

    def __post_init__(self) -> None:
        self.index = RunIndex(self.run)

    @property
    def chain(self) -> Chain:
        """The node."""
        return self.stage.chain

    @property
    def view(self) -> RunView:
        """The run as its sponsor sees it."""
        return RunView(self.run.charter, self.run.facts, address_of(self.stage.sponsor), self.index.sync())

    # --- actors

    def solver(self, name: str, cheat: SolverCheat | None = None, **options: Any) -> Solver:
        """A solver, honest or not."""
        kind = Solver if cheat is None else partial(CheatingSolver, cheat=cheat)
        agent = self.add(name, kind, stake_of(self.run.charter, seats=1), **options)
        assert isinstance(agent, Solver)
        return agent

    def auditor(self, name: str, tickets: int = 1, cheat: AuditCheat | None = None, **options: Any) -> AuditorAgent:
        """An auditor with so many tickets, honest or not."""
        kind = AuditorAgent if cheat is None else partial(CheatingAuditor, cheat=cheat)
        stake = stake_of(self.run.charter, tickets=tickets)
        agent = self.add(name, kind, stake, tickets=tickets, **options)
        assert isinstance(agent, AuditorAgent)
        return agent

    def add(self, name: str, kind: Callable[..., Agent], stake: int, **options: Any) -> Agent:
        """An actor of any kind that brings so much more than the bonds of its games, in wei."""
        account, e = Account.create(), self.run.charter.economics
        brought = Wei(stake + GAMES * (e.challenge_bond + e.challenge_deposit))
        self.chain.transfer(self.stage.sponsor, account.address, 10 * ETHER)
        mint_tokens(self.chain, account, self.run.token, address_of(account), brought)
        deposit(self.chain, account, self.run, brought)
        keys, folder = ActorKeys(name, account), self.folder / name
        store = options.pop("store", self.store)
        options = {"compute": COMPUTE, **options}
        make = lambda: kind(self.run, keys, store, folder, **options)  # noqa: E731
        self.players[name] = WholeActor(make, make(), brought)
        return self.players[name].agent

    def restart(self, name: str) -> Agent:
        """An actor's process dies, and another goes on over the same folder."""
        player = self.players[name]
        player.agent.close()
        player.agent = player.make()
        return player.agent

    def address(self, name: str) -> Address:
        """An actor's address."""
        return self.players[name].agent.me

    # --- time

    def enrol(self) -> None:
        """Every solver takes a seat, every auditor its tickets, and time passes until they count."""
        tickets = sum(p.agent.tickets_wanted for p in self.players.values() if isinstance(p.agent, AuditorAgent))
        seats = sum(isinstance(p.agent, Solver) for p in self.players.values())
        self.settle(lambda v: v.books.tenures.seated_at(Round(0)) == seats and len(v.books.registry.tickets) == tickets)
        ripe = max(held.from_ for held in self.view.books.registry.tickets.values())
        self.settle(lambda view: view.now > ripe)

    def fund(self) -> None:
        """The sponsor fills the escrow for all rounds."""
        amount, sponsor = escrow_of(self.run.charter), self.stage.sponsor
        mint_tokens(self.chain, sponsor, self.run.token, address_of(sponsor), amount)
        fund_run(self.chain, sponsor, self.run, amount)

    def launch(self) -> None:
        """The sponsor opens the run."""
        launch_run(self.chain, self.stage.sponsor, self.run)

    def begin_with(self, *solvers: str) -> None:
        """Honest solvers by their names and two honest auditors with five tickets; then the sponsor opens the run."""
        for name in solvers:
            self.solver(name)
        self.auditor("vera", tickets=3)
        self.auditor("viktor", tickets=2)
        self.enrol()
        self.fund()
        self.launch()

    def settle(self, until: Callable[[RunView], bool], stops: int = 600) -> RunView:
        """Steps everybody until the condition holds; time moves when all rest."""
        for _ in range(stops):
            while self.sweep():
                if until(view := self.view):
                    return view
            if until(view := self.view):
                return view
            assert self.pass_time(), "nobody waits for anything"
        raise AssertionError("it does not come to that")

    def end(self, stops: int = 600) -> RunView:
        """Steps everybody until nobody waits for anything any more."""
        for _ in range(stops):
            while self.sweep():
                pass
            if not self.pass_time():
                return self.view
        raise AssertionError("the run does not come to rest")

    def pass_time(self) -> bool:
        """A block at the earliest time that anybody waits for; False where nobody waits.

        A move that was refused is tried again at the next block or in a moment, as on any chain: that comes soon.
        """
        now = self.chain.head().timestamp
        parked = [(p.agent, *tried) for p in self.players.values() for tried in p.agent._parked.items()]
        if any(a.is_in_game(action) and tried.time is None and tried.times <= TRIES for a, action, tried in parked):
            self.chain.rpc("evm_mine", hex(now + BLOCK_S))
            return True
        times = [p.agent.deadline for p in self.players.values() if p.agent.deadline is not None]
        waiting = min((t for t in times if t > now), default=None)
        if waiting is None:
            return False
        self.chain.rpc("evm_mine", hex(waiting))
        return True

    def sweep(self) -> bool:
        """One step of every actor; False when all are idle at one head."""
        head = self.chain.head()
        acted = [player.agent.step() for player in list(self.players.values())]
        return any(acted) or self.chain.head() != head

    # --- figures

    def locks(self) -> dict[bytes, tuple[Address, int]]:
        """Every lock of the vault that holds anything, from its events."""
        found = {}
        for log in self.chain.events(Locked.search(self.run.vault.address), self.run.first_block):
            owner, amount = self.chain.ask(self.run.vault.lock_of(log.event.id))
            if amount:
                found[bytes(log.event.id)] = owner, amount
        return found

    def free(self, who: Address) -> int:
        """What nothing locks, in wei."""
        return self.chain.ask(self.run.vault.free(who))

    def wealth(self, name: str) -> int:
        """Everything that an actor has in the vault: free or locked, in wei."""
        who = self.address(name)
        return self.free(who) + sum(amount for owner, amount in self.locks().values() if owner == who)

    def shares(self, name: str) -> int:
        """Shares that an actor holds."""
        return self.chain.ask(ModelSharesContract(self.run.modules.shares).balance_of(self.address(name)))

    def findings_of(self, name: str) -> set[Digest]:
        """Results that an actor's tickets opened."""
        view, who = self.view, self.address(name)
        mine = {number for number, owner in self.owners().items() if owner == who}
        return {found for found, made in view.state.attestations.items() if made.ticket in mine}

    def wages(self, name: str) -> set[Digest]:
        """Those of them that were paid for."""
        return self.findings_of(name) & self.view.state.money.findings_paid

    def fines(self, name: str) -> list[int]:
        """What was taken of an actor's tickets for duties left undone, in wei."""
        logs, owners = (
            self.chain.events(TicketFined.search(self.run.tickets.address), self.run.first_block),
            self.owners(),
        )
        return [log.event.amount for log in logs if owners[log.event.ticket] == self.address(name)]

    def owners(self) -> dict[TicketId, Address]:
        """Who registered each ticket, of those that are there and those that were taken back."""
        logs = self.chain.events(TicketRegistered.search(self.run.tickets.address), self.run.first_block)
        return {log.event.ticket: log.event.owner for log in logs}

    def withdraw_all(self) -> dict[str, int]:
        """Everybody takes out what nothing locks; the tokens that each has then got from the vault, in wei."""
        people = {name: player.agent.account for name, player in self.players.items()}
        people["sponsor"] = self.stage.sponsor
        got, ask = dict.fromkeys(people, 0), self.chain.ask
        people = {name: account for name, account in people.items() if self.free(address_of(account))}
        for account in people.values():
            self.chain.send(account, self.run.vault.request_exit(Wei(self.free(address_of(account)))))
        self.chain.rpc("evm_mine", hex(self.chain.head().timestamp + ask(self.run.vault.exit_delay()) + 1))
        for name, account in people.items():
            before = ask(self.run.token.balance_of(address_of(account)))
            self.chain.send(account, self.run.vault.withdraw())
            got[name] = ask(self.run.token.balance_of(address_of(account))) - before
        return got


def new_whole_run(
    stage: SharedChain,
    folder: Path,
    *,
    seats: int = 4,
    rounds: int = 3,
    pace: Pace = PACE,
    rates: AuditRates = USUAL_RATES,
    prepared: PreparedRounds | None = None,
    network: DrandNetwork | None = None,
    committee: Committee = USUAL_COMMITTEE,
    kind: str = "local",
    governs: Callable[[RunCharter], RunCharter] = lambda charter: charter,
) -> WholeRun:
    """Posts a run as a sponsor does, of the `tiny` preset unless another is prepared; kind: of chain, as in CHAINS."""
    stage.worlds += 1
    store = open_store(folder / "store")
    run = post_run(
        stage.chain,
        stage.sponsor,
        store,
        prepared or tiny_rounds(seats),
        name=f"whole run {stage.worlds}",
        rounds=rounds,
        seats=seats,
        pace=pace,
        rates=rates,
        network=network,
        committee=committee,
        kind=kind,
        governs=governs,
        token=stage.token,
    )
    return WholeRun(stage, folder, run, store)
