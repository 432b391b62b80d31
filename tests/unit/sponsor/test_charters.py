"""Charters that a sponsor posts unless told otherwise: refused on no chain, and not by a hair."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.amounts import SHARES, TEST_MONEY, UNKNOWN_MONEY, Currency
from assay.protocol.economics.chain_profiles import CHAINS, GWEI
from assay.protocol.economics.run_bounds import audit_terms, check_run
from assay.protocol.economics.run_times import min_challenge_bond, min_kept
from assay.protocol.economics.stake_bounds import min_lock, min_stake
from assay.protocol.errors import RejectedError, UserError
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Wei
from assay.sponsor.charters import (
    ARITY,
    LEAST_PRICE,
    USUAL_RATES,
    AuditRates,
    Genesis,
    Pace,
    chain_terms,
    check_units,
    escrow_ahead,
    make_run_charter,
)
from assay.sponsor.launching import escrow_of
from tests.harness.rounds.charters import program_of
from tests.harness.rounds.samples import START, mark

GENESIS = Genesis(
    step=program_of("step"),
    update=program_of("update"),
    merge=program_of("merge"),
    witness=program_of("witness"),
    parameters=mark("parameters"),
    momentum=mark("momentum"),
    zero_optimizer=mark("optimizer"),
    zero_update=mark("update"),
    data=mark("data"),
    data_length=80_000,
    learning_rate=0x3A83126F,
)
PEOPLE = {name: Address(bytes([k]) * 20) for k, name in enumerate(("sponsor", "token", "beacon"), 1)}


def charter_on(kind: str, seats: int = 8, commit: int | None = None, rates: AuditRates = USUAL_RATES) -> RunCharter:
    """The charter of a run on a chain of some kind; where little gets in for long, rounds are long too."""
    commit = max(3600, CHAINS[kind].inclusion_delay // 3) if commit is None else commit
    chain = CHAINS[kind].chain(Wei(100 * GWEI), Wei(10 * GWEI))
    pace = Pace(units=60, least=30, steps=5, commit=commit)
    more = {"name": "a run", "now": START, "rounds": 20, "seats": seats, "pace": pace, "rates": rates}
    return make_run_charter(GENESIS, chain=chain, **PEOPLE, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.parametrize("seats", [1, 8, 64])
def test_a_usual_charter_is_accepted_on_every_kind_of_chain(kind: str, seats: int) -> None:
    charter = charter_on(kind, seats)
    check_run(charter, START)
    assert charter.training.seats == seats and charter.price == 60 * 5 * 4 * 10**18


@pytest.mark.parametrize(("seats", "group_size"), [(8, 0), (100, 10), (1024, 32)])
def test_what_a_run_can_cost_is_known_before_anything_is_captured(seats: int, group_size: int) -> None:
    grouped = replace(GENESIS, group_size=group_size, partial_sum=program_of("partial sum"))
    genesis, chain = grouped if group_size else GENESIS, CHAINS["local"].chain(Wei(GWEI), Wei(0))
    terms = {"rounds": 7, "seats": seats, "pace": Pace(units=60, least=30, steps=5, commit=3600)}
    charter = make_run_charter(genesis, chain=chain, name="a run", now=START, **PEOPLE, **terms)  # type: ignore[arg-type]
    assert escrow_ahead(chain, group_size=group_size, **terms) == escrow_of(charter)  # type: ignore[arg-type]


@pytest.mark.parametrize("rates", [USUAL_RATES, AuditRates(audit_ppm=1_000_000, reaudit_ppm=950_000, capacity=8)])
def test_stakes_are_a_tenth_above_the_least(rates: AuditRates) -> None:
    charter = charter_on("local", rates=rates)
    terms = audit_terms(charter)
    least = min_lock(terms)
    assert charter.economics.seat_lock == -(-11 * least // 10)
    assert charter.economics.ticket_bond == -(-11 * min_stake(terms, charter.economics.seat_lock) // 10)
    for name, amount in (("seat_lock", least), ("ticket_bond", min_stake(terms, charter.economics.seat_lock))):
        short = replace(charter, economics=replace(charter.economics, **{name: Wei(amount - 1)}))
        with pytest.raises(RejectedError) as refused:
            check_run(short, START)
        assert refused.value.code == {"seat_lock": "ClaimLockTooSmall", "ticket_bond": "BondTooSmall"}[name]


def test_rounds_too_short_for_the_chain_are_refused_before_anything_is_sent() -> None:
    with pytest.raises(RejectedError) as refused:
        charter_on("local", commit=599)
    assert refused.value.code == "WindowTooShort" and refused.value.details["what"] == "commit"


# --- tokens of other decimals

USUAL = Pace(units=5, least=2, steps=5, commit=3600)
AMOUNTS = ("unit_price", "seat_lock", "seat_fee", "ticket_bond", "wage", "merge_pay", "challenge_bond")


def charter_in(money: Currency, pace: Pace = USUAL, kind: str = "local") -> RunCharter:
    """A usual run of 25 steps in a token of other decimals."""
    terms = {"name": "a run", "now": START, "rounds": 20, "seats": 8, "pace": pace, "money": money}
    return make_run_charter(GENESIS, chain=chain_terms(kind, money), **PEOPLE, **terms)  # type: ignore[arg-type]


@pytest.mark.parametrize("decimals", [5, 6, 8, 18, 24, 27])
def test_a_run_promises_as_many_tokens_whatever_their_decimals(decimals: int) -> None:
    money, usual = Currency(decimals), charter_in(TEST_MONEY)
    charter = charter_in(money)
    check_run(charter, START)
    e, one = charter.economics, 10**decimals
    assert charter.price == 100 * one and e.unit_price == 20 * one
    for name in AMOUNTS:
        off = abs(getattr(e, name) * 10**18 - getattr(usual.economics, name) * one)
        # The challenge bond alone pays for gas, which counts as a whole unit at least.
        assert off <= 10**18 * max(1, getattr(e, name) // 10**6) or (name == "challenge_bond" and decimals < 9), name
    assert (e.shares_per_unit, e.shares_per_duty) == (SHARES.parse("5"), SHARES.parse("0.5"))
    ahead = escrow_ahead(charter.chain, rounds=20, seats=8, pace=USUAL, money=money)
    assert ahead == escrow_of(charter) and abs(ahead * 10**18 - escrow_of(usual) * one) <= 10**18 * 10**4


@pytest.mark.parametrize("decimals", [6, 8, 18])
def test_bonds_and_locks_pay_for_the_gas_that_is_said_at_any_decimals(decimals: int) -> None:
    """Rounded up: a unit less would be a bond that does not refund what a move costs."""
    money = Currency(decimals)
    charter = charter_in(money)
    chain, e = charter.chain, charter.economics
    assert chain.gas_price * 10**9 >= 10**decimals > (chain.gas_price - 1) * 10**9
    assert e.challenge_bond >= min_challenge_bond(chain, ARITY)
    assert min(e.seat_lock, e.ticket_bond) * e.third_bounty_ppm // 2_000_000 >= min_kept(chain, ARITY)


@pytest.mark.parametrize(
    ("decimals", "pace", "said"),
    [
        (0, USUAL, "to pay hundredths of it exactly"),
        (1, USUAL, "to pay hundredths of it exactly"),
        (2, USUAL, "for a game's gas"),
        (5, Pace(units=1, least=1, steps=1, commit=3600), "for a game's gas"),
        (3, Pace(units=1, least=1, steps=1, commit=3600), "to pay hundredths of it exactly"),
    ],
)
def test_a_token_too_coarse_for_what_a_run_pays_is_refused_with_the_reason(
    decimals: int, pace: Pace, said: str
) -> None:
    money = Currency(decimals)
    for refuses in (
        lambda: charter_in(money, pace),
        lambda: escrow_ahead(chain_terms("local", money), rounds=1, seats=1, pace=pace, money=money),
    ):
        with pytest.raises(UserError, match=said) as refused:
            refuses()
        assert refused.value.code == "TokenTooCoarse" and "more decimals" in refused.value.remedy


def test_a_price_is_cut_into_hundredths_of_hundredths_or_refused() -> None:
    """At the limit: a price of 10,000 units, where gas is free of charge, and one below it."""
    free = replace(chain_terms("local", Currency(0)), gas_price=Wei(0))
    for steps, fits in ((LEAST_PRICE // 4, True), (LEAST_PRICE // 4 - 1, False)):
        pace = Pace(units=1, least=1, steps=steps, commit=3600)
        if fits:
            check_units(Currency(0), free, pace, USUAL_RATES)
            continue
        with pytest.raises(UserError):
            check_units(Currency(0), free, pace, USUAL_RATES)
    terms = {"name": "a run", "now": START, "rounds": 20, "seats": 8, "money": Currency(0)}
    pace = Pace(units=1, least=1, steps=LEAST_PRICE // 4, commit=3600)
    charter = make_run_charter(GENESIS, chain=free, pace=pace, **PEOPLE, **terms)  # type: ignore[arg-type]
    check_run(charter, START)
    e = charter.economics
    assert (e.seat_fee, e.merge_pay, e.wage) == (200, 100, 13_000)


@pytest.mark.parametrize("decimals", [30, 36])
def test_a_token_too_fine_for_what_contracts_hold_is_refused_as_they_would(decimals: int) -> None:
    with pytest.raises(RejectedError) as refused:
        charter_in(Currency(decimals))
    assert refused.value.code == "AmountTooLarge"


def test_nothing_is_promised_in_a_token_that_says_no_decimals() -> None:
    for refuses in (lambda: chain_terms("local", UNKNOWN_MONEY), lambda: charter_in(UNKNOWN_MONEY)):
        with pytest.raises(UserError) as refused:
            refuses()
        assert refused.value.code == "TokenUnreadable"
