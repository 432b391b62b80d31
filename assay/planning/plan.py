"""A run's plan: every figure of it, and what speaks against it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from assay.planning.burdens import CALLS, RoleBurden, burdens, gas_of_round, multiplier_parts
from assay.planning.inputs import PlanInputs
from assay.planning.known_runs import YEAR, data_parallel_seconds
from assay.planning.timing import RoundTiming, time_round
from assay.protocol.economics import audit_prices
from assay.protocol.economics.limits import PPM
from assay.protocol.economics.run_bounds import MAX_CAPACITY, MOST_OF_GROUP, MOST_SEATS
from assay.protocol.economics.stake_bounds import OPEN_EPOCHS
from assay.protocol.errors import RejectedError
from assay.protocol.types import Wei

UNIT = 10**18
"""W in wei, for exact prices in units of W."""
LEAST_GOODPUT = 0.9
LEAST_TICKETS = 5
"""Of other owners than a seat's: with fewer nothing secures a run against bribes (docs/adr/0033, E7)."""


@dataclass(frozen=True, slots=True)
class RunSecurity:
    """What lies cost in a planned run; amounts in W."""

    lock: float
    """S."""
    stake: float | None
    """B; None where no stake suffices."""
    tickets: int
    """That carry twice the duties to be expected of all rounds that may begin in an epoch: with fewer one waits."""
    open_duties: int
    """m, attestations of this epoch and of the two before it for each of c."""
    detection: float
    """Of one commitment of invented work, at least."""
    rounds_until_caught: float
    """In which a lazy seat stays, at most."""
    update_price: float
    """Of one undetected arbitrary update by a cartel with share v, net of the pay that it earns."""
    hardware_error: float
    """What an honest seat loses by one wrong bit that is replayed."""
    silence: float
    """What an honest ticket loses by an epoch without opening its secret."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Everything that `assay run plan` prints."""

    inputs: PlanInputs
    timing: RoundTiming
    burdens: list[RoleBurden]
    gas_of_round: float
    security: RunSecurity
    multiplier: dict[str, float]
    duties_of_round: float
    warnings: list[str] = field(default_factory=list)

    @property
    def incomes(self) -> dict[str, dict[str, float]]:
        """By role, in W: what is paid, and what is left after work at the assumed cost."""
        x, wage = self.inputs, float(audit_prices.REPLAY_PRICE)
        per_ticket = self.duties_of_round * self.timing.epoch / self.timing.round / self.security.tickets
        return {
            "solver, a round": {"paid": 1.0, "left": 1 - x.work_cost},
            "ticket, an epoch": {"paid": per_ticket * wage, "left": per_ticket * (wage - x.work_cost * x.witness)},
        }

    @property
    def overhead(self) -> float:
        """What a run pays over pay for training alone, before gas."""
        return float(audit_prices.audit_overhead(Fraction(self.inputs.audit), Fraction(self.inputs.reaudit)))

    def to_document(self) -> dict[str, Any]:
        """The plan for scripts; seconds, bytes, W."""
        t = self.timing
        return {
            "inputs": asdict(self.inputs),
            "rounds": t.rounds,
            "wall_seconds": t.wall,
            "training_seconds": t.training,
            "path_seconds": asdict(t.path) | {"all": t.path.seconds},
            "worst_path_seconds": asdict(t.worst_path) | {"all": t.worst_path.seconds},
            "goodput": t.goodput,
            "worst_goodput": t.worst_goodput,
            "group": self.inputs.group_size,
            "epoch_seconds": t.epoch,
            "unsettled_rounds": t.unsettled,
            "roles": [asdict(b) for b in self.burdens],
            "gas_of_round": self.gas_of_round,
            "gas_of_round_in_coin": self.gas_of_round * self.inputs.costs.gas_price / 1e18,
            "gas_of_calls": {name: asdict(call) for name, call in CALLS.items()},
            "security": asdict(self.security),
            "least_tickets_of_others": LEAST_TICKETS,
            "incomes": self.incomes,
            "overhead": self.overhead,
            "multiplier": sum(self.multiplier.values()),
            "multiplier_parts": self.multiplier,
            "data_parallel_years": naive_years(self.inputs),
            "warnings": self.warnings,
        }


def naive_years(x: PlanInputs) -> float:
    """Exchanges of every batch's f32 gradients over the slower direction of a link, in years."""
    return data_parallel_seconds(x.parameters, x.tokens, x.batch * x.solvers, min(x.up, x.down)) / YEAR


def plan_run(x: PlanInputs) -> RunPlan:
    """Plans a run."""
    timing = time_round(x)
    duties = x.solvers * x.audit / (1 - x.reaudit)
    tickets = max(LEAST_TICKETS, math.ceil(2 * duties * timing.rounds_of_epoch / x.capacity))
    security = _security(x, timing, tickets)
    found = RunPlan(
        x,
        timing,
        burdens(x, timing),
        gas_of_round(x, timing, tickets, duties),
        security,
        multiplier_parts(x),
        duties,
    )
    found.warnings.extend(_warnings(found))
    return found


def _security(x: PlanInputs, timing: RoundTiming, tickets: int) -> RunSecurity:
    wage = Wei(UNIT * audit_prices.REPLAY_PRICE.numerator // audit_prices.REPLAY_PRICE.denominator)
    open_duties = OPEN_EPOCHS * x.capacity
    terms = audit_prices.AuditTerms(
        price=Wei(UNIT),
        wage=wage,
        audit_ppm=round(x.audit * PPM),
        reaudit_ppm=round(x.reaudit * PPM),
        cartel_ppm=round(x.cartel * PPM),
        drawn_bounty_ppm=audit_prices.DRAWN_BOUNTY_PPM,
        third_bounty_ppm=audit_prices.THIRD_BOUNTY_PPM,
        open_duties=open_duties,
        unsettled=timing.unsettled,
        merge_pay=Wei(UNIT // audit_prices.MERGE_SHARE),
    )
    lock = audit_prices.min_tenure_lock(terms)
    try:
        stake: float | None = audit_prices.min_ticket_stake(terms, lock) / UNIT
    except RejectedError:
        stake = None
    detection = 1 - audit_prices.most_missed(terms.honest_audit)
    expected = Fraction(x.solvers * x.audit / (1 - x.reaudit) * timing.epoch / timing.round / tickets)
    return RunSecurity(
        lock / UNIT,
        stake,
        tickets,
        open_duties,
        float(detection),
        float(1 / detection),
        float(audit_prices.update_price_net(terms, lock, 1 - terms.lost)) / UNIT,
        audit_prices.hardware_error_price(terms, lock) / UNIT,
        float(audit_prices.silence_price(terms, expected)) / UNIT,
    )


def _warnings(plan: RunPlan) -> list[str]:
    """What speaks against a plan, each in a sentence."""
    x, t, s = plan.inputs, plan.timing, plan.security
    found = []
    if t.goodput < LEAST_GOODPUT:
        parts = asdict(t.path)
        longest = max(parts, key=lambda name: parts[name])
        found.append(
            f"Goodput {t.goodput:.2f} is below {LEAST_GOODPUT}: {longest} takes {parts[longest]:.0f} s of a path of "
            f"{t.path.seconds:.0f} s. Train longer rounds, send smaller updates, or ask positions for faster links."
        )
    if x.update == "f32" and not x.is_one_level:
        found.append("Updates in f32 above 64 seats: positions fetch terabytes a round.")
    if s.stake is None:
        found.append(f"No stake secures {s.open_duties} open duties a ticket: lower c or raise q.")
    if t.unsettled > audit_prices.MAX_UNSETTLED:
        found.append(f"{t.unsettled} rounds of pay are unsettled at once, above {audit_prices.MAX_UNSETTLED}.")
    sizes = (
        ("seats", x.solvers, MOST_SEATS),
        ("seats in a group", x.group_size, MOST_OF_GROUP),
        ("duties of a ticket and epoch", x.capacity, MAX_CAPACITY),
    )
    found.extend(f"No charter has {count:,} {what}: {most:,} at most." for what, count, most in sizes if count > most)
    if x.rule.carried:
        found.append("The method's memory must be public to be replayed: it is most of what is uploaded.")
    return found
