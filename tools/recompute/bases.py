"""The bases of a run: how each final generation follows from the one that its round started from.

The merge is computed here in double precision, from the updates that the chain says counted, so what a run's own
program gives in f32 is compared within a tolerance; that its bits are right is what the run's games are about. What is
beyond f32 is so here too, since a program counts it as zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np

from tools.recompute.chain import (
    GENERATION,
    MAX_UNITS,
    MOMENTUM,
    PARAMETERS,
    RATE,
    SEATS,
    STEPS_PER_UNIT,
    Page,
    RecordedRun,
)
from tools.recompute.merges import agreed
from tools.recompute.store import Store, list_root, state_root
from tools.recompute.wires import numbers

FINAL = 2
OUTER_RATE, OUTER_MOMENTUM = 0.7, 0.9
TOLERANCE = 1e-4
"""Of what a merge changes: f32 sums in another order."""


def generation(ledger: RecordedRun, number: int) -> Page:
    """Status, root and list roots of a generation; the genesis has the charter's."""
    if not number:
        lists = bytes(ledger.training[PARAMETERS]), bytes(ledger.training[MOMENTUM])
        return {"status": FINAL, "root": state_root(lists), "parameters": lists[0], "momentum": lists[1]}
    found = ledger.call(ledger.at["generations"], "generationOf(uint64)", [number], [GENERATION])
    return dict(zip(("status", "root", "parameters", "momentum"), found, strict=False))


def final_generations(ledger: RecordedRun) -> list[int]:
    """Every final generation from the genesis on, each of which starts from the one before it in the list.

    Ends the script where a root is not that of its lists, or the chain of bases is broken.
    """
    found = [0]
    for round_, parent in sorted(parents(ledger).items()):
        made = generation(ledger, round_ + 1)
        if made["status"] != FINAL:
            continue
        if parent != found[-1] or made["root"] != state_root((made["parameters"], made["momentum"])):
            raise SystemExit(f"generation {round_ + 1} does not follow from generation {found[-1]}")
        found.append(round_ + 1)
    return found


def parents(ledger: RecordedRun) -> dict[int, int]:
    """The generation that each round started from."""
    return {e["round"]: e["parent"] for e in ledger.events("commitments", "RoundBegan")}


def false_merges(ledger: RecordedRun, store: Store, merge: str = "mean", *, guarded: bool = False) -> Iterator[str]:
    """A line for each final generation that is not the merge of what counted, from the genesis to the newest.

    merge: which the run's is, as `tools.recompute.merges` names them. guarded: the run's merge has a guard, so that a
    generation may be the one before it; whether the loss rose is not computed here. Each starts
    from the bytes of the one before it, so that what is true of all is true of the model.
    """
    training = ledger.training
    # A round of Adam's steps moves an element by about the rate in each: no update's root mean square is beyond it.
    rate = float(np.array([training[RATE]], "<u4").view("<f4")[0])
    limit = training[MAX_UNITS] * training[STEPS_PER_UNIT] * rate
    parameters = store.weights(bytes(training[PARAMETERS]))
    velocity = [np.zeros(value.shape, "f4") for value in parameters]
    if list_root(velocity) != bytes(training[MOMENTUM]):
        raise SystemExit("the run does not start from a momentum of zeros")
    before = 0
    for number in final_generations(ledger)[1:]:
        if guarded and generation(ledger, number)["root"] == generation(ledger, before)["root"]:
            before = number
            continue
        before, shapes = number, [value.shape for value in parameters]
        updates = {
            seat: numbers(store.weights(root), shapes) for seat, root in counted_updates(ledger, number - 1).items()
        }
        wanted, velocity = _merged(parameters, velocity, updates, limit, merge, training[SEATS])
        made = store.find(bytes(generation(ledger, number)["parameters"]))
        if made is None:  # nobody needed it any more: what was computed here stands for it
            parameters = [value.astype("f4") for value in wanted]
            continue
        for k, (old, after) in enumerate(zip(parameters, wanted, strict=True)):
            moved = float(np.abs(after - old).max(initial=0.0))
            if float(np.abs(after - made[k]).max(initial=0.0)) > TOLERANCE * max(moved, rate):
                yield f"generation {number}: parameter {k} is not the merge of {len(updates)} updates"
        parameters = made


def counted_updates(ledger: RecordedRun, round_: int) -> dict[int, bytes]:
    """The list root of each update of a round that the chain counts, by seat."""
    mask, _ = ledger.call(ledger.at["commitments"], "mergedOf(uint64,uint32)", [round_, 0], ["uint64", "bytes32"])
    works = [e for e in ledger.events("commitments", "WorkCommitted") if e["round"] == round_]
    return {e["seat"]: bytes(e["work"][3]) for e in works if mask >> e["seat"] & 1}


def _merged(
    parameters: list[Any], velocity: list[Any], updates: dict[int, list[Any]], limit: float, merge: str, seats: int
) -> tuple[list[Any], list[Any]]:
    """New parameters and velocity: the merge of the updates, each cut to its limit, then a step of Nesterov's."""
    if not updates:
        return parameters, velocity
    means = []
    for k, value in enumerate(parameters):
        cut = [limited(update[k], limit * sqrt(value.size)) for update in updates.values()]
        means.append(agreed(merge, cut, list(updates), seats))
    after = [old * OUTER_MOMENTUM + mean for old, mean in zip(velocity, means, strict=True)]
    steps = [(mean + new * OUTER_MOMENTUM) * OUTER_RATE for mean, new in zip(means, after, strict=True)]
    return [value - step for value, step in zip(parameters, steps, strict=True)], after


def limited(update: Any, bound: float) -> Any:
    """One tensor of an update with zeros for what is not finite, scaled down to a norm of at most `bound`.

    Zeros, where the sum of its squares is beyond f32.
    """
    with np.errstate(over="ignore"):
        narrow = update.astype("f4")
        clean = np.where(np.isfinite(narrow), narrow, np.float32(0.0))
        squares = (clean * clean).sum(dtype="f8").astype("f4")
    if not np.isfinite(squares):
        return np.zeros(clean.shape)
    norm = sqrt(float(squares))
    return clean.astype("f8") * (1.0 if norm <= bound else bound / norm)
