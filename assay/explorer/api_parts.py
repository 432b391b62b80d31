"""Parts of the JSON: tables page by page and as CSV, the stream of events, the loss curve."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from assay.explorer.losses import Losses, Wanted
from assay.explorer.reader import EventRow, RunReader
from assay.explorer.tables import TABLES, ListedTable, to_csv

MAX_PAGE: Final = 500
MAX_CSV: Final = 20_000
SLICE_ROWS: Final = 200
"""Documents of a table that are made before others get their turn."""
MOST_LISTED: Final = 5_000
"""Attack: 500 rounds of 300 seats, each with all of its commitments: documents that are made for one answer."""
STREAM_EVERY_S: Final = 1.0
MOST_STREAMS: Final = 128
"""Attack: one reader who opens streams until there is no connection left for pages. They last as long as it likes."""

HexAddress = Annotated[str, Path(pattern=r"^0x[0-9a-fA-F]{40}$")]
HexDigest = Annotated[str, Path(pattern=r"^0x[0-9a-fA-F]{64}$")]
PathNumber = Annotated[int, Path(ge=0, lt=1 << 53)]


class Listing(BaseModel):
    """Part of a list; ask again with `next_cursor` for what follows, null at the present end."""

    items: list[dict[str, Any]] = Field(description="documents in the order of the chain")
    next_cursor: str | None = Field(description="opaque; stays valid as the list grows; there may be fewer than asked")


class SearchHit(BaseModel):
    """Where something is shown."""

    url: str
    what: str


class EventStream(StreamingResponse):
    """New events for one reader, who is among `others` as long as it listens."""

    def __init__(self, events: AsyncIterator[str], others: set[EventStream]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See StreamingResponse."""
        self._others.add(self)
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._others.discard(self)


def add_tables(router: APIRouter, reader: RunReader) -> None:
    """Tables as CSV and page by page, and the stream of events. Added last: a table's route takes any name."""

    @router.get(
        "/csv/{table}.csv",
        summary=f"A table, {MAX_CSV} rows at most and then a link: {', '.join(TABLES)}",
        response_class=PlainTextResponse,
    )
    def table(
        table: str,
        cursor: Annotated[int, Query(ge=0, lt=1 << 53)] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_CSV)] = MAX_CSV,
    ) -> PlainTextResponse:
        if table not in TABLES:
            raise HTTPException(404, f"There is no table {table!r}.")
        rows, after = list[dict[str, Any]](), cursor + limit
        step = max(1, SLICE_ROWS // TABLES[table].each(reader))
        for start in range(cursor, after, step):
            # Pages get their turn in between, and blocks: a long table takes seconds.
            with reader.reading():
                whole = TABLES[table].size(reader)
                # Attack: 10,000 rounds with all commitments of each, which take minutes and gigabytes.
                rows += TABLES[table].flat_rows(reader, start, min(start + step, after))
            if start + step >= whole:
                break
        data = to_csv(rows)
        more = {"Link": f'</api/v1/csv/{table}.csv?cursor={after}&limit={limit}>; rel="next"'} if after < whole else {}
        return PlainTextResponse(data, media_type="text/csv", headers=more)

    open_streams = set[EventStream]()

    @router.get("/stream", summary="New events as server-sent events", response_class=StreamingResponse)
    async def stream(request: Request, after: Annotated[int, Query(ge=-1, lt=1 << 53)] = -1) -> StreamingResponse:
        last = request.headers.get("Last-Event-ID", "")
        start = int(last) if re.fullmatch("[0-9]{1,15}", last) else after
        if len(open_streams) >= MOST_STREAMS:
            raise HTTPException(503, f"{MOST_STREAMS} streams are open already: ask page by page, /api/v1/events.")
        return EventStream(_stream(reader, request, start), open_streams)

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
            return page_of(reader, TABLES[table], int(cursor or 0), limit)


def page_of(reader: RunReader, table: ListedTable, start: int, limit: int) -> dict[str, Any]:
    """Part of a table and where the next part begins."""
    limit = min(limit, max(1, MOST_LISTED // table.each(reader)))
    more = start + limit < table.size(reader)
    items = list(table.rows(reader, start, start + limit))
    return {"items": items, "next_cursor": str(start + limit) if more else None}


DIVERGED: Final = "The loss of every generation that was computed so far is no number: the training diverged."


def losses_document(losses: Losses | None, wanted: Callable[[], list[Wanted]]) -> dict[str, Any]:
    """The points of the loss curve known so far."""
    if losses is None:
        return {"points": [], "letter_entropy": None, "reason": "no store is named"}
    points = losses.points(wanted())
    reason = losses.reason
    if reason is None and not any(p.loss is not None and not p.diverged for p in points):
        reason = DIVERGED if any(p.diverged for p in points) else losses.missed
    return {
        "points": [
            {
                "step": p.wanted.step,
                "label": p.wanted.label,
                "root": "0x" + p.wanted.root.hex(),
                "loss": None if p.diverged else p.loss,
                "diverged": p.diverged,
            }
            for p in points
        ],
        "letter_entropy": losses.letter_entropy,
        "reason": reason,
    }


async def _stream(reader: RunReader, request: Request, last: int) -> AsyncIterator[str]:
    def new_events() -> list[EventRow]:
        with reader.reading():
            return reader.events[last + 1 : last + 1 + MAX_PAGE]

    while not await request.is_disconnected():
        for row in await run_in_threadpool(new_events):
            last = row.number
            yield f"id: {row.number}\nevent: {row.contract}.{row.name}\ndata: {json.dumps(asdict(row))}\n\n"
        await asyncio.sleep(STREAM_EVERY_S)
