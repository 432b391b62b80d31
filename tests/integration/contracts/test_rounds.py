"""Seats, rounds and commitments, on contracts and model at once: where work starts, what it locks, when it exists."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.digests import state_digest
from assay.protocol.model import ids
from assay.protocol.types import Digest, Round, Seat
from tests.harness.contracts.world import ETHER, RunWorld
from tests.harness.ledger.strangers import (
    CHEATING_SOLVERS,
    HONEST_SOLVERS,
    HONEST_VERIFIERS,
    LAZY_VERIFIER,
    STRANGER,
    Strangers,
)
from tests.harness.ledger.truth import TrueWork, do_work, mark
from tests.integration.contracts.conftest import strangers_on

SOLVER, CHEAT = HONEST_SOLVERS[0], CHEATING_SOLVERS[0]
S = 60 * ETHER
FEE = 2 * ETHER


def open_round(s: Strangers) -> Round:
    assert s.play.open_round(s.people[STRANGER]) is None
    return s.latest()


def finish_round(s: Strangers) -> None:
    """To T7 with every honest duty kept, and the true outer step posted."""
    s.towards(s.times().t7)
    s.keep_posting()


def work_of(s: Strangers, k: int, lie: int | None = None) -> tuple[Round, Seat, TrueWork, Digest]:
    """Work that the contract accepts from person k in the round under way."""
    round_, seat = s.latest(), s.seat_of(k)
    assert seat is not None
    base = s.truth[round_]
    _, start = s.ledger.rounds.start_of(round_, seat, base)
    parameters = s.ledger.outers.roots[round_, base].parameters
    return round_, seat, do_work(start, parameters, s.ledger.charter.training.intervals, lie), base


# --- seats


def test_who_joins_is_seated_at_the_next_t0(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    assert s.play.join(s.people[CHEAT]) is None
    assert s.seat_of(CHEAT) is None
    finish_round(s)
    open_round(s)
    assert s.seat_of(CHEAT) == 3
    assert s.world.call("rounds", "rosterOf", 1) == s.ledger.rounds.rosters[1]


def test_there_are_eight_seats(strangers: Strangers) -> None:
    s = strangers
    for k in (0, 4, 5, 6, 7):
        assert s.play.join(s.people[k]) is None
    assert s.play.join(s.people[8]) == "SeatsFull"
    assert s.play.join(s.people[0]) == "AlreadySeated"


def test_leaving_before_t0_is_free_a_missed_commitment_costs_fee_and_seat(strangers: Strangers) -> None:
    s = strangers
    lazy, leaver = s.people[CHEATING_SOLVERS[0]], s.people[CHEATING_SOLVERS[1]]
    assert s.play.join(lazy) is None and s.play.join(leaver) is None
    assert s.play.leave_seat(leaver) is None
    assert s.ledger.vault.lock_amount(ids.seat_lock(leaver)) == 0
    open_round(s)
    burned = s.ledger.vault.burned
    finish_round(s)
    open_round(s)
    assert s.ledger.vault.burned - burned == FEE
    assert lazy not in s.ledger.rounds.rosters[1]
    assert s.world.call("vault", "lockOf", ids.seat_lock(lazy)) == (bytes(20), 0)


def test_leaving_while_a_commitment_is_owed_waits_for_it(strangers: Strangers) -> None:
    s = strangers
    me = s.people[CHEAT]
    assert s.play.join(me) is None
    open_round(s)
    assert s.play.leave_seat(me) is None
    assert me in s.ledger.rounds.holders and s.ledger.vault.lock_amount(ids.seat_lock(me)) == FEE
    assert s.commit(CHEAT, *work_of(s, CHEAT)[:2], None, s.truth[0]) is None
    burned = s.ledger.vault.burned
    finish_round(s)
    open_round(s)
    assert s.ledger.vault.burned == burned and me not in s.ledger.rounds.rosters[1]


# --- rounds


def test_a_round_opens_at_t7_with_an_outer_root_standing_and_no_sooner(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    s.towards(s.times().leaves_until)
    s.play.now = s.times().t7 - 2
    assert s.play.open_round(s.people[STRANGER]) == "TooEarly"
    assert s.play.open_round(s.people[STRANGER]) == "NoOuterRoot"
    s.keep_posting()
    assert s.play.open_round(s.people[STRANGER]) is None


def test_no_round_opens_without_solvers_or_without_money_for_it(world: RunWorld) -> None:
    s = strangers_on(world, endowment=5_000 * ETHER)
    for k in HONEST_SOLVERS:
        assert s.play.leave_seat(s.people[k]) is None
    assert s.play.open_round(s.people[STRANGER]) == "NoSeats"
    # What a round can cost is set aside: opening rounds without end meets the bottom of the escrow.
    per_round = None
    for k in HONEST_SOLVERS:
        assert s.play.join(s.people[k]) is None
    while s.play.open_round(s.people[STRANGER]) is None:
        reserved = s.ledger.settlement.reserved_total
        per_round = per_round or reserved
        assert s.world.call("settlement", "reservedTotal") == reserved == per_round * (s.latest() + 1)
        finish_round(s)
    assert s.play.refused["openRound:EscrowShort"] == 1
    assert s.ledger.settlement.escrow - s.ledger.settlement.reserved_total < per_round


# --- the start


def test_work_from_any_other_start_is_refused(strangers: Strangers) -> None:
    """The plain form of a stale start: last round's weights, somebody else's seat, a made-up optimizer."""
    s = strangers
    open_round(s)
    first = work_of(s, SOLVER)
    finish_round(s)
    round_ = open_round(s)
    _, seat, work, base = work_of(s, SOLVER)
    other_seat = s.ledger.rounds.start_of(round_, Seat(1), base)[1]
    intervals = s.ledger.charter.training.intervals
    for start in (first[2].roots[0], other_seat, mark("invented"), state_digest((mark("a"), mark("b"), mark("c")))):
        wrong = do_work(start, mark("p"), intervals, None)
        assert s.play.commit(s.people[SOLVER], round_, seat, wrong, base) == "StartMismatch"
    stale = s.ledger.rounds.start_of(round_, seat, s.truth[0])[1]
    stale_base = replace(work, roots=do_work(stale, mark("p"), intervals, None).roots)
    assert s.play.commit(s.people[SOLVER], round_, seat, stale_base, s.truth[0]) == "BaseNotStanding"
    assert s.play.commit(s.people[SOLVER], round_, seat, work, base) is None


def test_roots_and_list_roots_must_fit_together(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    round_, seat, work, base = work_of(s, SOLVER)
    me = s.people[SOLVER]
    assert s.play.commit(me, round_, seat, replace(work, roots=work.roots[:-1]), base) == "WrongCount"
    assert s.play.commit(me, round_, seat, replace(work, roots=(*work.roots, work.roots[-1])), base) == "WrongCount"
    lists = (work.end_lists[1], work.end_lists[0], work.end_lists[2])
    assert s.play.commit(me, round_, seat, replace(work, end_lists=lists), base) == "EndMismatch"
    ends = (*work.roots[:-1], mark("another end"))
    assert s.play.commit(me, round_, seat, replace(work, roots=ends), base) == "EndMismatch"


def test_one_commitment_per_seat_and_round_by_its_holder_until_t1(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    round_, seat, work, base = work_of(s, SOLVER)
    assert s.play.commit(s.people[HONEST_SOLVERS[1]], round_, seat, work, base) == "NotSeated"
    assert s.play.commit(s.people[SOLVER], Round(1), seat, work, base) == "RoundNotOpen"
    s.play.now = s.times().t1 - 1
    assert s.play.commit(s.people[SOLVER], round_, seat, work, base) is None  # at T1 itself
    assert s.play.commit(s.people[SOLVER], round_, seat, work, base) == "TooLate"


def test_a_commitment_locks_s_and_cannot_be_made_without_it(strangers: Strangers) -> None:
    s = strangers
    me = s.people[SOLVER]
    open_round(s)
    round_, seat, work, base = work_of(s, SOLVER)
    free = s.ledger.vault.free_of(me)
    assert s.play.request_exit(me, free - S + 1) is None
    assert s.play.commit(me, round_, seat, work, base) == "InsufficientFree"
    assert s.play.deposit(me, 1) is None
    assert s.play.commit(me, round_, seat, work, base) is None
    assert s.ledger.vault.free_of(me) == 0
    assert s.world.call("vault", "lockOf", ids.commitment_lock(round_, seat)) == (me, S)


# --- receipts


def test_half_of_the_stake_does_not_make_a_commitment_and_more_does(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    assert s.commit(SOLVER, *work_of(s, SOLVER)[:2], None, s.truth[0]) is None
    seat = s.seat_of(SOLVER)
    first, second = (s.people[k] for k in HONEST_VERIFIERS)  # 250 and 250 tokens
    assert s.play.receipt(first, Round(0), seat) is None
    assert not s.world.call("rounds", "isComplete", 0, seat)
    assert s.play.receipt(first, Round(0), seat) == "AlreadyReceipted"
    assert s.play.receipt(s.people[STRANGER], Round(0), seat) == "NotAVerifier"
    s.play.now = s.times().receipts_until - 1
    assert s.play.receipt(second, Round(0), seat) is None
    assert s.world.call("rounds", "isComplete", 0, seat)


def test_a_receipt_names_the_commitment_that_was_fetched(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    assert s.commit(SOLVER, *work_of(s, SOLVER)[:2], None, s.truth[0]) is None
    seat, verifier = s.seat_of(SOLVER), s.people[HONEST_VERIFIERS[0]]
    digest = mark("what a reorganization replaced")
    receipt = s.ledger.rounds.receipt
    refusal = s.play.do(
        verifier, "rounds", "receipt", 0, seat, digest,
        model=lambda: receipt(verifier, Round(0), seat, digest, s.play.now),
    )  # fmt: skip
    assert refusal == "CommitmentMismatch"


def test_stake_that_came_after_t0_counts_from_the_second_t0(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    assert s.play.register(s.people[LAZY_VERIFIER], 1, 400 * ETHER) is None  # type: ignore[arg-type]
    who, role = s.people[LAZY_VERIFIER], 1
    expected = {0: 0, 1: 0, 2: 400 * ETHER}
    for round_, stake in expected.items():
        assert s.world.call("audit", "stakeAt", who, round_) == stake
        assert s.world.call("audit", "totalAt", role, round_) == 500 * ETHER + stake
    assert s.commit(SOLVER, *work_of(s, SOLVER)[:2], None, s.truth[0]) is None
    assert s.play.receipt(who, Round(0), s.seat_of(SOLVER)) == "NotAVerifier"


def test_what_was_not_fetched_does_not_exist_and_costs_nothing(strangers: Strangers) -> None:
    s = strangers
    me = s.people[CHEAT]
    assert s.play.join(me) is None
    open_round(s)
    round_, seat, work, base = work_of(s, CHEAT)
    assert s.play.commit(me, round_, seat, work, base) is None
    s.withheld.add((round_, seat))
    finish_round(s)
    assert s.world.call("outers", "inclusionOf", 0, base)[0] == 0b0111
    ref = s.work_ref(round_, seat, 0)
    assert s.play.open_game(s.people[STRANGER], ref, True) == "NotChallengeable"
    before = s.wealth_of(CHEAT)
    assert s.play.settle_work(s.people[STRANGER], round_, seat) is None
    assert s.world.call("rounds", "commitmentOf", round_, seat)[4] is True
    assert s.ledger.vault.lock_amount(ids.commitment_lock(round_, seat)) == 0
    assert s.wealth_of(CHEAT) == before
    # Its next start is where this one had started.
    open_round(s)
    assert s.ledger.rounds.start_of(Round(1), seat, s.truth[1])[0] == s.ledger.charter.training.zero_optimizer


# --- the optimizer that is carried


def test_the_optimizer_is_carried_from_the_last_complete_commitment(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    seat = s.seat_of(SOLVER)
    finish_round(s)
    round_ = open_round(s)
    ended_in = s.ledger.rounds.commitments[Round(0), seat].optimizer
    assert s.world.call("rounds", "startOf", round_, seat, s.truth[round_])[1] == ended_in


def test_a_conviction_resets_the_next_start_and_none_under_way(strangers: Strangers) -> None:
    s = strangers
    me = s.people[CHEAT]
    assert s.play.join(me) is None
    open_round(s)
    assert s.commit(CHEAT, Round(0), Seat(3), 1, s.truth[0]) is None
    finish_round(s)
    games = len(s.play.games)
    assert games > 0
    round_ = open_round(s)
    carried = s.ledger.rounds.commitments[Round(0), Seat(3)].optimizer
    for number in range(games):
        s.end_game(number, True)
    assert s.ledger.rounds.commitments[Round(0), Seat(3)].convicted
    zero_optimizer = s.ledger.charter.training.zero_optimizer
    start = lambda r: s.world.call("rounds", "startOf", r, 3, s.truth[r])[1]  # noqa: E731
    assert start(round_) == carried  # it may have trained on it since T0
    assert s.commit(CHEAT, round_, Seat(3), None, s.truth[round_]) is None
    finish_round(s)
    round_ = open_round(s)
    assert start(round_) == zero_optimizer
    assert s.commit(CHEAT, round_, Seat(3), None, s.truth[round_]) is None
    finish_round(s)
    round_ = open_round(s)
    assert start(round_) == s.ledger.rounds.commitments[Round(2), Seat(3)].optimizer


def test_two_convictions_before_one_commitment_reset_one_start_each(strangers: Strangers) -> None:
    """A later conviction must not hide an earlier one: the start of a round is fixed at its T0."""
    s = strangers
    me = s.people[CHEAT]
    assert s.play.join(me) is None
    for number in range(2):
        open_round(s)
        assert s.commit(CHEAT, Round(number), Seat(3), 0, s.truth[number]) is None
        finish_round(s)
    first = [n for n, g in enumerate(s.play.games) if g.ref.round == 0]
    second = [n for n, g in enumerate(s.play.games) if g.ref.round == 1]
    s.end_game(first[0], True)
    open_round(s)
    s.end_game(second[0], True)
    zero_optimizer = s.ledger.charter.training.zero_optimizer
    assert s.world.call("rounds", "startOf", 2, 3, s.truth[2])[1] == zero_optimizer
    assert s.commit(CHEAT, Round(2), Seat(3), None, s.truth[2]) is None
    finish_round(s)
    open_round(s)
    assert s.world.call("rounds", "startOf", 3, 3, s.truth[3])[1] == zero_optimizer


# --- what a conviction takes


def test_many_false_intervals_cost_s_once(strangers: Strangers) -> None:
    s = strangers
    me = s.people[CHEAT]
    assert s.play.join(me) is None
    open_round(s)
    assert s.commit(CHEAT, Round(0), Seat(3), 0, s.truth[0]) is None
    s.towards(s.times().t7)
    for duty in range(3):
        s.play.open_game(s.people[STRANGER], s.work_ref(Round(0), Seat(3), duty), duty != 0)
    before = s.wealth_of(CHEAT)
    for number in range(len(s.play.games)):
        s.end_game(number, True)
    assert sum(g.ref.seat == 3 for g in s.play.games) >= 3
    assert s.wealth_of(CHEAT) == before - S
    assert s.play.open_game(s.people[STRANGER], s.work_ref(Round(0), Seat(3), 0), False) == "NotChallengeable"
    assert s.play.settle_work(me, Round(0), Seat(3)) is None
    assert s.play.settle_work(me, Round(0), Seat(3)) == "AlreadyClosed"


@pytest.mark.parametrize("moment", ["before T5", "after the window"])
def test_a_claim_is_challengeable_from_t5_until_its_window_ends(strangers: Strangers, moment: str) -> None:
    s = strangers
    open_round(s)
    times, ref = s.times(), s.work_ref(Round(0), Seat(0), 0)
    s.towards(times.t4)
    s.play.now = times.t5 - 1
    if moment == "before T5":
        assert s.play.open_game(s.people[STRANGER], ref, True) == "NotChallengeable"
        assert s.play.open_game(s.people[STRANGER], ref, True) is None
    else:
        s.play.now = times.challenge_until - 1
        assert s.play.open_game(s.people[STRANGER], ref, True) is None
        assert s.play.open_game(s.people[STRANGER], ref, True) == "NotChallengeable"


def test_nothing_is_settled_while_a_game_on_it_is_open(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    finish_round(s)
    times = s.times()
    s.play.now = times.challenge_until - 1
    assert s.play.open_game(s.people[STRANGER], s.work_ref(Round(0), Seat(0), 1), True) is None
    assert s.play.settle_work(s.people[1], Round(0), Seat(0)) == "GamesOpen"
    assert s.play.settle_work(s.people[1], Round(0), Seat(1)) is None
    s.end_game(0, False)
    assert s.play.settle_work(s.people[1], Round(0), Seat(0)) is None
    assert all(s.ledger.rounds.commitments[Round(0), Seat(k)].closed for k in range(2))
