"""From the beginning of one round to that of the next: what the charter and a run's own last rounds say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from assay.planning.outlook import outlook_of_run
from assay.protocol.economics.limits import PPM
from assay.protocol.run.run_charter import RunCharter

LAST: Final = 10
"""Rounds whose spans are looked at."""


@dataclass(frozen=True, slots=True)
class RoundSpans:
    """Seconds of chain time, and from how many rounds of the run they are: from none, the charter's alone."""

    shortest: float
    mean: float
    longest: float
    seen: int = 0


def spans_of(charter: RunCharter, begun: Sequence[int], tickets: int, seats: int) -> RoundSpans:
    """By when the run's rounds began, in seconds of chain time; before there are two, by what the charter admits.

    A round is over as soon as all have committed and merged, so no window holds it up; but an epoch begins no more
    rounds of so many seats than its tickets can audit. Of those that are slower nothing is known before they are seen,
    so the mean is then the longest.
    """
    seen = [max(1, later - sooner) for sooner, later in pairwise(begun[-LAST - 1 :])]
    longest = float(outlook_of_run(charter).round_at_most_seconds)
    if seen:
        return RoundSpans(min(seen), sum(seen) / len(seen), max(longest, *seen), len(seen))
    shortest = outlook_of_run(charter).epoch_seconds / rounds_of_epoch(charter, tickets, seats)
    if not charter.by_seats:
        shortest = max(shortest, charter.timing.beacon_delay)
    longest = max(longest, shortest)
    return RoundSpans(shortest, longest, longest)


def rounds_of_epoch(charter: RunCharter, tickets: int, seats: int) -> int:
    """How many rounds of so many seats may begin in an epoch: the gate of rounds (`mayOpen` in Escrow.sol)."""
    e = charter.economics
    answered = e.capacity * (tickets // e.shifts) * (PPM - e.reaudit_ppm)
    return max(1, answered // (2 * seats * e.audit_ppm))
