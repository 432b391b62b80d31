"""A real dispute in one process: a node, the contracts of a run, and the agents' own code on both sides.

A solver trains a round and lies in one node; the verifier that replays it challenges; both play to the verdict. What is
measured are the transactions as mined.
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
from assay.protocol.errors import InvariantError
from assay.protocol.game.state import Outcome, Verdict
from assay.protocol.game.table import Move, Side
from assay.protocol.program.nodes import Family
from assay.protocol.program.program import Program
from assay.protocol.trees.state import TrainingList
from assay.protocol.types import Round, Wei
from assay.sponsor.posting import post_run
from assay.sponsor.preparing import prepare
from assay.training.presets import Preset
from assay.training.rounds import TorchCompute
from assay_ledger.agents.agent import Agent
from assay_ledger.agents.participant import Participant
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.chain.node import Anvil
from assay_ledger.index.archive import Computation
from assay_ledger.index.run import Run
from assay_ledger.keys.bls import BlsKey
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.processes.scratch import ScratchDir
from assay_ledger.store.blobs import open_store
from assay_solver.cheating import CheatingSolver
from assay_solver.cheats import Cheat, Scene
from assay_solver.lies import Lie
from assay_verifier.agent import VerifierAgent

GENESIS_TIME: Final = 1_800_000_000
TOKENS: Final = Wei(10_000 * 10**18)
MAX_STOPS: Final = 200
OPENING: Final = "challenge"


@dataclass(frozen=True, slots=True)
class GameTransaction:
    """One transaction of a game: the function called, gas used, bytes of calldata."""

    function: str
    gas: int
    calldata: int


@dataclass(frozen=True, slots=True)
class Dispute:
    """A game that was really played. Seconds are processor time of this machine.

    job: the claim's program, X and steps. step: where the node of the verdict is; defended: its bytes as the defender
    claims them. bytes_kept: what the defender's trace held at the end. replay_s: the whole claim executed again, its
    state roots only; retrace_s: the disputed step once more with all its digests and the node's bytes;
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


class LiesInFamily(Cheat):
    """One bit of the last node of a family whose bit reaches the end of the first interval."""

    name = "lies-in-family"

    def __init__(self, family: Family) -> None:
        super().__init__(Round(0))
        self.family = family
        self._found: Lie | None = None

    def lie(self, scene: Scene, number: int, job: Computation) -> Lie | None:
        """See Cheat."""
        if number != 0:
            return None
        if self._found is None:
            self._found = self._search(scene, job)
        return self._found

    def _search(self, scene: Scene, job: Computation) -> Lie:
        truth = scene.compute.run(job.program, job.lists, job.steps)
        # From the end: what is computed late is a part of the next state, or close to one.
        for node in (k for k, n in reversed(list(enumerate(job.program.nodes))) if n.family is self.family):
            # A high bit of a mantissa: lower ones are often rounded away before the end.
            lie = Lie({(job.steps // 2 + 1, node): lambda data: data[:2] + bytes((data[2] ^ 0x40,)) + data[3:]})
            end = scene.compute.run(job.program, job.lists, job.steps, lie)
            # Scalars are computed by everybody: a state with others is not a false claim but none at all.
            if end != truth and end[TrainingList.SCALARS] == truth[TrainingList.SCALARS]:
                return lie
        raise InvariantError(f"No lie in a {self.family.name} reaches the end.", code="NoLie")


def play(preset: Preset, text: str, family: Family, talk: Callable[[str], None] = lambda _: None) -> Dispute:
    """Plays a dispute about a claim of this preset's model whose lie begins in a node of this family."""
    with ScratchDir("arena") as scratch, Anvil(accounts=1, genesis_time=GENESIS_TIME) as node:
        chain, sponsor = Chain(node.url), Account.from_key(node.dev_keys[0])
        store = open_store(scratch.path / "store")
        talk("capturing")
        prepared = prepare(preset, text)
        run = Run(chain, post_run(chain, sponsor, store, prepared, name="arena", rounds=1, talk=talk))
        _rich(run, sponsor, sponsor)
        chain.send(sponsor, run.settlement.fund(TOKENS))
        compute = TorchCompute()

        def keys(name: str) -> ActorKeys:
            account = Account.create()
            _rich(run, sponsor, account)
            return ActorKeys(name, account, BlsKey.generate())

        def folder(name: str) -> Path:
            return scratch.path / name

        bond = Wei(run.charter.economics.verifier_bond)
        verifier = VerifierAgent(run, keys("verifier"), store, folder("verifier"), compute=compute, stake=bond)
        cheat = LiesInFamily(family)
        solver = CheatingSolver(run, keys("solver"), store, folder("solver"), cheat=cheat, compute=compute)
        try:
            talk("training, auditing, disputing")
            _settle(chain, [verifier, solver], lambda: any(g.is_over for g in verifier.state.games.values()))
            return _measure(run, verifier, solver, compute)
        finally:
            verifier.close()
            solver.close()


def _rich(run: Run, sponsor: Any, account: Any) -> None:
    """Coin for gas, and tokens in the vault."""
    chain, stake = run.chain, Wei(2 * TOKENS)
    if account.address != sponsor.address:
        chain.transfer(sponsor, account.address, 10 * 10**18)
    chain.send(account, run.token.mint(address_of(account), stake))
    chain.send(account, run.token.approve(run.vault.address, stake))
    chain.send(account, run.vault.deposit(stake))


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


def _measure(run: Run, verifier: Participant, solver: Participant, compute: TorchCompute) -> Dispute:
    record = next(g for _, g in sorted(verifier.state.games.items()) if g.is_over)
    assert record.verdict is not None and record.verdict.side is Side.DEFENDER
    if record.verdict.outcome is not Outcome.LEAF:
        raise InvariantError("The dispute ended by the clock.", code="NoLeaf")
    hashes = list(dict.fromkeys([record.opened_tx, *(m.tx_hash for m in record.moves)]))
    sent = tuple(_sent(run, h) for h in hashes)
    game, node = run.games.game(record.game_id), record.verdict.node
    kept: Any = solver._player(solver.see())._trace(game)
    held, view = kept.bytes_kept, verifier.see()
    job = verifier.archive.job(view, verifier.duty_of(record.ref, view))
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
