"""The explorer as JSON under /api/v1: the same documents as the pages, with cursors and a stream of events."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query
from fastapi.responses import PlainTextResponse

from assay.bundle.document import encode_bundle
from assay.bundle.errors import GameNotOver
from assay.bundle.export import export_bundle
from assay.explorer.api_parts import HexAddress, HexDigest, PathNumber, SearchHit, add_tables, losses_document
from assay.explorer.documents import actor_document, claims, commitment_document, round_document, run_document
from assay.explorer.explain import explain
from assay.explorer.games import descent_document
from assay.explorer.losses import Losses, wanted_points
from assay.explorer.run_reader import RunReader
from assay.explorer.search import search
from assay.explorer.tables import TABLES
from assay.protocol.types import Address, Seat
from assay_ledger.index.records import GameRecord, RoundRecord


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
            return losses_document(losses, lambda: wanted_points(reader))

    @router.get("/explain/{name}", summary="Known? Counted? Paid? For an address, a digest, or an error code")
    def explain_(name: Annotated[str, Path(max_length=200)]) -> dict[str, Any]:
        with reader.reading():
            return explain(reader, name)

    @router.get("/search", summary="Finds an address, digest, transaction or number", response_model=list[SearchHit])
    def search_(q: Annotated[str, Query(max_length=200)]) -> list[dict[str, str]]:
        with reader.reading():
            return [asdict(hit) for hit in search(reader, q)]

    add_tables(router, reader, TABLES)
    return router


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
