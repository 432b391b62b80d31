"""The explorer as JSON under /api/v1: the same documents as the pages, with cursors and a stream of events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from assay.bundle.document import encode_bundle
from assay.bundle.errors import GameNotOver
from assay.bundle.export import export_bundle
from assay.explorer.documents import actor_document, claims, commitment_document, round_document, run_document
from assay.explorer.explain import explain
from assay.explorer.games import descent_document
from assay.explorer.losses import Losses, wanted_points
from assay.explorer.run_reader import EventRow, RunReader
from assay.explorer.search import search
from assay.explorer.tables import TABLES, to_csv
from assay.protocol.types import Address, Seat
from assay_ledger.index.records import GameRecord, RoundRecord

MAX_PAGE: Final = 500
STREAM_EVERY_S: Final = 1.0

HexAddress = Annotated[str, Path(pattern=r"^0x[0-9a-fA-F]{40}$")]
HexDigest = Annotated[str, Path(pattern=r"^0x[0-9a-fA-F]{64}$")]
PathNumber = Annotated[int, Path(ge=0, lt=1 << 53)]


class Listing(BaseModel):
    """Part of a list; ask again with `next_cursor` for what follows, null at the present end."""

    items: list[dict[str, Any]] = Field(description="documents in the order of the chain")
    next_cursor: str | None = Field(description="opaque; stays valid as the list grows")


class SearchHit(BaseModel):
    """Where something is shown."""

    url: str
    what: str


def make_api(reader: RunReader, losses: Losses | None) -> APIRouter:
    """The routes under /api/v1."""
    router = APIRouter(prefix="/api/v1")

    @router.get("/run", summary="What the run promises and how far it has come")
    def run() -> dict[str, Any]:
        with reader.reading():
            return run_document(reader)

    @router.get("/rounds/{number}", summary="A round with everything that was done in it")
    def round_(number: PathNumber) -> dict[str, Any]:
        with reader.reading():
            return round_document(reader, get_round(reader, number))

    @router.get("/commitments/{number}/{seat}", summary="What a seat committed to in a round")
    def commitment(number: PathNumber, seat: PathNumber) -> dict[str, Any]:
        with reader.reading():
            record = get_round(reader, number)
            if Seat(seat) not in record.commitments:
                raise HTTPException(404, f"Seat {seat} has no commitment in round {number}.")
            return commitment_document(reader, record, record.commitments[Seat(seat)])

    @router.get("/claims/{claim}", summary="A claim")
    def claim_(claim: HexDigest) -> dict[str, Any]:
        with reader.reading():
            return get_claim(reader, claim)

    @router.get("/games/{game}", summary="A dispute step by step, with our own replay's verdict")
    def game_(game: PathNumber) -> dict[str, Any]:
        with reader.reading():
            return descent_document(reader, get_game(reader, game))

    @router.get(
        "/games/{game}/bundle.json",
        summary="The evidence of a dispute that is over, for `assay bundle verify`",
        response_class=PlainTextResponse,
        responses={409: {"description": "the game is not over"}},
    )
    def bundle(game: PathNumber) -> PlainTextResponse:
        with reader.reading():
            get_game(reader, game)
            try:
                data = encode_bundle(export_bundle(reader.run, reader.state, game))
            except GameNotOver as error:
                raise HTTPException(409, error.explain()) from None
        name = f"game-{game}.json"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return PlainTextResponse(data, media_type="application/json", headers=headers)

    @router.get("/actors/{address}", summary="An address: role, stake, earnings, losses, shares")
    def actor(address: HexAddress) -> dict[str, Any]:
        with reader.reading():
            return actor_document(reader, Address(bytes.fromhex(address[2:])))

    @router.get("/losses", summary="Validation losses of the weights that the chain names, as far as computed")
    def losses_() -> dict[str, Any]:
        with reader.reading():
            return losses_document(reader, losses)

    @router.get("/explain/{name}", summary="Known? Counted? Paid? For an address, a digest, or an error code")
    def explain_(name: Annotated[str, Path(max_length=200)]) -> dict[str, Any]:
        with reader.reading():
            return explain(reader, name)

    @router.get("/search", summary="Finds an address, digest, transaction or number", response_model=list[SearchHit])
    def search_(q: Annotated[str, Query(max_length=200)]) -> list[dict[str, str]]:
        with reader.reading():
            return [asdict(hit) for hit in search(reader, q)]

    @router.get("/csv/{table}.csv", summary=f"A whole table: {', '.join(TABLES)}", response_class=PlainTextResponse)
    def table(table: str) -> PlainTextResponse:
        if table not in TABLES:
            raise HTTPException(404, f"There is no table {table!r}.")
        with reader.reading():
            return PlainTextResponse(to_csv(TABLES[table](reader)), media_type="text/csv")

    @router.get("/stream", summary="New events as server-sent events", response_class=StreamingResponse)
    async def stream(request: Request, after: Annotated[int, Query(ge=-1)] = -1) -> StreamingResponse:
        last = request.headers.get("Last-Event-ID", "")
        start = int(last) if last.isdigit() else after
        return StreamingResponse(_stream(reader, request, start), media_type="text/event-stream")

    # Last, so that nothing above is taken for the name of a list.
    @router.get("/{table}", summary=f"A list, page by page: {', '.join(TABLES)}", response_model=Listing)
    def listing(
        table: str,
        cursor: Annotated[str | None, Query(pattern=r"^[0-9]{1,12}$")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 100,
    ) -> dict[str, Any]:
        if table not in TABLES:
            raise HTTPException(404, f"There is no list {table!r}.")
        with reader.reading():
            return page_of(reader, table, int(cursor or 0), limit)

    return router


def page_of(reader: RunReader, table: str, start: int, limit: int) -> dict[str, Any]:
    """Part of a table and where the next part begins."""
    items = list(islice(TABLES[table](reader), start, start + limit + 1))
    more = len(items) > limit
    return {"items": items[:limit], "next_cursor": str(start + limit) if more else None}


def losses_document(reader: RunReader, losses: Losses | None) -> dict[str, Any]:
    """The points of the loss curve known so far."""
    if losses is None:
        return {"points": [], "letter_entropy": None, "reason": "no store is named"}
    points = losses.points(wanted_points(reader))
    return {
        "points": [
            {
                "step": p.wanted.step,
                "seat": p.wanted.seat,
                "label": p.wanted.label,
                "root": "0x" + p.wanted.root.hex(),
                "loss": p.loss,
            }
            for p in points
        ],
        "letter_entropy": losses.letter_entropy,
        "reason": losses.reason,
    }


def get_round(reader: RunReader, number: int) -> RoundRecord:
    """A round's record, or 404."""
    if number >= len(reader.state.rounds):
        raise HTTPException(404, f"Round {number} has not been opened.")
    return reader.state.rounds[number]


def get_game(reader: RunReader, number: int) -> GameRecord:
    """A game's record, or 404."""
    if number not in reader.state.games:
        raise HTTPException(404, f"There is no game {number}.")
    return reader.state.games[number]


def get_claim(reader: RunReader, name: str) -> dict[str, Any]:
    """A claim's document, or 404."""
    found = next((c for c in claims(reader) if c["id"] == name.lower()), None)
    if found is None:
        raise HTTPException(404, f"No claim of this run has the id {name}.")
    return found


async def _stream(reader: RunReader, request: Request, last: int) -> AsyncIterator[str]:
    def new_events() -> list[EventRow]:
        with reader.reading():
            return reader.events[last + 1 :]

    while not await request.is_disconnected():
        for row in await run_in_threadpool(new_events):
            last = row.number
            yield f"id: {row.number}\nevent: {row.contract}.{row.name}\ndata: {json.dumps(asdict(row))}\n\n"
        await asyncio.sleep(STREAM_EVERY_S)
