"""Every strategy in a population of honest strangers: its income with an interval, and where it begins to pay.

Two kinds of prices: incomes are at what work costs (`WORK`), turning points as if it cost nothing, as the bounds are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction

import numpy as np

from assay.protocol.economics import audit_prices
from assay.protocol.economics.limits import PPM
from assay.protocol.types import Wei
from assay.simulation.cohorts import BribeTerms, BurstCases, play_bursts, stake_for_lies, stake_for_reaudits
from assay.simulation.event_model import EventModel, EventRules
from assay.simulation.executable_model import ExecutableModel
from assay.simulation.incomes import Earned, Estimate, EventPrices, jackknife, turning_point
from assay.simulation.interface import PlayableRounds
from assay.simulation.model_terms import ModelTerms
from assay.simulation.population import AuditorWork, Character, Complicity, Population, SolverWork

UNIT = 10**18
WARM_UP = 4
"""Epochs before counting begins, so that settlement runs at its pace."""

TRAINING_COST, REPLAY_COST = 0.7, 0.735
"""In W: a margin of 30 % is assumed, and a witnessed step takes 1.05 of a plain one."""

STRANGERS = 20
"""Tickets of the honest; 10 more make a cartel's third."""


@dataclass(frozen=True, slots=True)
class StrategyRow:
    """What one strategy earns, and the parameter at which it would begin to pay."""

    strategy: str
    unit: str = ""
    income: Estimate | None = None
    """W per `unit`, at what work costs."""
    honest: float | None = None
    """The same by honest work."""
    parameter: str = ""
    turns_at: Estimate | None = None
    """Below it the strategy pays; above it where `pays_above`."""
    bound: float | None = None
    """What the formula asks for, or assumes."""
    pays_above: bool = False

    @property
    def is_deterred(self) -> bool:
        """Whether honest work earns as much, and the bound is on the safe side of what the play gave or within it."""
        if self.income is not None and self.honest is not None and self.income.mean - self.income.half > self.honest:
            return False
        if self.turns_at is None or self.bound is None:
            return True
        room = self.turns_at.mean - self.bound if self.pays_above else self.bound - self.turns_at.mean
        return room >= -self.turns_at.half


class LabStage(Enum):
    """What populations play on."""

    EVENTS = "events of docs/adr/0033"
    CONTRACTS = "the executable model of the contracts"


CAPACITY = 4
"""c on the contracts' model, and above twice what a ticket can expect in any row; events have none."""


@dataclass(frozen=True, slots=True)
class Lab:
    """How much is played, at which terms, and on what."""

    terms: audit_prices.AuditTerms
    epochs: int
    seeds: int
    stage: LabStage = LabStage.EVENTS

    @property
    def lock(self) -> Wei:
        """S at its bound."""
        return audit_prices.min_tenure_lock(self.terms)

    def in_pay(self, amount: Wei | Fraction | None) -> float:
        """An amount in W."""
        return float("inf") if amount is None else float(Fraction(amount) / self.terms.price)

    @property
    def prices(self) -> EventPrices:
        """All at their bounds, and work at no cost."""
        return EventPrices(
            wage=self.in_pay(self.terms.wage),
            lock=self.in_pay(self.lock),
            stake=self.in_pay(audit_prices.min_ticket_stake(self.terms, self.lock)),
            drawn_bounty=self.terms.drawn_bounty_ppm / PPM,
            third_bounty=self.terms.third_bounty_ppm / PPM,
        )

    @property
    def prices_with_work(self) -> EventPrices:
        """The same with what work costs."""
        return replace(self.prices, training=TRAINING_COST, replay=REPLAY_COST)

    @property
    def margin(self) -> float:
        """What an honest auditor keeps of a wage, in W."""
        return self.prices.wage - REPLAY_COST

    def rules(self, seats: int) -> EventRules:
        """The event model's rules at these rates."""
        return EventRules(seats, self.terms.audit_ppm / PPM, self.terms.reaudit_ppm / PPM)

    def model(self, seats: int, seed: int) -> PlayableRounds:
        """What a population plays on."""
        rules = self.rules(seats)
        if self.stage is LabStage.EVENTS:
            return EventModel(rules, np.random.default_rng(seed))
        links = WARM_UP + self.epochs + 1
        return ExecutableModel(ModelTerms(seats, rules.audit_rate, rules.reaudit_rate, CAPACITY, links), seed)

    def play(self, seats: int, characters: Sequence[Character]) -> list[Earned]:
        """What the first owner earned, by seed."""
        earned = []
        for seed in range(1, self.seeds + 1):
            population = Population(self.model(seats, seed), characters)
            population.play(WARM_UP)
            tally, labour = population.tally(0), population.labour(0)
            population.play(self.epochs)
            earned.append(Earned(population.tally(0) - tally, population.labour(0) - labour))
        return earned


def default_lab(epochs: int, seeds: int, stage: LabStage = LabStage.EVENTS) -> Lab:
    """p = 10 %, q = 20 %, v = 1/3, three open duties, two unsettled rounds, as the event model has them."""
    rates = (100_000, 200_000, 333_333, audit_prices.DRAWN_BOUNTY_PPM, audit_prices.THIRD_BOUNTY_PPM)
    terms = audit_prices.AuditTerms(
        Wei(UNIT), Wei(13 * UNIT // 10), *rates, open_duties=3, unsettled=2, merge_pay=Wei(0)
    )
    return Lab(terms, epochs, seeds, stage)


def per(earned: Sequence[Earned], prices: EventPrices, of: Callable[[Earned], float]) -> Estimate:
    """Income for each of what `of` counts."""
    return Estimate.of([e.income(prices) / of(e) for e in earned])


def commitments(e: Earned) -> float:
    """Commitments of an owner, true or invented."""
    return e.labour.trained + e.labour.invented


def duties(e: Earned) -> float:
    """Attestations of an owner."""
    return e.labour.attested


RowsOf = Callable[[Lab], Iterator[StrategyRow]]
"""A group of strategies, played in turn."""


def strategies(lab: Lab) -> Iterator[StrategyRow]:
    """All rows, one after the other."""
    yield from honest_work(lab)
    yield from invented_work(lab)
    yield from invented_results(lab)
    yield from sold_silence(lab)
    if lab.stage is LabStage.EVENTS:
        # Bursts are of 240 seats: the contracts' model has one level, of 64.
        yield from bribed_lies(lab)
    yield from cartels(lab)
    yield from nuisances(lab)
    yield from many_tickets(lab)


def honest_work(lab: Lab) -> Iterator[StrategyRow]:
    """An honest solver among honest auditors, and an honest auditor among honest solvers."""
    solver = lab.play(32, [Character(seats=16), Character(16, 30)])
    income = per(solver, lab.prices_with_work, commitments)
    yield StrategyRow("honest solver", "commitment", income)
    auditor = lab.play(64, [Character(tickets=1), Character(64, 29)])
    yield StrategyRow("honest auditor", "duty", per(auditor, lab.prices_with_work, duties))


LIES = {
    Complicity.NONE: "accuse it",
    Complicity.LIE: "attest it",
    Complicity.MISS: "do not answer",
    Complicity.HIDE: "do not open",
    Complicity.JOIN: "accuse it once others do",
}
"""What accomplices' tickets do with false work, in a few words."""


def invented_work(lab: Lab) -> Iterator[StrategyRow]:
    """A cartel with a third of the tickets invents all its work."""
    bound = lab.in_pay(audit_prices.lazy_lock(lab.terms))
    for complicity, words in LIES.items():
        earned = lab.play(32, lazy_and_strangers(10, complicity))
        turns = turning_point(earned, lambda s: replace(lab.prices, lock=s))
        income = per(earned, lab.prices_with_work, commitments)
        name = f"lazy solver, whose tickets {words}"
        yield StrategyRow(name, "commitment", income, 1 - TRAINING_COST, "S", turns, bound)


def lazy_and_strangers(tickets: int, complicity: Complicity) -> list[Character]:
    """An owner of 32 seats without work and of some of 30 tickets; the others are honest."""
    liar = Character(32, tickets, SolverWork.FALSE, complicity=complicity)
    return [liar, Character(tickets=10 + STRANGERS - tickets)]


def invented_results(lab: Lab) -> Iterator[StrategyRow]:
    """Auditors that replay nothing, or only what they cannot copy, while every solver is honest."""
    bound = lab.in_pay(audit_prices.stake_if_blind(lab.terms))
    blind = lab.play(64, [Character(tickets=10, auditor=AuditorWork.BLIND), Character(64, STRANGERS)])
    turns = turning_point(blind, lambda b: replace(lab.prices, stake=b))
    income = per(blind, lab.prices_with_work, duties)
    yield StrategyRow("blind auditor", "duty", income, lab.margin, "B", turns, bound)
    copying = lab.play(64, [Character(tickets=10, auditor=AuditorWork.COPY), Character(64, STRANGERS)])
    # A copy saves a replay; what it must not beat is honest work.
    turns = turning_point(
        copying, lambda b: replace(lab.prices_with_work, stake=b), honest=lambda e: lab.margin * duties(e)
    )
    income = per(copying, lab.prices_with_work, duties)
    yield StrategyRow("copying auditor", "duty", income, lab.margin, "B", turns, bound)


def sold_silence(lab: Lab) -> Iterator[StrategyRow]:
    """Every auditor is for sale, at the bounty that it forgoes: what the liar is left with, and could pay at most."""
    bounty = lab.prices.drawn_bounty * lab.prices.lock
    for complicity in (Complicity.HIDE, Complicity.MISS, Complicity.LIE):
        liar, _ = lazy_and_strangers(10, complicity)
        earned = lab.play(32, [liar, Character(tickets=STRANGERS, complicity=complicity, is_for_sale=True)])
        turns = turning_point(earned, lambda x: replace(lab.prices, bribe=x))
        income = per(earned, replace(lab.prices_with_work, bribe=bounty), commitments)
        name = f"lazy solver; all auditors for sale {LIES[complicity]}"
        yield StrategyRow(name, "commitment", income, 1 - TRAINING_COST, "bribe a duty", turns, bounty)


def bribed_lies(
    lab: Lab, unsettled: Sequence[int] = (1, 4), counts: Sequence[int] = (1, 2, 3)
) -> Iterator[StrategyRow]:
    """Attestations of false work, by the number open at once, and re-audits of such lies."""
    plays, sparse = bursts(lab, STRANGERS), bursts(lab, 5 * STRANGERS)
    for rounds in unsettled:
        t = replace(lab.terms, unsettled=rounds)
        for m in counts:
            bound = lab.in_pay(audit_prices.stake_if_bribed(replace(t, open_duties=m), lab.lock))
            turns = stake_for_lies(plays, m, bribe_terms(lab, rounds))
            yield StrategyRow(f"bribed auditor, m = {m}, U = {rounds}", parameter="B", turns_at=turns, bound=bound)
        bound = lab.in_pay(audit_prices.stake_if_reauditor_bribed(replace(t, open_duties=1), lab.lock))
        turns = stake_for_reaudits(sparse, bribe_terms(lab, rounds))
        yield StrategyRow(f"bribed re-auditor, m = 1, U = {rounds}", parameter="B", turns_at=turns, bound=bound)


def bursts(lab: Lab, strangers: int) -> list[BurstCases]:
    """Plays of lies in bursts: with few tickets many lies of one at once, with many tickets few that interfere."""
    rules, seeds = lab.rules(240), range(1, lab.seeds + 1)
    return [
        play_bursts(rules, accomplices=strangers // 2, strangers=strangers, epochs=lab.epochs, seed=seed)
        for seed in seeds
    ]


def bribe_terms(lab: Lab, unsettled: int) -> BribeTerms:
    """What a lie saves and a stake loses, with so many rounds of pay unsettled."""
    t = replace(lab.terms, unsettled=unsettled)
    prize = lab.in_pay(audit_prices.prize(t, lab.lock))
    return BribeTerms(prize, lost=float(t.lost), forgone=float(t.forgone))


SHARES_OF_TABLE = (10, 15, 20, 24, 27)
"""Tickets of a cartel, of 30."""


def cartels(lab: Lab) -> Iterator[StrategyRow]:
    """The charter resists v; what a larger cartel earns by inventing all its work at the same lock."""
    incomes = {}
    for tickets in SHARES_OF_TABLE[1:]:
        earned = lab.play(32, lazy_and_strangers(tickets, Complicity.JOIN))
        incomes[tickets] = [e.income(lab.prices) / commitments(e) for e in earned]
        income = per(earned, lab.prices_with_work, commitments)
        name = f"cartel with {tickets / 30:.0%} of the tickets, lazy"
        yield StrategyRow(name, "commitment", income, 1 - TRAINING_COST)
    below = max((n for n, x in incomes.items() if sum(x) < 0), default=min(incomes))
    above = min((n for n in incomes if n > below), default=below)
    rows = list(zip(incomes[below], incomes[above], strict=True))
    turns = jackknife(rows, lambda s: (below + (above - below) * s[0] / (s[0] - s[1])) / 30)
    bound = lab.terms.cartel_ppm / PPM
    yield StrategyRow("lazy cartel", parameter="v", turns_at=turns, bound=bound, pays_above=True)


def nuisances(lab: Lab) -> Iterator[StrategyRow]:
    """Who gains nothing and harms: silent auditors, false accusers, squatters. The income is what the harm costs."""
    for name, work in (("silent auditor", AuditorWork.SILENT), ("false accuser", AuditorWork.ACCUSE)):
        earned = lab.play(64, [Character(tickets=4, auditor=work), Character(64, 26)])
        income = per(earned, lab.prices_with_work, lambda _: 4 * lab.epochs)
        yield StrategyRow(name, "ticket and epoch", income, 0.0)
    for share in (40, 60):
        away = 50 * share // 100
        earned = lab.play(50, [Character(away, solver=SolverWork.AWAY), Character(50 - away, 30)])
        income = Estimate.of([e.income(lab.prices) / (away * lab.epochs) for e in earned])
        yield StrategyRow(f"squatter on {share} % of the seats", "seat and round", income, 0.0)


def many_tickets(lab: Lab) -> Iterator[StrategyRow]:
    """One owner of a third of the tickets replays once what several of them are drawn for."""
    earned = lab.play(64, [Character(tickets=10), Character(64, STRANGERS)])
    income = per(earned, lab.prices_with_work, duties)
    yield StrategyRow("honest owner of a third of the tickets", "duty", income, lab.margin)
