"""What a process shows of itself: metrics by one table of names, health, readiness, and readers that do not read."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from assay.observing import names
from assay.observing.metrics import BUSY_S, IDLE_S, ActorStanding, ProcessMetrics
from assay.observing.probe import PIECE, Probe, Sightings
from assay.observing.server import READERS, StatusServer, parse_place
from assay.protocol.errors import ConfigError, InvariantError, RejectedError, UnavailableError
from assay.protocol.types import Address, Digest
from assay_ledger.agents.game_actions import Play
from assay_ledger.agents.observing import correlation
from assay_ledger.agents.round_actions import SeedEpoch
from assay_ledger.chain.client import Chain, Head
from assay_ledger.chain.node import Anvil
from assay_ledger.store.blobs import ObjectMissing, open_store
from tests.harness.actors.scraping import judged, one, page, samples_of, scrape
from tests.harness.actors.shown import SeenByProbe, SteppedClock


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
def metrics(clock: SteppedClock) -> ProcessMetrics:
    return ProcessMetrics("solver", clock=clock)


@pytest.fixture
def place(metrics: ProcessMetrics) -> Iterator[str]:
    with StatusServer("127.0.0.1:0", metrics) as server:
        yield server.place


def test_actions_are_counted_by_what_became_of_them(metrics: ProcessMetrics) -> None:
    play = Play(1, 2)
    metrics.tried(play, None)
    for error in (RejectedError("no", code="TooEarly"), UnavailableError("no", code="StoreSilent")):
        metrics.tried(play, error)
    metrics.tried(SeedEpoch(3), InvariantError("no", code="Odd"))
    found = samples_of(metrics.text())
    counted = {(has["action"], has["outcome"]): n for has, n in found["assay_actions_total"]}
    assert counted == {
        ("Play", "done"): 1,
        ("Play", "refused"): 1,
        ("Play", "unavailable"): 1,
        ("SeedEpoch", "failed"): 1,
    }
    assert {has["code"]: n for has, n in found["assay_refusals_total"]} == {"TooEarly": 1, "StoreSilent": 1, "Odd": 1}


def test_requests_to_a_real_node_are_counted_and_timed(metrics: ProcessMetrics) -> None:
    with Anvil() as node:
        chain = Chain(node.url, retry_for_s=0.0)
        chain.tell_requests(metrics.on_request)
        chain.head()
        with pytest.raises(UnavailableError):
            chain.rpc("no_such_method")
    with pytest.raises(UnavailableError):
        chain.head()
    found = samples_of(metrics.text())
    asked = {(has["method"], has["outcome"]): n for has, n in found["assay_rpc_requests_total"]}
    assert asked == {
        ("eth_getBlockByNumber", "ok"): 1,
        ("eth_getBlockByNumber", "unanswered"): 1,
        ("no_such_method", "refused"): 1,
    }
    assert one(found, "assay_rpc_seconds_count", method="eth_getBlockByNumber") == 2


def test_methods_without_end_are_not_told_apart_without_end(metrics: ProcessMetrics) -> None:
    for number in range(500):
        metrics.on_request(f"method_{number}", "ok", 0.1)
    methods = {has["method"] for has, _ in samples_of(metrics.text())["assay_rpc_requests_total"]}
    assert len(methods) < 100 and "other" in methods


def test_calls_of_a_real_store_are_counted_by_kind(metrics: ProcessMetrics, tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    store.tell_calls(metrics.on_call)
    store.get(store.put(b"some bytes"), 100)
    with pytest.raises(ObjectMissing):
        store.get(Digest(bytes(32)), 100)
    called = {(has["kind"], has["outcome"]): n for has, n in samples_of(metrics.text())["assay_store_requests_total"]}
    assert called == {("write", "ok"): 1, ("read", "ok"): 1, ("read", "missing"): 1}


@pytest.mark.parametrize(("is_busy", "limit"), [(False, IDLE_S), (True, BUSY_S)], ids=["at rest", "in an action"])
def test_health_fails_once_the_loop_stands_still(
    metrics: ProcessMetrics, clock: SteppedClock, place: str, is_busy: bool, limit: float
) -> None:
    metrics.begun("some work")
    metrics._is_busy = is_busy
    clock.now += limit
    assert judged(place, "/health") == (200, {"alive": True})
    clock.now += 1
    assert judged(place, "/health") == (503, {"alive": False})
    assert one(scrape(place), "assay_alive") == 0
    metrics.begun("some work goes on")
    assert judged(place, "/health")[0] == 200


def test_an_explorer_is_alive_while_it_answers(clock: SteppedClock) -> None:
    explorer = ProcessMetrics("explorer", clock=clock)
    clock.now += 10 * BUSY_S
    assert explorer.is_alive


def test_readiness_names_each_condition_and_asks_for_all(metrics: ProcessMetrics, place: str) -> None:
    wanted = {"node": False, "key": False, "enrolled": False}
    assert judged(place, "/ready") == (503, wanted)
    seen = SeenByProbe(Sightings(node=True, store=False), store=object())
    metrics.probe, metrics.is_unlocked = seen, True  # type: ignore[assignment]
    assert judged(place, "/ready") == (503, {"node": True, "store": False, "key": True, "enrolled": False})
    found = scrape(place)
    assert one(found, "assay_ready", condition="key") == 1 and one(found, "assay_ready", condition="store") == 0
    explorer = ProcessMetrics("explorer")
    explorer.probe = SeenByProbe(Sightings(node=True))  # type: ignore[assignment]
    assert explorer.conditions() == {"node": True}


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("says", [b"", b"GET /health HTTP/1.1\r\nX: "], ids=["nothing", "a byte now and then"])
def test_readers_that_never_end_keep_nobody_from_health(place: str, says: bytes) -> None:
    """Attack: connections that stay open take every place, /health is not answered, and a service manager ends an actor
    that is well."""
    host, port = parse_place(place)
    held = []
    for k in range(3 * READERS):
        held.append(socket.create_connection((host, port)))
        held[-1].sendall(says)
        if k % READERS == READERS - 1:
            for each in held[-READERS:]:
                with suppress(OSError):
                    each.sendall(says[-1:])
            assert page(place, "/health")[0] == 200
    closed = sum(_is_closed(each) for each in held)
    assert closed >= 2 * READERS
    for each in held:
        each.close()


def _is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_whoever_asks_for_metrics_without_end_takes_no_time_of_the_loop(
    place: str, metrics: ProcessMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    text = metrics.text
    monkeypatch.setattr(metrics, "text", lambda: made.append(1) or text())
    for _ in range(50):
        assert page(place, "/metrics")[0] == 200
    assert len(made) <= 5


def test_a_probe_that_fails_in_any_way_says_so_and_looks_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: an answer that nobody foresaw ends the looking, and a node that is gone is shown as there for ever."""
    with Anvil() as node:
        looks = Probe(SeenRun(Chain(node.url)), None, None, lambda *_: None)  # type: ignore[arg-type]
        looks.look()
        assert looks.found.node is True
        monkeypatch.setattr(Chain, "head", lambda _self: {}["nothing of the kind"])
        looks.look()
    assert looks.found.node is False


def test_a_probe_keeps_the_quota_of_the_process() -> None:
    """A provider that blocks whoever asks too often counts requests, not connections."""
    with Anvil() as node:
        run = SeenRun(Chain(node.url, per_second=1000.0))
        looks = Probe(run, None, None, lambda *_: None)  # type: ignore[arg-type]
        looks.look()
    assert run.chain.pool is not None and looks._chain is not None and looks._chain.pool is not None
    assert looks.found.node is True and looks._chain.pool.quotas == run.chain.pool.quotas


def test_a_search_for_locks_that_fails_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: a node that fails now and then has all of a long run's blocks searched anew every 15 s."""
    searched, failing = list[tuple[int, int]](), [2]

    def events(_self: Chain, _search: object, first: int, last: int) -> list[object]:
        searched.append((first, last))
        if len(searched) in failing:
            raise UnavailableError("no answer", code="NodeUnreachable", remedy="Ask again.")
        return []

    monkeypatch.setattr(Chain, "events", events)
    monkeypatch.setattr(Chain, "ask", lambda *_: 0)
    monkeypatch.setattr(Chain, "head", lambda _self: Head(2 * PIECE + 5, 0))
    with Anvil() as node:
        run = SeenRun(Chain(node.url), SeenVault())
        looks = Probe(run, Address(bytes(20)), None, lambda *_: None)  # type: ignore[arg-type]
        looks.look()
        assert looks.found.node is False and looks.found.locked is None
        looks.look()
        assert looks.found.node is True and looks.found.locked == 0
    second = (PIECE, 2 * PIECE - 1)
    assert searched == [(0, PIECE - 1), second, second, (2 * PIECE, 2 * PIECE + 5)]


class SeenVault:
    """What a probe needs of a vault."""

    address = Address(bytes(20))

    def free(self, _me: Address) -> None:
        """What is asked of the chain."""


@dataclass
class SeenRun:
    """What a probe needs of a run."""

    chain: Chain
    vault: object | None = None


def test_other_pages_and_writes_are_refused(place: str) -> None:
    assert page(place, "/metrics/..")[0] == 404
    host, port = parse_place(place)
    with socket.create_connection((host, port)) as raw:
        raw.sendall(b"POST /metrics HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd")
        assert b" 501 " in raw.recv(200)


@pytest.mark.parametrize("text", ["9640", "host", "host:99999", "a b:1", "[::1]", "host:-1", "http://h:1"])
def test_a_place_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_place(text)
    assert caught.value.code == "MetricsAddressInvalid"


def test_a_port_in_use_is_named(place: str, metrics: ProcessMetrics) -> None:
    with pytest.raises(ConfigError) as caught:
        StatusServer(place, metrics)
    assert caught.value.code == "PortInUse"


def test_names_follow_the_rules_of_the_field() -> None:
    assert len({name.name for name in names.ALL}) == len(names.ALL)
    for name in names.ALL:
        assert name.name.startswith("assay_") and name.text.endswith(".")
        assert (name.kind == "counter") == name.name.endswith("_total")


def test_a_logged_action_says_what_it_is_about() -> None:
    assert correlation(Play(7, 2)) == {"action": "Play", "game": 7}
    assert correlation(SeedEpoch(3)) == {"action": "SeedEpoch", "epoch": 3}


def test_the_head_is_not_old_because_an_action_takes_long(metrics: ProcessMetrics, clock: SteppedClock) -> None:
    """A solver that trains for half an hour looks at no block: `AssayHeadOld` would say that its node is behind."""
    metrics._wall = lambda: 5_000.0
    metrics._standing = ActorStanding(Head(7, 2_900), None, 0, 0, 0, 0, enrolled=True)
    seen = Sightings(node=True, head=Head(107, 4_988))
    metrics.probe = SeenByProbe(seen)
    found = samples_of(metrics.text())
    assert (one(found, "assay_head_block"), one(found, "assay_head_age_seconds")) == (107, 12)
    seen.head = Head(5, 2_000)  # a node that is behind hides no block that was seen
    assert one(samples_of(metrics.text()), "assay_head_block") == 7
