"""What servers and watches show beside what every process does, and when they count as alive and as ready."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from starlette.types import Message, Receive, Scope, Send

from assay.observing import names
from assay.observing.metrics import BUSY_S, IDLE_S, ProcessMetrics
from assay.observing.probe import Sightings
from assay.observing.server import StatusServer
from assay.observing.servers import LOOP_S, ServerMetrics
from assay.watchdog.alarms import Alarm, AlarmKind
from assay.watchdog.shown import LookMetrics
from assay.web.observed import observed
from tests.harness.actors.scraping import counted, judged, one, samples_of
from tests.harness.actors.shown import SeenByProbe, SteppedClock


def ask(metrics: ServerMetrics, status: int | None, path: str = "/v1/completions", *, leaves: bool = False) -> None:
    """One request to an application that answers so, or with nothing at all."""

    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        if leaves:
            assert (await receive())["type"] == "http.disconnect"
        if status is not None:
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def heard() -> Message:
        return {"type": "http.disconnect"}

    async def said(_message: Message) -> None:
        return

    asyncio.run(observed(app, metrics)({"type": "http", "path": path}, heard, said))  # type: ignore[arg-type]


def test_requests_are_counted_by_what_whoever_asked_was_told() -> None:
    process = ProcessMetrics("gateway")
    process.part = server = ServerMetrics(process.registry)
    for status in (200, 404, 429, 503, None):
        ask(server, status)
    ask(server, 200, "/v1/models")
    # Refused to nobody: whoever asked had hung up.
    ask(server, 504, leaves=True)
    server.counts = {names.ANSWER_TOKENS: lambda: 12, names.EARNED: lambda: 10**24}
    found = samples_of(process.text())
    assert counted(found, "assay_served_requests_total", "status") == {"2xx": 2, "4xx": 2, "5xx": 2, "none": 1}
    # Neither lists nor refusals are answers.
    assert one(found, "assay_answer_seconds_count") == 1
    assert (one(found, "assay_answer_tokens_total"), one(found, "assay_earned_wei_total")) == (12, 1e24)


def test_nobody_stands_between_requests_and_an_application_that_shows_nothing() -> None:
    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        return

    assert observed(app, None) is app


def test_an_application_that_fails_is_counted_as_uvicorn_answers_for_it() -> None:
    process = ProcessMetrics("relay")
    server = ServerMetrics(process.registry)

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ValueError

    with pytest.raises(ValueError):
        asyncio.run(observed(app, server)({"type": "http", "path": "/"}, None, None))  # type: ignore[arg-type]
    assert one(samples_of(process.text()), "assay_served_requests_total", status="5xx") == 1


def test_a_server_is_alive_while_its_loop_turns_and_ready_once_it_does() -> None:
    clock = SteppedClock()
    process = ProcessMetrics("gateway", clock=clock)
    process.part = server = ServerMetrics(process.registry, clock=clock)
    with StatusServer("127.0.0.1:0", process) as shown:
        clock.now += 10 * BUSY_S
        assert judged(shown.place, "/health")[0] == 200, "a model that is loaded takes what it takes"
        assert judged(shown.place, "/ready") == (503, {"serving": False})
        server.ticked()
        assert judged(shown.place, "/ready") == (200, {"serving": True})
        clock.now += LOOP_S
        assert judged(shown.place, "/health")[0] == 200
        clock.now += 1
        assert judged(shown.place, "/health") == (503, {"alive": False})
        assert judged(shown.place, "/ready") == (503, {"serving": False})
        server.ticked()
        is_true = [True]
        server.wants["gateway"] = lambda: is_true[0]
        process.probe = SeenByProbe(Sightings(node=True))  # type: ignore[assignment]
        assert judged(shown.place, "/ready") == (200, {"serving": True, "gateway": True, "node": True})
        is_true[0] = False
        assert judged(shown.place, "/ready")[0] == 503


@pytest.mark.parametrize(
    ("told", "limit"),
    [
        (lambda looks: looks.begun(), BUSY_S),
        (lambda looks: looks.looked([]), BUSY_S),
        (lambda looks: looks.rests(), 600 + IDLE_S),
    ],
    ids=["in a look", "while it is told", "between two"],
)
def test_a_watch_is_alive_while_its_looks_end_and_begin(told: Callable[[LookMetrics], None], limit: float) -> None:
    clock = SteppedClock()
    looks = LookMetrics(600, clock=clock)
    clock.now += BUSY_S
    assert looks.is_alive
    told(looks)
    clock.now += limit
    assert looks.is_alive
    clock.now += 1
    assert not looks.is_alive


def test_every_kind_of_alarm_is_shown_with_its_gravity_once_a_look_has_ended() -> None:
    clock = SteppedClock()
    process = ProcessMetrics("watch", clock=clock)
    process.part = looks = LookMetrics(5, clock=clock)
    looks.begun()
    assert names.ALARMS.name not in samples_of(process.text()) and not process.conditions()["looked"]
    kinds = (AlarmKind.CHALLENGED, AlarmKind.CHALLENGED, AlarmKind.HONEST_LOSING, AlarmKind.TIMEOUT_DUE)
    looks.looked(Alarm(kind, str(n), "") for n, kind in enumerate(kinds))
    clock.now += 7
    found = samples_of(process.text())
    assert {(has["kind"], has["gravity"]): n for has, n in found["assay_alarms"] if n} == {
        ("challenged", "deadline"): 2,
        ("honest-losing", "fraud"): 1,
        ("timeout-due", "note"): 1,
    }
    assert len(found["assay_alarms"]) == len(AlarmKind) and one(found, "assay_look_age_seconds") == 7
    assert {has["gravity"] for has, _ in found["assay_alarms"]} == {
        *("fraud", "deadline", "rejected", "funds", "network", "note")
    }
    looks.looked([])
    assert sum(n for _, n in samples_of(process.text())["assay_alarms"]) == 0
