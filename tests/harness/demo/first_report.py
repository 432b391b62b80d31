"""What a run of the first design ended in: the document that tools.recompute checks; it goes with that test."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from eth_utils.address import to_checksum_address

from assay.demo.measured import (
    Quality,
    claimed,
    conservation_difference,
    dispute_entry,
    measure_quality,
    ordered,
    slashed_entry,
)
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.settlement import DutiesSettled, WorkSettled
from assay_ledger.index.records import CommitmentRecord, GameRecord, RunState
from assay_ledger.store.objects import Objects


def report(scene: Any, quality: Quality) -> dict[str, Any]:
    """The document that `assay demo --json` prints."""
    state, run = scene.index.state, scene.run
    games = ordered(state.games)
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
        "slashed": [
            slashed_entry(g, _role(state, g)) for g in ordered(state.games) if g.convicted and g.bounty + g.burned
        ],
        "disputes": [dispute_entry(scene.chain, g) for g in games if g.is_over],
        "shares": {to_checksum_address(a): scene.chain.ask(run.shares.balance_of(a)) for a in owners},
        "earned": earned(scene),
        "revenue": scene.revenue_paid,
        "claimed": claimed(run, owners),
        "conservation_difference": conservation_difference(run, scene.revenue_paid),
        "cpu_seconds": cpu,
        "wall_seconds": round(time.monotonic() - scene.started, 1),
        "decentralization_multiplier": round(sum(cpu.values()) / eager, 2) if eager else None,
        "peak_pss_bytes": scene.meter.peak_pss,
    }


def earned(scene: Any) -> dict[str, int]:
    """Wei of tokens that settlement paid to each address: pay and wages."""
    at, paid = scene.run.settlement.address, Counter[str]()
    for work in scene.chain.events(WorkSettled.search(at), 0):
        paid[to_checksum_address(work.event.solver)] += work.event.pay
    for duties in scene.chain.events(DutiesSettled.search(at), 0):
        paid[to_checksum_address(duties.event.attester)] += duties.event.wages
    return dict(paid)


def strangers(scene: Any) -> list[Address]:
    """Holders of seats and registered actors beside the demo's own, sorted."""
    state = scene.index.state
    seated = {holder for record in state.rounds for holder in record.roster if holder is not None}
    everybody = seated | state.attesters.keys() | set(state.holders.values())
    return sorted(everybody - set(scene.addresses.values()))


def _role(state: RunState, game: GameRecord) -> str:
    """The role in which a defender was convicted."""
    attester = state.attesters.get(game.defender)
    return attester.role.name.lower() if attester and game.ref.kind is ClaimKind.ATTESTATION else "solver"


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


def judge_model(scene: Any) -> Quality:
    """Loads the weights that the chain names into the stock PyTorch module and evaluates them."""
    from assay.engine.runtime.values.state_io import tensor_from_bytes

    run, training = scene.run, scene.run.charter.training
    objects = Objects(scene.store)
    program = objects.program(run.charter.step.root)
    specs = [program.specs[k] for k in program.input_nodes[0]]
    before, after = (
        [tensor_from_bytes(s, data) for s, data in zip(specs, objects.list(root, specs), strict=True)]
        for root in (training.parameters, final_parameters(scene.index.state, training.parameters))
    )
    return measure_quality(scene.stage.environment, scene.store, run.address, training.data, before, after)
