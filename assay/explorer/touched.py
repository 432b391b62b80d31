"""What events are about: the rounds, epochs, games, seats, tickets and addresses whose pages they change.

A page that is about one of them stays as it is while only others change. What this overlooks is seen a while later:
no page is kept for longer than `cache.LONGEST_S` once anything has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, cast

from assay.protocol.rounds.ids import generation_of
from assay.protocol.types import Address, Digest
from assay_ledger.contract import Event
from assay_ledger.index.records import GameRecord
from assay_ledger.rounds.records import RunState

PageSubject = tuple[str, int] | Address
"""A kind and a number, or who it is."""

NUMBERED: Final = ("round", "epoch", "ticket", "tenure")
"""Fields of events that are kinds of subjects."""

_PAGES: Final = re.compile(
    r"(?:/api/v1)?/(?:(?P<kind>rounds|commitments|generations|epochs|games|tickets|tenures)/(?P<number>[0-9]{1,15})"
    r"(?:/[0-9]{1,15})?|actors/0x(?P<who>[0-9a-fA-F]{40}))"
)
_OF_A_ROUND: Final = ("rounds", "commitments")


def subject_of(path: str) -> PageSubject | None:
    """What the page at a path is about; None where it shows more than that."""
    match = _PAGES.fullmatch(path)
    if match is None:
        return None
    if match["who"] is not None:
        return Address(bytes.fromhex(match["who"]))
    kind, number = match["kind"], int(match["number"])
    if kind in _OF_A_ROUND:
        return "round", number
    return ("round", number - 1) if kind == "generations" else (kind[:-1], number)


def subjects_in(event: Event, names: Iterable[bytes], state: RunState) -> Iterator[PageSubject]:
    """What an event is about that contains these names and that the state has taken in; some more than once."""
    for name in NUMBERED:
        if (number := getattr(event, name, None)) is not None:
            yield name, int(number)
            if name in ("tenure", "ticket"):
                yield from _who_holds(name, int(number), state)
    if (generation := getattr(event, "generation", None)) is not None:
        yield "round", int(generation) - 1
    if (node := getattr(event, "node", None)) is not None:
        yield "round", generation_of(node) - 1
    if (number := getattr(event, "game_id", None)) is not None:
        yield from _of_game(state.games.get(int(number)), int(number))
    yield from (cast(Address, name) for name in names if len(name) == 20)
    for field in ("id", "attestation", "against"):
        if (named := getattr(event, field, None)) is not None:
            yield from _of_finding(named, state)


def _who_holds(kind: str, number: int, state: RunState) -> Iterator[PageSubject]:
    if kind == "tenure" and (held := state.books.tenures.tenures.get(number)) is not None:
        yield held.holder
    if kind == "ticket" and (ticket := state.books.registry.tickets.get(number)) is not None:  # type: ignore[call-overload]
        yield ticket.owner


def _of_game(game: GameRecord | None, number: int) -> Iterator[PageSubject]:
    yield "game", number
    if game is not None:
        yield "round", int(game.ref.round)
        yield game.challenger
        yield game.defender


def _of_finding(name: Digest, state: RunState) -> Iterator[PageSubject]:
    """A finding stands on pages of its epoch, its ticket, its work; an accusation on those of two findings."""
    record = state.attestations.get(name)
    if record is not None:
        yield "round", int(record.round)
        yield "epoch", record.epoch
        yield "ticket", int(record.ticket)
        yield from _who_holds("ticket", int(record.ticket), state)
    made = state.accusations.get(name)
    if made is not None:
        yield from _of_finding(made.by, state)
        yield from _of_finding(made.against, state)
