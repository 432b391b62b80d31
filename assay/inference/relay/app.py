"""The relay's application: `/v1/completions` and `/v1/models` of one gateway, paid for on the way."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from assay.inference.gateway.app import on_bad_request, on_defect, on_http_error
from assay.inference.gateway.asked import CompletionAsked
from assay.inference.gateway.limits import BESIDE_S, AskerLimits, Limited, defect_document, error_document, until_left
from assay.inference.relay.names import NamedHere
from assay.inference.relay.paying import GatewayRefused, PaidAnswers
from assay.inference.relay.upstream import GatewayRefusal
from assay.protocol.errors import AssayError, FraudError, FundsError, UnavailableError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger("assay.relay")


def make_relay(answers: PaidAnswers, seconds: float, *, hosts: Iterable[str] = ()) -> ASGIApp:
    """The application, behind limits of a body's size and depth.

    seconds: that a gateway's answer may take. hosts: names that it has besides loopback ones.
    """
    app = FastAPI(title="Assay relay", version="1", docs_url=None, redoc_url=None)

    async def complete(asked: CompletionAsked, request: Request) -> Response:
        """A completion, paid for; the statement that it carries was checked."""
        has_left = threading.Event()
        watch = asyncio.create_task(_note_leaving(request, has_left))
        try:
            if asked.stream:
                return _PaidEvents(await run_in_threadpool(_begun, answers, asked, has_left))
            return JSONResponse(await run_in_threadpool(lambda: _whole(answers.ask(asked, has_left.is_set), has_left)))
        finally:
            watch.cancel()
            # Bad luck: the request's time is over while its thread waits. Nobody hears of what it would pay for.
            has_left.set()

    async def models() -> dict[str, Any]:
        """The gateway's list."""
        return answers.gateway.document

    app.post("/v1/completions", response_model=None)(complete)
    app.get("/v1/models")(models)
    app.exception_handler(RequestValidationError)(on_bad_request)
    app.exception_handler(AssayError)(_on_error)
    app.exception_handler(HTTPException)(on_http_error)
    app.exception_handler(Exception)(on_defect)
    return NamedHere(Limited(app, AskerLimits(rate=10_000, burst=10_000, open=256), seconds + BESIDE_S), hosts)


class _PaidEvents(StreamingResponse):
    """An answer's events. Who hangs up, also before the first of them is read, leaves nothing open in the purse."""

    def __init__(self, events: Generator[dict[str, Any]]) -> None:
        super().__init__(_streamed(events), media_type="text/event-stream")
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See StreamingResponse."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._events.close()


def _begun(answers: PaidAnswers, asked: CompletionAsked, has_left: threading.Event) -> Generator[dict[str, Any]]:
    """An answer's events; none are to come once nobody waits for them."""
    events = answers.ask(asked, has_left.is_set)
    if has_left.is_set():
        events.close()
    return events


async def _note_leaving(request: Request, has_left: threading.Event) -> None:
    await until_left(request)
    has_left.set()


def _whole(events: Generator[dict[str, Any]], has_left: threading.Event) -> dict[str, Any]:
    """One document of all events: the last one's, with the whole text; of nothing once nobody waits for it.

    Attack by chance: a client that gives up after some seconds and asks again pays for each of its answers to the end.
    """
    text, last = "", dict[str, Any]()
    with closing(events):
        for last in events:
            if has_left.is_set() and "statement" not in last:
                return {}
            text += str(last["choices"][0].get("text", ""))
    last["choices"][0]["text"] = text
    return last


def _streamed(events: Iterator[dict[str, Any]]) -> Iterator[str]:
    try:
        for event in events:
            yield f"data: {json.dumps(event)}\n\n"
    except AssayError as error:
        yield f"data: {json.dumps(_said(error)[1])}\n\n"
        return
    except Exception:
        # Its status has left long ago: a stream that ends without a word is a lost connection to its reader.
        log.exception("an answer failed")
        yield f"data: {json.dumps(defect_document())}\n\n"
        return
    yield "data: [DONE]\n\n"


def _said(error: AssayError) -> tuple[int, dict[str, Any]]:
    if isinstance(error, GatewayRefused):
        refusal = error.details.get("refusal")
        if isinstance(refusal, GatewayRefusal) and isinstance(refusal.body.get("error"), dict):
            return max(refusal.status, 400), refusal.body
        # What stands before a gateway refuses in words of its own, and clients ask again after any status above 499.
        if isinstance(refusal, GatewayRefusal) and 400 <= refusal.status < 500:
            return refusal.status, error_document(error.explain(), error.code)
    status = 402 if isinstance(error, FundsError) else 503 if isinstance(error, UnavailableError) else 502
    kind = "false_answer" if isinstance(error, FraudError) else "server_error"
    return status, error_document(error.explain(), error.code, kind)


async def _on_error(_request: object, error: Exception) -> JSONResponse:
    assert isinstance(error, AssayError)
    status, document = _said(error)
    refusal = error.details.get("refusal")
    again = refusal.retry_after if isinstance(refusal, GatewayRefusal) else None
    return JSONResponse(document, status, {} if again is None else {"Retry-After": again})
