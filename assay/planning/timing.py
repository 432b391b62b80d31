"""The critical path of a planned round: what stands between the last step of one and the first of the next."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from assay.planning.inputs import PlanInputs
from assay.protocol.economics.round_time import SEED_SECONDS, goodput, least_epoch, unsettled_rounds
from assay.protocol.economics.run_times import MIN_BEACON_DELAY

BASE_BYTES = 4
"""A parameter of a base, f32."""
BEACON_SECONDS = 3.0
"""Period of the beacon's rounds."""


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """Seconds of each part, in their order."""

    publish: float
    """The update goes up and is committed."""
    wait: float
    """The mask closes after its grace; the beacon draws positions."""
    fetch: float
    """Positions fetch every update of their group, and say what they hold."""
    merge: float
    """Partial sums are sealed and opened; then the generation, over the partials."""
    base: float
    """Solvers fetch the new base."""

    @property
    def seconds(self) -> float:
        """All of it."""
        return float(sum(getattr(self, f.name) for f in fields(self)))


def critical_path(x: PlanInputs, inclusion: float) -> CriticalPath:
    """With so many seconds until a transaction is mined: as a rule, or with every delay spent in full.

    Positions are known only by the beacon, so nothing of their fetch can begin earlier. At one level everybody fetches
    everything; what came before the mask closed might be fetched by then, which is not counted on.
    """
    down, up = x.down / 8, x.up / 8
    position_down, position_up = (x.positions or x.down) / 8, (x.positions or x.up) / 8
    # The stores are as fast as the links.
    publish = x.upload / up + inclusion
    fetch = x.group_size * x.upload / position_down + inclusion
    seal_and_open = 2 * inclusion
    if x.is_one_level:
        return CriticalPath(publish, x.grace, fetch, seal_and_open, 0.0)
    top = x.sum_bytes / position_up + x.groups * x.sum_bytes / position_down
    wait = x.grace + MIN_BEACON_DELAY + BEACON_SECONDS + inclusion
    base = BASE_BYTES * x.parameters
    return CriticalPath(publish, wait, fetch, top + 2 * seal_and_open, base / position_up + base / down)


@dataclass(frozen=True, slots=True)
class RoundTiming:
    """Times of a planned run in seconds."""

    training: float
    path: CriticalPath
    worst_path: CriticalPath
    rounds: int
    epoch: float
    """A, from one beacon of audits to the next."""
    delay: float
    """F."""
    seed_delay: float
    """From an epoch's beginning, beyond what can be undone, to its seed."""

    @property
    def goodput(self) -> float:
        """As a rule, of rounds in which every seat finishes what it began."""
        return goodput(self.training, self.path.seconds)

    @property
    def worst_goodput(self) -> float:
        """With every transaction kept out as long as the chain lets anybody."""
        return goodput(self.training, self.worst_path.seconds)

    @property
    def round(self) -> float:
        """Of one round."""
        return self.training + self.path.seconds

    @property
    def rounds_of_epoch(self) -> int:
        """The most that may begin while an epoch is the newest: all that begin are audited in one."""
        return math.floor((self.epoch + self.seed_delay) / self.round) + 1

    @property
    def wall(self) -> float:
        """Of the run."""
        return self.rounds * self.round

    @property
    def unsettled(self) -> int:
        """U: rounds until a commitment is paid, as a charter of this plan counts them: in rounds of C."""
        return unsettled_rounds(self.training, self.epoch, self.seed_delay, self.worst_path.seconds, self.delay)


def time_round(x: PlanInputs) -> RoundTiming:
    """A plan's times."""
    return RoundTiming(
        x.training_seconds,
        critical_path(x, x.costs.inclusion),
        critical_path(x, max(x.costs.delay, x.costs.inclusion)),
        x.rounds,
        least_epoch(x.training_seconds, x.costs.delay, x.capacity),
        x.costs.delay,
        x.costs.reorg + SEED_SECONDS,
    )
