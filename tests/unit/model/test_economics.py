"""The formulas that deter: their table, their bounds, and what the constructor's bounds mean for a cheater."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.protocol.economics import formulas as rules
from assay.protocol.economics.chain_profile import MAX_AMOUNT
from assay.protocol.errors import RejectedError
from assay.protocol.run.charter import Economics
from assay.protocol.types import Wei
from tests.harness.contracts.world import ETHER, TRAINING, WINDOWS, charter, economics

# S in units of W for beta = 0.5, v = 1/3: rows n, columns p = 2, 5, 10, 20 %. As published (docs/economics.md).
PUBLISHED = {
    1: ("148", "58", "28", "13"),
    4: ("36", "14", "6.3", "2.6"),
    8: ("17.6", "6.4", "2.7", "0.9"),
    20: ("6.5", "2.1", "0.7", "0.1"),
    64: ("1.5", "0.3", "0", "0"),
}


def test_the_table_of_locks_is_reproduced() -> None:
    table = rules.claim_lock_table()
    assert set(table) == set(PUBLISHED)
    for n, row in PUBLISHED.items():
        for shown, exact in zip(row, table[n], strict=True):
            digits = len(shown.partition(".")[2])
            assert abs(exact - float(shown)) <= 0.5 * 10**-digits + 1e-9, (n, shown, exact)


def test_overhead_at_the_defaults() -> None:
    assert rules.overhead(0.05) == pytest.approx(1.0815)


@given(n=st.integers(1, 64), ppm=st.integers(20_000, 200_000))
def test_the_constructors_bound_is_never_below_the_formula(n: int, ppm: int) -> None:
    e = economics(audit_ppm=ppm)
    multiple = rules.claim_lock_multiple(n, ppm / 1e6, beta=0.5, v=e.cartel_ppm / 1e6)
    assert rules.min_claim_lock(e, n) / e.price >= multiple - 1e-6


terms = st.builds(
    economics,
    unit_price=st.integers(1, 10**24).map(Wei),
    units=st.integers(1, 10**9),
    audit_ppm=st.integers(1_000, 5_000_000),
    whistle_ppm=st.integers(1, 1_000_000),
    cartel_ppm=st.integers(0, 900_000),
    bounty_ppm=st.integers(0, 500_000),
    wage=st.integers(1, 10**24).map(Wei),
)


def at_the_bounds(e: Economics, n: int) -> Economics:
    """The same terms with S and B as small as the constructor allows, and challenges that cost no more than any B."""
    e = replace(e, challenge_bond=Wei(1), challenge_deposit=Wei(1))
    e = replace(e, claim_lock=rules.min_claim_lock(e, n), seat_fee=Wei(0))
    return replace(e, verifier_bond=rules.min_bond(e))


@given(e=terms, n=st.integers(1, 64), m=st.integers(1, 64))
def test_at_the_bound_faking_intervals_does_not_pay(e: Economics, n: int, m: int) -> None:
    """m false intervals save at most their pay; caught, the cheater loses W and what of S it cannot get back."""
    e, m = at_the_bounds(e, n), min(m, n)
    p_h = rules.honest_ppm(e) / rules.PPM
    # Each interval is seen by at least one honest party with chance >= x / (1 + x), x = p_h (Poisson or denser draws).
    undetected = max(1 / (1 + m * p_h), math.exp(-m * p_h)) if p_h else 1.0
    caught = 1 - undetected
    gain = e.price * m / n
    loss = caught * (e.claim_lock * (1 - e.bounty_ppm / rules.PPM) + e.price)
    assert gain <= loss * (1 + 1e-9) + 1


@given(e=terms, n=st.integers(1, 64))
def test_at_the_bound_a_blind_attestation_does_not_pay(e: Economics, n: int) -> None:
    """A wage is worth less than the bond times the rate at which attestations are looked at."""
    e = at_the_bounds(e, n)
    tau = (e.trap_ppm + e.whistle_ppm + e.audit_ppm) / rules.PPM
    assert e.wage <= e.verifier_bond * tau * (1 + 1e-9)
    assert e.verifier_bond >= 2 * e.price


@given(e=terms, n=st.integers(1, 64), short=st.sampled_from(["claim_lock", "verifier_bond"]))
def test_one_wei_below_the_bound_is_refused_by_name(e: Economics, n: int, short: str) -> None:
    e = at_the_bounds(e, n)
    training = replace(TRAINING, intervals=n)
    assume(max(e.price, e.claim_lock, e.verifier_bond) <= MAX_AMOUNT)
    rules.check_economics(e, training, WINDOWS)
    e = replace(e, **{short: Wei(getattr(e, short) - 1)})
    with pytest.raises(RejectedError) as refused:
        rules.check_economics(e, training, WINDOWS)
    assert refused.value.code == {"claim_lock": "ClaimLockTooSmall", "verifier_bond": "BondTooSmall"}[short]


def test_the_price_of_one_undetected_update_is_said() -> None:
    e = economics()
    # p_h = 1.33 is a certain replay: the whole of S + W is at stake.
    assert rules.update_price(e) == 160 * ETHER
    assert rules.update_price(replace(e, audit_ppm=50_000)) == 160 * ETHER * 33_333 // 1_000_000


def test_vesting_waits_for_the_longer_of_twenty_rounds_and_the_longest_dispute() -> None:
    assert rules.vesting_delay(WINDOWS, 0) == 20 * WINDOWS.round_length
    slow = replace(WINDOWS, longest_dispute=10**6)
    assert rules.vesting_delay(slow, 500) == rules.last_verdict(slow, 500)


@pytest.mark.parametrize(("window", "times"), [("challenge", 2), ("longest_dispute", 2), ("rescue", 1)])
def test_the_last_verdict_counts_two_trials_and_a_rescue_between(window: str, times: int) -> None:
    """A second more of a window moves the last verdict by as often as the window can pass after T7."""
    longer = replace(WINDOWS, **{window: getattr(WINDOWS, window) + 1})
    assert rules.last_verdict(longer, 0) == rules.last_verdict(WINDOWS, 0) + times
    assert rules.min_exit(longer, 0) == rules.min_exit(WINDOWS, 0) + times


def test_the_last_verdict_waits_for_a_post_and_two_ends_of_games_to_be_mined() -> None:
    trials = 2 * (WINDOWS.challenge + WINDOWS.longest_dispute)
    assert rules.last_verdict(WINDOWS, 0) == trials + WINDOWS.rescue
    assert rules.last_verdict(WINDOWS, 500) == trials + WINDOWS.rescue + 3 * 500


def test_the_exit_outlasts_everything_a_stake_answers_for() -> None:
    """A round and all that trails behind it, with room to act afterwards."""
    after = rules.min_exit(WINDOWS, 500) - rules.last_verdict(WINDOWS, 500)
    assert after == WINDOWS.round_length + rules.MIN_WINDOW


def test_a_round_sets_aside_pay_and_wages_for_those_who_can_be_drawn() -> None:
    e = economics()
    assert rules.wage_cap(2_000_000) == 6 and rules.wage_cap(50_000) == 4
    per_seat = e.price + 4 * (2 + 1) * e.wage
    assert rules.round_reserve(e, TRAINING, 3, 2, 1) == 3 * per_seat
    capped = e.price + 4 * (6 + 4) * e.wage
    assert rules.round_reserve(e, TRAINING, 1, 100, 100) == capped
    assert rules.round_reserve(replace(e, pays=False), TRAINING, 1, 0, 0) == 0


def test_the_charter_of_these_tests_is_admitted() -> None:
    rules.check_charter(charter(), now=0)


def test_the_document_shows_the_table_that_is_computed() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "economics.md").read_text()
    for n, row in rules.claim_lock_table().items():
        assert f"| {n} | " + " | ".join(f"{s:.1f}" for s in row) + " |" in text
