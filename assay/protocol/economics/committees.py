"""Committees of k positions drawn by ticket: exact chances that one is captured, or kept from its majority.

A position is drawn with replacement, alone, so the positions of a cartel are binomial. A committee decides what enters
one round's merge and no more.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Final

ONLINE: Final = Fraction(19, 20)
"""Share of honest positions that speak in time, where nothing else is said."""


def chance_of(least: int, k: int, chance: Fraction) -> Fraction:
    """The chance of at least so many successes in k independent draws."""
    return sum((comb(k, i) * chance**i * (1 - chance) ** (k - i) for i in range(least, k + 1)), Fraction(0))


def capture(k: int, cartel: Fraction) -> Fraction:
    """The chance that a cartel with this share of tickets holds more than half of k positions."""
    return chance_of(k // 2 + 1, k, cartel)


def capture_of_speakers(k: int, cartel: Fraction, online: Fraction = ONLINE) -> Fraction:
    """The chance that a cartel holds two thirds of the positions that speak, all of its own and those online of others.

    Source: docs/adr/0033-second-round.md, where two thirds of the positions that spoke decide.
    """
    honest = (1 - cartel) * online
    silent = 1 - cartel - honest
    total = Fraction(0)
    for captured in range(1, k + 1):
        for others in range(min(captured // 2, k - captured) + 1):
            ways = comb(k, captured) * comb(k - captured, others)
            total += ways * cartel**captured * honest**others * silent ** (k - captured - others)
    return total


def censorship(k: int, cartel: Fraction, online: Fraction = ONLINE) -> Fraction:
    """The chance that honest positions that speak are no majority, so that a cartel can keep bytes out by silence."""
    return 1 - chance_of(k // 2 + 1, k, (1 - cartel) * online)


def in_any(chance: Fraction, groups: int) -> Fraction:
    """The chance that it happens in at least one of so many groups."""
    return 1 - (1 - chance) ** groups


def none_honest(signers: int, cartel: Fraction) -> Fraction:
    """The chance that no honest position is among so many signers: what a false partial sum needs."""
    return cartel**signers
