"""Who carries what in a planned round: bytes and gas by role, and the work of all over the work of training.

Gas is that of whole transactions as nodes took them (docs/snapshots): slots are cold, and calldata counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.planning.inputs import PlanInputs
from assay.planning.timing import BASE_BYTES, RoundTiming

GROUP_POSITIONS = 15
TOP_POSITIONS = 63
STATE_BYTES = 12
"""A parameter and its two moments, f32."""


@dataclass(frozen=True, slots=True)
class CallGas:
    """What a call costs at 64 seats or tickets, or in a run of 8 seats, and the snapshot's file and row that say so.

    `less`: a row of the same file that is taken off, for what one call does more than another.
    """

    gas: int
    source: str
    less: str | None = None


CALLS = {
    "commit": CallGas(144_035, "rounds-on-a-node.json commit"),
    "hold": CallGas(97_351, "rounds-on-a-node.json hold"),
    "seal": CallGas(112_367, "rounds-on-a-node.json seal"),
    "open": CallGas(198_765, "rounds-on-a-node.json open"),
    "open with the majority": CallGas(256_987, "rounds-on-a-node.json open with the majority"),
    "close": CallGas(44_803, "rounds-on-a-node.json close"),
    "open a secret": CallGas(122_294, "duties-on-a-node.json open, none"),
    "attest": CallGas(96_981, "duties-on-a-node.json open, 1 result", less="open, none"),
    "settle": CallGas(196_062, "seats.json settleWork"),
    "settle a finding": CallGas(232_502, "seats.json settleDuty"),
    "settle an opening": CallGas(143_971, "seats.json settleOpening"),
}
"""By call; `tests/unit/planning/test_plan.py` compares them with docs/snapshots."""

MERGE = ("seal", "open", "close", "settle an opening")
"""What an opening of a root takes from whoever is paid for it, beside the word about what is held."""


def gas_of(*calls: str) -> int:
    """Of these calls together."""
    return sum(CALLS[call].gas for call in calls)


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


def burdens(x: PlanInputs, timing: RoundTiming) -> list[RoleBurden]:
    """Every role's, a round (an epoch for a ticket, beside its duties)."""
    base = BASE_BYTES * x.parameters
    own, merging = gas_of("commit", "settle"), gas_of("hold", *MERGE)
    fetched = x.group_size * x.upload
    shard = 4 * x.inner_steps * x.batch
    duty = RoleBurden("auditor", "duty", 0.0, base + shard, gas_of("attest", "settle a finding"))
    ticket = RoleBurden("auditor", "ticket and epoch", 0.0, 0.0, gas_of("open a secret"))
    if x.is_one_level:
        return [RoleBurden("solver", "round", x.upload, fetched + shard, own + merging), duty, ticket]
    return [
        RoleBurden("solver", "round", x.upload, base + shard, own),
        RoleBurden("position of a group", "round", x.sum_bytes, fetched, merging),
        RoleBurden("position of the generation", "round", base, x.groups * x.sum_bytes, gas_of(*MERGE)),
        duty,
        ticket,
    ]


def gas_of_round(x: PlanInputs, timing: RoundTiming, tickets: int, duties: float) -> float:
    """Of everybody in one round."""
    by = {(b.role, b.per): b.gas for b in burdens(x, timing)}
    total = x.solvers * by["solver", "round"] + duties * by["auditor", "duty"]
    total += tickets * by["auditor", "ticket and epoch"] * timing.round / timing.epoch
    if not x.is_one_level:
        total += x.groups * GROUP_POSITIONS * by["position of a group", "round"]
        total += TOP_POSITIONS * by["position of the generation", "round"]
    return total + gas_of("open with the majority") - gas_of("open")


def multiplier_parts(x: PlanInputs) -> dict[str, float]:
    """Work of all over that of the exact steps alone, by part: `training` is 1, merging is hashing its bytes.

    The state is hashed at each mark, at the start and at the end; updates by who makes and who fetches them.
    """
    seconds = x.training_seconds * x.solvers
    hashed = x.solvers * (STATE_BYTES * (x.marks + 2) * x.parameters + x.upload)
    positions = x.solvers if x.is_one_level else x.groups * GROUP_POSITIONS
    merged = positions * x.group_size * x.upload
    if not x.is_one_level:
        merged += TOP_POSITIONS * x.groups * x.sum_bytes + x.solvers * BASE_BYTES * x.parameters
    return {
        "training": 1.0,
        "audits": x.witness * x.audit / (1 - x.reaudit),
        "hashing": hashed / x.hash_rate / seconds,
        "merging": merged / x.hash_rate / seconds,
    }
