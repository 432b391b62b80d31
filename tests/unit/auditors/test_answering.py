"""Which duties are answered, which pass comes first, when a call is opened: at the last term of each rule."""

from __future__ import annotations

import pytest

from assay.protocol.rounds.duty_types import DrawnDuty, DutyKind
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Seat
from assay_verifier.answering import (
    LAST_MOMENT_S,
    OwnDuty,
    ReplayPass,
    is_time_to_open,
    last_moment,
    next_pass,
    owed,
    passes,
)
from assay_verifier.replaying import MOST_KEYS

DEADLINE, INCLUSION = 10_000, 600


def digest(n: int) -> Digest:
    return Digest(n.to_bytes(32, "big"))


def duty(rank: int, seat: int = 0, keys: tuple[int, ...] = (), ticket: int = 1, round_: int = 1) -> OwnDuty:
    named = DrawnDuty(DutyKind.WORK, round_, Seat(seat))
    made = tuple(digest(k) for k in keys or (1000 + rank,))
    return OwnDuty(TicketId(ticket), 3, rank, named, digest(seat), round_, Seat(seat), 60, made)


def all_of(*duties: OwnDuty) -> tuple[ReplayPass, ...]:
    return passes(duties, lambda own, key: False)


def a_pass(rank: int, units: int = 60) -> ReplayPass:
    return ReplayPass(1, Seat(rank), units, rank, (digest(rank),))


def test_the_lowest_draws_are_owed_as_many_as_a_ticket_answers() -> None:
    drawn = [duty(rank, seat=rank) for rank in (5, 1, 4, 2, 3)]
    assert [own.rank for own in owed(drawn, 4)] == [1, 2, 3, 4]
    assert [own.rank for own in owed(drawn, 5)] == [1, 2, 3, 4, 5]


def test_duties_on_one_commitment_are_one_pass_under_all_of_their_keys() -> None:
    (made,) = all_of(duty(7, keys=(1, 2)), duty(3, keys=(3, 2), ticket=2))
    assert made.rank == 3 and made.keys == (digest(3), digest(2), digest(1))


def test_the_same_seat_of_another_round_is_another_pass() -> None:
    assert len(all_of(duty(1, round_=1), duty(2, round_=2))) == 2


def test_keys_that_are_known_are_not_run_again() -> None:
    duties = [duty(1, keys=(1, 2)), duty(2, seat=1, keys=(3,))]
    (made,) = passes(duties, lambda own, key: key in (digest(1), digest(3)))
    assert made.keys == (digest(2),)


def test_the_pass_of_the_lowest_draw_comes_first() -> None:
    assert [made.rank for made in all_of(duty(9, 0), duty(2, 1), duty(5, 0))] == [2, 5]


@pytest.mark.parametrize(("keys", "passes_"), [(MOST_KEYS, 1), (MOST_KEYS + 1, 2)])
def test_a_pass_holds_so_many_keys_and_no_more(keys: int, passes_: int) -> None:
    made = all_of(duty(1, keys=tuple(range(1, keys + 1))))
    assert len(made) == passes_ and {made[-1].rank} == {1}
    assert sum(len(p.keys) for p in made) == keys


def test_a_pass_that_ends_in_time_to_the_second_is_gone_on_with() -> None:
    wanted = [a_pass(1)]
    assert next_pass(wanted, {}, 60 * 2.0, 2.0) == wanted[0]
    assert next_pass(wanted, {}, 60 * 2.0 - 0.1, 2.0) is None
    assert next_pass(wanted, {wanted[0]: 59}, 2.0, 2.0) == wanted[0]
    assert next_pass(wanted, {wanted[0]: 59}, 1.9, 2.0) is None


def test_a_pass_that_does_not_end_in_time_is_left_for_one_that_does() -> None:
    low, high = a_pass(1, 60), a_pass(2, 30)
    assert next_pass([low, high], {}, 100.0, 2.0) == high
    assert next_pass([low, high], {low: 20}, 100.0, 2.0) == low


def test_the_first_unit_shows_how_long_one_takes() -> None:
    assert next_pass([a_pass(1)], {}, 1.0, None) == a_pass(1)
    assert next_pass([a_pass(1)], {}, 0.0, None) is None


def test_a_call_is_opened_at_its_last_moment_with_what_is_done() -> None:
    moment = last_moment(DEADLINE, INCLUSION)
    assert moment == DEADLINE - INCLUSION - LAST_MOMENT_S
    assert not is_time_to_open(1, moment - 1, DEADLINE, INCLUSION, hopeless=False)
    assert is_time_to_open(1, moment, DEADLINE, INCLUSION, hopeless=False)
    assert is_time_to_open(1, DEADLINE, DEADLINE, INCLUSION, hopeless=False)
    assert not is_time_to_open(1, DEADLINE + 1, DEADLINE, INCLUSION, hopeless=False)


@pytest.mark.parametrize("hopeless", [False, True])
def test_a_call_is_opened_at_once_when_nothing_more_is_to_come(hopeless: bool) -> None:
    assert is_time_to_open(int(hopeless), 0, DEADLINE, INCLUSION, hopeless)
