"""Lies in bursts, each followed until nobody can look at it any more: what a stake must be for them not to pay.

A ticket that attests m false commitments of its accomplices in one epoch is one case of m lies; a re-auditor that lies
about such a lie is a case of its own. Bursts are far enough apart that no case hides another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.simulation.event_model import EventModel, EventRules
from assay.simulation.incomes import Estimate, jackknife
from assay.simulation.population import Character, Complicity, InventedResult, Population, SolverWork

BURST = 6
"""Epochs from one burst of false work to the next."""

ENOUGH = 4
"""Plays in which somebody lost a ticket; with fewer nothing is said."""


@dataclass(frozen=True, slots=True)
class BribeTerms:
    """What a case is priced at, in W."""

    prize: float
    """G, saved by each lie that is missed."""
    lost: float
    """The part of a slashed stake that its coalition loses where no drawn accuser takes the bounty."""
    forgone: float
    """1 - beta_d, the part of the first liar's stake that its re-auditor's lie saves."""


@dataclass(frozen=True, slots=True)
class BurstCases:
    """Cases of one play: lies by their number m in a ticket and epoch, and re-auditors' lies about a lie."""

    by_count: dict[int, tuple[int, int, int]]
    """m: cases, false commitments of them that were missed, cases in which the ticket was lost."""
    reaudits: tuple[int, int, int]
    """The same of re-auditors with a single lie; what was missed is counted when it lied."""


def play_bursts(rules: EventRules, *, accomplices: int, strangers: int, epochs: int, seed: int) -> BurstCases:
    """One play in which an owner of every seat and of `accomplices` tickets lies in bursts, among honest tickets."""
    liar = Character(rules.seats, accomplices, SolverWork.FALSE, complicity=Complicity.LIE, every=BURST)
    population = Population(EventModel(rules, np.random.default_rng(seed)), [liar, Character(tickets=strangers)])
    population.play(epochs + BURST - 1)
    cases: dict[tuple[int, int], list[tuple[bool, InventedResult]]] = {}
    for claim, lie in population.invented.items():
        if lie.epoch < epochs:
            cases.setdefault((lie.ticket, lie.epoch), []).append((claim in population.found, lie))
    by_count: dict[int, tuple[int, int, int]] = {}
    reaudits = (0, 0, 0)
    for lies in cases.values():
        first = [lie for _, lie in lies if lie.target == lie.work]
        is_lost = any(found for found, _ in lies)
        if len(first) == len(lies):
            missed = sum(lie.work not in population.found for lie in first)
            n, m, lost = by_count.get(len(lies), (0, 0, 0))
            by_count[len(lies)] = (n + 1, m + missed, lost + is_lost)
        elif len(lies) == 1:
            lie = lies[0][1]
            seen = [population.found.get(c, lie.epoch + 1) <= lie.epoch for c in (lie.target, lie.work)]
            reaudits = (reaudits[0] + 1, reaudits[1] + (not any(seen)), reaudits[2] + is_lost)
    return BurstCases(by_count, reaudits)


def stake_for_lies(plays: Sequence[BurstCases], count: int, terms: BribeTerms) -> Estimate | None:
    """B at which `count` bribed attestations at once earn nothing; None with too few cases to say."""
    rows = [play.by_count.get(count, (0, 0, 0)) for play in plays]
    if sum(lost > 0 for _, _, lost in rows) < ENOUGH:
        return None
    return jackknife(rows, lambda s: terms.prize * s[1] / (terms.lost * s[2]))


def stake_for_reaudits(plays: Sequence[BurstCases], terms: BribeTerms) -> Estimate | None:
    """B at which a bribed re-auditor's lie earns nothing; the prize grows with B by the first liar's stake."""
    rows = [play.reaudits for play in plays]
    if sum(lost > 0 for _, _, lost in rows) < ENOUGH:
        return None
    return jackknife(rows, lambda s: terms.prize * s[1] / (terms.lost * s[2] - terms.forgone * s[1]))
