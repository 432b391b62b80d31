"""Bounds of the charter hold at their limits, in contract and model alike."""

from __future__ import annotations

import random
from dataclasses import astuple, fields, replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

from assay.protocol.digests import ZERO
from assay.protocol.economics import audit_prices as prices
from assay.protocol.economics import stake_bounds as stakes
from assay.protocol.economics.audit_prices import AuditTerms
from assay.protocol.economics.chain_profiles import CHAINS
from assay.protocol.economics.limits import PPM
from assay.protocol.economics.run_bounds import MAX_HEADER, audit_terms, check_run, most_unsettled
from assay.protocol.errors import RejectedError
from assay.protocol.run.run_charter import RUN_TERMS_TYPE, RunCharter
from assay.protocol.types import Wei
from tests.harness.contracts import harness
from tests.harness.rounds.charters import RUN, WIDE, changed
from tests.harness.rounds.run_limits import RunLimit, run_limits, staked
from tests.harness.rounds.samples import ETHER, START
from tests.harness.rounds.staged import modules_at

LIMITS = list(run_limits())


@cache
def chain() -> harness.Evm:
    """An EVM in this process, at the time that the limits name."""
    return harness.Evm(timestamp=START)


def by_contract(terms: RunCharter) -> tuple[str, str | None] | None:
    """The error under which the charter's constructor refuses the terms, and the term that it names."""
    try:
        chain().deploy("RunCharter", terms.as_tuple(), astuple(modules_at()))
    except RuntimeError as error:
        built = harness.artifact("RunCharter")
        name, values = harness._error(harness._revert_data(str(error)), built.abi)
        assert name, error
        entry = built.entry("error", name)
        named = {i["name"]: v for i, v in zip(entry["inputs"], values, strict=True)}
        return name, named["what"].rstrip(b"\0").decode() if "what" in named else None
    return None


def by_model(terms: RunCharter) -> tuple[str, str | None] | None:
    """The same of the model."""
    try:
        check_run(terms, START)
    except RejectedError as error:
        what = error.details.get("what")
        return error.code, None if what is None else str(what)
    return None


@pytest.mark.parametrize("limit", LIMITS, ids=[f"{x.term} {x.code} {x.what}" for x in LIMITS])
def test_contract_and_model_admit_a_run_at_each_limit_and_refuse_it_beyond(limit: RunLimit) -> None:
    assert by_contract(limit.inside) is by_model(limit.inside) is None
    assert by_contract(limit.beyond) == by_model(limit.beyond) == (limit.code, limit.what)


def test_the_python_type_of_the_terms_is_that_of_the_contract() -> None:
    constructor = next(e for e in harness.artifact("RunCharter").abi if e["type"] == "constructor")
    assert harness._type(constructor["inputs"][0]) == RUN_TERMS_TYPE


@pytest.mark.parametrize("seed", range(3))
def test_run_charters_near_their_limits_are_judged_alike(seed: int) -> None:
    source = random.Random(seed)
    refused = 0
    for _ in range(60):
        terms = _shaken(source)
        said = by_model(terms)
        assert by_contract(terms) == said, (seed, terms)
        refused += said is not None
    assert 0 < refused < 60


def _shaken(source: random.Random) -> RunCharter:
    """A charter at one of the limits, of which a few further terms are moved, some by one."""
    limit = source.choice(LIMITS)
    terms = source.choice([limit.inside, limit.inside, limit.beyond])
    for _ in range(source.randrange(3)):
        part = source.choice(["training", "timing", "economics", "launch", "clocks", "chain", "governance"])
        owner = getattr(terms, part)
        field = source.choice([f.name for f in fields(owner) if isinstance(getattr(owner, f.name), int)])
        value = getattr(owner, field)
        moved: Any = not value if isinstance(value, bool) else max(0, value + source.choice([-1, 0, 1]))
        terms = changed(terms, part, **{field: moved})
    return terms


def _drawn(source: random.Random) -> AuditTerms:
    rates = [source.randrange(1, 1_000_000), source.randrange(1, 999_999), source.randrange(0, 700_000)]
    wage = Wei(source.randrange(1, 10 * ETHER))
    bounties = source.randrange(900_000, PPM + 1), source.randrange(PPM // 2 + 1)
    return AuditTerms(
        Wei(source.randrange(1, 10 * ETHER)),
        wage,
        *rates,
        *bounties,
        3 * source.randrange(1, 5),
        source.randrange(1, 65),
        Wei(source.randrange(ETHER)),
    )


def test_the_stakes_of_the_contract_are_the_exact_ones_rounded_up_by_little() -> None:
    source, compared = random.Random(7), 0
    for _ in range(400):
        terms = _drawn(source)
        lock = stakes.min_lock(terms)
        assert lock == prices.min_tenure_lock(terms)
        try:
            exact = prices.min_ticket_stake(terms, lock)
            found = stakes.min_stake(terms, lock)
        except RejectedError:
            continue
        reaudited = prices.stake_if_reauditor_bribed(terms, lock)
        assert reaudited is not None
        # Where the last denominator is all but zero, fixed point is as far off as the digits that are left.
        slack = Fraction(found - exact, exact)
        assert slack >= 0
        compared += slack < Fraction(1, 10**9)
    assert compared > 200


def test_as_many_rounds_may_be_unsettled_as_a_stake_outweighs_and_not_one_more() -> None:
    source, compared = random.Random(8), 0
    for _ in range(400):
        terms = _drawn(source)
        lock = stakes.min_lock(terms)
        try:
            stake = stakes.min_stake(terms, lock)
        except RejectedError:
            continue
        for held in (stake, Wei(stake + source.randrange(stake))):
            most = stakes.most_unsettled(terms, lock, held)
            assert most >= terms.unsettled
            assert stakes.min_stake(replace(terms, unsettled=most), lock) <= held
            assert stakes.min_stake(replace(terms, unsettled=most + 1), lock) > held
            compared += 1
    assert compared > 200


@pytest.mark.parametrize("limit", LIMITS[::9], ids=lambda x: f"{x.term} {x.code} {x.what}")
def test_the_escrow_admits_as_many_unsettled_rounds_as_the_model(limit: RunLimit) -> None:
    charter = chain().deploy("RunCharter", limit.inside.as_tuple(), astuple(modules_at()))
    escrow = chain().deploy("Escrow", charter.address)
    assert escrow.call("mostUnsettled") == most_unsettled(limit.inside) >= audit_terms(limit.inside).unsettled


@pytest.mark.parametrize("name", sorted(CHAINS))
def test_a_run_fits_on_every_named_chain(name: str) -> None:
    kind = CHAINS[name]
    f = kind.inclusion_delay
    c = replace(RUN, chain=kind.chain(Wei(10**9), Wei(10**8)))
    # Rounds of an hour have too much unsettled where a sequencer can keep a transaction out for half a day.
    commit = max(3600, f // 3)
    c = changed(c, "clocks", budget=max(kind.least_budget, 600), replay=commit)
    times = {
        "commit": commit, "hold": f + 60, "merge": 2 * (f + 60), "grace": min(30, f),
        "challenge": 2 * f + kind.reorg_depth + commit + 600,
        "rescue": f + commit + 600, "epoch": 5 * commit + 2 * f, "seed_delay": kind.reorg_depth + 1,
        "seasoning": 40 * 86_400, "vesting": 100 * 86_400, "stall": 100 * 86_400,
    }  # fmt: skip
    c = staked(changed(c, "timing", **times), challenge_bond=Wei(10 * ETHER), seat_lock=Wei(100 * ETHER))
    assert by_contract(c) is by_model(c) is None
    short = changed(c, "clocks", budget=max(kind.least_budget, 600) - 1)
    assert by_contract(short) == by_model(short) == ("WindowTooShort", "budget")


def test_unsettled_rounds_follow_from_the_times_and_not_from_a_promise() -> None:
    few, many = (audit_terms(changed(RUN, "timing", seed_delay=d)).unsettled for d in (800, 8000))
    assert (few, many) == (24, 32)
    assert audit_terms(WIDE).open_duties == 3 * WIDE.economics.capacity


def test_of_a_run_with_one_level_the_rest_of_a_program_of_partial_sums_means_nothing() -> None:
    rest = replace(RUN, partial_sum=replace(WIDE.partial_sum, root=ZERO, header=bytes(MAX_HEADER + 1)))
    assert by_contract(rest) is by_model(rest) is None
    assert by_contract(replace(rest, partial_sum=WIDE.partial_sum)) == ("ProgramMismatch", None)
