"""What the simulation says of each strategy, and that it says so by events and not by the formulas."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from assay.simulation import experiments
from assay.simulation.experiments import StrategyRow, default_lab
from assay.simulation.incomes import Earned, Estimate, EventPrices, jackknife, turning_point
from assay.simulation.interface import OwnerTally
from assay.simulation.population import Complicity, Labour

LAB = default_lab(epochs=120, seeds=8)


def test_a_mean_has_the_interval_of_its_spread() -> None:
    found = Estimate.of([1.0, 2.0, 3.0, 4.0])
    assert found.mean == 2.5
    assert found.half == pytest.approx(1.96 * math.sqrt(5 / 3 / 4))


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    rows = [(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 1.0)]
    assert jackknife(rows, lambda s: s[0] / s[1]).half == pytest.approx(Estimate.of([1, 2, 3, 4]).half)


def test_an_income_counts_every_event_at_its_price() -> None:
    tally = OwnerTally(2, 3, 5, 7, 0.5, 0.25, 1, 2, 4, 6)
    labour = Labour(trained=10, invented=0, attested=3, replays=20, bribes_paid=2, bribes_got=1)
    prices = EventPrices(1, 1.5, 40, 100, 0.9, 0.5, 0.25, 3, 0.1, 0.01)
    gains = 2 + 4.5 + 0.9 * (20 + 25) + 0.5 * (40 + 200)
    losses = 200 + 700 + 1.5 * 4 + 0.25 * 6 + 1 + 0.2 + 3
    assert Earned(tally, labour).income(prices) == pytest.approx(gains - losses)


def test_a_turning_point_is_where_the_income_is_zero() -> None:
    earned = [Earned(OwnerTally(paid=n, locks=1), Labour()) for n in (10, 12, 14)]
    found = turning_point(earned, lambda s: EventPrices(lock=s))
    assert found.mean == pytest.approx(12)
    assert found.half > 0


def found_shares(complicity: Complicity, tickets: int = 10) -> Estimate:
    """Locks lost a false commitment."""
    earned = LAB.play(32, experiments.lazy_and_strangers(tickets, complicity))
    return Estimate.of([e.tally.locks / e.labour.invented for e in earned])


def test_invented_work_is_found_by_honest_tickets_alone() -> None:
    """With v = 1/3 and lying accomplices, at least at 1 - e^-p_h; with honest tickets everywhere at 1 - e^-p."""
    cartel, honest = found_shares(Complicity.LIE), found_shares(Complicity.NONE)
    assert cartel.holds(1 - math.exp(-0.1 * 2 / 3), times=2)
    assert honest.holds(1 - math.exp(-0.1), times=2)
    assert cartel.mean + cartel.half < honest.mean - honest.half


def test_a_larger_cartel_is_found_less() -> None:
    assert found_shares(Complicity.JOIN, 27).mean < found_shares(Complicity.JOIN, 15).mean / 2


@pytest.mark.gate_takes(2)
@pytest.mark.parametrize(
    "group",
    [
        experiments.invented_work,
        experiments.invented_results,
        experiments.sold_silence,
        experiments.bribed_lies,
        experiments.nuisances,
    ],
)
def test_no_strategy_beats_honest_work_at_the_bounds(group: experiments.RowsOf) -> None:
    rows = list(group(LAB))
    assert rows
    assert [row.strategy for row in rows if not row.is_deterred] == []
    for row in rows:
        if row.income is not None:
            assert row.income.mean < (row.honest or 0) + row.income.half


def test_below_the_bounds_lies_pay() -> None:
    """Half of what a lazy seat would need, and no stake at all, and the same plays say so."""
    cheap = replace(LAB.prices, lock=5.0, stake=0.0)
    lazy = LAB.play(32, experiments.lazy_and_strangers(10, Complicity.NONE))
    assert experiments.per(lazy, cheap, experiments.commitments).mean > 0.3


def test_a_bound_that_is_too_low_is_called_so() -> None:
    row = StrategyRow("s", turns_at=Estimate(30.0, 2.0), parameter="B", bound=27.0)
    assert not row.is_deterred
    assert replace(row, bound=28.0).is_deterred
    assert not replace(row, pays_above=True, bound=33.0).is_deterred
    assert replace(row, pays_above=True, bound=31.0).is_deterred
    assert not StrategyRow("s", "duty", Estimate(1.0, 0.1), honest=0.8).is_deterred


def test_honest_work_earns_its_margin_and_as_many_duties_as_the_rates_say() -> None:
    solver, auditor = experiments.honest_work(LAB)
    assert solver.income is not None
    assert auditor.income is not None
    assert solver.income.mean == pytest.approx(0.3)
    assert auditor.income.holds(LAB.margin, times=2)
    earned = LAB.play(64, [experiments.Character(64, 30)])
    duties = Estimate.of([e.labour.attested / e.labour.trained for e in earned])
    # p / (1 - q), where nobody audits its own attestation.
    assert duties.holds(0.1 / (1 - 0.2 * 29 / 30), times=2)


def test_where_honest_is_not_best_a_number_says_so() -> None:
    """A cartel with nine tenths of the tickets is not deterred; an owner of many tickets shares its replays."""
    pays = [row for row in experiments.cartels(LAB) if not row.is_deterred]
    assert [row.strategy for row in pays] == ["cartel with 90% of the tickets, lazy"]
    (shared,) = experiments.many_tickets(LAB)
    assert shared.income is not None
    assert LAB.margin < shared.income.mean < LAB.margin + 0.05
