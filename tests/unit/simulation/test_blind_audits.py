"""How long one blind auditor stays among the honest: the formula, its process played out, and the contracts' model."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest

from assay.protocol.economics.blind_audits import BlindAuditTerms, expected_epochs
from assay.simulation.blind_audits import CELLS, OF_99_PERCENT, blind_rows, play_blind
from assay.simulation.incomes import Estimate

BASE = BlindAuditTerms(1.0, 0.5, tickets=4, capacity=16, commitments=8)


def draw_out(t: BlindAuditTerms, rng: Random) -> int:
    """The process that the formula is of, by tickets and attestations: ticket 0 is blind."""
    attested: list[int] = []
    epoch = 0
    while True:
        made: list[int] = []
        for ticket in range(t.tickets):
            drawn = [-1] * sum(rng.random() < t.audit_chance for _ in range(t.commitments))
            drawn += [by for by in attested if by != ticket and rng.random() < t.reaudit_chance]
            rng.shuffle(drawn)
            answered = drawn[: t.capacity]
            if ticket and 0 in answered:
                return epoch
            made += [ticket] * len(answered)
        attested, epoch = made, epoch + 1


@pytest.mark.parametrize(
    ("terms", "within"),
    [
        (BASE, 0.02),
        (replace(BASE, audit=0.25), 0.02),
        (replace(BASE, reaudit=0.2, tickets=2), 0.02),
        (replace(BASE, tickets=8, commitments=2), 0.02),
        (replace(BASE, capacity=2), 0.04),
        (replace(BASE, capacity=1), 0.04),
    ],
    ids=repr,
)
def test_the_formula_is_the_mean_of_its_process(terms: BlindAuditTerms, within: float) -> None:
    """Exact where all draws are answered; a few percent off where tickets leave some out."""
    rng, runs = Random(1), 3000
    played = Estimate.of([draw_out(terms, rng) for _ in range(runs)])
    assert expected_epochs(terms) == pytest.approx(played.mean, abs=within * played.mean + 1.3 * played.half)


def test_nobody_looks_at_the_only_ticket() -> None:
    assert expected_epochs(replace(BASE, tickets=1)) == math.inf
    assert expected_epochs(replace(BASE, tickets=1, capacity=1)) == math.inf


def test_more_audits_find_it_sooner_and_less_capacity_later() -> None:
    usual = expected_epochs(BASE)
    assert expected_epochs(replace(BASE, reaudit=0.9)) < usual < expected_epochs(replace(BASE, reaudit=0.3))
    assert usual < expected_epochs(replace(BASE, capacity=2)) < expected_epochs(replace(BASE, capacity=1))


@pytest.mark.parametrize(
    "cells",
    [
        pytest.param((CELLS[1], CELLS[5], CELLS[8]), id="three"),
        pytest.param(CELLS, id="all", marks=pytest.mark.long),
    ],
)
def test_a_blind_auditor_is_accused_and_convicted_when_the_formula_says(cells: tuple[BlindAuditTerms, ...]) -> None:
    """On the executable model, with everybody else honest."""
    for row in blind_rows(60, cells):
        assert row.is_as_expected, row
        assert row.convicted.mean == pytest.approx(row.accused.mean + 1)
        assert row.others_accused == 0
        assert OF_99_PERCENT * row.accused.half < 0.35 * row.expected


def test_a_seed_plays_the_same_again() -> None:
    assert play_blind(BASE, 7) == play_blind(BASE, 7)
    assert len({play_blind(BASE, seed)[0] for seed in range(6)}) > 1
