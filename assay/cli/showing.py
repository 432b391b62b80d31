"""`--metrics`: what a process shows of itself while it runs, set up in one place for every command that serves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from assay.cli.common import configure_log, never_waiting, talk
from assay.observing import logs
from assay.observing.metrics import ProcessMetrics
from assay.observing.probe import Probe
from assay.observing.server import StatusServer
from assay.observing.servers import ServerMetrics
from assay.protocol.errors import ConfigError
from assay.protocol.types import Address
from assay.settings import Settings
from assay.watchdog.shown import LookMetrics

if TYPE_CHECKING:
    from assay_ledger.agents.agent import Agent
    from assay_ledger.keys.keystore import ActorKeys
    from assay_ledger.rounds.run import Run
    from assay_ledger.store.blobs import BlobStore


class Showing:
    """The metrics of a process that may show none: every method is harmless then."""

    def __init__(self, metrics: ProcessMetrics | None) -> None:
        self._metrics = metrics

    def follow(
        self, run: Run, store: BlobStore | None, keys: ActorKeys | None = None, *, who: Address | None = None
    ) -> None:
        """Log lines name the run from now on; requests of its chain and its store are counted, an account looked at.

        who: whose process it is where its account is not looked at.
        """
        me: Address | None = None if keys is None else keys.address
        named = who if me is None else me
        logs.bind(run="0x" + run.address.hex(), address=None if named is None else "0x" + named.hex())
        if self._metrics is None:
            return
        self._metrics.name(run.address, named)
        self._metrics.is_unlocked = keys is not None
        run.chain.tell_requests(self._metrics.on_request)
        if store is not None:
            store.tell_calls(self._metrics.on_call)
        self._metrics.probe = Probe(run, me, store, self._metrics.on_request)
        self._metrics.probe.start()

    def watch(self, agent: Agent) -> None:
        """The agent's loop is what health is about."""
        if self._metrics is not None:
            agent.observer = self._metrics

    def server(self) -> ServerMetrics | None:
        """The event loop of a server is what health is about, and its requests are counted; None where nobody asks."""
        if self._metrics is None:
            return None
        self._metrics.part = server = ServerMetrics(self._metrics.registry)
        return server

    def looks(self, every: float) -> LookMetrics:
        """Looks with so many seconds between them are what health is about."""
        looks = LookMetrics(every)
        if self._metrics is not None:
            self._metrics.part = looks
        return looks

    def close(self) -> None:
        """Looks at nothing any more."""
        if self._metrics is not None and self._metrics.probe is not None:
            self._metrics.probe.close()


@contextmanager
def showing(settings: Settings, role: str) -> Iterator[Showing]:
    """Configures the log, and serves this process's metrics while the block runs, where the settings name a place.

    Raises ConfigError (MetricsAddressInvalid). A port that somebody else holds is said, and nothing more: whoever is on
    the machine could keep an actor from its game by it.
    """
    configure_log(settings)
    logs.bind(role=role)
    with never_waiting(), ExitStack() as open_:
        metrics = None if settings.metrics is None else ProcessMetrics(role)
        if metrics is not None and settings.metrics is not None:
            try:
                server = open_.enter_context(StatusServer(settings.metrics, metrics))
                talk.print(f"metrics at http://{server.place}/metrics", markup=False)
            except ConfigError as error:
                if error.code != "PortInUse":
                    raise
                talk.print(f"{error.explain()} It goes on without.", markup=False)
        shown = Showing(metrics)
        try:
            yield shown
        finally:
            shown.close()
