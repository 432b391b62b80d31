"""What every watchdog does: one look at a time, the alarms in force, a chain that stands still, foreign contracts."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from assay.protocol.errors import AssayError, UnavailableError
from assay.protocol.types import Address, Digest
from assay.watchdog.alarms import Alarm, AlarmKind
from assay_ledger.deployment.code import RunCode, code_of
from assay_ledger.rounds.run import Run


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How to watch. `parties` are taken to be honest. Seconds are this machine's except where they say chain.

    near: share of a clock, of chain time, at which a deadline is near. stale_after: how long the head may stand still.
    max_age: how old the newest block may be by this machine's clock; None on chains that keep a time of their own.
    allowed_code: digests of contracts that are not this release's and that the user has checked.
    waits: whether a look lasts until disputed claims are computed; else clocks are told meanwhile.
    """

    parties: frozenset[Address] = frozenset()
    near: float = 0.25
    stale_after: float = 300.0
    max_age: float | None = None
    allowed_code: frozenset[Digest] = frozenset()
    waits: bool = True


USUALLY: Final = WatchOptions()

OLD_S: Final = 900.0
"""So old may the newest block of a public chain be: a node that catches up moves its head, and shows games as they were
hours ago."""

CALM_LOOKS: Final = 12
"""After so many looks in a row that the chain answered it does so again. Fewer, and a node that answers every other
look wakes somebody each time."""

GAS_PER_MOVE: Final = 1_000_000
"""No move of a game may need more."""


_LOG = logging.getLogger("assay.watch")


def in_words(error: Exception) -> str:
    """What went wrong, whoever raised it."""
    return error.explain() if isinstance(error, AssayError) else f"{type(error).__name__}: {error}"


class ChainWatch(ABC):
    """Follows one run: holds no key and writes nothing."""

    def __init__(
        self,
        run: Run,
        options: WatchOptions = USUALLY,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.run = run
        self.options = options
        self.alarms: dict[tuple[AlarmKind, str], Alarm] = {}
        self.is_read = False
        """Whether any look has read the run."""
        self._clock, self._wall = clock, wall
        self._code: RunCode | None = None
        self._head: tuple[int, float] | None = None
        self._failed: dict[tuple[AlarmKind, str], Alarm] = {}
        """What was wrong with looks until a moment ago."""
        self._answered = 0
        """How many looks in a row were."""

    @property
    @abstractmethod
    def head(self) -> tuple[int, int]:
        """Number and chain time of the last block read."""

    @abstractmethod
    def sync(self) -> None:
        """Reads what is new. Raises UnavailableError."""

    @abstractmethod
    def found(self) -> Iterator[Alarm]:
        """What is wrong now. Raises UnavailableError."""

    def look(self) -> dict[tuple[AlarmKind, str], Alarm]:
        """One look; returns the alarms in force, which `alarms` keeps.

        While the chain does not answer, or answers what nobody foresaw, what was known before stays in force: nothing
        new is known of anybody. Who watches goes on: a watch that has ended reads as if all were well. That it did not
        answer stays in force until it has for CALM_LOOKS.
        """
        try:
            self.sync()
            found = list(self.found())
        except UnavailableError as error:
            text = f"{error.explain()} Nothing is known of anybody meanwhile."
            self._fails(Alarm(AlarmKind.CHAIN_UNREACHABLE, "chain", text))
        except Exception as error:
            _LOG.exception("a look at the run failed")
            text = f"nothing new is known of anybody: {in_words(error)}"
            self._fails(Alarm(AlarmKind.CANNOT_CHECK, "run", text))
        else:
            self._answered += 1
            if self._answered >= CALM_LOOKS:
                self._failed = {}
            self.alarms, self.is_read = self._failed | {alarm.key: alarm for alarm in found}, True
        return self.alarms

    def _fails(self, alarm: Alarm) -> None:
        self._answered = 0
        self.alarms = self.alarms | {alarm.key: alarm}
        self._failed[alarm.key] = replace(alarm, text=f"it answers again, not yet {CALM_LOOKS} looks in a row")

    # --- the chain

    def of_the_chain(self) -> Iterator[Alarm]:
        """What is wrong with the chain, or with the contracts."""
        yield from self._freshness()
        yield from self._unknown_code()

    def _unknown_code(self) -> Iterator[Alarm]:
        """The author of a run's contracts may take what is staked; what is at an address never changes."""
        if self._code is None:
            self._code = code_of(self.run)
        if self._code.status(self.options.allowed_code) == "unknown":
            names = ", ".join(c.name for c in self._code.unknown)
            digest = "0x" + self._code.digest.hex()
            text = f"not created from this release's code: {names}; stake nothing"
            yield Alarm(AlarmKind.CODE_UNKNOWN, "run", text, (("digest", digest),))

    def _freshness(self) -> Iterator[Alarm]:
        """The head moves, or we say that it does not: a chain that stands still is no party's fault in a game."""
        number, timestamp = self.head
        now = self._clock()
        if self._head is None or self._head[0] != number:
            self._head = number, now
        still = now - self._head[1]
        if still > self.options.stale_after:
            text = f"the head has stood at block {number} for {still:.0f} s: chain or node may be down"
            yield Alarm(AlarmKind.HEAD_STALE, "chain", text, (("block", number), ("seconds", round(still))))
        age = self._wall() - timestamp
        if self.options.max_age is not None and age > self.options.max_age:
            text = f"the newest block, {number}, is {age:.0f} s old: chain or node may be down"
            yield Alarm(AlarmKind.HEAD_STALE, "chain time", text, (("block", number), ("seconds", round(age))))
