"""The explorer's pages: rendered on the server, readable without scripts, nothing fetched from elsewhere."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse
from fastapi.templating import Jinja2Templates
from starlette.exceptions import HTTPException as StarletteHTTPException

from assay.explorer import words
from assay.explorer.api import get_claim, get_game, get_round, losses_document, make_api, page_of
from assay.explorer.chart import loss_chart
from assay.explorer.codes import event_meaning
from assay.explorer.documents import (
    actor_document,
    actors,
    commitment_document,
    game_document,
    outer_document,
    round_document,
    run_document,
)
from assay.explorer.explain import explain_actor, explain_commitment
from assay.explorer.games import descent_document
from assay.explorer.losses import Losses, losses_of, wanted_points
from assay.explorer.run_reader import RunReader
from assay.explorer.search import search
from assay.protocol.errors import AssayError
from assay.protocol.types import Address, Seat

HERE: Final = Path(__file__).resolve().parent

HEADERS: Final = {
    # Nothing but our own style and this page: no scripts, no foreign images, no frames.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
ROWS: Final = 100


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
    for function in (words.amount, words.exact, words.short, words.number, words.when, words.span):
        templates.env.filters[function.__name__] = function
    templates.env.filters["meaning"] = event_meaning
    pages = Pages(reader, losses, templates)
    for path, handler in pages.routes().items():
        app.get(path, include_in_schema=False, response_class=HTMLResponse)(handler)
    app.get("/style.css", include_in_schema=False)(lambda: FileResponse(HERE / "style.css", media_type="text/css"))
    app.include_router(make_api(reader, losses))
    app.exception_handler(StarletteHTTPException)(pages.on_http_error)
    app.exception_handler(RequestValidationError)(pages.on_bad_address)
    app.exception_handler(AssayError)(pages.on_error)

    @app.middleware("http")
    async def add_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    return app


class Pages:
    """One method per page."""

    def __init__(self, reader: RunReader, losses: Losses | None, templates: Jinja2Templates) -> None:
        self._reader = reader
        self._losses = losses
        self._templates = templates

    def routes(self) -> dict[str, Callable[..., Any]]:
        """Path to handler."""
        return {
            "/": self.index,
            "/run": self.run,
            "/rounds/{number}": self.round,
            "/commitments/{number}/{seat}": self.commitment,
            "/outers/{number}/{root}": self.outer,
            "/claims": self.claims,
            "/claims/{claim}": self.claim,
            "/games/{number}": self.game,
            "/actors/{address}": self.actor,
            "/events": self.events,
            "/search": self.search,
        }

    def _page(self, request: Request, name: str, status: int = 200, **context: Any) -> HTMLResponse:
        """A rendered template; `named` are the names of addresses."""
        context |= {"named": words.namer(self._reader.names), "run_address": "0x" + self._reader.run.address.hex()}
        return self._templates.TemplateResponse(request, name, context, status_code=status)

    # --- pages

    def index(self, request: Request) -> HTMLResponse:
        """Loss curve, rounds, disputes, ledger."""
        with self._reader.reading() as reader:
            curve, chart = losses_document(reader, self._losses), None
            if self._losses is not None:
                points = self._losses.points(wanted_points(reader))
                chart = loss_chart(points, self._losses.letter_entropy, reader.run.charter.training.steps_per_round)
            return self._page(
                request,
                "index.html",
                run=run_document(reader),
                curve=curve,
                chart=chart,
                rounds=[round_document(reader, record) for record in reader.state.rounds[-ROWS:]],
                games=[game_document(reader, g) for _, g in sorted(reader.state.games.items())[-ROWS:]],
                actors=actors(reader),
            )

    def run(self, request: Request) -> HTMLResponse:
        """What the run promises."""
        with self._reader.reading() as reader:
            return self._page(request, "run.html", run=run_document(reader))

    def round(self, request: Request, number: int) -> HTMLResponse:
        """One round."""
        with self._reader.reading() as reader:
            record = get_round(reader, number)
            return self._page(
                request,
                "round.html",
                round=round_document(reader, record),
                games=[game_document(reader, g) for g in reader.state.games.values() if g.ref.round == number],
                intervals=reader.run.charter.training.intervals,
                now=reader.state.head.timestamp,
            )

    def commitment(self, request: Request, number: int, seat: int) -> HTMLResponse:
        """What a seat committed to."""
        with self._reader.reading() as reader:
            record = get_round(reader, number)
            if Seat(seat) not in record.commitments:
                raise HTTPException(404, f"Seat {seat} has no commitment in round {number}.")
            document = commitment_document(reader, record, record.commitments[Seat(seat)])
            answers = explain_commitment(reader, number, Seat(seat))["answers"]
            return self._page(request, "commitment.html", c=document, answers=answers)

    def outer(self, request: Request, number: int, root: str) -> HTMLResponse:
        """An outer root."""
        with self._reader.reading() as reader:
            record = get_round(reader, number)
            found = {("0x" + key.hex()): outer for key, outer in record.outers.items()}
            if root.lower() not in found:
                raise HTTPException(404, f"No such outer root was posted after round {number}.")
            return self._page(request, "outer.html", outer=outer_document(reader, record, found[root.lower()]))

    def claims(self, request: Request, cursor: int = Query(0, ge=0)) -> HTMLResponse:
        """Every claim, page by page."""
        with self._reader.reading() as reader:
            return self._page(request, "claims.html", page=page_of(reader, "claims", cursor, ROWS), cursor=cursor)

    def claim(self, request: Request, claim: str) -> HTMLResponse:
        """One claim."""
        with self._reader.reading() as reader:
            document = get_claim(reader, claim)
            same = [
                c
                for c in page_of(reader, "claims", 0, 1 << 30)["items"]
                if c["duty"] is not None
                and (c["round"], c["seat"], c["duty"]) == (document["round"], document["seat"], document["duty"])
                and c["id"] != document["id"]
            ]
            games = [game_document(reader, reader.state.games[g]) for g in document["games"]]
            return self._page(request, "claim.html", claim=document, same=same, games=games)

    def game(self, request: Request, number: int) -> HTMLResponse:
        """One dispute, step by step."""
        with self._reader.reading() as reader:
            document = descent_document(reader, get_game(reader, number))
            return self._page(request, "game.html", game=document, now=reader.state.head.timestamp)

    def actor(self, request: Request, address: str) -> HTMLResponse:
        """One address."""
        with self._reader.reading() as reader:
            try:
                who = Address(bytes.fromhex(address.removeprefix("0x")))
            except ValueError:
                who = Address(b"")
            if len(who) != 20:
                raise HTTPException(404, "An address is 0x and 40 hex digits.")
            mine = [row for row in reader.events if address.lower() in map(str, row.arguments.values())]
            games = [g for g in reader.state.games.values() if who in (g.defender, g.challenger)]
            return self._page(
                request,
                "actor.html",
                actor=actor_document(reader, who),
                answers=explain_actor(reader, who)["answers"],
                games=[game_document(reader, g) for g in games],
                events=mine[-ROWS:][::-1],
                more=len(mine) > ROWS,
            )

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
            hits = search(reader, q)
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
