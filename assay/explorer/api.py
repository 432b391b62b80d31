"""The JSON of a run under /api/v1: the same documents as the pages."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query
from fastapi.responses import PlainTextResponse

from assay.bundle.document import encode_bundle
from assay.explorer.api_parts import HexAddress, HexDigest, PathNumber, SearchHit, add_tables, losses_document
from assay.explorer.audit_documents import accusation_document, epoch_document, finding_document, ticket_document
from assay.explorer.bond_documents import bonds_document
from assay.explorer.descent import descent_document
from assay.explorer.documents import Document
from assay.explorer.explain import explain
from assay.explorer.losses import Losses, wanted_points
from assay.explorer.model_documents import model_document
from assay.explorer.people import actor_document, member_document, money_document, stakes_of
from assay.explorer.price_documents import prices_document
from assay.explorer.reader import RunReader
from assay.explorer.revenue_documents import gateway_document, revenue_document, vouchers_document, week_document
from assay.explorer.search import MISSPELT, is_misspelt, search
from assay.explorer.story import story_document
from assay.explorer.vote_documents import governance_document, proposal_document, vote_document
from assay.explorer.work_documents import (
    generation_document,
    generations,
    round_document,
    run_document,
    tenure_document,
    work_document,
)
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.index.records import GameRecord


def make_api(reader: RunReader, losses: Losses | None) -> APIRouter:
    """The routes under /api/v1."""
    router = APIRouter(prefix="/api/v1")
    get = GetDocument(reader)

    @router.get("/run", summary="What the run promises and how far it has come")
    def run() -> dict[str, Any]:
        with reader.reading():
            return run_document(reader) | {"story": story_document(reader)}

    @router.get("/money", summary="Escrow, payments, bounties, grants, revenue")
    def money() -> dict[str, Any]:
        with reader.reading():
            return money_document(reader)

    @router.get(
        "/card", summary="The model card, as `assay model pull` writes it: where the newest generation comes from"
    )
    def card() -> dict[str, Any]:
        with reader.reading():
            return model_document(reader)

    @router.get("/revenue", summary="What one share earned in each week, in every token, and who paid it")
    def revenue() -> dict[str, Any]:
        with reader.reading():
            return revenue_document(reader)

    @router.get("/revenue/{week}", summary="What one share earned in a week, by payer and by gateway")
    def week_(week: PathNumber) -> dict[str, Any]:
        with reader.reading():
            return get.week(week)

    @router.get("/vouchers", summary="The contract of vouchers: what it holds, and what it owes")
    def vouchers() -> dict[str, Any]:
        with reader.reading():
            return vouchers_document(reader)

    @router.get("/bonds", summary="Bonded gateways: bonds, pledges, answers that were accused")
    def bonds() -> dict[str, Any]:
        with reader.reading():
            return get.bonds()

    @router.get("/prices", summary="What gateways say that they ask for a token, each asked itself")
    def prices() -> dict[str, Any]:
        with reader.reading():
            return get.prices()

    @router.get("/gateways/{address}", summary="A gateway: deposits, redemptions, what it is asked back, its bond")
    def gateway(address: HexAddress) -> dict[str, Any]:
        with reader.reading():
            return get.gateway(address)

    @router.get("/governance", summary="What the owners of shares decided, and what they vote about")
    def governance() -> dict[str, Any]:
        with reader.reading():
            return governance_document(reader)

    @router.get("/proposals/{name}", summary="A proposal and its votes")
    def proposal(name: HexDigest) -> dict[str, Any]:
        with reader.reading():
            return get.proposal(name)

    @router.get("/rounds/{number}", summary="A round with everything that was done in it")
    def round_(number: PathNumber) -> dict[str, Any]:
        with reader.reading():
            return get.round(number)

    @router.get("/commitments/{number}/{seat}", summary="What a seat committed to in a round")
    def commitment(number: PathNumber, seat: PathNumber) -> dict[str, Any]:
        with reader.reading():
            return get.commitment(number, seat)

    @router.get("/generations/{number}", summary="What a round was merged into")
    def generation(number: PathNumber) -> dict[str, Any]:
        with reader.reading():
            return get.generation(number)

    @router.get("/generations/{number}/card", summary="The model card of a generation's weights")
    def card_of(number: PathNumber) -> dict[str, Any]:
        with reader.reading():
            return get.card(number)

    @router.get("/tenures/{number}", summary="One holder's time in one seat")
    def tenure(number: PathNumber) -> dict[str, Any]:
        with reader.reading():
            return get.tenure(number)

    @router.get("/tickets/{number}", summary="An auditor's stake: its calls, findings, fines")
    def ticket(number: PathNumber) -> dict[str, Any]:
        with reader.reading():
            return get.ticket(number)

    @router.get("/epochs/{number}", summary="A turn of the audits: who was called, what they found")
    def epoch(number: PathNumber) -> dict[str, Any]:
        with reader.reading():
            return get.epoch(number)

    @router.get("/findings/{name}", summary="A result that a ticket opened")
    def finding(name: HexDigest) -> dict[str, Any]:
        with reader.reading():
            return get.finding(name)

    @router.get("/accusations/{name}", summary="Who accuses whom, and what became of it")
    def accusation(name: HexDigest) -> dict[str, Any]:
        with reader.reading():
            return get.accusation(name)

    @router.get("/games/{game}", summary="A dispute step by step, with our own replay's verdict")
    def game_(game: PathNumber) -> dict[str, Any]:
        with reader.reading():
            return get.game(game)

    @router.get(
        "/games/{game}/bundle.json",
        summary="The evidence of a dispute that is over, for `assay bundle verify`",
        response_class=PlainTextResponse,
        responses={409: {"description": "the game is not over"}},
    )
    def bundle(game: PathNumber) -> PlainTextResponse:
        with reader.reading():
            record = get.game_record(game)
        if not record.is_over:
            raise HTTPException(409, f"Game {game} has no verdict yet.")
        data = encode_bundle(reader.evidence_of(record))
        name = f"game-{game}.json"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return PlainTextResponse(data, media_type="application/json", headers=headers)

    @router.get("/actors/{address}", summary="An address: roles, stakes, earnings, losses, shares")
    def actor(address: HexAddress) -> dict[str, Any]:
        with reader.reading():
            who = address_in(address)
            return actor_document(reader, who) | stakes_of(reader, who) | member_document(reader, who)

    @router.get("/losses", summary="Validation losses of the generations, as far as computed")
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

    add_tables(router, reader)
    return router


class GetDocument:
    """The document of a thing, or 404."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader

    def round(self, number: int) -> Document:
        """A round's."""
        _there(0 <= number < len(self._reader.state.books.commitments.rounds), f"Round {number} has not been opened.")
        return round_document(self._reader, Round(number))

    def commitment(self, number: int, seat: int) -> Document:
        """A commitment's."""
        work = self._reader.state.works.get((Round(number), Seat(seat)))
        _there(work is not None, f"Seat {seat} has no commitment in round {number}.")
        assert work is not None
        return work_document(self._reader, work)

    def generation(self, number: int) -> Document:
        """A generation's."""
        _there(number in generations(self._reader), f"No round leads to generation {number} yet.")
        return generation_document(self._reader, number)

    def card(self, number: int) -> Document:
        """The card of a generation's weights."""
        _there(number in generations(self._reader), f"No round leads to generation {number} yet.")
        try:
            return model_document(self._reader, number)
        except KeyError:
            raise HTTPException(404, f"Generation {number} has no weights: no root of it has a majority.") from None

    def week(self, number: int) -> Document:
        """What shares earned in a week."""
        found = week_document(self._reader, number)
        _there(found is not None, f"No revenue streamed in week {number}.")
        assert found is not None
        return found

    def gateway(self, address: str) -> Document:
        """A gateway's."""
        found = gateway_document(self._reader, address_in(address))
        _there(
            found is not None,
            f"Nobody has deposited for a gateway {address}, nor is it bonded or asked its price.",
        )
        assert found is not None
        return found

    def bonds(self) -> Document:
        """Those of the contract that this explorer was told of."""
        found = bonds_document(self._reader)
        _there(found is not None, "This explorer was told of no contract of bonded gateways.")
        assert found is not None
        return found

    def prices(self) -> Document:
        """Of the gateways that this explorer was told of."""
        found = prices_document(self._reader)
        _there(found is not None, "This explorer was told of no gateway to ask.")
        assert found is not None
        return found

    def proposal(self, name: str) -> Document:
        """A proposal's, with its votes."""
        found = self._reader.votes.proposals.get(int.from_bytes(_digest(name), "big"))
        _there(found is not None, f"Nobody has proposed {name}.")
        assert found is not None
        return proposal_document(self._reader, found) | {"votes": [vote_document(vote) for vote in found.votes]}

    def tenure(self, number: int) -> Document:
        """A tenure's."""
        _there(number in self._reader.state.books.tenures.tenures, f"There is no tenure {number}.")
        return tenure_document(self._reader, number)

    def ticket(self, number: int) -> Document:
        """A ticket's."""
        _there(number in self._reader.money.ticket_owners, f"There is no ticket {number}.")
        return ticket_document(self._reader, TicketId(number))

    def epoch(self, number: int) -> Document:
        """An epoch's."""
        _there(0 <= number < len(self._reader.view.epochs), f"Epoch {number} has not begun.")
        return epoch_document(self._reader, number)

    def finding(self, name: str) -> Document:
        """A finding's."""
        record = self._reader.state.attestations.get(_digest(name))
        _there(record is not None, f"No finding of this run has the name {name}.")
        assert record is not None
        return finding_document(self._reader, record)

    def accusation(self, name: str) -> Document:
        """An accusation's."""
        _there(_digest(name) in self._reader.state.accusations, f"No accusation of this run has the name {name}.")
        return accusation_document(self._reader, _digest(name))

    def game(self, number: int) -> Document:
        """A game's."""
        return descent_document(self._reader, self.game_record(number))

    def game_record(self, number: int) -> GameRecord:
        """A game's record."""
        game = self._reader.state.games.get(number)
        _there(game is not None, f"There is no game {number}.")
        assert game is not None
        return game


def _there(is_there: bool, otherwise: str) -> None:
    if not is_there:
        raise HTTPException(404, otherwise)


def address_in(text: str) -> Address:
    """An address of a path. Raises HTTPException."""
    if re.fullmatch("0x[0-9a-fA-F]{40}", text) is None:
        raise HTTPException(404, "An address is 0x and 40 hex digits.")
    if is_misspelt(text):
        raise HTTPException(404, MISSPELT)
    return Address(bytes.fromhex(text[2:]))


def _digest(name: str) -> Digest:
    try:
        return Digest(bytes.fromhex(name.removeprefix("0x")))
    except ValueError:
        raise HTTPException(404, f"{name} is no digest: 0x and 64 hex digits.") from None
