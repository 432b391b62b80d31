"""How long an auditor stays that invents its results while everybody else is honest (docs/economics.md).

Nobody compares results: an accumulator under the auditor's own key is looked at by who is drawn for its attestation
alone. So the number of epochs follows from rates, tickets and capacity, and from no lie of a solver.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

NEGLIGIBLE: Final = 1e-9
"""What is left out of sums of chances."""


@dataclass(frozen=True, slots=True)
class BlindAuditTerms:
    """Rates p and q as expected replays, tickets that an epoch calls, their capacity c, commitments of an epoch."""

    audit: float
    reaudit: float
    tickets: int
    capacity: int
    commitments: int

    @property
    def audit_chance(self) -> float:
        """That one ticket draws one commitment."""
        return min(1.0, self.audit / self.tickets)

    @property
    def reaudit_chance(self) -> float:
        """That one ticket draws one attestation of somebody else."""
        return min(1.0, self.reaudit / self.tickets)


def expected_epochs(t: BlindAuditTerms) -> float:
    """Epochs from the first in which one blind ticket attests to the one in which somebody accuses it."""
    return _if_all_answer(t) if _answered(_draws(t, _most_attestations(t)), t.capacity) > 1 - 1e-6 else _if_full(t)


def _if_all_answer(t: BlindAuditTerms) -> float:
    """Where no ticket is drawn for more than it can do: exactly, since no commitment's descendants know of another's.

    b, h and g are the chances that a blind attestation, an honest one and a commitment lead to no accusation within k
    epochs. Nobody is accused before epoch t iff none of the commitments of epochs 0 to t led to it by then.
    """
    n, p, q = t.tickets, t.audit_chance, t.reaudit_chance
    b, h, total, left = 1.0, 1.0, 0.0, 1.0
    if n == 1:
        return math.inf
    while left > NEGLIGIBLE:
        g = (1 - p + p * h) ** (n - 1) * (1 - p + p * b)
        left *= g**t.commitments
        total += left
        h = (1 - q + q * h) ** (n - 2) * (1 - q + q * b)
        b = (1 - q) ** (n - 1)
    return total


def _if_full(t: BlindAuditTerms) -> float:
    """Where tickets leave out draws above c: with each epoch's number of attestations at its mean.

    A ticket answers min(D, c) of its D draws, a share s of all, and which ones is chance. An attestation is found in
    the next epoch with a = 1 - (1 - s q / n)^(n - 1), and nobody is accused with E[(1 - a)^min(D, c)].
    """
    attestations, before, total, left = 0.0, [1.0], 0.0, 1.0
    while left > NEGLIGIBLE and t.tickets > 1:
        drawn = _draws(t, attestations)
        found = 1 - (1 - _answered(drawn, t.capacity) * t.reaudit_chance) ** (t.tickets - 1)
        left *= math.fsum(chance * (1 - found) ** min(d, t.capacity) for d, chance in enumerate(before))
        total += left
        attestations = t.tickets * math.fsum(min(d, t.capacity) * chance for d, chance in enumerate(drawn))
        before = drawn
    return total if t.tickets > 1 else math.inf


def _answered(drawn: list[float], capacity: int) -> float:
    """The share of draws that are answered."""
    done = math.fsum(min(d, capacity) * chance for d, chance in enumerate(drawn))
    return done / math.fsum(d * chance for d, chance in enumerate(drawn))


def _most_attestations(t: BlindAuditTerms) -> float:
    """Attestations of an epoch when it lasts, if all draws are answered: p N / (1 - q (n - 1) / n)."""
    return t.commitments * t.audit / (1 - t.reaudit * (t.tickets - 1) / t.tickets)


def _draws(t: BlindAuditTerms, attestations: float) -> list[float]:
    """Chances of 0, 1, 2, ... draws of a ticket: binomial ones of commitments, Poisson ones of others' attestations."""
    n, p = t.commitments, t.audit_chance
    rate = attestations * (t.tickets - 1) / t.tickets * t.reaudit_chance
    work = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    most = math.ceil(rate + 12 * math.sqrt(rate) + 12)
    again = [math.exp(-rate) * rate**k / math.factorial(k) for k in range(most)]
    found = [0.0] * (len(work) + len(again) - 1)
    for k, x in enumerate(work):
        for j, y in enumerate(again):
            found[k + j] += x * y
    return found
