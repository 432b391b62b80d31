"""The explorer's application: pages and JSON of one run, nothing fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse
from fastapi.templating import Jinja2Templates
from starlette.exceptions import HTTPException as StarletteHTTPException

from assay.explorer import words
from assay.explorer.api import make_api
from assay.explorer.cache import PageCache, PageState
from assay.explorer.codes import event_meaning
from assay.explorer.losses import losses_of
from assay.explorer.pages import Pages
from assay.explorer.reader import RunReader
from assay.explorer.touched import subject_of
from assay.protocol.errors import AssayError

HERE: Final = Path(__file__).resolve().parent

HEADERS: Final = {
    # Nothing but our own style, our one script, and what it asks of us: nothing inline, no foreign images, no frames.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def make_app(reader: RunReader) -> FastAPI:
    """The application for one run."""
    losses = None if reader.store is None else losses_of(reader)
    app = FastAPI(
        title="Assay explorer",
        version="1",
        summary="A training run, its audits, disputes and money, as the chain has them",
        # The stock documentation pages fetch scripts from elsewhere; the description itself is served.
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    templates = Jinja2Templates(HERE / "templates")
    for function in (words.short, words.number, words.ranges, words.counted, words.when, words.span):
        templates.env.filters[function.__name__] = function
    amounts = words.AmountWords(reader.run.currency_of, reader.run.charter.token)
    templates.env.filters |= {"meaning": event_meaning, **amounts.filters()}
    pages = Pages(reader, losses, templates)
    for path, handler in pages.routes().items():
        app.get(path, include_in_schema=False, response_class=HTMLResponse)(handler)
    app.get("/style.css", include_in_schema=False)(lambda: FileResponse(HERE / "style.css", media_type="text/css"))
    app.get("/live.js", include_in_schema=False)(lambda: FileResponse(HERE / "live.js", media_type="text/javascript"))
    app.include_router(make_api(reader, losses))
    app.exception_handler(StarletteHTTPException)(pages.on_http_error)
    app.exception_handler(RequestValidationError)(pages.on_bad_address)
    app.exception_handler(AssayError)(pages.on_error)

    @app.middleware("http")
    async def add_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    def state_of(path: str, query: bytes) -> PageState | None:
        if not reader.is_following:
            return None
        subject, shown = subject_of(path), (pages.silence(), reader.is_reading)
        about = None if subject is None else reader.version_of(subject)
        if path == "/events" and b"cursor=" in query:
            about = reader.version_of(("events before", 0))  # what came before a place changes no more
        return PageState(shown, about, reader.answered, (reader.version, losses and losses.version))

    # The outermost: what is kept has its headers.
    app.add_middleware(PageCache, state_of=state_of)
    return app
