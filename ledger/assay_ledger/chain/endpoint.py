"""One of several nodes: how it is asked, how it has behaved, and how long it is left out for what it did.

Three ways to be left out, each as long as what is known of it lasts. Who fails rests, seconds to minutes. Whose
searches leave events out, or refuse a single block, is set aside, minutes to hours: a node with limits cannot be told
from a liar by that, and both may mend it. Who tells another chain is dropped for good: no limit does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from assay_ledger.chain.node_urls import redacted
from assay_ledger.chain.quota import Quota
from assay_ledger.chain.rpc import NodeProvider

REST_S: Final = 1.0
REST_MOST_S: Final = 300.0
"""Twice as long after each failure: a node that is down costs a probe in five minutes."""

STEADY_S: Final = 60.0
"""After so long without a failure the next one counts as the first."""

ASIDE_S: Final = 300.0
ASIDE_MOST_S: Final = 21_600.0
"""Twice as long each time that a node's searches are found not whole: one that has removed old blocks for good costs
its user some searches, and at most another reading of the run, four times a day."""

ASIDE_STEADY_S: Final = 86_400.0
"""After so long the next time counts as the first."""

SEARCHES_NOTED: Final = 16
"""Of one reading of a run, spread over all of it: what a node is asked for again before it has its place back."""


class NotedSearches:
    """Some of the searches that a node answered in its last reading of the past: the first, and others evenly after it.

    A reading ends where a search begins no later than the one before.
    """

    def __init__(self) -> None:
        self._noted: list[Mapping[str, Any]] = []
        self._every, self._met, self._low = 1, 0, -1

    def note(self, criteria: Mapping[str, Any]) -> None:
        """Takes a search by the numbers of its first and last block, as JSON has them; others are passed over."""
        if not all(str(criteria.get(name)).startswith("0x") for name in ("fromBlock", "toBlock")):
            return
        low = int(criteria["fromBlock"], 16)
        if low <= self._low:
            self._noted, self._every, self._met = [], 1, 0
        self._low = low
        if self._met % self._every == 0:
            self._noted.append(criteria)
        self._met += 1
        if len(self._noted) > SEARCHES_NOTED:
            self._noted, self._every = self._noted[::2], 2 * self._every

    def upto(self, number: int) -> list[tuple[Mapping[str, Any], int, int]]:
        """What is noted, each with its first and last block, up to a block that cannot change."""
        both = [(one, int(one["fromBlock"], 16), min(number, int(one["toBlock"], 16))) for one in self._noted]
        return [found for found in both if found[1] <= found[2]]


@dataclass(slots=True, eq=False)
class Endpoint:
    """One node. Times are seconds of the pool's clock, under whose lock everything changes."""

    url: str
    node: NodeProvider
    quick: NodeProvider
    quota: Quota
    failures: int = 0
    rests_until: float = float("-inf")
    why: str = ""
    is_told: bool = False
    """Whether it was said that it does not serve, and not yet that it serves again."""
    is_dropped: bool = False
    is_aside: bool = False
    """Whether its searches were found not whole, and not found whole since."""
    aside_until: float = float("-inf")
    times_aside: int = 0
    searches: NotedSearches = field(default_factory=NotedSearches)

    @property
    def place(self) -> str:
        """Its URL as it may be shown."""
        return redacted(self.url)

    def is_waiting(self, now: float) -> bool:
        """Whether it is set aside, and its time is not over."""
        return self.is_aside and now < self.aside_until

    def rest(self, now: float, asked_for: float, *, is_behind: bool) -> float:
        """Leaves it out, for twice as long as the last time, or `asked_for` by itself; the seconds."""
        if not is_behind:
            is_steady = now - self.rests_until > STEADY_S
            self.failures = 1 if is_steady else self.failures + 1
        doubled = REST_S * 2 ** min(max(self.failures, 1) - 1, 12)
        seconds = REST_S if is_behind else max(min(doubled, REST_MOST_S), min(asked_for, REST_MOST_S))
        self.rests_until = now + seconds
        return seconds

    def set_aside(self, now: float, why: str) -> float:
        """Leaves it out for twice as long as the last time; the seconds."""
        is_steady = now - self.aside_until > ASIDE_STEADY_S
        self.times_aside = 1 if is_steady else self.times_aside + 1
        seconds = min(ASIDE_S * (1 << min(self.times_aside - 1, 12)), ASIDE_MOST_S)
        self.is_aside, self.aside_until, self.why = True, now + seconds, why
        return seconds

    def order(self, now: float) -> tuple[bool, float, bool]:
        """By which nodes are asked, the least first: who was set aside after all others, and last while its time is
        not over."""
        is_waiting = self.is_waiting(now)
        return is_waiting, max(self.aside_until if is_waiting else self.rests_until, now), self.is_aside


@dataclass(frozen=True, slots=True)
class EndpointStanding:
    """What `survey` finds of a node: its place, whether it is used, and why or why not in a few words."""

    place: str
    is_used: bool
    words: str
