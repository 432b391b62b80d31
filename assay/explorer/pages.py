"""The pages of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import HTMLResponse
from fastapi.templating import Jinja2Templates

from assay.explorer.api import GetDocument, address_in
from assay.explorer.api_parts import PathNumber, losses_document, page_of
from assay.explorer.audit_documents import accusation_document, epoch_line, finding_document
from assay.explorer.bond_documents import bonds_document
from assay.explorer.chart import NARROW, WIDE, loss_chart
from assay.explorer.documents import Document, hexed
from assay.explorer.explain import explain_actor, explain_work
from assay.explorer.games import game_document
from assay.explorer.losses import Losses, wanted_points
from assay.explorer.model_documents import model_document
from assay.explorer.page_parts import ROWS, PageParts
from assay.explorer.people import actor_document, actors, member_document, money_document, stakes_of
from assay.explorer.price_documents import prices_document
from assay.explorer.reader import RunReader
from assay.explorer.revenue_documents import revenue_document, till_document, vouchers_document
from assay.explorer.search import events_naming, naming
from assay.explorer.story import story_document
from assay.explorer.tables import TABLES
from assay.explorer.vote_documents import governance_document
from assay.explorer.work_documents import (
    generation_document,
    generations,
    marks_of,
    round_line,
    run_document,
    work_document,
)
from assay.protocol.errors import UnavailableError
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.agents.waiting import waits

NEWEST = 12
"""Rounds and epochs on the first page; all are in the tables."""

SEATS_SHOWN = 12
"""Commitments of each round on the first page; its own page has all."""


class Pages(PageParts):
    """One method per page."""

    def __init__(self, reader: RunReader, losses: Losses | None, templates: Jinja2Templates) -> None:
        super().__init__(reader, templates)
        self._losses = losses
        self._get = GetDocument(reader)

    def routes(self) -> dict[str, Callable[..., Any]]:
        """Path to handler."""
        return {
            "/": self.index,
            "/run": self.run,
            "/money": self.money,
            "/revenue": self.revenue,
            "/revenue/{week}": self.week,
            "/gateways": self.gateways,
            "/gateways/{address}": self.gateway,
            "/governance": self.governance,
            "/proposals/{name}": self.proposal,
            "/card": self.card,
            "/rounds/{number}": self.round,
            "/commitments/{number}/{seat}": self.commitment,
            "/generations/{number}": self.generation,
            "/generations/{number}/card": self.card_of,
            "/tenures/{number}": self.tenure,
            "/tickets/{number}": self.ticket,
            "/epochs/{number}": self.epoch,
            "/findings": self.findings,
            "/findings/{name}": self.finding,
            "/accusations/{name}": self.accusation,
            "/games/{number}": self.game,
            "/actors/{address}": self.actor,
            "/events": self.events,
            "/search": self.search,
        }

    # --- pages

    def index(self, request: Request) -> HTMLResponse:
        """Loss curve, rounds, audits, disputes, ledger."""
        with self._reader.reading() as reader:
            wanted, chart, narrow = wanted_points(reader), None, None
            curve = losses_document(self._losses, lambda: wanted)
            if self._losses is not None:
                points, entropy = self._losses.points(wanted), self._losses.letter_entropy
                per_round = reader.run.charter.training.steps_per_round
                chart, narrow = (loss_chart(points, entropy, per_round, size) for size in (WIDE, NARROW))
            rounds, epochs = len(reader.state.books.commitments.rounds), len(reader.view.epochs)
            newest = range(max(0, rounds - NEWEST), rounds)
            return self._page(
                request,
                "index.html",
                run=run_document(reader),
                waits=waits(reader.view),
                curve=curve,
                shown=ROWS,
                chart=chart,
                narrow=narrow,
                generations=[generation_document(reader, g) for g in generations(reader)[-NEWEST - 1 :]],
                rounds=[round_line(reader, Round(r), SEATS_SHOWN) for r in newest][::-1],
                epochs=[epoch_line(reader, e) for e in range(max(0, epochs - NEWEST), epochs)][::-1],
                accusations=[accusation_document(reader, a) for a in reader.shelves.accusations[-ROWS:]],
                games=[game_document(reader, g) for g in reader.shelves.games[-ROWS:]],
                actors=actors(reader, ROWS),
                people=len(reader.money.people),
                story=story_document(reader),
            )

    def run(self, request: Request) -> HTMLResponse:
        """The charter."""
        with self._reader.reading() as reader:
            return self._page(request, "run.html", run=run_document(reader))

    def money(self, request: Request) -> HTMLResponse:
        """Escrow, payments, bounties, grants, revenue."""
        with self._reader.reading() as reader:
            document = money_document(reader)
            return self._page(request, "money.html", money=document, actors=actors(reader, ROWS), shown=ROWS)

    def card(self, request: Request) -> HTMLResponse:
        """The model card."""
        with self._reader.reading() as reader:
            return self._page(request, "card.html", card=model_document(reader), shown=ROWS)

    def card_of(self, request: Request, number: PathNumber) -> HTMLResponse:
        """The model card of one generation."""
        with self._reader.reading():
            return self._page(request, "card.html", card=self._get.card(number), shown=ROWS)

    def revenue(self, request: Request) -> HTMLResponse:
        """What one share earned, week by week."""
        with self._reader.reading() as reader:
            return self._page(request, "revenue.html", revenue=revenue_document(reader), shown=ROWS)

    def week(self, request: Request, week: PathNumber) -> HTMLResponse:
        """What one share earned in a week, by payer and by gateway."""
        with self._reader.reading():
            return self._page(request, "week.html", week=self._get.week(week), shown=ROWS)

    def gateways(self, request: Request) -> HTMLResponse:
        """Who serves the model for pay, and what the contract of vouchers holds."""
        with self._reader.reading() as reader:
            tills = sorted(reader.earnings.gateways.tills, key=lambda till: -till.redeemed)
            shown = [till_document(till) for till in tills[:ROWS]]
            vouchers = vouchers_document(reader)
            more, bonds, prices = len(tills) - len(shown), bonds_document(reader), prices_document(reader)
            context: Document = {"vouchers": vouchers, "tills": shown, "bonds": bonds, "prices": prices}
            return self._page(request, "gateways.html", 200, **context, more=more, shown=ROWS)

    def gateway(self, request: Request, address: str) -> HTMLResponse:
        """One gateway, and its payers."""
        with self._reader.reading():
            return self._page(request, "gateway.html", g=self._get.gateway(address), shown=ROWS)

    def governance(self, request: Request) -> HTMLResponse:
        """What the owners of shares decided, and what they vote about."""
        with self._reader.reading() as reader:
            return self._page(request, "governance.html", governance=governance_document(reader), shown=ROWS)

    def proposal(self, request: Request, name: str) -> HTMLResponse:
        """One proposal, and who voted how."""
        with self._reader.reading():
            return self._page(request, "proposal.html", p=self._get.proposal(name), shown=ROWS)

    def round(self, request: Request, number: PathNumber) -> HTMLResponse:
        """One round."""
        with self._reader.reading() as reader:
            document = self._get.round(number)
            games = [game_document(reader, reader.state.games[g]) for g in document["games"]]
            return self._page(request, "round.html", round=document, games=games, now=reader.state.head.timestamp)

    def commitment(self, request: Request, number: PathNumber, seat: PathNumber) -> HTMLResponse:
        """What a seat committed to, and who audited it."""
        with self._reader.reading() as reader:
            document = self._get.commitment(number, seat)
            work = reader.state.works[Round(number), Seat(seat)]
            marks: tuple[Digest, ...] = ()
            why = "no store is named"
            if reader.store is not None:
                try:
                    marks, why = marks_of(reader, work), ""
                except UnavailableError as error:
                    why = error.explain()
            found = reader.shelves.findings_of_work[work.round, work.seat]
            return self._page(
                request,
                "commitment.html",
                c=document,
                answers=explain_work(reader, work)["answers"],
                marks=[hexed(mark) for mark in marks],
                no_marks=why,
                findings=[finding_document(reader, record) for record in found],
                accusations=[self._get.accusation(name) for name in document["accusations"]],
                games=[game_document(reader, reader.state.games[g]) for g in document["games"]],
            )

    def generation(self, request: Request, number: PathNumber) -> HTMLResponse:
        """A merge."""
        with self._reader.reading() as reader:
            document = self._get.generation(number)
            games = [game_document(reader, reader.state.games[g]) for g in document["games"]]
            return self._page(request, "generation.html", g=document, games=games)

    def tenure(self, request: Request, number: PathNumber) -> HTMLResponse:
        """A seat's holder."""
        with self._reader.reading() as reader:
            document = self._get.tenure(number)
            works = reader.shelves.works_of_tenure[number]
            commitments = [work_document(reader, work) for work in works[-ROWS:]][::-1]
            more = len(works) > ROWS
            return self._page(request, "tenure.html", t=document, commitments=commitments, more=more)

    def ticket(self, request: Request, number: PathNumber) -> HTMLResponse:
        """An auditor's stake."""
        with self._reader.reading() as reader:
            document = self._get.ticket(number)
            mine = reader.shelves.findings_of_ticket[number][-ROWS:][::-1]
            names = [*document["accuses"], *document["accused"]][-ROWS:]
            return self._page(
                request,
                "ticket.html",
                t=document,
                shown=ROWS,
                findings=[finding_document(reader, record) for record in mine],
                accusations=[self._get.accusation(name) for name in names],
            )

    def epoch(self, request: Request, number: PathNumber) -> HTMLResponse:
        """A turn of the audits."""
        with self._reader.reading():
            return self._page(request, "epoch.html", e=self._get.epoch(number))

    def findings(self, request: Request, cursor: Annotated[int, Query(ge=0, lt=1 << 53)] = 0) -> HTMLResponse:
        """Every finding, page by page."""
        with self._reader.reading() as reader:
            page = page_of(reader, TABLES["findings"], cursor, ROWS)
            return self._page(request, "findings.html", page=page, cursor=cursor)

    def finding(self, request: Request, name: str) -> HTMLResponse:
        """A result that a ticket opened."""
        with self._reader.reading() as reader:
            document = self._get.finding(name)
            work = reader.state.works[Round(document["round"]), Seat(document["seat"])].work
            committed = {"ends": [hexed(end) for end in work.ends], "update": hexed(work.update)}
            names = [*document["accuses"], *document["accused_by"]]
            return self._page(
                request,
                "finding.html",
                f=document,
                committed=committed,
                accusations=[self._get.accusation(a) for a in names],
            )

    def accusation(self, request: Request, name: str) -> HTMLResponse:
        """Who accuses whom."""
        with self._reader.reading() as reader:
            document = self._get.accusation(name)
            games = [game_document(reader, reader.state.games[g]) for g in document["games"]]
            return self._page(request, "accusation.html", a=document, games=games)

    def game(self, request: Request, number: PathNumber) -> HTMLResponse:
        """One dispute, step by step."""
        with self._reader.reading() as reader:
            now = reader.state.head.timestamp
            return self._page(request, "game.html", game=self._get.game(number), now=now)

    def actor(self, request: Request, address: str) -> HTMLResponse:
        """One address."""
        with self._reader.reading() as reader:
            who = address_in(address)
            mine = events_naming(reader, who.hex())
            return self._page(
                request,
                "actor.html",
                actor=actor_document(reader, who),
                stakes=stakes_of(reader, who),
                answers=explain_actor(reader, who)["answers"],
                member=member_document(reader, who),
                events=naming(reader, mine[-ROWS:][::-1], who.hex()),
                more=len(mine) > ROWS,
            )
