"""Which round of a beacon a deadline names, what a network signs for it, and what prevrandao's bias is."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.errors import InvariantError
from assay.protocol.run.beacon import (
    EVMNET,
    LOCAL,
    NETWORKS,
    DrandNetwork,
    prevrandao_bias,
    prevrandao_randomness,
    signed_message,
)
from assay.protocol.types import BeaconRound

NETWORK = st.builds(
    DrandNetwork,
    beacon_id=st.text(),
    public_key=st.just(bytes(128)),
    genesis_time=st.integers(0, 1 << 40),
    period=st.integers(1, 100_000),
    genesis_seed=st.just(bytes(32)),
)


@given(NETWORK, st.integers(0, 1 << 41))
def test_a_deadline_names_the_first_round_later_than_itself(network: DrandNetwork, deadline: int) -> None:
    named = network.round_after(deadline)
    assert network.time_of(named) > deadline
    assert named == 1 or network.time_of(BeaconRound(named - 1)) <= deadline


@given(NETWORK, st.integers(1, 1 << 40))
def test_the_second_before_a_rounds_time_names_it_and_its_time_the_next(network: DrandNetwork, number: int) -> None:
    time = network.time_of(BeaconRound(number))
    assert network.round_after(time) == number + 1
    if time > 0:
        assert network.round_after(time - 1) == number


def test_rounds_of_evmnet_come_at_the_times_that_drand_publishes() -> None:
    assert EVMNET.time_of(BeaconRound(1)) == 1_727_521_075
    # drand's CurrentRound(t) is floor((t - genesis) / period) + 1; the next one is what a deadline names.
    assert EVMNET.round_after(1_727_521_074) == 1
    assert EVMNET.round_after(1_727_521_075) == EVMNET.round_after(1_727_521_077) == 2
    assert EVMNET.round_after(1_800_000_000) == (1_800_000_000 - 1_727_521_075) // 3 + 2


def test_a_round_of_the_local_signer_is_a_second() -> None:
    assert LOCAL.time_of(BeaconRound(1_800_000_000)) == 1_800_000_000
    assert LOCAL.round_after(1_800_000_000) == 1_800_000_001


def test_there_is_no_round_zero() -> None:
    for network in NETWORKS:
        with pytest.raises(InvariantError, match="counted from 1") as refused:
            network.time_of(BeaconRound(0))
        assert refused.value.code == "BeaconRoundZero"


def test_a_network_signs_the_hash_of_eight_bytes() -> None:
    # The message that randa-mu/bls-solidity (test/data/testcases.json) has for round 9,337,227 of evmnet.
    want = "baf09720c37cb921fd8362b1d907232ac0b813ffba768c714aeaace987e7fd6b"
    assert signed_message(BeaconRound(9_337_227)).hex() == want


def test_rounds_that_one_block_decides_differ() -> None:
    mix = bytes(range(32))
    assert prevrandao_randomness(mix, BeaconRound(5)) != prevrandao_randomness(mix, BeaconRound(6))


# --- the bias of prevrandao


def one_round(source: random.Random, share: float, chance: float) -> tuple[bool, bool]:
    """Blocks around a round's time, as proposers are drawn: does an event happen without, and with, withholding?

    The attacker's mixes are drawn one by one, each an independent chance.
    """
    before = after = 0
    while source.random() < share:
        before += 1
    while source.random() < share:
        after += 1
    mixes = [source.random() < chance for _ in range(2 ** min(before + after, 20))]
    return any(mixes[: after + 1]), any(mixes)


@pytest.mark.parametrize(("share", "chance"), [(0.1, 0.1), (1 / 3, 0.1), (1 / 3, 0.02), (0.05, 0.5)])
def test_the_bias_of_prevrandao_is_that_of_rounds_played_out(share: float, chance: float) -> None:
    source, count = random.Random(4399), 40_000
    played = [one_round(source, share, chance) for _ in range(count)]
    for k, expected in enumerate(prevrandao_bias(share, chance)):
        happened = sum(outcome[k] for outcome in played) / count
        # Five standard deviations: one run in a million fails by chance.
        assert abs(happened - expected) < 5 * (expected * (1 - expected) / count) ** 0.5


def test_who_proposes_nothing_has_no_bias_and_who_proposes_all_has_the_choice() -> None:
    assert prevrandao_bias(0.0, 0.1) == pytest.approx((0.1, 0.1))
    free, withheld = prevrandao_bias(0.9, 0.1)
    assert 0.1 < free < withheld < 1
