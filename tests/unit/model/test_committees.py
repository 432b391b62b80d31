"""Committees by exact binomials, and where the time of a round goes: the published tables."""

from __future__ import annotations

from fractions import Fraction

import pytest

from assay.protocol.economics import committees
from assay.protocol.economics.round_time import (
    fetch_of_position,
    goodput,
    least_epoch,
    upload_of_first_round,
)

PUBLISHED = {
    5: ("0.009", "0.058", "0.21", "0.093", "0.26"),
    9: ("0.0009", "0.020", "0.14", "0.042", "0.20"),
    15: ("0.00003", "0.004", "0.088", "0.013", "0.14"),
    21: ("0.000001", "0.001", "0.056", "0.005", "0.10"),
    31: ("0.000000007", "0.00009", "0.027", "0.0008", "0.064"),
}
"""k: capture at v = 10, 20, 33 %, censorship at 20, 33 % with 95 % of the honest online, as the notes round them."""

TENTH, FIFTH, THIRD = Fraction(1, 10), Fraction(1, 5), Fraction(1, 3)


@pytest.mark.parametrize("k", PUBLISHED)
def test_the_table_of_committees_is_reproduced(k: int) -> None:
    exact = [committees.capture(k, v) for v in (TENTH, FIFTH, THIRD)]
    exact += [committees.censorship(k, v) for v in (FIFTH, THIRD)]
    for shown, chance in zip(PUBLISHED[k], exact, strict=True):
        digits = len(shown.partition(".")[2])
        assert abs(chance - Fraction(shown)) <= Fraction(1, 2 * 10**digits), (k, shown, float(chance))


def test_a_captured_committee_in_any_of_sixteen_groups() -> None:
    assert round(committees.in_any(committees.capture(15, THIRD), 16), 2) == Fraction("0.77")
    assert round(committees.in_any(committees.capture(15, FIFTH), 16), 3) == Fraction("0.066")


@pytest.mark.parametrize(("k", "v", "shown"), [(15, FIFTH, "0.0024"), (15, THIRD, "0.14"), (31, THIRD, "0.004")])
def test_two_thirds_of_the_speakers_captured_in_any_group(k: int, v: Fraction, shown: str) -> None:
    """The figures of docs/adr/0033-second-round.md."""
    chance = committees.in_any(committees.capture_of_speakers(k, v), 16)
    assert abs(chance - Fraction(shown)) <= Fraction(1, 2 * 10 ** len(shown.partition(".")[2]))


def test_one_honest_signer_among_nine_is_nearly_certain() -> None:
    assert round(committees.none_honest(9, THIRD), 5) == Fraction("0.00005")


def test_all_positions_of_one_owner_capture_every_committee() -> None:
    assert committees.capture(15, Fraction(1)) == 1
    assert committees.capture_of_speakers(15, Fraction(1)) == 1
    assert committees.censorship(15, Fraction(0), Fraction(1)) == 0


@pytest.mark.parametrize(
    ("minutes", "typical", "worst"), [(30, 86, 41), (60, 92, 58), (120, 96, 74)], ids=["30", "60", "120"]
)
def test_goodput_of_typical_and_worst_paths(minutes: int, typical: int, worst: int) -> None:
    """A path of 5 minutes, or of 43 with every delay spent in full."""
    assert round(100 * goodput(minutes, 5)) == typical
    assert round(100 * goodput(minutes, 43)) == worst


def test_goodput_of_commitments_of_sixty_units() -> None:
    assert goodput(3600, 300, units=60) == pytest.approx(3600 / 3900 * (1 - 1 / 120))


def test_an_epoch_holds_the_replays_that_it_asks_for() -> None:
    assert least_epoch(7200, 600, 1) == 15_600


@pytest.mark.parametrize(("update", "bytes_by_n"), [(4, {1: 28, 5: 76, 20: 256}), (1, {1: 25, 5: 73, 20: 253})])
def test_what_a_solver_uploaded_in_the_first_round(update: int, bytes_by_n: dict[int, int]) -> None:
    assert {n: upload_of_first_round(Fraction(update), n) for n in bytes_by_n} == bytes_by_n


def test_five_positions_a_group_of_64_fetch_terabytes() -> None:
    """124 M parameters, 1,024 seats in 16 groups: 2.5 TB in f32, 0.64 TB in int8."""
    for update, terabytes in ((4, Fraction("2.5")), (1, Fraction("0.64"))):
        total = 16 * 5 * fetch_of_position(Fraction(update), 64) * 124 * 10**6 / 10**12
        assert abs(total - terabytes) < terabytes / 50
