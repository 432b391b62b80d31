"""Time that tests move."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class MovedClock:
    """Seconds, as a test sets them."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now
