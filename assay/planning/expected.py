"""What a role earns a day, with its spread, and what it loses at the worst. Amounts in wei.

A solver is paid for every commitment that stands. An auditor is paid for what its tickets are drawn for: in an epoch
that calls it, each ticket draws every commitment with chance p over the tickets that are called, and answers up to its
capacity; days are sums of such epochs.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

from assay.planning.outlook import outlook_of_role, outlook_of_run
from assay.protocol.economics.run_bounds import audit_terms
from assay.protocol.run.run_charter import RunCharter

DAY: Final = 86_400
NINETY: Final = 1.645
"""Standard deviations to either side that hold nine days of ten."""


@dataclass(frozen=True, slots=True)
class DailyIncome:
    """Of one seat, or so many tickets: the mean day, the bounds of nine days of ten, and the worst case."""

    mean: int
    low: int
    high: int
    shares: int
    gas: int
    """Units of gas of a mean day."""
    loses_stake: int
    """Of the whole run, if a claim of its own is refuted: everything that it locks."""
    loses_pay: int
    """And what is not settled then."""

    def to_document(self) -> dict[str, Any]:
        """For scripts."""
        return asdict(self)


def solver_day(charter: RunCharter) -> DailyIncome:
    """A seat's, if every round lasts as long as it may and all its work stands; shorter rounds bring more."""
    about, rounds = outlook_of_role(charter), DAY / outlook_of_run(charter).round_at_most_seconds
    pay = round(rounds * about.pay)
    unsettled = audit_terms(charter).unsettled * about.pay
    return DailyIncome(pay, pay, pay, round(rounds * about.shares), round(rounds * about.gas), about.locks, unsettled)


def auditor_day(charter: RunCharter, tickets: int, others: int, solvers: int) -> DailyIncome:
    """So many tickets beside others', where so many solvers commit to each round."""
    e, whole, about = charter.economics, outlook_of_run(charter), outlook_of_role(charter, tickets=1)
    called = max(1, math.ceil((tickets + others) / e.shifts))
    commitments = max(1, round(solvers * whole.epoch_seconds / whole.round_at_most_seconds))
    mean, variance = answered(commitments, e.audit_ppm / 1e6 / called, e.capacity)
    calls = tickets * DAY / whole.epoch_seconds / e.shifts
    middle, spread = calls * mean, NINETY * math.sqrt(calls * variance)
    return DailyIncome(
        mean=round(middle * about.pay),
        low=round(max(0.0, middle - spread) * about.pay),
        high=round(min(calls * e.capacity, middle + spread) * about.pay),
        shares=round(middle * about.shares),
        gas=round(calls * about.gas),
        loses_stake=tickets * about.locks,
        loses_pay=round(min(mean, e.capacity) * 3 * tickets * about.pay),
    )


def answered(targets: int, chance: float, capacity: int) -> tuple[float, float]:
    """Mean and variance of min(D, capacity), where D of so many targets are drawn, each alone by this chance."""
    chance = min(1.0, chance)
    at = [math.comb(targets, k) * chance**k * (1 - chance) ** (targets - k) for k in range(min(capacity, targets))]
    rest = max(0.0, 1 - math.fsum(at))
    counts = [*enumerate(at), (min(capacity, targets), rest)]
    mean = math.fsum(k * p for k, p in counts)
    return mean, max(0.0, math.fsum(k * k * p for k, p in counts) - mean**2)
