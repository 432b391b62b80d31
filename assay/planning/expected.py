"""What a role earns a day, with its spread, and what it loses at the worst. Amounts in wei.

A solver is paid for every commitment that stands. An auditor is paid for what its tickets are drawn for: in an epoch
that calls it, each ticket draws every commitment with chance p over the tickets that are called, and answers up to its
capacity; days are sums of such epochs. A merge is paid to each who opens its root, once it is final: up to 64 seats to
seats, else to the tickets that are drawn as positions of a node, once a node however many of its positions they hold.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Final

from assay.counts import count
from assay.durations import duration
from assay.planning.burdens import MERGE, gas_of
from assay.planning.outlook import outlook_of_role, outlook_of_run
from assay.planning.spans import RoundSpans
from assay.protocol.economics.limits import PPM
from assay.protocol.economics.run_bounds import most_unsettled
from assay.protocol.run.run_charter import RunCharter

DAY: Final = 86_400
NINETY: Final = 1.645
"""Standard deviations to either side that hold nine days of ten."""


@dataclass(frozen=True, slots=True)
class DailyIncome:
    """Of one seat, or so many tickets: the mean day, its bounds, and the worst case."""

    mean: int
    low: int
    high: int
    merges: int
    """Of the mean, what merges bring."""
    shares: int
    gas: int
    """Units of gas of a mean day."""
    loses_stake: int
    """Of the whole run, if a claim of its own is refuted: everything that it locks."""
    loses_pay: int
    """And what is not settled then: a round opens once what U' rounds before it earned is due, however short."""
    assumes: str
    """A sentence: what the mean and its bounds rest on."""

    def to_document(self) -> dict[str, Any]:
        """For scripts."""
        return asdict(self)


def solver_day(charter: RunCharter, spans: RoundSpans, left: int, price_ppm: int = PPM) -> DailyIncome:
    """A seat's, where all of its work and merges stand; `left`: rounds that the run can still begin.

    price_ppm: see outlook_of_role.

    At the least rounds last as long as any, one of the day is missed, and others merge; at the most they are as short
    as any.
    """
    about, unsettled = outlook_of_role(charter, price_ppm=price_ppm), most_unsettled(charter)
    fewest, rounds, most = (min(float(left), DAY / span) for span in (spans.longest, spans.mean, spans.shortest))
    each = about.pay + about.merge_pay
    voted = f" at {price_ppm / 10_000:g} % of the charter's price, as was voted," if price_ppm < PPM else ""
    shortest = "the shortest of these" if spans.seen else "more than that the tickets cannot audit"
    return DailyIncome(
        mean=round(rounds * each),
        low=round(max(0.0, fewest - 1) * about.pay),
        high=round(most * each),
        merges=round(rounds * about.merge_pay),
        shares=round(rounds * about.shares),
        gas=round(rounds * about.gas),
        loses_stake=about.locks,
        loses_pay=min(left, unsettled) * each,
        assumes=(
            f"whole commitments that stand,{voted} in {_mean_round(spans)}; at the least rounds of "
            f"{_of(spans.longest)}, one a day missed{' and no merge' if about.merge_pay else ''}; at the most rounds "
            f"of {_of(spans.shortest)}, {shortest}{_all_left(left, spans.shortest)}"
        ),
    )


def auditor_day(
    charter: RunCharter, tickets: int, others: int, solvers: int, spans: RoundSpans, left: int
) -> DailyIncome:
    """So many tickets beside others', where so many solvers commit to each round; `left`: see solver_day."""
    e, epoch, about = charter.economics, outlook_of_run(charter).epoch_seconds, outlook_of_role(charter, tickets=1)
    called = max(1, math.ceil((tickets + others) / e.shifts))
    rounds, of_epoch = min(float(left), DAY / spans.mean), min(max(1.0, left), epoch / spans.mean)
    commitments = max(1, round(solvers * of_epoch))
    mean, variance = answered(commitments, e.audit_ppm / 1e6 / called, e.capacity)
    calls, seen = tickets * rounds / of_epoch / e.shifts, tickets * rounds
    nodes = drawn(charter, tickets + others, solvers)
    findings, merges = calls * mean, seen * math.fsum(nodes)
    middle = findings * about.pay + merges * about.merge_pay
    varies = calls * variance * about.pay**2 + seen * math.fsum(p * (1 - p) for p in nodes) * about.merge_pay**2
    spread, unsettled = NINETY * math.sqrt(varies), min(left, most_unsettled(charter)) * math.fsum(nodes)
    unpaid = min(3, left / of_epoch) * min(mean, e.capacity)
    gas = calls * gas_of("open a secret") + findings * gas_of("attest", "settle a finding")
    gas += merges * gas_of(*MERGE) + seen * math.fsum(nodes[:-1]) * gas_of("hold")
    return DailyIncome(
        mean=round(middle),
        low=round(max(0.0, middle - spread)),
        high=round(min(calls * e.capacity * about.pay + seen * len(nodes) * about.merge_pay, middle + spread)),
        merges=round(merges * about.merge_pay),
        shares=round(findings * about.shares),
        gas=round(gas),
        loses_stake=tickets * about.locks,
        loses_pay=round(tickets * (unpaid * about.pay + unsettled * about.merge_pay)),
        assumes=(
            f"{count(solvers, 'solver')}, {count(tickets + others, 'ticket')}, and {_mean_round(spans)}; between the "
            f"bounds lie nine days of ten, as tickets are drawn{_all_left(left, spans.mean)}"
        ),
    )


def drawn(charter: RunCharter, tickets: int, solvers: int) -> list[float]:
    """The chance of one of so many tickets to be drawn for each node of a round: groups' sums, last the generation.

    Positions are drawn one by one, and any of them pays the same; up to 64 seats none is drawn.
    """
    if charter.by_seats:
        return []
    t, missed = charter.training, 1 - 1 / tickets
    return [1 - missed**t.positions] * math.ceil(solvers / t.group_size) + [1 - missed**t.top_positions]


def answered(targets: int, chance: float, capacity: int) -> tuple[float, float]:
    """Mean and variance of min(D, capacity), where D of so many targets are drawn, each alone by this chance."""
    chance = min(1.0, chance)
    at = [math.comb(targets, k) * chance**k * (1 - chance) ** (targets - k) for k in range(min(capacity, targets))]
    rest = max(0.0, 1 - math.fsum(at))
    counts = [*enumerate(at), (min(capacity, targets), rest)]
    mean = math.fsum(k * p for k, p in counts)
    return mean, max(0.0, math.fsum(k * k * p for k, p in counts) - mean**2)


def _mean_round(spans: RoundSpans) -> str:
    """What the mean rests on, in words."""
    if spans.seen:
        return f"rounds of {_of(spans.mean)}, the mean of the last {spans.seen}"
    return f"rounds of {_of(spans.mean)}, the longest that they may last"


def _all_left(left: int, span: float) -> str:
    """That no more rounds are left than so many, where a day would hold more."""
    if left >= DAY / span:
        return ""
    return f"; and {left} rounds, all that are left" if left else "; and that the run begins no further round"


def _of(seconds: float) -> str:
    return duration(round(seconds))
