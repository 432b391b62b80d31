"""What pages have alike: how one is rendered, on the server and readable without scripts; errors said in a sentence."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from fastapi.templating import Jinja2Templates
from starlette.exceptions import HTTPException as StarletteHTTPException

from assay.explorer import words
from assay.explorer.documents import Document
from assay.explorer.reader import RunReader
from assay.explorer.search import MISSPELT, events_naming, is_misspelt, naming
from assay.explorer.search import search as find
from assay.protocol.errors import AssayError

ROWS: Final = 100

ShortText = Annotated[str, Query(max_length=200)]
PageCursor = Annotated[int | None, Query(ge=0, lt=1 << 53)]


class PageParts:
    """How a page is rendered; one of events, one of what was searched, and those of errors."""

    def __init__(self, reader: RunReader, templates: Jinja2Templates) -> None:
        self._reader = reader
        self._templates = templates

    def _page(self, request: Request, name: str, status: int = 200, **context: Any) -> HTMLResponse:
        """A rendered template; `named` are the names of addresses."""
        run = "0x" + self._reader.run.address.hex()
        context |= {"named": words.namer(self._reader.names), "run_address": run, "stand": self._stand()}
        return self._templates.TemplateResponse(request, name, context, status_code=status)

    def silence(self) -> str:
        """For how long the node has been silent, in words that change seldom; empty while it answers."""
        silent = self._reader.silent_s
        if silent is None:
            return ""
        return words.span(silent - silent % (10 if silent < 120 else 60))

    def _stand(self) -> Document:
        """Up to where the run is known, and for how long its node has been silent."""
        reader = self._reader
        head, trouble = reader.state.head, reader.trouble
        return {
            "block": head.number,
            "time": head.timestamp,
            "silence": self.silence(),
            "is_reading": reader.is_reading,
            "events": len(reader.events),
            "why": "" if trouble is None else trouble.message,
        }

    def events(
        self, request: Request, tx: ShortText | None = None, about: ShortText | None = None, cursor: PageCursor = None
    ) -> HTMLResponse:
        """Events of the run's contracts, newest first: all, those of one transaction, or those that name something."""
        with self._reader.reading() as reader:
            wanted = tx if about is None else about
            numbers = range(len(reader.events)) if wanted is None else events_naming(reader, wanted)
            end = len(numbers) if cursor is None else min(cursor, len(numbers))
            start = max(0, end - ROWS)
            part = numbers[start:end][::-1]
            shown = [reader.events[int(n)] for n in part] if wanted is None else naming(reader, part, wanted)
            shown = [row for row in shown if tx is None or row.tx == tx.lower()]
            return self._page(request, "events.html", events=shown, tx=tx, about=about, older=start or None)

    def search(self, request: Request, q: ShortText = "") -> Response:
        """The page of what was asked for, or a list of what it may be."""
        with self._reader.reading() as reader:
            hits = find(reader, q)
        asked = q.strip()
        if len({hit.url for hit in hits}) == 1:
            return RedirectResponse(hits[0].url, 303)
        is_address = re.fullmatch("0x[0-9a-fA-F]{40}", asked) is not None
        if not hits and is_address and not is_misspelt(asked):
            # Its page says that it has no part, and how it could have one.
            return RedirectResponse(f"/actors/{asked.lower()}", 303)
        wrong = MISSPELT if is_address and is_misspelt(asked) else ""
        return self._page(request, "search.html", 200 if hits else 404, q=q, hits=hits, wrong=wrong)

    # --- errors

    async def on_http_error(self, request: Request, error: Exception) -> Response:
        """A page for people, JSON for programs."""
        assert isinstance(error, StarletteHTTPException)
        if request.url.path.startswith("/api/"):
            return await http_exception_handler(request, error)
        return self._page(request, "error.html", error.status_code, title="Not here", text=error.detail, remedy="")

    async def on_bad_address(self, request: Request, error: Exception) -> Response:
        """An address of a page that cannot be one."""
        assert isinstance(error, RequestValidationError)
        if request.url.path.startswith("/api/"):
            return await request_validation_exception_handler(request, error)
        where = {str(each["loc"][0]) for each in error.errors()}
        if "path" in where:
            text = "This page's address is not one: numbers are whole, from 0 on, and digests have 64 hex digits."
            return self._page(request, "error.html", 404, title="Not here", text=text, remedy="")
        text = "A part of this address after the question mark has no such value: cursors are whole numbers from 0 on."
        return self._page(request, "error.html", 422, title="Not so", text=text, remedy="Begin at the first page.")

    async def on_error(self, request: Request, error: Exception) -> Response:
        """The chain or the store does not answer: said in a sentence."""
        assert isinstance(error, AssayError)
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": error.to_json()}, 503)
        return self._page(request, "error.html", 503, title=error.code, text=error.message, remedy=error.remedy)
