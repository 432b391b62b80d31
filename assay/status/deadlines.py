"""What an account must do by when: a commitment, a duty, a secret, a move in a game. Pure.

Times are chain times in seconds; `until` is the last second whose block still takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.protocol.game.table import Side
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest
from assay.status.locks import reveal_until
from assay_ledger.rounds.view import RunView
from assay_solver.strategy import recent, seen
from assay_verifier import merging
from assay_verifier.ticket_keeping import owed_calls
from assay_verifier.view_records import ViewRecords


@dataclass(frozen=True, slots=True)
class OwnDeadline:
    """Something that an account must do: its kind, until when, and what it is with what it costs to miss it."""

    kind: str
    until: int
    text: str


def deadlines_of(view: RunView, challenges: Mapping[Digest, int]) -> list[OwnDeadline]:
    """What `view.me` must do, the nearest first; what is missed already is no deadline any more.

    challenges: when it committed each, by commitment.
    """
    found = [due for due in _all(view, challenges) if due.until >= view.now]
    return sorted(found, key=lambda due: (due.until, due.kind, due.text))


def _all(view: RunView, challenges: Mapping[Digest, int]) -> Iterator[OwnDeadline]:
    yield from _games(view)
    for commitment, at in challenges.items():
        text = f"reveal the challenge 0x{commitment.hex()}: its deposit burns otherwise"
        yield OwnDeadline("challenge", reveal_until(view, at), text)
    if not view.state.money.is_ended:
        yield from _rounds(view)
        yield from _nodes(view)
    if not view.state.money.is_stopped:
        yield from _audits(view)


def _games(view: RunView) -> Iterator[OwnDeadline]:
    for game in view.open_games():
        if view.me == (game.defender if game.turn is Side.DEFENDER else game.challenger):
            text = f"move in game {game.game_id} at {game.stage.name}: who is silent loses it"
            yield OwnDeadline("game", game.deadline, text)


def _rounds(view: RunView) -> Iterator[OwnDeadline]:
    """The commitment of the round under way, and what its merge asks of a seat that committed."""
    newest = view.round
    tenure = None if newest is None else view.tenure_in(newest)
    if newest is not None and tenure is not None:
        seat, state = tenure[1].seat, view.round_of(newest)
        is_void = view.status(state.parent) is GenerationStatus.CUT
        if view.work(newest, seat) is None and not is_void:
            text = f"commit to round {newest} with seat {seat}"
            if view.now <= state.mask_at:
                yield OwnDeadline("commitment", state.mask_at, f"{text}: later it has no weight in the merge")
            if view.commit_until(newest) != state.mask_at or view.now > state.mask_at:
                cost = "missed rounds in a row lose the seat and its fee"
                yield OwnDeadline("commitment", view.commit_until(newest), f"{text}: {cost}")
    for round_ in recent(view):
        there = seen(view, round_)
        # In the mask's last second a word can be sent: its block comes later.
        if not (there.is_position and there.is_alive and there.mask_at <= view.now):
            continue
        generation = round_ + 1
        if not there.spoke:
            yield OwnDeadline("merge", there.hold_until, f"say which updates of round {round_} are here")
        if not there.has_sealed:
            yield OwnDeadline("merge", there.seal_until, f"seal a root of generation {generation}")
        elif not there.has_opened:
            yield OwnDeadline("merge", there.merge_until, f"open the root of generation {generation}")


def _nodes(view: RunView) -> Iterator[OwnDeadline]:
    """Above 64 seats tickets merge: what they say of a group's updates, and roots that they seal and open."""
    for round_ in merging.recent(view):
        for hold in merging.holds_seen(view, round_):
            if hold.silent:
                text = f"say which updates of group {hold.group} of round {round_} are here"
                yield OwnDeadline("merge", hold.hold_until, text)
        for node in merging.nodes_seen(view, round_):
            what = f"generation {round_ + 1}"
            if ids.is_group(node.node):
                what = f"the sum of group {ids.group_of(node.node)} of round {round_}"
            if node.is_ready and node.silent:
                yield OwnDeadline("merge", node.seal_until, f"seal a root of {what} with {_tickets(node.silent)}")
            if node.sealed:
                yield OwnDeadline("merge", node.open_until, f"open the root of {what} with {_tickets(node.sealed)}")


def _tickets(numbers: Sequence[TicketId]) -> str:
    return f"ticket{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"


def _audits(view: RunView) -> Iterator[OwnDeadline]:
    """Calls, secrets, stakes that fines left short, and accusations that have no game yet."""
    records, number = ViewRecords(view), len(view.epochs) - 1
    epoch, mine = view.epochs[-1], records.held_tickets()
    for held in mine:
        if held.is_convicted:
            continue
        if epoch.seed is not None:
            is_called = held.can_answer and view.is_called(held.id, number)
            if is_called and view.answer_of(number, held.id) is None:
                text = (
                    f"open the call of epoch {number} with ticket {held.id}, and its duties: each one missed is fined"
                )
                yield OwnDeadline("call", epoch.deadline, text)
            if owed := owed_calls(held, records, number):
                calls = "call" if len(owed) == 1 else "calls"
                cost = "its stake is forfeit otherwise"
                text = f"show the secrets of {len(owed)} missed {calls} of ticket {held.id}: {cost}"
                yield OwnDeadline("secret", epoch.deadline, text)
        short_since = view.books.registry.tickets[held.id].short_since
        if short_since and not held.until and not view.state.money.is_ended:
            text = f"top ticket {held.id} up: it is retired otherwise"
            yield OwnDeadline("top up", short_since + view.facts.tickets.seasoning, text)
    ids = {held.id for held in mine}
    for made in view.books.duties.attestations.accusations.values():
        is_due = made.epoch + 1 == number and epoch.seed is not None and made.status is AccusationStatus.RECORDED
        if is_due and made.ticket in ids and not _is_convicted(view, made.is_work, made.accused):
            text = f"open the game of an accusation by ticket {made.ticket}: it lapses with a fine otherwise"
            yield OwnDeadline("accusation", epoch.deadline, text)


def _is_convicted(view: RunView, is_work: bool, accused: int) -> bool:
    books = view.books
    return books.tenures.is_convicted(accused) if is_work else books.registry.is_convicted(TicketId(accused))
