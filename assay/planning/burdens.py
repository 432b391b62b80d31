"""Who carries what in a planned round: bytes and gas by role, and the work of all over the work of training.

Gas is counted from the calls of the second round, not run: its contracts are being built. Each figure says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.planning.inputs import PlanInputs
from assay.planning.timing import BASE_BYTES, RoundTiming

GROUP_POSITIONS = 15
TOP_POSITIONS = 63
STATE_BYTES = 12
"""A parameter and its two moments, f32."""

GAS_ESTIMATES = {
    "commit": 105_000,
    "hold": 60_000,
    "seal": 45_000,
    "open": 55_000,
    "open the generation's round": 90_000,
    "open a secret": 42_000,
    "attest": 28_000,
    "settle": 110_000,
}
"""Of each call; estimates from a count of storage and hashes, until docs/snapshots holds the second round's."""


@dataclass(frozen=True, slots=True)
class RoleBurden:
    """What one participant in a role moves in a round, or an auditor in a duty."""

    role: str
    per: str
    up: float
    """Bytes."""
    down: float
    """Bytes."""
    gas: float
    """An estimate."""


def burdens(x: PlanInputs, timing: RoundTiming) -> list[RoleBurden]:
    """Every role's, a round (an epoch for a ticket, beside its duties)."""
    g, partial = GAS_ESTIMATES, BASE_BYTES * x.parameters
    own = g["commit"] + g["settle"]
    merging = g["hold"] + g["seal"] + g["open"]
    fetched = x.group_size * x.upload
    shard = 4 * x.inner_steps * x.batch
    duty = RoleBurden("auditor", "duty", 0.0, partial + shard, g["attest"] + g["settle"])
    ticket = RoleBurden("auditor", "ticket and epoch", 0.0, 0.0, g["open a secret"])
    if x.is_one_level:
        return [RoleBurden("solver", "round", x.upload, fetched + shard, own + merging), duty, ticket]
    return [
        RoleBurden("solver", "round", x.upload, partial + shard, own),
        RoleBurden("position of a group", "round", partial, fetched, merging),
        RoleBurden("position of the generation", "round", partial, x.groups * partial, g["seal"] + g["open"]),
        duty,
        ticket,
    ]


def gas_of_round(x: PlanInputs, timing: RoundTiming, tickets: int, duties: float) -> float:
    """Of everybody in one round; an estimate."""
    by = {(b.role, b.per): b.gas for b in burdens(x, timing)}
    total = x.solvers * by["solver", "round"] + duties * by["auditor", "duty"]
    total += tickets * by["auditor", "ticket and epoch"] * timing.round / timing.epoch
    if not x.is_one_level:
        total += x.groups * GROUP_POSITIONS * by["position of a group", "round"]
        total += TOP_POSITIONS * by["position of the generation", "round"]
    return total + GAS_ESTIMATES["open the generation's round"]


def multiplier_parts(x: PlanInputs) -> dict[str, float]:
    """Work of all over that of the exact steps alone, by part: `training` is 1, merging is hashing its bytes.

    The state is hashed at each mark, at the start and at the end; updates by who makes and who fetches them.
    """
    seconds = x.training_seconds * x.solvers
    hashed = x.solvers * (STATE_BYTES * (x.marks + 2) * x.parameters + x.upload)
    positions = x.solvers if x.is_one_level else x.groups * GROUP_POSITIONS
    merged = positions * x.group_size * x.upload
    if not x.is_one_level:
        merged += (TOP_POSITIONS * x.groups + x.solvers) * BASE_BYTES * x.parameters
    return {
        "training": 1.0,
        "audits": x.witness * x.audit / (1 - x.reaudit),
        "hashing": hashed / x.hash_rate / seconds,
        "merging": merged / x.hash_rate / seconds,
    }
