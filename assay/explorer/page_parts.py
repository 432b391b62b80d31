"""What pages have alike: how one is rendered, on the server and readable without scripts; errors said in a sentence."""

from __future__ import annotations

from typing import Any, Final

from fastapi import Query, Request, Response
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from fastapi.templating import Jinja2Templates
from starlette.exceptions import HTTPException as StarletteHTTPException

from assay.explorer import words
from assay.explorer.reader import RunReader
from assay.explorer.search import search as find
from assay.protocol.errors import AssayError

ROWS: Final = 100


class PageParts:
    """How a page is rendered; one of events, one of what was searched, and those of errors."""

    def __init__(self, reader: RunReader, templates: Jinja2Templates) -> None:
        self._reader = reader
        self._templates = templates

    def _page(self, request: Request, name: str, status: int = 200, **context: Any) -> HTMLResponse:
        """A rendered template; `named` are the names of addresses."""
        run = "0x" + self._reader.run.address.hex()
        context |= {"named": words.namer(self._reader.names), "run_address": run}
        return self._templates.TemplateResponse(request, name, context, status_code=status)

    def events(
        self, request: Request, tx: str | None = None, about: str | None = None, cursor: int | None = None
    ) -> HTMLResponse:
        """Events of the run's contracts, newest first: all, those of one transaction, or those that name something."""
        with self._reader.reading() as reader:
            rows = [row for row in reader.events if tx is None or row.tx == tx.lower()]
            if about is not None:
                rows = [row for row in rows if about.lower() in row.arguments.values()]
            end = len(rows) if cursor is None else max(0, min(cursor, len(rows)))
            start = max(0, end - ROWS)
            shown = [(row, reader.time_of(row.block)) for row in rows[start:end][::-1]]
            return self._page(request, "events.html", events=shown, tx=tx, about=about, older=start or None)

    def search(self, request: Request, q: str = Query("", max_length=200)) -> Response:
        """The page of what was asked for, or a list of what it may be."""
        with self._reader.reading() as reader:
            hits = find(reader, q)
        if len({hit.url for hit in hits}) == 1:
            return RedirectResponse(hits[0].url, 303)
        return self._page(request, "search.html", 200 if hits else 404, q=q, hits=hits)

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
        text = "This page's address is not one: numbers are whole and digests have 64 hex digits."
        return self._page(request, "error.html", 404, title="Not here", text=text, remedy="")

    async def on_error(self, request: Request, error: Exception) -> Response:
        """The chain or the store does not answer: said in a sentence."""
        assert isinstance(error, AssayError)
        if request.url.path.startswith("/api/"):
            return JSONResponse({"error": error.to_json()}, 503)
        return self._page(request, "error.html", 503, title=error.code, text=error.message, remedy=error.remedy)
