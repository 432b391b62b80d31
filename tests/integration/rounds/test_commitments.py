"""When the mask closes, and who holds which update, on the contracts and their model at once."""

from __future__ import annotations

import pytest

from assay.protocol.digests import state_digest
from assay.protocol.rounds.terms import RoundTerms
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Round, Seat
from tests.harness.contracts.harness import Reverted
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.samples import TERMS, fields, mark, terms_of, work_of, work_ref
from tests.harness.rounds.world import RoundWorld

C, F, G, A = TERMS.commit, TERMS.inclusion, TERMS.grace, TERMS.hold


def mask_at(w: RoundWorld) -> int:
    return int(w.call("Commitments", "maskClosedAt", w.round))


def is_late(w: RoundWorld, seat: int) -> bool:
    return bool(w.call("Commitments", "workOf", 0, seat)[4])


def test_a_commitment_is_taken_until_its_last_second(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    t0 = w.now
    assert w.commit(people[0], round_=Round(1)) == "RoundNotOpen"
    w.at(t0 + C + F)
    assert w.commit(people[0]) == ""
    w.tick(1)
    assert w.commit(people[1]) == "TooLate"


def test_a_commitment_names_its_base_and_enough_units_once(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    assert w.commit(people[0], base=mark("what a reorganization took away")) == "BaseMismatch"
    assert w.commit(people[0], work_of(1, units=29)) == "UnitsOutOfRange"
    assert w.commit(people[0], work_of(1, units=61)) == "UnitsOutOfRange"
    assert w.commit(people[0], work_of(1, units=30)) == ""
    assert w.commit(people[0], work_of(2)) == "AlreadyCommitted"
    assert w.commit(people[1], work_of(1, units=60)) == ""


def test_the_mask_closes_when_all_have_committed(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    w.tick(100)
    for who in people:
        assert w.commit(who) == ""
    assert mask_at(w) == w.now
    assert w.hold(people[0]) == "TooEarly"
    w.tick(1)
    assert w.hold(people[0]) == ""


def test_the_mask_closes_a_grace_after_all_but_one_committed(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    w.tick(100)
    for who in people[:7]:
        assert w.commit(who) == ""
    closes = w.now + G
    assert mask_at(w) == closes
    w.at(closes)
    assert w.commit(people[7]) == ""
    assert not is_late(w, 7)


def test_two_thirds_close_the_mask_at_the_training_times_end(world: RoundWorld) -> None:
    """B6: last-second committers let nobody wait."""
    w = world
    people = w.begin()
    t0 = w.now
    for who in people[:5]:
        assert w.commit(who) == ""
    assert mask_at(w) == t0 + C + F
    assert w.commit(people[5]) == ""  # 6 of 8 are two thirds
    assert mask_at(w) == t0 + C + G
    w.at(t0 + C + G + 1)
    assert w.commit(people[6]) == ""
    assert is_late(w, 6)
    w.tick(A)
    assert w.commit(people[7]) == ""
    assert mask_at(w) == t0 + C + G


def test_two_thirds_that_come_late_close_the_mask_a_grace_later(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    w.tick(C + G + 100)
    for who in people[:6]:
        assert w.commit(who) == ""
    assert mask_at(w) == w.now + G
    w.tick(G)
    assert w.commit(people[6]) == ""
    assert not is_late(w, 6)
    w.tick(1)
    assert w.commit(people[7]) == ""
    assert is_late(w, 7)


def test_two_thirds_close_the_mask_no_later_than_the_round(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    w.tick(C + F - G + 1)
    for who in people[:6]:
        assert w.commit(who) == ""
    assert mask_at(w) == w.now + G - 1


def test_one_of_two_seats_does_not_close_the_mask_on_the_other(world: RoundWorld) -> None:
    w = world
    people = w.begin(2)
    t0 = w.now
    assert w.commit(people[0]) == ""
    assert mask_at(w) == t0 + C + F
    w.tick(500)
    assert w.commit(people[1]) == ""
    assert mask_at(w) == w.now


@pytest.mark.parametrize(("seats", "closing", "ends"), [(1, 1, 0), (2, 2, 0), (3, 2, G), (3, 3, 0)])
def test_the_mask_of_the_fewest_seats_closes_as_of_many(world: RoundWorld, seats: int, closing: int, ends: int) -> None:
    w = world
    people = w.begin(seats)
    t0 = w.now
    w.tick(100)
    for number, who in enumerate(people[:closing]):
        assert mask_at(w) == (t0 + C + F if number < min(closing, 2) or seats < 3 else w.now + G)
        assert w.commit(who) == ""
    assert mask_at(w) == w.now + ends


def test_a_convicted_holder_says_no_more_whose_work_counts(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    liar, challenger = people[2], w.add_person()
    w.commit_all(people)
    w.tick(1)
    assert w.prepare(ClaimKind.UPDATE, Round(0), w.seat(liar), work_of((liar, 0))) == ""
    game = w.open_game(challenger, work_ref(ClaimKind.UPDATE, Round(0), w.seat(liar)))
    assert w.hold(people[0]) == ""
    w.end_game(game, True)
    assert w.hold(liar) == "NotMyPosition"
    assert w.hold(liar, held=[]) == "NotMyPosition"
    for who in people[3:]:
        assert w.hold(who) == ""
    assert w.model.commitments.hold_until(Round(0), 0) == w.now + G  # the silent delay nobody longer than that
    w.tick(G)
    assert w.hold(people[1]) == ""
    w.tick(1)
    assert w.call("Commitments", "countedOf", 0, 0) == (0xFF, True)


def test_a_word_names_what_is_committed_now_and_one_s_own_position_once(world: RoundWorld) -> None:
    """B8: after a reorganization another commitment stands under the bit."""
    w = world
    people = w.begin()
    w.commit_all(people[:7])
    stranger = w.add_person()
    w.at(mask_at(w))
    assert w.hold(people[0]) == "TooEarly"
    w.tick(1)
    assert w.hold(people[0], acc=mark("what a reorganization took away")) == "AccumulatorMismatch"
    assert w.hold(people[0], held=[0, 7]) == "NotMaskable"
    assert w.hold(people[0], positions=[1]) == "NotMyPosition"
    assert w.hold(people[0], positions=[]) == "NotMyPosition"
    assert w.hold(people[7]) == "NotMyPosition"
    assert w.hold(stranger, positions=[0]) == "NotMyPosition"
    assert w.hold(people[0]) == ""
    assert w.hold(people[0]) == "AlreadySpoke"
    assert w.hold(people[1], held=[]) == ""  # holding none is a word too


def test_speaking_closes_when_all_spoke_or_a_grace_after_half(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    w.commit_all(people)
    w.tick(1)
    until = w.model.commitments.hold_until(Round(0), 0)
    assert until == mask_at(w) + A
    for who in people[:4]:
        assert w.hold(who) == ""
    assert w.model.commitments.hold_until(Round(0), 0) == until
    assert w.hold(people[4]) == ""
    assert w.call("Commitments", "holdUntil", 0, 0) == w.now + G
    w.tick(G)
    for who in people[5:7]:
        assert w.hold(who) == ""
    w.tick(1)
    assert w.hold(people[7]) == "TooLate"


def test_speaking_closes_when_its_window_ends_and_the_silent_count_for_nothing(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    w.commit_all(people)
    w.at(mask_at(w) + A)
    assert w.hold(people[0], held=[1, 2]) == ""
    assert w.call("Commitments", "countedOf", 0, 0) == (0b110, False)
    w.tick(1)
    assert w.hold(people[1]) == "TooLate"
    assert w.call("Commitments", "countedOf", 0, 0) == (0b110, True)


@pytest.mark.parametrize(("spoke", "least"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 4), (6, 4), (7, 5), (8, 6)])
def test_an_update_counts_at_two_thirds_of_those_that_spoke(world: RoundWorld, spoke: int, least: int) -> None:
    """A1: half and one more can neither complete what nobody else can fetch nor deny what the others hold."""
    w = world
    people = w.begin()
    w.commit_all(people)
    w.tick(1)
    for number, who in enumerate(people[:spoke]):
        held = [0] * (number < least) + [1] * (number < least - 1)
        assert w.hold(who, held) == ""
    assert w.call("Commitments", "countedOf", 0, 0)[0] == 0b01


def test_x_of_a_claim_is_built_from_the_work_that_was_committed(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    work = work_of((people[0], 0))
    assert w.commit(people[0]) == ""
    other = work_of("other")
    for kind in (ClaimKind.INTERVAL, ClaimKind.UPDATE):
        assert w.prepare(kind, Round(0), Seat(0), other) == "WorkMismatch"
        assert w.call("Commitments", "claimOf", (int(kind), 0, 0, 0, bytes(20), bytes(32)))[7] == 0
        assert w.prepare(kind, Round(0), Seat(0), work) == ""
        view = w.call("Commitments", "claimOf", (int(kind), 0, 0, 0, bytes(20), bytes(32)))
        assert view[2:4] == w.model.commitments.claims[kind, Round(0), Seat(0)][:2]
        assert view[5] == (300 if kind is ClaimKind.INTERVAL else 1)
    start = w.model.commitments.start_of(Round(0), Seat(0))
    assert start[0] == TERMS.parameters
    assert w.call("Commitments", "startOf", 0, 0)[3] == start[1]
    assert w.model.commitments.claims[ClaimKind.UPDATE, Round(0), Seat(0)][0] == state_digest((start[0], work.ends[0]))


@pytest.mark.parametrize("kind", [ClaimKind.NONE, ClaimKind.OUTER, ClaimKind.ATTESTATION])
def test_no_claim_of_another_kind_is_prepared_from_work(world: RoundWorld, kind: ClaimKind) -> None:
    w = world
    people = w.begin()
    assert w.commit(people[0]) == ""
    assert w.prepare(kind, Round(0), Seat(0), work_of("other")) == "WorkMismatch"
    assert w.prepare(kind, Round(0), Seat(0), work_of((people[0], 0))) == "ClaimNotFound"
    assert w.call("Commitments", "claimOf", (int(kind), 0, 0, 0, bytes(20), bytes(32)))[7] == 0
    beyond = max(ClaimKind) + 1
    assert w.refusal("Commitments", "prepare", beyond, 0, 0, fields(work_of((people[0], 0)))) == "0x"


@pytest.mark.parametrize(
    ("what", "terms"),
    [
        ("seats", terms_of(seats=0)),
        ("seats", terms_of(seats=1025, group_size=32)),
        ("group size", terms_of(seats=65, group_size=65)),
        ("group size", terms_of(seats=65, group_size=0)),
        ("positions", terms_of(seats=65, positions=64)),
        ("positions", terms_of(seats=65, positions=0)),
        ("top positions", terms_of(seats=65, top_positions=64)),
        ("top positions", terms_of(seats=65, top_positions=0)),
        ("groups", terms_of(seats=129, group_size=2)),
        ("least units", terms_of(min_units=0)),
        ("least units", terms_of(min_units=61)),
        ("steps per unit", terms_of(steps_per_unit=0)),
        ("steps", terms_of(max_units=2**31, steps_per_unit=2)),
        ("shards", terms_of(shards=7)),
        ("rounds", terms_of(rounds=2**24)),
        ("grace", terms_of(grace=601, hold=700)),
        ("grace", terms_of(grace=121)),
    ],
)
def test_terms_that_contradict_each_other_are_refused_by_name(chain: RoundChain, what: str, terms: RoundTerms) -> None:
    with pytest.raises(Reverted, match=r"RoundTermOutOfRange") as refused:
        chain.try_deploy("Commitments", terms)
    assert refused.value.values[0].rstrip(b"\0") == what.encode()
