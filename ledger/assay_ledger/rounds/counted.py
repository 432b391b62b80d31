"""Whether the events of a run that a node tells are as many as the run's contracts count.

A node that has removed what is old answers a search of old blocks with an empty list, without a word. Of the newest
block it has everything, or it could execute nothing; so the contracts themselves say how much there was.
Source: docs/adr/0052-kept-events.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from assay.protocol.errors import RejectedError
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Round
from assay_ledger.bindings.tenures import TenureBegan
from assay_ledger.bindings.tickets import TicketRegistered
from assay_ledger.rounds.records import RunState
from assay_ledger.rounds.run import Run


def left_out_of(state: RunState, run: Run) -> str:
    """What the contracts count in the head's block and the state does not, in words; nothing where it holds all of it.

    Eight view calls at most. Raises UnavailableError.
    """
    books, at, sponsor = state.books, state.head.number, run.charter.sponsor
    ask, rounds, tickets = run.chain.ask, books.commitments.rounds, len(books.registry.anchors)
    found: list[tuple[str, int, Callable[[], int]]] = [
        ("rounds", len(rounds), lambda: ask(run.commitments.opened(), at=at)),
        ("tenures", len(books.tenures.tenures), lambda: ask(run.tenures.tenures(), at=at)),
        # A ticket that nobody heard of has the next number.
        ("tickets", tickets, lambda: tickets + any(ask(run.tickets.ticket_of(TicketId(tickets + 1)), at=at).owner)),
        ("epochs", books.duties.newest()[0], lambda: ask(run.duties.newest(), at=at)[0]),
        ("results", len(state.attestations), lambda: ask(run.attestations.findings(), at=at)),
        ("games", len(state.games), lambda: ask(run.game.games(), at=at)),
        ("wei of its sponsor", state.money.funded.get(sponsor, 0), lambda: ask(run.escrow.funded_of(sponsor), at=at)),
    ]
    if rounds:
        newest, told = Round(len(rounds) - 1), rounds[-1].committed
        there = lambda: ask(run.commitments.round_of(newest), at=at).committed  # noqa: E731
        found.append(("commitments of its last round", told, there))
    return _in_words({what: (told, _counted(there)) for what, told, there in found})


def _counted(there: Callable[[], int]) -> int:
    """What a module counts; 0 where another stands in its place that counts nothing.

    A node that invents a refusal could as well invent the count.
    """
    try:
        return there()
    except RejectedError:
        return 0


def left_out_of_logs(run: Run) -> str:
    """The same of events that make no sense one after another, so that no state follows from them: of what is numbered
    from 1 on, whether each was told of. Raises UnavailableError."""
    chain = run.chain
    head = chain.head().number
    tenures = chain.events(TenureBegan.search(run.tenures.address), run.first_block, head)
    tickets = chain.events(TicketRegistered.search(run.tickets.address), run.first_block, head)
    return _in_words(
        {
            "tenures": (len(tenures), chain.ask(run.tenures.tenures(), at=head)),
            "tickets": (len(tickets), max((found.event.ticket for found in tickets), default=0)),
        }
    )


def _in_words(counted: Mapping[str, tuple[int, int]]) -> str:
    # Less than was told is what a call says that was answered from an older block: behind a URL are several nodes.
    return ", ".join(f"{told} of {there} {what}" for what, (told, there) in counted.items() if told < there)
