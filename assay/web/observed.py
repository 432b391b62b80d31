"""A server that somebody observes: whether its event loop turns, and what became of each request."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

import uvicorn

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class ServerObserver(Protocol):
    """Is told by the event loop, which it must not hold up."""

    def ticked(self) -> None:
        """The loop turned; some ten times a second."""

    def answered(self, path: str, status: int, seconds: float) -> None:
        """A request is over, its answer read to the end. status: 0 where whoever asked left before it began."""


class ObservedServer(uvicorn.Server):
    """A server whose loop tells that it turns."""

    def __init__(self, config: uvicorn.Config, observer: ServerObserver | None) -> None:
        super().__init__(config)
        self._observer = observer

    async def on_tick(self, counter: int) -> bool:
        """Asked ten times a second whether to end."""
        if self._observer is not None:
            self._observer.ticked()
        return await super().on_tick(counter)


def observed(app: ASGIApp, observer: ServerObserver | None) -> ASGIApp:
    """The application itself where nobody observes it."""
    return app if observer is None else _ObservedApp(app, observer)


class _ObservedApp:
    """Tells of every request once it is over."""

    def __init__(self, app: ASGIApp, observer: ServerObserver) -> None:
        self._app, self._observer = app, observer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, has_left = time.monotonic(), 0, False

        async def heard() -> Message:
            nonlocal has_left
            message = await receive()
            has_left = has_left or (not status and message["type"] == "http.disconnect")
            return message

        async def said(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, heard, said)
        finally:
            # What is refused to nobody is no failure; and where nothing was said uvicorn says 500.
            told = 0 if has_left else status or 500
            self._observer.answered(scope["path"], told, time.monotonic() - began)
