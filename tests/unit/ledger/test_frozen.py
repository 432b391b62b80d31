"""A run's state in bytes: the same afterwards, and nothing else than a state can be in them."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.bench.index_events import PlacedEvent, facts, placed
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side, Stage
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay_ledger.bindings import game
from assay_ledger.rounds.facts import RunFacts
from assay_ledger.rounds.fold import fold
from assay_ledger.rounds.frozen import freeze, thaw
from assay_ledger.rounds.records import RunState

TX = b"\x11" * 32
FACTS = facts()


def folded(events: list[PlacedEvent], state: RunState | None = None) -> RunState:
    """The state after some events."""
    state = state or RunState.of(FACTS)
    for made in events:
        fold(state, made.event, made.time, TX)
    return state


def with_game(state: RunState) -> RunState:
    """The same after a game about the first commitment, which its claimant lost."""
    ref = ClaimRef(ClaimKind.INTERVAL, Round(0), Seat(3), 0, Address(bytes(20)), Digest(bytes(32)))
    one, other, claim = Address(b"\x01" * 20), Address(b"\x02" * 20), Digest(b"\x03" * 32)
    for event in (
        game.GameOpened(1, claim, one, other, ref),
        game.Moved(1, one, Stage.STEPS, Side.DEFENDER, 99),
        game.Verdict(1, claim, other, Outcome.LEAF, 0, 0, 0, 0, 1, 2),
    ):
        fold(state, event, state.books.now, TX)
    return state


def back(state: RunState, of: RunFacts = FACTS) -> RunState:
    """The state out of its bytes."""
    body = freeze(state)
    assert body is not None
    found = thaw(body, of)
    assert found is not None
    return found


def plain(value: Any, depth: int = 0) -> Any:
    """Everything that hangs on a value, as far as the books hold one another."""
    if isinstance(value, int | bytes | str | None):
        return value
    if depth > 6:
        return type(value).__name__
    if isinstance(value, dict):
        return {k: plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))  # the order in which a set is walked depends on how it was filled
    if isinstance(value, list | tuple):
        return [plain(v, depth + 1) for v in value]
    names = list(getattr(value, "__dict__", {})) + [n for n in getattr(type(value), "__slots__", ()) if n != "__dict__"]
    return type(value).__name__, {name: plain(getattr(value, name), depth + 1) for name in names}


def test_a_state_that_was_frozen_goes_on_as_if_it_never_was() -> None:
    events = list(placed(2500))
    state = with_game(folded(events[:1300]))
    again = back(state)
    assert again.games == state.games and again.games[1].is_over
    for part in ("works", "openings", "attestations", "money", "unsettled", "unclosed", "final_at"):
        assert getattr(folded(events[1300:], back(state)), part) == getattr(folded(events[1300:], back(again)), part)
    assert plain(folded(events[1300:], again)) == plain(folded(events[1300:], state))


def test_records_that_two_books_share_stay_one() -> None:
    again = back(folded(list(placed(200))))
    place, work = next(iter(again.unsettled.items()))
    assert again.works[place] is work
    assert again.books.duties.tickets is again.books.registry is again.books.tickets


def test_the_terms_are_those_of_the_reader_not_of_the_bytes() -> None:
    other = replace(FACTS, rounds=replace(FACTS.rounds, commit=1))
    again = back(folded(list(placed(200))), other)
    assert again.books.facts is other and again.books.terms is other.rounds


def test_a_state_above_64_seats_is_frozen_too() -> None:
    large = replace(FACTS, rounds=replace(FACTS.rounds, seats=128, seat_fee=Wei(1)))
    assert type(back(RunState.of(large), large).books.generations).__name__ == "ToldGroupedGenerations"


class CallPickled:
    """A pickle of it calls what it names."""

    def __init__(self, *call: Any) -> None:
        self._call = call

    def __reduce__(self) -> Any:
        return self._call


@pytest.mark.parametrize("call", [os.mkdir, os.makedirs, Path], ids=["builtin", "function", "class"])
def test_bytes_that_name_anything_but_values_call_nothing(call: Any, tmp_path: Path) -> None:
    made = tmp_path / "made"
    what = CallPickled(call, (str(made),)) if call is not Path else CallPickled(Path.mkdir, (made,))
    assert thaw(pickle.dumps(what), FACTS) is None
    assert not made.exists()


@pytest.mark.parametrize("what", [[1], RunState, FACTS], ids=["a-list", "a-class", "another-value"])
def test_bytes_of_another_value_are_no_state(what: Any) -> None:
    assert thaw(pickle.dumps(what), FACTS) is None


def test_no_bytes_of_any_kind_raise() -> None:
    body = freeze(folded(list(placed(100))))
    assert body is not None
    for k in range(0, len(body), 97):
        thaw(body[:k], FACTS)
        thaw(body[:k] + b"\xff" + body[k + 1 :], FACTS)
