"""Prices of audits: the drafts' tables, the accepted bounds, and what they mean for a liar at the bound."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.protocol.economics import audit_prices as prices
from assay.protocol.economics.limits import PPM
from assay.protocol.errors import RejectedError
from assay.protocol.types import Wei

W = 10**18
THIRD = 333_333


def terms(
    audit: float = 0.10, reaudit: float = 0.20, *, v: int = THIRD, m: int = 1, rounds: int = 1
) -> prices.AuditTerms:
    """Terms at p, q, v, m and U; both bounties as charters name them unless told otherwise."""
    rates = (round(audit * PPM), round(reaudit * PPM), v, 970_000, 100_000)
    return prices.AuditTerms(Wei(W), Wei(13 * W // 10), *rates, m, rounds, Wei(W // 100))


def draft_stake(t: prices.AuditTerms, lock: Fraction, m: int) -> Fraction:
    """The draft's bound on B in W: every accuser gets a half, chances add up, one round of pay, no saved work."""
    missed = 1 - t.honest_audit - t.honest_reaudit
    bribed = m * (lock / 2 + 1) * missed / ((1 - missed**m) / 2)
    return max(bribed, Fraction(t.wage, W) / t.honest_reaudit * 2)


@pytest.mark.parametrize(
    ("n", "p", "q", "lock", "stake", "overhead", "update"),
    [
        (1, 0.05, 0.20, 60, 310, "1.08", "2.0"),
        (1, 0.10, 0.20, 30, 128, "1.16", "2.1"),
        (1, 0.20, 0.20, 15, 47, "1.33", "2.1"),
        (5, 0.10, 0.20, 6, 32, "1.16", "0.47"),
        (20, 0.05, 0.10, 3, 45, "1.07", "0.13"),
    ],
)
def test_the_drafts_table_of_prices(
    n: int, p: float, q: float, lock: int, stake: int, overhead: str, update: str
) -> None:
    """Rows of a draft's notes: n intervals of a commitment, a duty on one of them."""
    t = replace(terms(p, q), wage=Wei(13 * W // (10 * n)))
    least = 1 / (n * t.honest_audit / 2)
    assert round(least) == lock
    assert round(draft_stake(t, least, 1)) == stake
    cost = prices.audit_overhead(Fraction(t.audit_ppm, PPM), Fraction(t.reaudit_ppm, PPM))
    assert abs(cost - Fraction(overhead)) <= Fraction(5, 1000)
    shown = len(update.partition(".")[2])
    assert round(prices.update_price_gross(t, least * W) / W, shown) == Fraction(update)


@pytest.mark.parametrize(("m", "stake"), [(1, 128), (5, 190), (10, 287)])
def test_the_drafts_stakes_by_open_duties(m: int, stake: int) -> None:
    assert round(draft_stake(terms(), Fraction(30), m)) == stake


def test_the_locks_of_the_accepted_round() -> None:
    t = terms()
    assert round(prices.lazy_lock(t) / W, 1) == Fraction("24.6")
    assert round(Fraction(prices.min_tenure_lock(t), W), 1) == Fraction("49.2")


@pytest.mark.parametrize(
    ("rounds", "m", "stake"),
    [(1, 1, "70.1"), (4, 1, "78.6"), (8, 1, "125.1"), (4, 5, "174.9"), (4, 10, "553.1"), (8, 5, "233.6")],
)
def test_the_stakes_of_the_accepted_round(rounds: int, m: int, stake: str) -> None:
    t = terms(m=m, rounds=rounds)
    assert round(Fraction(prices.min_ticket_stake(t, prices.min_tenure_lock(t)), W), 1) == Fraction(stake)


def test_too_many_open_duties_leave_no_stake_that_suffices() -> None:
    t = terms(m=24)
    with pytest.raises(RejectedError) as refused:
        prices.min_ticket_stake(t, prices.min_tenure_lock(t))
    assert refused.value.code == "NoStakeSuffices"


any_terms = st.builds(
    prices.AuditTerms,
    price=st.integers(1, 10**24).map(Wei),
    wage=st.integers(1, 10**24).map(Wei),
    audit_ppm=st.integers(1_000, PPM),
    reaudit_ppm=st.integers(1_000, PPM - 1),
    cartel_ppm=st.integers(0, 500_000),
    drawn_bounty_ppm=st.integers(900_000, PPM),
    third_bounty_ppm=st.integers(0, 500_000),
    open_duties=st.integers(1, 12),
    unsettled=st.integers(1, 64),
    merge_pay=st.integers(0, 10**24).map(Wei),
)


def at_the_bounds(t: prices.AuditTerms) -> tuple[Wei, Wei]:
    """The least S, and the least B beside it; cases in which no B does are left out."""
    lock = prices.min_tenure_lock(t)
    assume(prices.stake_if_reauditor_bribed(t, lock) is not None)
    return lock, prices.min_ticket_stake(t, lock)


@given(rate=st.fractions(0, 100))
def test_what_is_missed_is_never_said_to_be_less_than_it_is(rate: Fraction) -> None:
    assert prices.most_missed(rate) >= math.exp(-rate) * (1 - 1e-12)


@given(t=any_terms, rounds=st.integers(1, 100))
def test_at_the_bound_invented_work_does_not_pay(t: prices.AuditTerms, rounds: int) -> None:
    """Pay is kept only of rounds before the first that is found, whatever else is open then."""
    lock, _ = at_the_bounds(t)
    missed = math.exp(-t.honest_audit)
    kept = sum(missed**r for r in range(1, rounds + 1)) * t.price
    assert kept <= lock * lost_at_worst(t) * (1 - missed**rounds) * (1 + 1e-9)


@given(t=any_terms, rounds=st.integers(1, 2000))
def test_at_the_bound_a_puppets_accusation_does_not_insure_invented_work(t: prices.AuditTerms, rounds: int) -> None:
    """Whatever is found while it lasts costs its side nothing; what is not found is paid when it is over."""
    _, stake = at_the_bounds(t)
    kept = rounds * t.price * math.exp(-t.honest_audit * rounds)
    insured = math.exp(-t.honest_reaudit)
    assert insured * kept <= (1 - insured) * stake * lost_at_worst(t) * (1 + 1e-9)


def test_without_its_bound_insurance_would_pay_at_one_percent() -> None:
    """One open duty a ticket, one unsettled round: 55 rounds' pay at the best end, for 31 % of the stake it takes."""
    t = terms(audit=0.01)
    lock, p = prices.min_tenure_lock(t), float(t.honest_audit)
    others = prices.stake_if_reauditor_bribed(t, lock)
    assert others is not None
    stake = max(prices.stake_if_blind(t), prices.stake_if_bribed(t, lock), others)
    insured = math.exp(-t.honest_reaudit)
    kept = max(k * math.exp(-p * k) for k in range(1, 1000))
    assert round(kept) == 55
    assert round(Fraction(stake) / prices.stake_if_insured(t), 2) == Fraction("0.31")
    assert insured * kept * W > (1 - insured) * stake * t.lost
    assert prices.min_ticket_stake(t, lock) == math.ceil(prices.stake_if_insured(t)) > stake


def saved_by_a_lie(t: prices.AuditTerms, lock: Wei) -> float:
    """What a coalition would lose if its auditor accused: the lock less the auditor's bounty, all pay, and the work."""
    return lock * (1 - t.drawn_bounty_ppm / PPM) + t.unsettled * (t.price + t.merge_pay) + t.wage


def lost_at_worst(t: prices.AuditTerms) -> float:
    """Of a slash, where a puppet is the third party, or puppets' games eat from the pot that a cartel shares."""
    third, drawn = t.third_bounty_ppm / PPM, t.drawn_bounty_ppm / PPM
    advances, gas = third / 2, third / 2
    pot = drawn - advances - gas
    return min(1 - third, 1 - advances - gas - pot * t.cartel_ppm / PPM)


@given(t=any_terms, duties=st.integers(1, 12))
def test_at_the_bound_a_bribed_auditor_does_not_gain(t: prices.AuditTerms, duties: int) -> None:
    """For every number of duties that its ticket may carry, not only the most; who audits the same work convicts it of
    nothing."""
    lock, stake = at_the_bounds(t)
    unseen = math.exp(-t.honest_reaudit)
    m, missed = min(duties, t.open_duties), math.exp(-t.honest_audit) * unseen
    assert m * missed * saved_by_a_lie(t, lock) <= (1 - unseen**m) * stake * lost_at_worst(t) * (1 + 1e-9)


@given(t=any_terms, duties=st.integers(1, 12))
def test_at_the_bound_a_bribed_reauditor_does_not_gain(t: prices.AuditTerms, duties: int) -> None:
    lock, stake = at_the_bounds(t)
    missed = math.exp(-t.honest_reaudit)
    m = min(duties, t.open_duties)
    wages = (t.open_duties - 1) * t.wage  # of the first liar's findings, beside the work that the lie saved
    gain = m * missed * (saved_by_a_lie(t, lock) + wages + stake * (1 - t.drawn_bounty_ppm / PPM))
    assert gain <= (1 - missed ** (2 * m)) * stake * lost_at_worst(t) * (1 + 1e-9)


@given(t=any_terms)
def test_at_the_bound_an_invented_attestation_does_not_pay(t: prices.AuditTerms) -> None:
    _, stake = at_the_bounds(t)
    missed = math.exp(-t.honest_reaudit)
    assert missed * t.wage <= (1 - missed) * stake * lost_at_worst(t) * (1 + 1e-9)


@given(t=any_terms, short=st.sampled_from(["lock", "stake"]))
def test_a_wei_below_a_bound_of_audits_is_refused_by_name(t: prices.AuditTerms, short: str) -> None:
    lock, stake = at_the_bounds(t)
    assume(max(lock, stake) <= prices.MAX_AMOUNT)
    prices.check_audit_terms(t, lock, stake)
    with pytest.raises(RejectedError) as refused:
        prices.check_audit_terms(t, Wei(lock - (short == "lock")), Wei(stake - (short == "stake")))
    assert refused.value.code == {"lock": "ClaimLockTooSmall", "stake": "BondTooSmall"}[short]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"price": Wei(0)}, "ReferencePriceZero"),
        ({"wage": Wei(0)}, "ValueZero"),
        ({"audit_ppm": PPM + 1}, "RateTooHigh"),
        ({"reaudit_ppm": PPM}, "RateTooHigh"),
        ({"audit_ppm": 0}, "ValueZero"),
        ({"cartel_ppm": PPM}, "RateTooHigh"),
        ({"drawn_bounty_ppm": PPM + 1}, "RateTooHigh"),
        ({"third_bounty_ppm": PPM // 2 + 1}, "RateTooHigh"),
        ({"open_duties": 0}, "ValueZero"),
        ({"open_duties": prices.MAX_OPEN_DUTIES + 1}, "ScheduleTooLong"),
        ({"unsettled": prices.MAX_UNSETTLED + 1}, "ScheduleTooLong"),
        ({"price": Wei(prices.MAX_AMOUNT + 1)}, "AmountTooLarge"),
    ],
)
def test_terms_outside_their_limits_are_refused_by_name(change: dict[str, int], code: str) -> None:
    t = terms()
    lock = prices.min_tenure_lock(t)
    with pytest.raises(RejectedError) as refused:
        prices.check_audit_terms(replace(t, **change), lock, prices.min_ticket_stake(t, lock))
    assert refused.value.code == code


def test_an_arbitrary_update_costs_about_the_pay_of_a_commitment() -> None:
    """At the lazy lock it is nearly free; the doubled lock is what prices it."""
    t = terms()
    bare, doubled = (prices.update_price_net(t, k * prices.lazy_lock(t), 1 - t.lost) / W for k in (1, 2))
    assert 0 <= bare < Fraction(1, 10)
    assert Fraction(9, 10) < doubled < 1
    assert prices.update_price_net(t, 2 * prices.lazy_lock(t), Fraction(0)) / W > Fraction(18, 10)


def test_what_misfortune_costs_the_honest() -> None:
    t = terms(rounds=8)
    lock = prices.min_tenure_lock(t)
    assert prices.hardware_error_price(t, lock) == lock + 8 * (W + W // 100)
    assert prices.silence_price(t, Fraction(2)) == Fraction(9 * 13 * W, 10)
    assert prices.epochs_until_caught(t, Fraction(1)) == 1 / (1 - 1 / (1 + t.honest_reaudit))
    assert prices.blind_share_of_last_epoch(t, Wei(26 * W)) == Fraction(1, 2)
    assert prices.duties_per_commitment(Fraction(1, 10), Fraction(1, 5)) == Fraction(1, 8)
