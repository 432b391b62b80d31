"""What tests of a process's metrics put in the place of a clock and of a probe."""

from __future__ import annotations

from dataclasses import dataclass, field

from assay.observing.probe import Sightings


@dataclass
class SteppedClock:
    """Seconds that a test moves."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now

    def forward(self, seconds: float) -> None:
        """Goes on."""
        self.now += seconds


@dataclass
class SeenByProbe:
    """What a probe found."""

    found: Sightings = field(default_factory=Sightings)
    store: object | None = None
