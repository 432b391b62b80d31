"""The draw inequality: exact thresholds, stated rates, and nothing to gain from splitting a stake."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from eth_abi import encode
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.errors import InvariantError
from assay.protocol.run.draws import (
    ALWAYS,
    PPM,
    Purpose,
    compute_duties,
    coverage,
    draw_message,
    expected_replays,
    is_drawn,
    is_split_neutral,
    possession_message,
    threshold,
    ticket,
)
from assay.protocol.types import Address, Digest, Round, Wei

CLAIM = Digest(b"\x05" * 32)
stakes = st.integers(0, (1 << 128) - 1)
rates = st.integers(0, (1 << 32) - 1)


@given(st.integers(0, 2**256 - 1), st.binary(min_size=20, max_size=20), st.integers(0, 2**64 - 1))
def test_messages_are_what_abi_encode_gives(chain_id: int, contract: bytes, round_: int) -> None:
    run, seed, owner, key = b"\1" * 32, b"\2" * 32, b"\3" * 20, bytes(range(128))
    message = draw_message(chain_id, Address(contract), Digest(run), Round(round_), Purpose.WHISTLE, Digest(seed))
    kinds = ["uint256", "address", "bytes32", "uint64", "uint8", "bytes32"]
    assert message == encode(kinds, (chain_id, "0x" + contract.hex(), run, round_, 2, seed))
    possession = possession_message(chain_id, Address(contract), Address(owner), key)
    values = (chain_id, "0x" + contract.hex(), "0x" + owner.hex(), key)
    assert possession == encode(["uint256", "address", "address", "bytes"], values)


def test_every_field_of_the_message_changes_it() -> None:
    fields = (1, Address(b"\1" * 20), Digest(b"\2" * 32), Round(3), Purpose.AUDIT, Digest(b"\4" * 32))
    others = (2, Address(b"\2" * 20), Digest(b"\3" * 32), Round(4), Purpose.TRAP, Digest(b"\5" * 32))
    messages = {draw_message(*fields)}
    for i in range(len(fields)):
        changed = [*fields]
        changed[i] = others[i]
        messages.add(draw_message(*changed))
    assert len(messages) == 7


@given(st.binary(min_size=256, max_size=256), st.binary(min_size=32, max_size=32), st.integers(0, 2**256 - 1))
def test_a_ticket_is_the_low_half_of_the_hash(y: bytes, claim: bytes, duty: int) -> None:
    digest = keccak(encode(["bytes", "bytes32", "uint256"], (y, claim, duty)))
    assert ticket(y, Digest(claim), duty) == int.from_bytes(digest, "big") % 2**128


@given(rates, stakes, stakes)
def test_a_threshold_is_the_floor_of_the_exact_probability(ppm: int, stake: int, total: int) -> None:
    t = threshold(ppm, Wei(stake), Wei(total))
    if total == 0:
        assert t == 0
        return
    probability = min(Fraction(1), Fraction(ppm * stake, PPM * total))
    assert t <= probability * ALWAYS < t + 1


@given(rates, stakes, stakes, stakes)
def test_a_larger_stake_is_never_drawn_less(ppm: int, a: int, b: int, total: int) -> None:
    low, high = sorted((a, b))
    assert threshold(ppm, Wei(low), Wei(total)) <= threshold(ppm, Wei(high), Wei(total))


@given(rates, st.lists(st.integers(0, 10**24), min_size=1, max_size=8))
def test_splitting_a_stake_gains_no_threshold_and_loses_less_than_one_per_part(ppm: int, parts: list[int]) -> None:
    whole, total = sum(parts), sum(parts) + 10**24
    together = threshold(ppm, Wei(whole), Wei(total))
    apart = sum(threshold(ppm, Wei(part), Wei(total)) for part in parts)
    if is_split_neutral(ppm, Wei(whole), Wei(total)):
        assert together - len(parts) < apart <= together
    else:
        assert together == ALWAYS


def test_a_stake_at_or_above_the_cap_is_always_drawn_and_one_below_it_is_not() -> None:
    assert threshold(2 * PPM, Wei(1), Wei(2)) == ALWAYS
    assert threshold(2 * PPM, Wei(999), Wei(2000)) < ALWAYS
    assert compute_duties(bytes(256), CLAIM, 6, 2 * PPM, Wei(5), Wei(10)) == (0, 1, 2, 3, 4, 5)
    assert compute_duties(bytes(256), CLAIM, 6, 0, Wei(5), Wei(10)) == ()
    assert compute_duties(bytes(256), CLAIM, 6, PPM, Wei(0), Wei(0)) == ()


def test_the_expected_replays_are_the_rate_where_no_cap_is_reached() -> None:
    holdings = [Wei(50), Wei(30), Wei(15), Wei(5)]
    replays = expected_replays(300_000, holdings)
    assert Fraction(3, 10) - Fraction(4, ALWAYS) <= replays <= Fraction(3, 10)
    assert expected_replays(2 * PPM, [Wei(7), Wei(7)]) == 2
    # One holder of 90 % at rate 2: its part is capped at one replay, 1 + 2 * 10 %.
    capped = expected_replays(2 * PPM, [Wei(90), Wei(10)])
    assert Fraction(12, 10) - Fraction(1, ALWAYS) <= capped <= Fraction(12, 10)
    assert not is_split_neutral(2 * PPM, Wei(90), Wei(100))


def test_coverage_is_the_chance_that_somebody_looks() -> None:
    assert coverage(2 * PPM, [Wei(1), Wei(1)]) == 1
    assert coverage(0, [Wei(1)]) == 0
    assert float(coverage(300_000, [Wei(1)] * 3)) == pytest.approx(1 - 0.9**3)
    assert float(coverage(PPM, [Wei(1)] * 1000)) == pytest.approx(1 - math.exp(-1), abs=1e-3)


def drawn_counts(ppm: int, holdings: dict[str, int], tickets: int, duties: int, seed: int) -> dict[str, int]:
    """How often each holder is drawn, over `tickets` independent random signatures of `duties` duties each."""
    source, total = random.Random(seed), Wei(sum(holdings.values()))
    counts = dict.fromkeys(holdings, 0)
    for _ in range(tickets):
        for name, stake in holdings.items():
            counts[name] += len(compute_duties(source.randbytes(256), CLAIM, duties, ppm, Wei(stake), total))
    return counts


def assert_within_binomial(count: int, trials: int, probability: float) -> None:
    """A two-sided 99.9 % interval (3.2905 standard deviations, with a correction for continuity)."""
    spread = 3.2905 * math.sqrt(trials * probability * (1 - probability)) + 0.5
    assert abs(count - trials * probability) <= spread, (count, trials * probability, spread)


def test_observed_frequencies_with_unequal_stakes_are_those_of_the_formula() -> None:
    holdings = {"large": 50, "middle": 30, "small": 15, "tiny": 5}
    counts = drawn_counts(300_000, holdings, tickets=1500, duties=6, seed=20240611)
    for name, stake in holdings.items():
        assert_within_binomial(counts[name], 9000, 0.3 * stake / 100)
    # The sum over holders is p replays per duty; its variance is below that of the sum of binomials.
    assert_within_binomial(sum(counts.values()), 36000, 0.3 / 4)


def test_a_split_identity_is_drawn_as_often_as_the_whole() -> None:
    parts = {f"part{i}": stake for i, stake in enumerate([20, 10, 10, 5, 5])}
    apart = drawn_counts(300_000, {**parts, "rest": 50}, tickets=1500, duties=6, seed=7)
    together = drawn_counts(300_000, {"whole": 50, "rest": 50}, tickets=1500, duties=6, seed=8)
    assert_within_binomial(together["whole"], 9000, 0.15)
    expected = 9000 * 0.15
    variance = sum(9000 * p * (1 - p) for p in (0.3 * stake / 100 for stake in parts.values()))
    observed = sum(apart[name] for name in parts)
    assert abs(observed - expected) <= 3.2905 * math.sqrt(variance) + 0.5


@pytest.mark.parametrize(
    "call",
    [
        lambda: threshold(-1, Wei(1), Wei(1)),
        lambda: threshold(1 << 32, Wei(1), Wei(1)),
        lambda: threshold(1, Wei(1 << 128), Wei(1)),
        lambda: threshold(1, Wei(1), Wei(-1)),
        lambda: ticket(bytes(255), CLAIM, 0),
        lambda: ticket(bytes(256), Digest(bytes(31)), 0),
        lambda: is_drawn(bytes(256), CLAIM, -1, 1, Wei(1), Wei(1)),
        lambda: draw_message(1, Address(bytes(19)), CLAIM, Round(0), Purpose.AUDIT, CLAIM),
        lambda: draw_message(1, Address(bytes(20)), CLAIM, Round(1 << 64), Purpose.AUDIT, CLAIM),
        lambda: possession_message(1, Address(bytes(20)), Address(bytes(20)), bytes(127)),
    ],
)
def test_fields_that_do_not_fit_their_type_are_refused(call: object) -> None:
    assert callable(call)
    with pytest.raises(InvariantError):
        call()
