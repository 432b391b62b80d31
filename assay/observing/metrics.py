"""The metrics of one process, kept by what its loop, its node and its store tell; nothing here asks anybody.

What counts up is counted as it happens; what is a state is read when somebody scrapes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from assay.observing import names
from assay.observing.names import MetricName
from assay.protocol.errors import AssayError, RejectedError, UnavailableError
from assay.protocol.game.table import Side
from assay.protocol.types import Address
from assay_ledger.agents.playing import is_my_turn
from assay_ledger.chain.client import Head

if TYPE_CHECKING:
    from assay.observing.probe import Probe
    from assay_ledger.rounds.view import RunView

IDLE_S: Final = 120.0
"""A loop at rest that has not turned for so long is dead: it turns every few seconds, and waits for a node 30 s."""

BUSY_S: Final = 1800.0
"""An action that has not gone on for so long hangs: a step of a large model takes minutes, and tells of itself."""

LATENCIES: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Bounds in seconds: the last is what a request may take at most."""

_METHODS: Final = 64
"""Methods told apart: their names are ours, and yet nothing here may grow without end."""

Sample = tuple[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class ActorStanding:
    """What the run says of the actor, as of the loop's last turn.

    `deadline`: seconds of chain time from the head until what the actor waits for, or its clock in a game is over.
    """

    head: Head
    deadline: int | None
    trained: int
    findings: int
    open_games: int
    lost: int
    enrolled: bool


def standing_of(view: RunView, deadline: int | None) -> ActorStanding:
    """The standing of `view.me`."""
    me, books = view.me, view.books
    tickets = {number for number, _ in view.tickets_of(me)}
    tenures = view.tenures_of(me)
    mine = {number for number, _ in tenures}
    verdicts = [game.verdict for game in view.games.values() if game.verdict is not None]
    # What it waited for is over while it acts; a challenge that came since is what its stake hangs on.
    due = [game.deadline for game in view.open_games() if is_my_turn(me, game)]
    due += [deadline] if deadline is not None and deadline > view.now else []
    return ActorStanding(
        head=view.head,
        deadline=min(due) - view.now if due else None,
        trained=sum(work.tenure in mine for work in view.state.works.values()),
        findings=sum(made.ticket in tickets for made in view.state.attestations.values()),
        open_games=sum(me in (game.challenger, game.defender) for game in view.open_games()),
        lost=sum(verdict.loser == me for verdict in verdicts if verdict.side is not Side.NONE),
        enrolled=view.tenure is not None or any(not books.registry.tickets[t].until for t in tickets),
    )


class ProcessPart(Protocol):
    """What a process shows of its own kind of work, beside what all show."""

    @property
    def is_alive(self) -> bool:
        """Whether that work goes on."""

    def conditions(self) -> dict[str, bool]:
        """What readiness asks for, and whether it holds."""

    def states(self) -> Iterator[tuple[MetricName, list[Sample]]]:
        """Each state with its samples, as of now."""


class ProcessMetrics:
    """All that one process shows. `clock` gives seconds that never run back, `wall` those of this machine's calendar.

    It is a LoopObserver, and listens to the requests of a node and the calls of a store; it never blocks.
    """

    def __init__(
        self,
        role: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        # When each series began doubles their number and says nothing that a restart does not.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.role, self.run, self.address = role, "", ""
        self.is_unlocked = False
        self.probe: Probe | None = None
        self.part: ProcessPart | None = None
        self._clock, self._wall = clock, wall
        self._turned_at, self._is_busy = clock(), True
        self._standing: ActorStanding | None = None
        self._seen_at: tuple[Head, int | None] | None = None
        self._head_at = clock()
        self._methods: set[str] = set()
        self._lock = threading.Lock()
        self._rpc = self._counter(names.RPC_REQUESTS)
        self._rpc_s = self._histogram(names.RPC_SECONDS)
        self._store = self._counter(names.STORE_REQUESTS)
        self._store_s = self._histogram(names.STORE_SECONDS)
        self._actions = self._counter(names.ACTIONS)
        self._refusals = self._counter(names.REFUSALS)
        self.registry.register(_States(self))
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)

    def name(self, run: Address, address: Address | None) -> None:
        """Which run it is about, and for whom."""
        self.run, self.address = "0x" + run.hex(), "" if address is None else "0x" + address.hex()

    # --- what the loop tells

    def turned(self, view: RunView, deadline: int | None) -> None:
        """See LoopObserver."""
        # The same block and the same deadline: nothing else can have changed.
        if self._seen_at != (view.head, deadline):
            if self._seen_at is None or self._seen_at[0] != view.head:
                self._head_at = self._clock()
            self._standing, self._seen_at = standing_of(view, deadline), (view.head, deadline)
        self._turned_at, self._is_busy = self._clock(), False

    def begun(self, action: object) -> None:
        """See LoopObserver."""
        self._turned_at, self._is_busy = self._clock(), True

    def tried(self, action: object, error: AssayError | None) -> None:
        """See LoopObserver."""
        outcome = "done"
        if error is not None:
            self._refusals.labels(error.code).inc()
            outcome = "failed"
            if isinstance(error, UnavailableError):
                outcome = "unavailable"
            elif isinstance(error, RejectedError):
                outcome = "refused"
        self._actions.labels(type(action).__name__, outcome).inc()

    # --- what the node and the store tell

    def on_request(self, method: str, outcome: str, seconds: float) -> None:
        """See RequestListener."""
        with self._lock:
            if method not in self._methods and len(self._methods) >= _METHODS:
                method = "other"
            self._methods.add(method)
        self._rpc.labels(method, outcome).inc()
        self._rpc_s.labels(method).observe(seconds)

    def on_call(self, kind: str, outcome: str, seconds: float) -> None:
        """See CallListener."""
        self._store.labels(kind, outcome).inc()
        self._store_s.labels(kind).observe(seconds)

    # --- health

    @property
    def turn_age(self) -> float:
        """Seconds since the loop turned, or a long action went on."""
        return self._clock() - self._turned_at

    @property
    def is_alive(self) -> bool:
        """Whether the loop goes on, or what else runs here; a process without any is alive while it answers."""
        if self.part is not None:
            return self.part.is_alive
        return not self.is_actor or self.turn_age <= (BUSY_S if self._is_busy else IDLE_S)

    def conditions(self) -> dict[str, bool]:
        """What readiness asks for, and whether it holds; what was not looked at yet does not."""
        found = None if self.probe is None else self.probe.found
        wanted = {} if self.part is None else self.part.conditions()
        # A server may have no node to ask.
        if self.part is None or found is not None:
            wanted["node"] = found is not None and found.node is True
        if self.probe is not None and self.probe.store is not None:
            wanted["store"] = self.probe.found.store is True
        if self.is_actor:
            wanted["key"] = self.is_unlocked
            wanted["enrolled"] = self._standing is not None and self._standing.enrolled
        return wanted

    @property
    def is_actor(self) -> bool:
        """Whether a key acts here."""
        return self.role in ("solver", "verifier", "whistleblower")

    # --- inside

    def states(self) -> Iterator[tuple[MetricName, list[Sample]]]:
        """Each state with its samples, as of now."""
        yield names.PROCESS_INFO, [((self.role, self.run, self.address), 1.0)]
        yield names.ALIVE, [((), float(self.is_alive))]
        yield names.READY, [((name,), float(holds)) for name, holds in self.conditions().items()]
        if self.is_actor:
            yield names.TURN_AGE, [((), self.turn_age)]
        if self.part is not None:
            yield from self.part.states()
        standing, found = self._standing, None if self.probe is None else self.probe.found
        # A loop that trains for half an hour looks at no block meanwhile; the probe does.
        heads = [each.head for each in (standing, found) if each is not None and each.head is not None]
        if head := max(heads, key=lambda each: each.number, default=None):
            yield names.HEAD_BLOCK, [((), head.number)]
            yield names.HEAD_AGE, [((), self._wall() - head.timestamp)]
        if found is not None:
            for name, amount in ((names.GAS, found.gas), (names.FREE, found.free), (names.LOCKED, found.locked)):
                yield name, [] if amount is None else [((), amount)]
        if standing is not None:
            yield names.ROUNDS_TRAINED, [((), standing.trained)]
            yield names.FINDINGS, [((), standing.findings)]
            yield names.OPEN_GAMES, [((), standing.open_games)]
            yield names.GAMES_LOST, [((), standing.lost)]
            # Chain time goes on though the loop does not turn, and its head is not looked at.
            since = self._clock() - self._head_at
            yield names.NEXT_DEADLINE, [] if standing.deadline is None else [((), standing.deadline - since)]

    def _counter(self, name: MetricName) -> Counter:
        return Counter(name.name, name.text, name.labels, registry=self.registry)

    def _histogram(self, name: MetricName) -> Histogram:
        return Histogram(name.name, name.text, name.labels, registry=self.registry, buckets=LATENCIES)


class _States(Collector):
    """What is read at each scrape."""

    def __init__(self, metrics: ProcessMetrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """See Collector."""
        from importlib.metadata import version

        yield family(names.BUILD_INFO, [((version("assay"),), 1.0)])
        for name, samples in self._metrics.states():
            if samples:
                yield family(name, samples)


def family(name: MetricName, samples: list[Sample]) -> Metric:
    """A metric with its samples, each with its labels' values."""
    kind = CounterMetricFamily if name.kind == "counter" else GaugeMetricFamily
    found = kind(name.name, name.text, labels=name.labels)
    for labels, value in samples:
        found.add_metric(labels, value)
    return found
