"""The pages of a run of the first design."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import HTTPException, Query, Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates

from assay.explorer.api import get_claim, get_game, get_round
from assay.explorer.api_parts import losses_document, page_of
from assay.explorer.chart import loss_chart
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
from assay.explorer.losses import Losses, wanted_points
from assay.explorer.pages import ROWS, Pages
from assay.explorer.run_reader import RunReader
from assay.explorer.search import Hit, search
from assay.explorer.tables import TABLES
from assay.protocol.types import Address, Seat


class RunPages(Pages):
    """See Pages."""

    def __init__(self, reader: RunReader, losses: Losses | None, templates: Jinja2Templates) -> None:
        super().__init__(reader, templates)
        self._reader = reader
        self._losses = losses

    def find(self, query: str) -> list[Hit]:
        """See Pages."""
        return search(self._reader, query)

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

    # --- pages

    def index(self, request: Request) -> HTMLResponse:
        """Loss curve, rounds, disputes, ledger."""
        with self._reader.reading() as reader:
            curve, chart = losses_document(self._losses, lambda: wanted_points(reader)), None
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
            return self._page(
                request, "claims.html", page=page_of(reader, TABLES["claims"], cursor, ROWS), cursor=cursor
            )

    def claim(self, request: Request, claim: str) -> HTMLResponse:
        """One claim."""
        with self._reader.reading() as reader:
            document = get_claim(reader, claim)
            same = [
                c
                for c in page_of(reader, TABLES["claims"], 0, 1 << 30)["items"]
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
