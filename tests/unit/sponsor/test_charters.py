"""Charters that a sponsor posts unless told otherwise: refused on no chain, and not by a hair."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.economics.chain_profiles import CHAINS, GWEI
from assay.protocol.economics.run_bounds import audit_terms, check_run
from assay.protocol.economics.stake_bounds import min_lock, min_stake
from assay.protocol.errors import RejectedError
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Wei
from assay.sponsor.charters import USUAL_RATES, AuditRates, Genesis, Pace, escrow_ahead, make_run_charter
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
