"""Prices that pages name in their sentences are those of the formulas: tables alone are renewed by the gate."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from assay.planning.plan import plan_run
from assay.protocol.economics import stake_bounds
from assay.protocol.economics.audit_prices import AuditTerms
from assay.protocol.economics.blind_audits import BlindAuditTerms, expected_epochs
from assay.protocol.types import Wei
from tools.doc_tables import PLANS

DOCS = Path(__file__).resolve().parents[3] / "docs"
W = 10**18


def terms(unsettled: int = 1, duties: int = 1, audit_ppm: int = 100_000) -> AuditTerms:
    """What charters name, with merges at W / 100."""
    wage, pay = Wei(13 * W // 10), Wei(W // 100)
    return AuditTerms(Wei(W), wage, audit_ppm, 200_000, 333_333, 970_000, 100_000, duties, unsettled, pay)


def stake(t: AuditTerms) -> int:
    """B in whole W."""
    return round(stake_bounds.min_stake(t, stake_bounds.min_lock(t)) / W)


def figures(page: str, sentence: str) -> list[str]:
    """What stands in the gaps `_` of a sentence of a page."""
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    found = re.search(re.escape(sentence).replace("_", r"(\d[\d,.]*\d|\d)"), text)
    assert found is not None, sentence
    return list(found.groups())


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("economics.md", "at p = 10 % and v = 1/3 a lock of _ W for each round of memory"),
        ("adr/0059-update-rules.md", "_ W a round at p = 10 % and v = 1/3. At `memory` = 20 that is _ W."),
    ],
)
def test_a_round_of_memory_costs_a_lock(page: str, sentence: str) -> None:
    lock = stake_bounds.min_lock(terms()) / W
    assert figures(page, sentence) == [f"{lock:.0f}", f"{20 * lock:.0f}"][: sentence.count("_")]


def test_bounds_of_the_fourth_reading_are_those_of_today() -> None:
    page = "adr/0033-second-round.md"
    assert figures(page, "without insurance; now _, _, _)") == [str(stake(terms(u))) for u in (1, 4, 8)]
    assert figures(page, "at p = 1 %, U = 1 it is _ W") == [str(stake(terms(audit_ppm=10_000)))]
    many = terms(24, 12)
    assert figures(page, "U = 24 and m = 12 the bound is _ W") == [f"{stake(many):,}"]
    assert figures(page, "(_ W for 202 at U = 4, m = 10)") == [str(stake(terms(4, 10)))]
    lock = stake_bounds.min_lock(many)
    bond = Wei(stake_bounds.min_stake(many, lock) * 11 // 10)
    assert figures(page, "24 rounds of C become _.") == [str(stake_bounds.most_unsettled(many, lock, bond))]


def answered(expected: float, capacity: int) -> str:
    """Percent of its draws that a ticket answers, by Poisson's law."""
    chances = [math.exp(-expected) * expected**k / math.factorial(k) for k in range(60)]
    return f"{100 * sum(min(k, capacity) * chance for k, chance in enumerate(chances)) / expected:.0f}"


def test_draws_that_a_full_epoch_answers_are_poissons() -> None:
    sentence = "by Poisson's law, _ % of their draws in place of _ at c = 4, and _ in place of _ at c = 1"
    known = [answered(load, capacity) for capacity in (4, 1) for load in (capacity, capacity / 2)]
    assert figures("economics.md", sentence) == known


def test_a_blind_auditor_stays_as_long_as_the_page_says() -> None:
    stays = expected_epochs(BlindAuditTerms(audit=0.1, reaudit=0.2, tickets=8, capacity=16, commitments=64))
    assert figures("economics.md", "8 tickets and 64 seats it is _ epochs") == [f"{stays:.1f}"]


def test_what_a_delay_of_a_chain_costs_in_stake_is_what_the_plans_say() -> None:
    first = "at rounds of _ hours _ rounds of pay are unsettled at once"
    plans = [plan_run(PLANS["1 B"][0]), plan_run(PLANS["70 B"][-1])]
    stakes = [f"{plan.security.stake:,.0f}" for plan in plans if plan.security.stake is not None]
    hours = [f"{plan.timing.training / 3600:.1f}" for plan in plans]
    assert figures("scale.md", first) == [hours[0], str(plans[0].timing.unsettled)]
    assert figures("scale.md", "more than a charter may have, and B would be _ W.") == stakes[:1]
    assert figures("scale.md", "Rounds of _ hours bring it to _ W.") == [hours[1], stakes[1]]
