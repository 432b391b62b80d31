"""What a conviction takes is what silence about it is worth: B must outweigh all of it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from assay.protocol.economics.audit_prices import most_missed, prize
from assay.protocol.economics.run_bounds import audit_terms
from assay.protocol.types import Wei
from tests.harness.rounds.charters import RUN
from tests.harness.rounds.run_limits import staked


def test_a_reauditors_stake_outweighs_the_merge_pay_that_a_conviction_takes() -> None:
    """Attack: a seat's merges pay as much as its work, W a round; its conviction takes both, and B counts one."""
    c = staked(RUN, merge_pay=RUN.price)
    t, e = audit_terms(c), c.economics
    silence = prize(replace(t, merge_pay=Wei(0)), e.seat_lock) + t.unsettled * e.merge_pay
    m, missed = t.open_duties, most_missed(t.honest_reaudit)
    risk = (1 - missed ** (2 * m)) * t.lost - m * missed * t.forgone
    assert e.ticket_bond * risk >= m * missed * silence, "a bribed re-auditor gains"


def test_a_reauditors_stake_outweighs_the_wages_that_the_first_liar_would_lose() -> None:
    """Attack: who is re-audited has m findings that are unpaid; its conviction takes them."""
    c = staked(RUN)
    t, e = audit_terms(c), c.economics
    silence = prize(t, e.seat_lock) + Fraction((t.open_duties - 1) * e.wage)
    m, missed = t.open_duties, most_missed(t.honest_reaudit)
    risk = (1 - missed ** (2 * m)) * t.lost - m * missed * t.forgone
    own = (1 - missed ** (2 * m)) * m * e.wage
    assert e.ticket_bond * risk + own >= m * missed * silence, "a bribed re-auditor gains"
