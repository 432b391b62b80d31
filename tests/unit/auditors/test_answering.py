"""Which duties are answered, which pass comes first, when a call is opened: at the last term of each rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.digests import ZERO
from assay.protocol.rounds.duty_types import NO_FINDING, DrawnDuty, DutyKind, ReplayFinding, left_out
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Seat
from assay_ledger.agents.journal import Journal
from assay_verifier.answering import (
    LAST_MOMENT_S,
    ConfirmFinding,
    OpenCall,
    OwnCall,
    OwnDuty,
    Progressed,
    ReplayPass,
    ReplayUnit,
    answers_to,
    auditing,
    last_moment,
    owed,
    passes,
    result_of,
)
from assay_verifier.drawing import Drawn
from assay_verifier.finding_book import Ended, FindingBook
from assay_verifier.pacing import UnitPace
from assay_verifier.replaying import MOST_KEYS

DEADLINE, INCLUSION = 10_000, 600
MOMENT = DEADLINE - INCLUSION - LAST_MOMENT_S
UNITS, STEPS = 60, 4


def digest(n: int) -> Digest:
    return Digest(n.to_bytes(32, "big"))


ENDS = (digest(51), digest(52), digest(53))
WORK = SeatWork(UNITS, digest(50), ENDS, digest(54))
LIE = SeatWork(UNITS, digest(50), ENDS, digest(55))


def drawn(rank: int, seat: int = 0, key: int = 0, audited: tuple[int, ...] = ()) -> Drawn:
    kind = DutyKind.REAUDIT if audited else DutyKind.WORK
    named = DrawnDuty(kind, 1, Seat(seat))
    return Drawn(rank, named, digest(seat), 1, Seat(seat), digest(key or 1000 + rank), tuple(map(digest, audited)))


def duty(rank: int, seat: int = 0, key: int = 0, ticket: int = 1, work: SeatWork = WORK) -> OwnDuty:
    return OwnDuty(TicketId(ticket), drawn(rank, seat, key), digest(200 + seat), work)


def reaudit(rank: int, theirs: ReplayFinding, key: int = 0) -> OwnDuty:
    keys = tuple(int.from_bytes(k, "big") for k in theirs.keys)
    return OwnDuty(TicketId(1), drawn(rank, 0, key, keys), digest(200), WORK, theirs)


@pytest.fixture
def book(tmp_path: Path) -> FindingBook:
    return FindingBook(Journal(tmp_path))


def found(book: FindingBook, *duties: OwnDuty, accumulator: Callable[[Digest], Digest] = lambda key: key) -> None:
    """Every duty was replayed truly; an accumulator is its key unless told otherwise."""
    for own in duties:
        book.add(own.place, Ended(ENDS, WORK.update), {key: accumulator(key) for key in own.keys})


def call(*duties: OwnDuty, ticket: int = 1) -> OwnCall:
    return OwnCall(TicketId(ticket), 3, ZERO, DEADLINE, duties)


def first(
    book: FindingBook,
    *calls: OwnCall,
    now: int = 0,
    unit_s: float | None = None,
    done: int = 0,
    again_s: float | None = None,
    unchecked: int | None = 0,
) -> object:
    """The most urgent action; so many units of every pass are done, and left of every second calculation."""
    counts = {(p.place, p.keys): done for c in calls for p in passes(c.duties, book)}
    places = {own.place: {None, *own.keys} for c in calls for own in c.duties}
    left = {} if unchecked is None else {(place, key): unchecked for place, keys in places.items() for key in keys}
    at = Progressed(counts, left, UnitPace(unit_s, STEPS), UnitPace(again_s, STEPS))
    return next(auditing(calls, book, at, now, INCLUSION), None)


# --- what is owed, and what is replayed for it


def test_the_lowest_draws_are_owed_as_many_as_a_ticket_answers() -> None:
    found_ = [drawn(rank, seat=rank) for rank in (5, 1, 4, 2, 3)]
    assert [one.rank for one in owed(found_, 4)] == [1, 2, 3, 4]
    assert [one.rank for one in owed(found_, 5)] == [1, 2, 3, 4, 5]


def test_duties_on_one_commitment_are_one_pass_under_all_of_their_keys(book: FindingBook) -> None:
    theirs = ReplayFinding(ENDS, WORK.update, (digest(2),), (digest(2),))
    (made,) = passes([reaudit(7, theirs, key=1), duty(3, key=3, ticket=2)], book)
    assert made.rank == 3 and made.keys == (digest(3), digest(1), digest(2))


def test_keys_that_are_known_are_not_run_again(book: FindingBook) -> None:
    found(book, duty(1))
    (made,) = passes([duty(1), duty(2, seat=1)], book)
    assert made.keys == (digest(1002),)


def test_the_pass_of_the_lowest_draw_comes_first(book: FindingBook) -> None:
    assert [made.rank for made in passes([duty(9, 0), duty(2, 1), duty(5, 0)], book)] == [2, 5]


@pytest.mark.parametrize(("keys", "count"), [(MOST_KEYS, 1), (MOST_KEYS + 1, 2)])
def test_a_pass_holds_so_many_keys_and_no_more(keys: int, count: int, book: FindingBook) -> None:
    made = passes([duty(rank, ticket=rank) for rank in range(1, keys + 1)], book)
    assert [p.rank for p in made] == [1, MOST_KEYS + 1][:count]
    assert sum(len(p.keys) for p in made) == keys


# --- in time


def test_the_lowest_pass_that_ends_in_time_is_computed(book: FindingBook) -> None:
    low, high = duty(1, 0), duty(2, 1, work=SeatWork(30, WORK.marks, ENDS, WORK.update))
    made = first(book, call(low, high), now=MOMENT - 120, unit_s=2.0)
    assert isinstance(made, ReplayUnit) and (made.work.rank, made.unit) == (1, 1)
    made = first(book, call(low, high), now=MOMENT - 119, unit_s=2.0)
    assert isinstance(made, ReplayUnit) and (made.work.rank, made.unit) == (2, 1)


def test_what_seems_too_long_is_tried_while_there_is_time_for_a_step(book: FindingBook) -> None:
    made = first(book, call(duty(1)), now=MOMENT - 100, unit_s=400.0)
    assert isinstance(made, ReplayUnit) and (made.work.rank, made.unit) == (1, 1)
    assert first(book, call(duty(1)), now=MOMENT - 99, unit_s=400.0) == OpenCall(TicketId(1), 3, ())


def test_a_pass_goes_on_where_it_stands(book: FindingBook) -> None:
    made = first(book, call(duty(1)), now=MOMENT - 2, unit_s=2.0, done=UNITS - 1)
    assert isinstance(made, ReplayUnit) and made.unit == UNITS


def test_a_call_is_opened_at_its_last_moment_with_what_is_done(book: FindingBook) -> None:
    assert last_moment(DEADLINE, INCLUSION) == MOMENT
    done, missing = duty(1), duty(2, seat=1)
    found(book, done)
    assert isinstance(first(book, call(done, missing), now=MOMENT - 1), ReplayUnit)
    assert first(book, call(done, missing), now=MOMENT) == OpenCall(TicketId(1), 3, (1,))
    assert first(book, call(done, missing), now=DEADLINE) == OpenCall(TicketId(1), 3, (1,))
    assert first(book, call(done, missing), now=DEADLINE + 1) is None


def test_a_call_is_opened_at_once_when_nothing_more_ends_in_time(book: FindingBook) -> None:
    assert first(book, call(duty(1)), now=MOMENT - 1, unit_s=4.1) == OpenCall(TicketId(1), 3, ())


def test_a_call_without_duties_is_opened_too(book: FindingBook) -> None:
    assert first(book, call()) == OpenCall(TicketId(1), 3, ())


def test_a_call_is_opened_when_everything_is_done(book: FindingBook) -> None:
    found(book, duty(1), duty(2, seat=1))
    assert first(book, call(duty(1), duty(2, seat=1))) == OpenCall(TicketId(1), 3, (1, 2))


@pytest.mark.parametrize("draws_more", [False, True])
def test_what_is_left_out_is_named_where_more_was_drawn_than_is_owed(book: FindingBook, draws_more: bool) -> None:
    done, missing, unready = duty(1), duty(2, seat=1), duty(3, seat=2, work=LIE)
    found(book, done, unready)
    made = replace(call(done, missing, unready), draws_more=draws_more)
    named = [left_out(missing.drawn.duty), left_out(unready.drawn.duty)]
    assert answers_to(made, (1, 3), book) == [result_of(done, book), *(named if draws_more else [])]
    # What was not to be opened is named too.
    assert answers_to(made, (), book) == ([left_out(done.drawn.duty), *named] if draws_more else [])


# --- accusations


def test_what_accuses_a_commitment_is_confirmed_before_it_is_opened(book: FindingBook) -> None:
    own = duty(1, work=LIE)
    found(book, own)
    assert first(book, call(own)) == ConfirmFinding(own.place, 1, Seat(0), None, 0)
    book.confirm(own.place, None)
    assert first(book, call(own)) == OpenCall(TicketId(1), 3, (1,))
    assert result_of(own, book).update == WORK.update


def test_what_could_not_be_confirmed_in_time_is_left_out(book: FindingBook) -> None:
    false, true = duty(1, work=LIE), duty(2, seat=1)
    found(book, false, true)
    assert first(book, call(false, true), now=MOMENT) == OpenCall(TicketId(1), 3, (2,))


def test_how_much_is_to_be_computed_again_is_looked_at_first(book: FindingBook) -> None:
    own = duty(1, work=LIE)
    found(book, own)
    made = first(book, call(own, duty(2, seat=1)), now=MOMENT - 1, again_s=9000.0, unchecked=None)
    assert made == ConfirmFinding(own.place, 1, Seat(0), None)


def test_other_duties_come_before_a_second_calculation(book: FindingBook) -> None:
    own, other = duty(1, work=LIE), duty(2, seat=1)
    found(book, own)
    made = first(book, call(own, other), now=MOMENT - 120, unit_s=2.0, again_s=2.0, unchecked=UNITS)
    assert isinstance(made, ReplayUnit) and made.work.rank == 2


def test_a_second_calculation_that_ends_in_time_comes_before_a_pass_that_does_not(book: FindingBook) -> None:
    own, other = duty(1, work=LIE), duty(2, seat=1)
    found(book, own)
    made = first(book, call(own, other), now=MOMENT - 119, unit_s=2.0, again_s=50.0, unchecked=2)
    assert made == ConfirmFinding(own.place, 1, Seat(0), None, 2)
    made = first(book, call(own, other), now=MOMENT - 119, unit_s=2.0, again_s=60.0, unchecked=2)
    assert isinstance(made, ReplayUnit) and made.work.rank == 2


def test_a_call_waits_for_a_second_calculation_while_there_is_time_for_a_step(book: FindingBook) -> None:
    own = duty(1, work=LIE)
    found(book, own)
    made = first(book, call(own), now=MOMENT - 100, again_s=400.0, unchecked=UNITS)
    assert made == ConfirmFinding(own.place, 1, Seat(0), None, UNITS)
    made = first(book, call(own), now=MOMENT - 99, again_s=400.0, unchecked=UNITS)
    assert made == OpenCall(TicketId(1), 3, ())


def test_an_accumulator_that_differs_is_confirmed_under_its_key(book: FindingBook) -> None:
    theirs = ReplayFinding(ENDS, WORK.update, (digest(8), digest(9)), (digest(8), digest(77)))
    own = reaudit(1, theirs)
    found(book, own)
    assert first(book, call(own)) == ConfirmFinding(own.place, 1, Seat(0), digest(9), 0)
    book.confirm(own.place, digest(9))
    assert first(book, call(own)) == OpenCall(TicketId(1), 3, (1,))
    assert result_of(own, book).accumulators == (digest(1001), digest(8), digest(9))


def test_an_attestation_that_agrees_is_opened_without_a_second_look(book: FindingBook) -> None:
    theirs = ReplayFinding(ENDS, WORK.update, (digest(8),), (digest(8),))
    own = reaudit(1, theirs)
    found(book, own)
    assert first(book, call(own)) == OpenCall(TicketId(1), 3, (1,))
    assert result_of(own, book).audited == theirs != NO_FINDING


def test_a_commitment_of_two_calls_is_replayed_once_for_both(book: FindingBook) -> None:
    made = first(book, call(duty(5)), call(duty(3, key=4, ticket=2), ticket=2))
    assert isinstance(made, ReplayUnit)
    assert made.work == ReplayPass(digest(200), 1, Seat(0), UNITS, 3, (digest(4), digest(1005)))
