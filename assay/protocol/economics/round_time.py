"""Where time and bytes of a round go: goodput, epochs of audits, what roles transfer.

Times are seconds; bytes are per parameter and round.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

EPOCHS_TO_SETTLE: Final = 4
"""The wait for a round's own epoch, that one, and the two after it."""


SEED_SECONDS: Final = 60
"""From an epoch's beginning, beyond what can be undone, to its seed."""


def goodput(training: float, path: float, units: int | None = None) -> float:
    """G = C / (C + path), the share of time in which solvers train; times 1 - 1 / 2k for commitments of k units.

    A solver that closes at a deadline has half a unit undone on average.
    """
    return training / (training + path) * (1 if units is None else 1 - 1 / (2 * units))


def least_epoch(training: float, inclusion_delay: float, capacity: int) -> float:
    """A >= (c + 1) C + 2 F: a ticket replays c commitments of its epoch, one of which may have just closed."""
    return (capacity + 1) * training + 2 * inclusion_delay


def unsettled_rounds(
    training: float, epoch: float, seed_delay: float, until_final: float, inclusion_delay: float
) -> int:
    """U: rounds of C from a commitment until its audits are over and its base is final, if nobody is late."""
    audits = EPOCHS_TO_SETTLE * (epoch + seed_delay)
    return 1 - int(-(inclusion_delay + max(audits, until_final)) // training)


def upload_of_first_round(update: Fraction, intervals: int) -> Fraction:
    """u + 12 (n + 1): the update and n + 1 published states of parameters and two moments, in f32."""
    return update + 12 * (intervals + 1)


def fetch_of_position(update: Fraction, group: int) -> Fraction:
    """What a position of a group fetches: every update of it."""
    return update * group
