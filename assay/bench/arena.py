"""A real dispute in one process: a node, the contracts of a run, and the agents' own code on both sides.

A solver trains a round and lies in one node; the auditor that is drawn for it accuses and challenges; both play to the
verdict. The solver runs programs on the device that is asked for, the auditor on the CPU. What is measured are the
transactions as mined.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from eth_account import Account

from assay.bundle.calls import decode_call
from assay.engine.runtime.executor import cpu_variant, how_programs_run
from assay.protocol.economics.limits import PPM
from assay.protocol.errors import InvariantError
from assay.protocol.game.state import Outcome, Verdict
from assay.protocol.game.table import Move, Side
from assay.protocol.program.nodes import Family
from assay.protocol.program.program import Program
from assay.protocol.trees.state import TrainingList
from assay.protocol.types import Round, Wei
from assay.sponsor.charters import AuditRates, Pace
from assay.sponsor.launching import deposit, escrow_of, fund_run, launch_run, mint_tokens, stake_of
from assay.sponsor.posting import post_run
from assay.sponsor.preparing import prepare_rounds
from assay.training.presets import Preset
from assay.training.rounds import TorchCompute
from assay_ledger.agents.agent import Agent
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.chain.node import Anvil
from assay_ledger.index.computing import Computation
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.processes.scratch import ScratchDir
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import open_store
from assay_solver.agent import Solver
from assay_solver.lies import Lie
from assay_whistleblower.agent import AuditorAgent

GENESIS_TIME: Final = 1_800_000_000
HOUR: Final = 3600
UNITS: Final = 5
"""Of a commitment."""

TICKETS: Final = 5
"""The fewest that a run opens with. An epoch calls one of them, which is drawn for all work."""

RATES: Final = AuditRates(audit_ppm=PPM, shifts=TICKETS, tickets=TICKETS)
GAMES: Final = 10
"""Bonds of games that each actor can pay at once, beside what it locks."""

MAX_STOPS: Final = 200


@dataclass(frozen=True, slots=True)
class GameTransaction:
    """One transaction of a game: the function called, gas used, bytes of calldata."""

    function: str
    gas: int
    calldata: int


@dataclass(frozen=True, slots=True)
class Dispute:
    """A game that was really played. Seconds are processor time of this machine.

    job: the claim's program, X and steps: a whole commitment. step: where the node of the verdict is; defended: its
    bytes as the defender claims them. bytes_kept: what the defender's trace held in memory at the end. replay_s: the
    whole claim executed again, its state roots only; retrace_s: the disputed step once more with all its digests and
    the node's bytes;
    retrace_peak: by how many bytes the process grew meanwhile.
    """

    job: Computation
    step: int
    defended: bytes
    transactions: tuple[GameTransaction, ...]
    levels: int
    verdict: Verdict
    bytes_kept: int
    replay_s: float
    retrace_s: float
    retrace_peak: int

    @property
    def program(self) -> Program:
        """The program of the claim."""
        return self.job.program

    @property
    def steps(self) -> int:
        """The steps of the claim."""
        return self.job.steps


class LyingSolver(Solver):
    """A solver that lies in its first commitment: in one bit of the last node of a family that reaches the end."""

    def __init__(self, *args: Any, family: Family, **options: Any) -> None:
        self._family = family
        self._told: Lie | None = None
        self.job: Computation | None = None
        """Its commitment as it was to be computed, once it is under way."""
        super().__init__(*args, **options)

    def lie(self, round_: Round) -> Lie | None:
        """See Worker."""
        if round_ != 0:
            return None
        if self._told is None:
            self.job = self._commitment()
            self._told = self._search(self.job)
        return self._told

    def _commitment(self) -> Computation:
        view, rules = self.see(), self.target.facts.rounds
        tenure = view.tenure_in(Round(0))
        assert tenure is not None
        start = self._start(Round(0), tenure[1].seat, view)
        return Computation(self.archive.step, start, rules.max_units * rules.steps_per_unit)

    def _search(self, job: Computation) -> Lie:
        truth = self.compute.run(job.program, job.lists, job.steps)
        # From the end: what is computed late is a part of the next state, or close to one.
        for node in (k for k, n in reversed(list(enumerate(job.program.nodes))) if n.family is self._family):
            # A high bit of a mantissa: lower ones are often rounded away before the end.
            lie = Lie({(job.steps // 2 + 1, node): lambda data: data[:2] + bytes((data[2] ^ 0x40,)) + data[3:]})
            end = self.compute.run(job.program, job.lists, job.steps, lie)
            # Scalars are computed by everybody: a state with others is not a false claim but none at all.
            if end != truth and end[TrainingList.SCALARS] == truth[TrainingList.SCALARS]:
                return lie
        raise InvariantError(f"No lie in a {self._family.name} reaches the end.", code="NoLie")


def play(preset: Preset, text: str, family: Family, talk: Callable[[str], None] = lambda _: None) -> Dispute:
    """Plays a dispute about a commitment of this preset's model whose lie begins in a node of this family."""
    with ScratchDir("arena") as scratch, Anvil(accounts=1, genesis_time=GENESIS_TIME) as node:
        chain, sponsor = Chain(node.url), Account.from_key(node.dev_keys[0])
        store = open_store(scratch.path / "store")
        talk("capturing")
        prepared = prepare_rounds(preset, text, seats=1)
        pace = Pace(units=UNITS, least=UNITS, steps=preset.inner_steps // UNITS, commit=HOUR)
        run = post_run(
            *(chain, sponsor, store, prepared), name="arena", rounds=1, seats=1, pace=pace, rates=RATES, talk=talk
        )
        compute, charter = TorchCompute(cpu_variant()), run.charter

        def actor(name: str, stake: Wei) -> tuple[ActorKeys, Path]:
            account = Account.create()
            chain.transfer(sponsor, account.address, 10 * 10**18)
            e = charter.economics
            _deposit(run, account, Wei(stake + GAMES * (e.challenge_bond + e.challenge_deposit)))
            return ActorKeys(name, account), scratch.path / name

        keys, folder = actor("auditor", stake_of(charter, tickets=TICKETS))
        auditor = AuditorAgent(run, keys, store, folder, compute=compute, tickets=TICKETS)
        keys, folder = actor("solver", stake_of(charter, seats=1))
        talk(f"the solver: {how_programs_run()} The auditor: by {cpu_variant()} kernels on the CPU.")
        solver = LyingSolver(run, keys, store, folder, compute=TorchCompute(), family=family)
        try:
            talk("taking a seat and tickets")
            agents = [auditor, solver]
            _settle(chain, agents, lambda: _is_enrolled(auditor.see()))
            mint_tokens(chain, sponsor, run.token, address_of(sponsor), escrow_of(charter))
            fund_run(chain, sponsor, run, escrow_of(charter))
            launch_run(chain, sponsor, run)
            talk("training, auditing, disputing")
            _settle(chain, agents, lambda: any(g.is_over for g in auditor.state.games.values()))
            return _measure(run, auditor, solver, compute)
        finally:
            auditor.close()
            solver.close()


def _deposit(run: Run, account: Any, amount: Wei) -> None:
    """Tokens of somebody's own, in the vault."""
    mint_tokens(run.chain, account, run.token, address_of(account), amount)
    deposit(run.chain, account, run, amount)


def _is_enrolled(view: RunView) -> bool:
    """Whether the seat is held and all tickets count."""
    tickets = view.books.registry.tickets.values()
    return (
        len(tickets) == TICKETS
        and view.books.tenures.seated_at(Round(0)) == 1
        and view.now > max(held.from_ for held in tickets)
    )


def _settle(chain: Chain, agents: Sequence[Agent], until: Callable[[], bool]) -> None:
    """Steps the agents in turn; when all rest, chain time jumps to the earliest time that one waits for."""
    for _ in range(MAX_STOPS):
        while sum(agent.step() for agent in agents):
            if until():
                return
        now = chain.head().timestamp
        waiting = [a.deadline for a in agents if a.deadline is not None and a.deadline > now]
        if until() or not waiting:
            break
        chain.rpc("evm_mine", hex(min(waiting)))
    if not until():
        raise InvariantError("The dispute does not come to its end.", code="NoVerdict")


def _measure(run: Run, auditor: AuditorAgent, solver: LyingSolver, compute: TorchCompute) -> Dispute:
    record = next(g for _, g in sorted(auditor.state.games.items()) if g.is_over)
    assert record.verdict is not None and record.verdict.side is Side.DEFENDER
    if record.verdict.outcome is not Outcome.LEAF:
        raise InvariantError("The dispute ended by the clock.", code="NoLeaf")
    hashes = list(dict.fromkeys([record.opened_tx, *(m.tx_hash for m in record.moves)]))
    sent = tuple(_sent(run, h) for h in hashes)
    game, node = run.games.game(record.game_id), record.verdict.node
    kept: Any = solver._player(solver.see())._trace(game)
    held, job = kept.bytes_kept, solver.job
    assert job is not None
    step = game.state.step
    replay_s, retrace_s, peak = _retrace(compute.trace(job.program, job.lists, job.steps), step, node)
    return Dispute(
        job=job,
        step=step,
        defended=kept.node_bytes(step, node),
        transactions=sent,
        levels=sum(s.function in _BY_CHALLENGER for s in sent[1:]),
        verdict=record.verdict,
        bytes_kept=held,
        replay_s=replay_s,
        retrace_s=retrace_s,
        retrace_peak=peak,
    )


def _retrace(trace: Any, step: int, node: int) -> tuple[float, float, int]:
    """Processor seconds of the claim's state roots and of one step with all digests and a node; growth in bytes."""
    before = resident_bytes("VmRSS")
    forget_peak()
    start = time.process_time()
    trace.state_root(trace.steps)
    trace.state_bytes(step - 1)
    replayed = time.process_time()
    trace.prefix_root(step, 1)
    trace.node_bytes(step, node)
    return replayed - start, time.process_time() - replayed, resident_bytes("VmHWM") - before


def resident_bytes(name: str) -> int:
    """Memory of this process in bytes: VmRSS, in use now, or VmHWM, the most since the peak was forgotten."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(found.group(1)) if found else 0


def forget_peak() -> None:
    """From now on VmHWM is the most since now, where the system allows it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


_BY_CHALLENGER: Final = frozenset(m.function for m in Move if m.side is Side.CHALLENGER)


def _sent(run: Run, tx_hash: bytes) -> GameTransaction:
    eth = run.chain.w3.eth
    transaction = run.chain.read(lambda: eth.get_transaction(tx_hash))  # type: ignore[arg-type]
    receipt = run.chain.read(lambda: eth.get_transaction_receipt(tx_hash))  # type: ignore[arg-type]
    data = bytes(transaction["input"])
    return GameTransaction(decode_call(data).name, int(receipt["gasUsed"]), len(data))
