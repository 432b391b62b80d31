"""What `assay bench goodput` prints: goodput as a rule and with every delay spent in full, and bytes by role."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import torch

from assay.bench.goodput import Goodput, GoodputResult, GoodputTerms, RoundStage
from assay.bench.goodput_model import ModelStage
from assay.engine.runtime.values.state_io import spec_of
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from assay.training.updates import UpdateWire, zero_update
from assay_ledger.store.listfile import file_size

START: Final = 1_800_000_000
COMMITS: Final = (3600, 7200)
"""C of the issue's bars, in seconds."""

BARS: Final = {3600: 0.90, 7200: 0.95}

StageOf = Callable[[GoodputTerms, int], RoundStage]
"""Makes the contracts of a run, or their model, at a chain time."""

LAYER: Final = ((512, 128), (128, 512), (384, 128), (128, 128), (512,), (128,))
"""Parameters of one block of a GPT 4 x 128, by whose files bytes are counted."""


def measure(terms: GoodputTerms, stage_of: StageOf = ModelStage) -> GoodputResult:
    """One measurement on a stage of its own."""
    return Goodput(stage_of(terms, START), terms, START).run()


def report(
    terms: GoodputTerms, commits: Sequence[int] = COMMITS, stage_of: StageOf = ModelStage, stage: str = "model"
) -> dict[str, Any]:
    """The document that the command prints; `goodput` is that of the first C, as a rule."""
    rows = []
    for commit in commits:
        for delay in (0, terms.inclusion_delay - terms.inclusion):
            found = measure(replace(terms, commit=commit, delay=delay), stage_of)
            rows.append(
                {
                    "commit_s": commit,
                    "inclusion_s": terms.inclusion + delay,
                    "goodput": round(found.goodput, 4),
                    "bar": None if delay else BARS.get(commit),
                    "training_seconds": round(found.training_seconds),
                    "chain_seconds": found.chain_seconds,
                    "rounds": found.rounds,
                    "refused": dict(found.refused),
                }
            )
    return {
        "goodput": rows[0]["goodput"],
        "training_seconds": rows[0]["training_seconds"],
        "solvers": terms.seats,
        "stage": stage,
        "rows": rows,
        "bytes_per_parameter": bytes_per_parameter(terms.seats),
    }


def bytes_per_parameter(seats: int) -> dict[str, dict[str, float]]:
    """By role and wire, a round (a duty, a join), from the files that the store keeps of a GPT's layer.

    At one level every solver fetches all updates and makes the base itself; an auditor holds the base or makes it so;
    who joins fetches the last base and its momentum.
    """
    parameters = [TensorSpec(DType.F32, dims) for dims in LAYER]
    count = sum(spec.numel for spec in parameters)
    base = file_size(parameters) / count
    found = {}
    for wire in UpdateWire:
        update = file_size(_on_the_wire(parameters, wire)) / count
        found[wire.value] = {
            "solver up": round(update, 3),
            "solver down": round((seats - 1) * update, 3),
            "auditor up": 0.0,
            "auditor down": round(base, 3),
            "joiner down": round(2 * base, 3),
        }
    return found


def _on_the_wire(parameters: Sequence[TensorSpec], wire: UpdateWire) -> list[TensorSpec]:
    """The list that carries an update of these parameters."""
    sent = zero_update([torch.empty(spec.dims, device="meta") for spec in parameters], wire)
    return [spec_of(tensor) for tensor in sent]
