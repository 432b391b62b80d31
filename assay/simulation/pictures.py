"""Plots of the simulation beside the formulas: incomes by lock and by a cartel's share, stakes by open duties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from assay.bench.plot import PlotLine, draw
from assay.protocol.economics import audit_prices
from assay.simulation.blind_audits import BlindRow
from assay.simulation.cohorts import stake_for_lies
from assay.simulation.experiments import (
    LIES,
    SHARES_OF_TABLE,
    STRANGERS,
    Lab,
    bribe_terms,
    bursts,
    commitments,
    lazy_and_strangers,
    per,
)
from assay.simulation.incomes import Estimate
from assay.simulation.population import Complicity

ALL_TICKETS = 10 + STRANGERS
MOST_DUTIES = 4
ROUNDS = 4
"""U of the picture of stakes."""


def pictures(lab: Lab) -> dict[str, bytes]:
    """PNG files by name."""
    return {
        "economics-lock.png": incomes_by_lock(lab),
        "economics-cartel.png": incomes_by_share(lab),
        "economics-stake.png": stakes_by_duties(lab),
    }


def incomes_by_lock(lab: Lab) -> bytes:
    """What invented work earns a cartel with a third of the tickets, by its lock and by what its tickets do."""
    bound = lab.in_pay(audit_prices.lazy_lock(lab.terms))
    locks = [0.0, bound, 2 * bound]
    curves = [PlotLine("least and twice the lock", [(0.0, 0.0), (bound, 0.0), (2 * bound, 0.0)])]
    for complicity, words in LIES.items():
        earned = lab.play(32, lazy_and_strangers(10, complicity))
        points = [(s, per(earned, replace(lab.prices, lock=s), commitments).mean) for s in locks]
        curves.append(PlotLine(words, points))
    return draw("income of a lazy seat (W a commitment)", "lock S (W)", curves)


def incomes_by_share(lab: Lab) -> bytes:
    """What it earns at the charter's lock, by the cartel's share of the tickets."""
    estimates = {
        n / ALL_TICKETS: per(lab.play(32, lazy_and_strangers(n, Complicity.JOIN)), lab.prices, commitments)
        for n in SHARES_OF_TABLE
    }
    formula = []
    for k in range(100 * SHARES_OF_TABLE[0] // ALL_TICKETS, 91):
        missed = math.exp(-lab.terms.audit_ppm / 1e6 * (1 - k / 100))
        loss = lab.prices.lock * (1 - lab.prices.drawn_bounty * k / 100)
        formula.append((k / 100, missed - (1 - missed) * loss))
    curves = [PlotLine("what the bound counts on", formula), *_interval("played", estimates)]
    return draw("income of a lazy seat (W a commitment)", "share of tickets", curves)


def stakes_by_duties(lab: Lab) -> bytes:
    """What a ticket must stake against bribed attestations, by how many are open at once."""
    plays = bursts(lab, strangers=STRANGERS)
    estimates: dict[float, Estimate] = {}
    bounds, sums = [], []
    for m in range(1, MOST_DUTIES + 1):
        t = replace(lab.terms, unsettled=ROUNDS, open_duties=m)
        if (found := stake_for_lies(plays, m, bribe_terms(lab, ROUNDS))) is not None:
            estimates[m] = found
        bounds.append((m, lab.in_pay(audit_prices.stake_if_bribed(t, lab.lock))))
        # The draft's: chances add up, no work is saved, and the bounty of a third party is forgotten.
        missed = 1 - t.honest_audit - t.honest_reaudit
        prize = lab.in_pay(audit_prices.prize(t, lab.lock) - t.wage)
        sums.append((m, m * prize * float(missed / ((1 - missed**m) * t.lost))))
    played = _interval("played", estimates) if estimates else []
    curves = [PlotLine("bound", bounds), PlotLine("draft", sums), *played]
    return draw("least stake against bribes (W)", "open duties m", curves)


def blind_audits(rows: Sequence[BlindRow]) -> bytes:
    """In how many epochs a blind auditor is accused: played over expected, which would be the diagonal."""
    longest = max(row.expected for row in rows)
    played = {row.expected: row.accused for row in sorted(rows, key=lambda row: row.expected)}
    curves = [PlotLine("formula", [(0.0, 0.0), (longest, longest)]), *_interval("played", played)]
    return draw("epochs until it is accused", "epochs by the formula", curves)


def _interval(name: str, estimates: dict[float, Estimate]) -> Sequence[PlotLine]:
    """A line through means, and one around their intervals."""
    low = [(x, e.mean - e.half) for x, e in estimates.items()]
    high = [(x, e.mean + e.half) for x, e in estimates.items()]
    means = [(x, e.mean) for x, e in estimates.items()]
    return [PlotLine(name, means), PlotLine("95% interval", [*low, *reversed(high)], style=4)]
