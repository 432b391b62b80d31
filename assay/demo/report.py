"""What a demo ended in: one document for scripts, from chain and store, and what was measured on the way."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from eth_utils.address import to_checksum_address

from assay.demo.play import RunningDemo
from assay.demo.stage import TORCH_CACHE
from assay.protocol.game.state import Outcome
from assay.protocol.program.nodes import Family
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest
from assay.sponsor.cards import read_card, read_corpus
from assay_ledger.bindings.revenue import Claimed
from assay_ledger.bindings.settlement import DutiesSettled, WorkSettled
from assay_ledger.index.records import CommitmentRecord, GameRecord, RunState
from assay_ledger.store.objects import Objects

SAMPLE_CHARACTERS = 200
EAGER_STEPS = 25


@dataclass(frozen=True, slots=True)
class Quality:
    """How good the model was before and after, in nats per character, with a text that each generates."""

    parameters: int
    loss_before: float
    loss_after: float
    letter_entropy: float
    sample_before: str
    sample_after: str
    eager_step_cpu: float
    """CPU seconds of one step in stock eager f32 PyTorch, one thread."""


def report(scene: RunningDemo, quality: Quality) -> dict[str, Any]:
    """The document that `assay demo --json` prints."""
    state, run = scene.index.state, scene.run
    owners = [scene.addresses[p.name] for p in scene.cast.players] + strangers(scene)
    cpu = {kind: round(seconds, 3) for kind, seconds in scene.meter.seconds.items()}
    eager = quality.eager_step_cpu * trained_steps(state) * run.charter.training.steps_per_round
    return {
        "run": "0x" + run.address.hex(),
        "rpc_url": scene.node.url,
        "store": str(scene.stage.store),
        "parameters": quality.parameters,
        "rounds": len(state.rounds),
        "val_loss_before": quality.loss_before,
        "val_loss_after": quality.loss_after,
        "letter_entropy": quality.letter_entropy,
        "cheats": [str(c) for c in scene.options.cheats],
        "slashed": [slashed_entry(state, g) for g in ordered(state) if g.convicted and g.bounty + g.burned],
        "disputes": [dispute_entry(scene, g) for g in ordered(state) if g.is_over],
        "shares": {to_checksum_address(a): scene.chain.ask(run.shares.balance_of(a)) for a in owners},
        "earned": earned(scene),
        "revenue": scene.revenue_paid,
        "claimed": claimed(scene, owners),
        "conservation_difference": conservation_difference(scene),
        "cpu_seconds": cpu,
        "wall_seconds": round(time.monotonic() - scene.started, 1),
        "decentralization_multiplier": round(sum(cpu.values()) / eager, 2) if eager else None,
        "peak_pss_bytes": scene.meter.peak_pss,
    }


def earned(scene: RunningDemo) -> dict[str, int]:
    """Wei of tokens that settlement paid to each address: pay and wages."""
    at, paid = scene.run.settlement.address, Counter[str]()
    for work in scene.chain.events(WorkSettled.search(at), 0):
        paid[to_checksum_address(work.event.solver)] += work.event.pay
    for duties in scene.chain.events(DutiesSettled.search(at), 0):
        paid[to_checksum_address(duties.event.attester)] += duties.event.wages
    return dict(paid)


def strangers(scene: RunningDemo) -> list[Address]:
    """Holders of seats and registered actors beside the demo's own, sorted."""
    state = scene.index.state
    seated = {holder for record in state.rounds for holder in record.roster if holder is not None}
    everybody = seated | state.attesters.keys() | set(state.holders.values())
    return sorted(everybody - set(scene.addresses.values()))


def claimed(scene: RunningDemo, owners: Iterable[Address] = ()) -> dict[str, int]:
    """Wei of revenue paid out, to these owners and to others who claimed."""
    run = scene.run
    paid: dict[str, int] = {to_checksum_address(a): 0 for a in owners}
    for found in run.chain.events(Claimed.search(run.revenue.address), 0):
        owner = to_checksum_address(found.event.owner)
        paid[owner] = paid.get(owner, 0) + found.event.amount
    return paid


def ordered(state: RunState) -> list[GameRecord]:
    """Games by number."""
    return [state.games[game_id] for game_id in sorted(state.games)]


def slashed_entry(state: RunState, game: GameRecord) -> dict[str, Any]:
    """A lock that a conviction took; amounts in wei."""
    assert game.verdict_tx is not None
    return {
        "address": to_checksum_address(game.defender),
        "amount": game.taken,
        "role": _role(state, game),
        "claim": "0x" + game.claim_id.hex(),
        "kind": game.outcome.name,
        "leaf_tx": "0x" + game.verdict_tx.hex(),
    }


def _role(state: RunState, game: GameRecord) -> str:
    """The role in which a defender was convicted."""
    attester = state.attesters.get(game.defender)
    return attester.role.name.lower() if attester and game.ref.kind is ClaimKind.ATTESTATION else "solver"


def dispute_entry(scene: RunningDemo, game: GameRecord) -> dict[str, Any]:
    """One game: its path in figures. `levels` counts the challenger's bisections and selections."""
    assert game.verdict is not None and game.verdict_tx is not None
    hashes = list(dict.fromkeys([game.opened_tx, *(m.tx_hash for m in game.moves), game.verdict_tx]))
    gas = {tx: _gas(scene, tx) for tx in hashes}
    family = game.verdict.family
    ends = {game.opened_tx} | ({game.verdict_tx} if game.outcome is Outcome.DEFAULT else set())
    selections = set(hashes) - ends
    return {
        "claim": "0x" + game.claim_id.hex(),
        "kind": game.ref.kind.name,
        "loser": to_checksum_address(game.verdict.loser),
        "levels": sum(m.mover == game.challenger and m.tx_hash in selections for m in game.moves),
        "leaf_family": Family(family).name.lower() if family in set(Family) else None,
        "transactions": len(hashes),
        "gas_total": sum(gas.values()),
        "gas_leaf": gas[game.verdict_tx],
        "ended_by": game.outcome.name,
        "verdict_tx": "0x" + game.verdict_tx.hex(),
    }


def trained_steps(state: RunState) -> int:
    """How many commitments entered the model: in the outer root that the next round, or the run, went on from."""
    count = 0
    for number, record in enumerate(state.rounds):
        root = model_root(state, number)
        if root is not None and (outer := record.outers.get(root)) is not None:
            mask, _ = record.inclusions.get(outer.base, (0, Digest(bytes(32))))
            count += mask.bit_count()
    return count


def model_root(state: RunState, round_: int) -> Digest | None:
    """The outer root of a round that was built upon: the base of a later commitment, else one that stands."""
    record = state.rounds[round_]
    later: list[CommitmentRecord] = []
    if round_ + 1 < len(state.rounds):
        later = [
            c for c in state.rounds[round_ + 1].commitments.values() if c.base in record.outers and not c.convicted
        ]
    if later:
        return later[0].base
    return next((root for root, outer in record.outers.items() if not outer.fallen), None)


def final_parameters(state: RunState, genesis: Digest) -> Digest:
    """The parameters of the latest outer root that stands; those of genesis where none does."""
    for number in range(len(state.rounds) - 1, -1, -1):
        root = model_root(state, number)
        if root is not None:
            return state.rounds[number].outers[root].parameters
    return genesis


def judge_model(scene: RunningDemo) -> Quality:
    """Loads the weights that the chain names into the stock PyTorch module and evaluates them."""
    before = os.environ.get(TORCH_CACHE)
    os.environ[TORCH_CACHE] = scene.stage.environment[TORCH_CACHE]
    try:
        return _judge_model(scene)
    finally:
        del os.environ[TORCH_CACHE]
        if before is not None:
            os.environ[TORCH_CACHE] = before


def _judge_model(scene: RunningDemo) -> Quality:
    import torch

    from assay.engine.runtime.values.state_io import tensor_from_bytes
    from assay.training.evaluate import generate, validation_loss
    from assay.training.model import build_model
    from assay.training.state import Scalars
    from assay.training.step import initial_state, preset_step

    run, state = scene.run, scene.index.state
    preset, corpus = read_corpus(scene.store, read_card(scene.store, run.address), run.charter.training.data)
    model = build_model(preset, len(corpus.vocabulary))
    objects = Objects(scene.store)
    program = objects.program(run.charter.step.root)
    specs = [program.specs[k] for k in program.input_nodes[0]]
    final = final_parameters(state, run.charter.training.parameters)

    def weights(root: Digest) -> list[torch.Tensor]:
        return [tensor_from_bytes(s, data) for s, data in zip(specs, objects.list(root, specs), strict=True)]

    before, after = weights(run.charter.training.parameters), weights(final)
    step = preset_step(preset, len(corpus.vocabulary))
    lists = initial_state(step, before, Scalars.of(corpus.train, learning_rate=preset.learning_rate))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    step(*lists)
    begin = time.process_time()
    for _ in range(EAGER_STEPS):
        lists = step(*lists)
    eager = (time.process_time() - begin) / EAGER_STEPS
    torch.set_num_threads(threads)
    return Quality(
        parameters=sum(t.numel() for t in before),
        loss_before=validation_loss(model, before, corpus),
        loss_after=validation_loss(model, after, corpus),
        letter_entropy=corpus.letter_entropy(),
        sample_before=generate(model, before, corpus, length=SAMPLE_CHARACTERS),
        sample_after=generate(model, after, corpus, length=SAMPLE_CHARACTERS),
        eager_step_cpu=eager,
    )


def conservation_difference(scene: RunningDemo) -> int:
    """Wei that vault and revenue hold beyond what their books say; 0 unless money was made or lost."""
    run, ask = scene.run, scene.chain.ask
    free, locked, leaving, burned = ask(run.vault.totals())
    books = free + locked + leaving + burned
    vault = ask(run.token.balance_of(run.vault.address)) - books
    held = ask(run.token.balance_of(run.revenue.address))
    return vault + held - (scene.revenue_paid - sum(claimed(scene).values()))


def _gas(scene: RunningDemo, tx: bytes) -> int:
    return int(scene.chain.read(lambda: scene.chain.w3.eth.get_transaction_receipt(tx))["gasUsed"])  # type: ignore[arg-type]
