"""What a demo ended in: one document for scripts, from chain and store, and what was measured on the way."""

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
from assay.demo.scene import DemoScene
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Round
from assay.sponsor.model_cards import model_card
from assay_ledger.index.games import Game
from assay_ledger.index.publications import Publications
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.view import RunView
from assay_ledger.store.objects import Objects


def report(scene: DemoScene, quality: Quality) -> dict[str, Any]:
    """The document that `assay demo --json` prints; amounts are wei, by address."""
    view, run, state, money = scene.view, scene.run, scene.index.state, scene.money
    people = [scene.addresses[p.name] for p in scene.cast.players] + strangers(scene)
    accounts = {to_checksum_address(who): money.of(who) for who in people}
    cpu = {kind: round(seconds, 3) for kind, seconds in scene.meter.seconds.items()}
    eager = quality.eager_step_cpu * trained_steps(view)
    games = ordered(state.games)
    return {
        "run": "0x" + run.address.hex(),
        "rpc_url": scene.node.url,
        "store": str(scene.stage.store),
        "parameters": quality.parameters,
        "rounds": len(view.books.commitments.rounds),
        "final_generations": sum(view.status(g) is GenerationStatus.FINAL for g in _generations(view)),
        "epochs": len(view.epochs),
        "findings": len(state.attestations),
        "val_loss_before": quality.loss_before,
        "val_loss_after": quality.loss_after,
        "letter_entropy": quality.letter_entropy,
        "cheats": [str(c) for c in scene.options.cheats],
        "slashed": [slashed_entry(g, role_of(g)) for g in games if g.convicted and g.taken],
        "fined": fined(scene),
        "disputes": [dispute_entry(scene.chain, g) for g in games if g.is_over],
        "card": model_card(view).to_json(),
        "deposited": {who: account.deposited for who, account in accounts.items()},
        "earned": {who: account.earned + account.won for who, account in accounts.items()},
        "lost": {who: account.lost for who, account in accounts.items()},
        "stake": {who: account.free + account.locked for who, account in accounts.items()},
        "shares": {who: account.shares for who, account in accounts.items()},
        "inference": None if scene.asking is None else scene.asking.document(run),
        "revenue": scene.revenue_paid,
        "claimed": claimed(run, people),
        "conservation_difference": conservation_difference(run, scene.revenue_paid),
        "cpu_seconds": cpu,
        "wall_seconds": round(time.monotonic() - scene.started, 1),
        "decentralization_multiplier": round(sum(cpu.values()) / eager, 2) if eager else None,
        "peak_pss_bytes": scene.meter.peak_pss,
    }


def fined(scene: DemoScene) -> dict[str, int]:
    """Wei that fines took of each address's tickets, for duties left undone."""
    money, found = scene.money, Counter[Address]()
    for ticket, amount in money.fines.items():
        found[money.ticket_owners[ticket]] += amount
    return {to_checksum_address(who): amount for who, amount in sorted(found.items())}


def strangers(scene: DemoScene) -> list[Address]:
    """Who took part beside the demo's own, sorted."""
    owners = set(scene.money.ticket_owners.values())
    return sorted((scene.index.state.participants() | owners) - set(scene.addresses.values()))


def role_of(game: GameRecord | Game) -> str:
    """In which role a defender lost."""
    return "auditor" if game.ref.kind is ClaimKind.ATTESTATION else "solver"


def trained_steps(view: RunView) -> int:
    """Steps that entered the model: of the updates that counted in generations that are final."""
    steps = 0
    for generation in _generations(view):
        if view.status(generation) is GenerationStatus.FINAL:
            round_ = Round(generation - 1)
            works = [view.work(round_, seat) for seat in view.counted(round_)[0]]
            steps += sum(made.work.units * view.rules.steps_per_unit for made in works if made is not None)
    return steps


def judge_model(scene: DemoScene) -> Quality:
    """Loads the newest final generation's weights into the stock PyTorch module and evaluates them."""
    from assay.engine.runtime.values.state_io import tensor_from_bytes
    from assay.protocol.trees.state import TrainingList
    from assay.training.rounds import TorchCompute

    view, run, objects = scene.view, scene.run, Objects(scene.store)
    archive = Archive(run.charter, run.facts, objects, Publications(run.chain, objects))
    specs = archive.specs(TrainingList.PARAMETERS)
    newest = max((g for g in _generations(view) if view.status(g) is GenerationStatus.FINAL), default=0)
    lists = [archive.base(view, g, TorchCompute())[0] for g in (0, newest)]
    before, after = ([tensor_from_bytes(s, data) for s, data in zip(specs, tensors, strict=True)] for tensors in lists)
    data = run.charter.training.data
    return measure_quality(scene.stage.environment, scene.store, run.address, data, before, after)


def _generations(view: RunView) -> range:
    """Those that rounds made or were to make."""
    return range(1, len(view.books.commitments.rounds) + 1)
