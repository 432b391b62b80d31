"""What an account has locked in a run, what each lock waits for, and when it can be free at the earliest. Pure.

Said in the same words by an actor that leaves and by one that is stopped. Times are what the books allow as they stand:
a call, an accusation or a game that is still to come makes them later, a stop of the run earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.protocol.rounds.epochs import last_drawn
from assay.protocol.rounds.terms import NEVER, Tenure
from assay.protocol.rounds.ticket_types import Ticket, TicketId
from assay.protocol.types import Wei
from assay_ledger.agents.keeper import release_at
from assay_ledger.agents.money_keeper import epoch_of, unpaid_tickets
from assay_ledger.rounds import nodes
from assay_ledger.rounds.view import RunView


@dataclass(frozen=True, slots=True)
class StillLocked:
    """One lock: its amount in wei, what it waits for, and the earliest chain time, in seconds, at which it can be free.

    `role` is the command that gets it out; `not_before` is None where no time is known.
    """

    role: str
    what: str
    amount: Wei
    waits: str
    not_before: int | None


def still_locked(view: RunView, role: str) -> list[StillLocked]:
    """Every lock of this actor; `role`: the one that plays its games."""
    seats = (_seat(view, number, t) for number, t in view.tenures_of(view.me) if not t.released)
    tickets = (_ticket(view, number, held) for number, held in view.tickets_of(view.me) if not held.convicted_at)
    return [lock for lock in (*seats, *tickets, *_games(view, role)) if lock.amount]


def costs_no_fee(view: RunView, tenure: Tenure) -> bool:
    """Whether a seat can be given up without its fee: this round's commitment is made, or the tenure has not begun.

    A tenure that ends with a round to which nothing was committed loses it.
    """
    return view.round is None or view.round < tenure.from_ or tenure.last == view.round + 1


def _seat(view: RunView, number: int, tenure: Tenure) -> StillLocked:
    e = view.charter.economics
    amount = (0 if tenure.convicted_at else e.seat_lock) + (0 if tenure.fee_gone else e.seat_fee)
    waits, not_before = _seat_waits(view, number, tenure)
    return StillLocked("solver", f"seat {tenure.seat}", Wei(amount), waits, not_before)


def _seat_waits(view: RunView, number: int, tenure: Tenure) -> tuple[str, int | None]:
    stays = tenure.until == NEVER and not (view.state.money.is_ended or costs_no_fee(view, tenure))
    if stays and view.round is not None:
        commit_until = view.commit_until(view.round)
        if view.now <= commit_until:
            return f"its commitment to round {view.round}, after which it is given up without a fee", commit_until
        if not view.is_over:
            return f"round {view.round + 1}, to which it commits before it is given up without a fee", None
    if tenure.games:
        return "the game about it", None
    if view.state.money.is_stopped:
        return "nothing but its release", view.now
    if tenure.accusations:
        return "an accusation of its work, which is tried or lapses", None
    if tenure.unsettled:
        return "its commitments and openings, which are settled after their audits", _settled_at(view, number)
    at = release_at(view, tenure) if tenure.until != NEVER else view.now
    return (f"the end of round {tenure.until - 1}", at) if at > view.now else ("nothing but its release", view.now)


def _settled_at(view: RunView, number: int) -> int:
    """The earliest time at which the last commitment and opening of a tenure can be settled."""
    found = [view.now]
    for work in view.state.unsettled.values():
        if work.tenure == number:
            home = epoch_of(view, work.round)
            home = len(view.epochs) if home is None else home
            found.append(_epoch_begins(view, last_drawn(view.epochs, home) + 1))
    for (node, party), record in view.state.unclosed.items():
        if nodes.opener_of(view, view.books.generations.openings[node, party]).who == view.me:
            found.append(record.at + view.rules.challenge + 1)
    return max(found)


def _ticket(view: RunView, number: TicketId, held: Ticket) -> StillLocked:
    amount = view.facts.tickets.bond - view.books.registry.missing[number]
    waits, not_before = _ticket_waits(view, number, held)
    return StillLocked("verifier", f"ticket {number}", Wei(amount), waits, not_before)


def _ticket_waits(view: RunView, number: TicketId, held: Ticket) -> tuple[str, int | None]:
    """`_is_reclaimable` of tickets in words, with the first reason that holds."""
    stopped = view.state.money.is_stopped
    if held.obligations:
        return f"{held.obligations} games, accusations or fines that hang on it", None
    if number in unpaid_tickets(view) and (held.until or stopped):
        return "wages or a bounty that it is still to be paid", None
    if stopped:
        return "nothing but its reclaim", view.now
    until = held.until or view.now + view.facts.tickets.seasoning
    drawn = _epoch_begins(view, last_drawn(view.epochs, held.last_epoch + 1) + 1)
    not_before = max(until, drawn)
    if not held.until:
        return "its retirement", not_before
    if view.epochs[-1].start < until:
        return "the first epoch in which it counts no more; until then it answers its calls", not_before
    if not view.books.duties.over_since(held.last_epoch + 1):
        return "the epochs in which what it answered last can be audited", not_before
    return "nothing but its last secret and its reclaim", view.now


def _epoch_begins(view: RunView, number: int) -> int:
    """When an epoch began, or can begin at the earliest."""
    if number < len(view.epochs):
        return view.epochs[number].start
    newest, terms = view.epochs[-1], view.terms
    closes = (newest.deadline if newest.seed is not None else newest.start + terms.delay + terms.length) + 1
    return max(closes, view.now) + (number - len(view.epochs)) * (terms.delay + terms.length + 1)


def _games(view: RunView, role: str) -> Iterator[StillLocked]:
    """Bonds of challenges as they were locked: refunds of moves come out of them."""
    for game in view.open_games():
        if game.challenger == view.me:
            bond = view.charter.economics.challenge_bond
            yield StillLocked(role, f"the bond of game {game.game_id}", bond, "the verdict", None)
