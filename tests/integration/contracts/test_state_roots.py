"""What contracts compute themselves equals what everybody else computes: starts, outer inputs, trees, times, bounds."""

from __future__ import annotations

from dataclasses import astuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.protocol.economics import formulas as rules
from assay.protocol.model.outers import outer_input
from assay.protocol.run.charter import Economics, Windows
from assay.protocol.run.schedule import Times
from assay.protocol.trees import merkle
from assay.protocol.trees.state import RoundScalars, list_root
from assay.protocol.types import Digest, Round, Seat, Wei
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.contracts.world import digest

words = st.binary(min_size=32, max_size=32).map(Digest)
amounts = st.integers(1, 10**28).map(Wei)
seconds = st.integers(600, 10**7)


@pytest.fixture(scope="module")
def harness() -> EvmContract:
    return Evm().deploy("StateRootsHarness")


@settings(max_examples=60, deadline=None)
@given(
    run=words,
    round_=st.integers(0, 2**24 - 1),
    seat=st.integers(0, 7),
    steps=st.integers(1, 2**32 - 1),
    lr=st.one_of(st.integers(0, 0x7F7FFFFF), st.integers(0x80000000, 0xFF7FFFFF)),
    shards=st.integers(8, 2**12),
    length=st.integers(1, 2**18),
)
def test_the_scalars_of_a_start(
    harness: EvmContract, run: Digest, round_: int, seat: int, steps: int, lr: int, shards: int, length: int
) -> None:
    data = digest("data")
    expected = RoundScalars(run, Seat(seat), Round(round_), steps, shards, length, lr, data)
    shown = (run, round_, seat, steps, lr, shards, length, data)
    assert harness.call("scalars", shown) == list_root(expected.roots())


@settings(max_examples=60, deadline=None)
@given(updates=st.lists(words, min_size=8, max_size=8), mask=st.integers(0, 255), p=words, m=words)
def test_the_input_of_an_outer_step(
    harness: EvmContract, updates: list[Digest], mask: int, p: Digest, m: Digest
) -> None:
    assert harness.call("outerInput", p, m, updates, mask) == outer_input(p, m, tuple(updates), mask)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 63, 64, 65, 130, 328])
def test_trees_over_leaves_of_any_number(harness: EvmContract, count: int) -> None:
    digests = [digest(f"leaf {k}") for k in range(count)]
    assert harness.call("tree", digests) == merkle.root(digests)


windows = st.builds(Windows, **dict.fromkeys(Windows.__dataclass_fields__, seconds))
economics = st.builds(
    Economics,
    unit_price=amounts,
    units=st.integers(1, 10**9),
    pays=st.booleans(),
    shares_per_unit=amounts,
    shares_per_duty=amounts,
    claim_lock=amounts,
    verifier_bond=amounts,
    wage=amounts,
    seat_fee=amounts,
    challenge_bond=amounts,
    challenge_deposit=amounts,
    audit_ppm=st.integers(10, 2**32 - 1),
    whistle_ppm=st.integers(1, 2**32 - 1),
    trap_ppm=st.just(0),
    cartel_ppm=st.integers(0, 900_000),
    bounty_ppm=st.integers(0, 500_000),
)


@settings(max_examples=60, deadline=None)
@given(w=windows, t0=st.integers(0, 2**40))
def test_the_deadlines_of_a_round(harness: EvmContract, w: Windows, t0: int) -> None:
    times = Times.of(w, t0)
    assert harness.call("times", astuple(w), t0) == astuple(times)
    assert times.t7 - t0 == w.round_length


@settings(max_examples=100, deadline=None)
@given(e=economics, w=windows, delay=st.integers(0, 2**40 - 1), n=st.integers(1, 64))
def test_the_bounds_of_the_constructor(harness: EvmContract, e: Economics, w: Windows, delay: int, n: int) -> None:
    expected = (
        *(rules.min_claim_lock(e, n), rules.min_bond(e), rules.min_exit(w, delay)),
        *(rules.vesting_delay(w, delay), rules.wage_cap(e.audit_ppm)),
    )
    assert harness.call("bounds", astuple(e), astuple(w), delay, n) == expected
