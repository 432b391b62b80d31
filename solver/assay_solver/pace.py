"""How long a solver trains in a round: to the last unit that still commits in time. Pure.

What is sent by T0 + C is on chain in time though it be kept out as long as anybody can, F; what is sent later risks the
pay of all units for that of one. A unit that ends after the mask has closed trains nobody's model, so none is begun for
that either; only the least that makes a commitment is, to the last second of the round.

What is measured decides what is measured next: a unit that stalled once must not end all training. So the least of a
commitment is trained while the fastest of the last units would still make it, and the first unit of a round always.
Source: docs/adr/0033-second-round.md, critical path 1 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from statistics import median
from typing import Final

JITTER: Final = 1.1
"""A unit may take a tenth longer than its like before: whoever is late loses its weight, whoever is early a unit."""

SAMPLES: Final = 8
"""Units and commitments by which a pace is measured: a machine that others use changes its speed."""


@dataclass(frozen=True, slots=True)
class RoundWindow:
    """A round's times that bound training, in chain seconds, and the units of a commitment."""

    train_until: int
    """T0 + C: last second to send a commitment that no censorship keeps out."""
    grace: int
    mask_at: int
    """Last second in which a commitment gets weight; it moves forward as others commit."""
    commit_until: int
    """T0 + C + F."""
    min_units: int
    max_units: int

    @property
    def weight_until(self) -> int:
        """Until when a commitment has weight whatever others do from now on; earlier only where nearly all have
        committed."""
        return min(self.mask_at, self.train_until + self.grace)


@dataclass(frozen=True, slots=True)
class OwnPace:
    """What this solver takes, in seconds: until a transaction is mined, and what it measured, the last one last."""

    inclusion: float
    units: tuple[float, ...] = ()
    """For each of the last units; the first one of a process compiles its kernels, too."""
    finishes: tuple[float, ...] = ()
    """From the last unit to the transaction, for each of the last commitments."""

    @property
    def unit(self) -> float:
        """For a unit as a rule; 0 where none is measured. What stalled one of several does not count."""
        return median(self.units) if self.units else 0.0

    @property
    def fastest(self) -> float:
        """For a unit if all goes well; 0 where less than two are measured, since one alone may have compiled."""
        return min(self.units) if len(self.units) > 1 else 0.0

    @property
    def finish(self) -> float:
        """From the last unit to the transaction as a rule; 0 where none is measured."""
        return median(self.finishes) if self.finishes else 0.0

    @property
    def after(self) -> float:
        """From the end of the last unit until the commitment is on chain."""
        return self.finish + self.inclusion

    def measured(self, seconds: float) -> OwnPace:
        """The pace after one more unit of so many seconds: that of the last SAMPLES units."""
        return replace(self, units=(*self.units, seconds)[-SAMPLES:])

    def finished(self, seconds: float) -> OwnPace:
        """The pace after one more commitment that was sent so many seconds after its last unit."""
        return replace(self, finishes=(*self.finishes, seconds)[-SAMPLES:])


class Pacing(Enum):
    """What a solver that is not done with a round does next."""

    TRAIN = "train"
    COMMIT = "commit"
    MISS = "miss"
    """Nothing that it could still do would be a commitment in time, however fast."""


def pacing(window: RoundWindow, pace: OwnPace, units: int, now: int) -> Pacing:
    """Whether to train one more unit, or to commit those that are done.

    A commitment is due while it has weight. One without weight is paid all the same, and nobody waits for it, but the
    next round begins meanwhile: it is sent as soon as it is one.
    """
    if units >= window.min_units and now + pace.inclusion > window.commit_until:
        return Pacing.MISS if now >= window.commit_until else Pacing.COMMIT
    if units >= window.max_units:
        return Pacing.COMMIT
    if units < window.min_units:
        # What publishing takes is left out: only who gets there measures it again.
        missing = (window.min_units - units) * pace.fastest + pace.inclusion
        is_measuring = not units and now < window.train_until
        return Pacing.TRAIN if is_measuring or now + missing <= window.commit_until else Pacing.MISS
    sent = now + JITTER * pace.unit + pace.finish
    in_time = sent <= window.train_until and sent + pace.inclusion <= window.weight_until
    return Pacing.TRAIN if in_time else Pacing.COMMIT
