"""From counted events to money, in units of W, and from replicates to means with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assay.simulation.interface import OwnerTally
from assay.simulation.population import Labour


@dataclass(frozen=True, slots=True)
class EventPrices:
    """What each event is worth, in W."""

    pay: float = 1.0
    wage: float = 1.3
    lock: float = 44.4
    """S."""
    stake: float = 100.0
    """B."""
    drawn_bounty: float = 0.97
    """beta_d."""
    third_bounty: float = 0.5
    """beta_f."""
    fee: float = 1.0
    """Of a seat that stays away."""
    bribe: float = 0.0
    training: float = 0.0
    """What the work of a commitment costs whoever does it. Bounds count pay as gain, as if work cost nothing."""
    replay: float = 0.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and half of its 95 % interval, from independent replicates."""

    mean: float
    half: float

    @staticmethod
    def of(values: Sequence[float]) -> Estimate:
        """Mean and interval by the normal approximation."""
        n = len(values)
        mean = math.fsum(values) / n
        spread = math.fsum((x - mean) ** 2 for x in values) / max(n - 1, 1)
        return Estimate(mean, 1.96 * math.sqrt(spread / n))

    def holds(self, value: float, *, times: float = 1.0) -> bool:
        """Whether a value lies within so many halves of the mean."""
        return abs(value - self.mean) <= times * self.half


@dataclass(frozen=True, slots=True)
class Earned:
    """What an owner's events and labour came to in one replicate."""

    tally: OwnerTally
    labour: Labour

    def income(self, p: EventPrices) -> float:
        """Sum of it all at these prices."""
        t, x = self.tally, self.labour
        gains = p.pay * t.paid + p.wage * t.wages
        gains += p.drawn_bounty * (p.lock * t.drawn_locks + p.stake * t.drawn_stakes)
        gains += p.third_bounty * (p.lock * t.third_locks + p.stake * t.third_stakes)
        losses = p.lock * t.locks + p.stake * t.stakes + p.wage * t.fines + p.fee * t.fees
        work = p.training * x.trained + p.replay * x.replays
        return gains - losses - work + p.bribe * (x.bribes_got - x.bribes_paid)


def jackknife(rows: Sequence[Sequence[float]], statistic: Callable[[Sequence[float]], float]) -> Estimate:
    """A statistic of the sums of the replicates' columns, with an interval by leaving out one replicate at a time."""
    n = len(rows)
    total = [math.fsum(column) for column in zip(*rows, strict=True)]
    left_out = [statistic([t - x for t, x in zip(total, row, strict=True)]) for row in rows]
    middle = math.fsum(left_out) / n
    spread = (n - 1) / n * math.fsum((x - middle) ** 2 for x in left_out)
    return Estimate(statistic(total), 1.96 * math.sqrt(spread))


def turning_point(
    earned: Sequence[Earned],
    priced: Callable[[float], EventPrices],
    span: tuple[float, float] = (0.0, 100.0),
    honest: Callable[[Earned], float] = lambda _: 0.0,
) -> Estimate:
    """Where the mean income, affine in a parameter, meets honest work's, from its values at both ends of `span`."""
    a, b = span
    rows = [(e.income(priced(a)) - honest(e), e.income(priced(b)) - honest(e)) for e in earned]
    return jackknife(rows, lambda s: a + (b - a) * s[0] / (s[0] - s[1]))
