"""Outer steps: who is included, whose root stands, and what becomes of work on a root that falls."""

from __future__ import annotations

import pytest

from assay.protocol.digests import state_digest
from assay.protocol.model import ids
from assay.protocol.model.outers import mask_list, outer_input
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Digest, Round, Seat, Status
from tests.harness.contracts.world import ETHER
from tests.harness.ledger.strangers import CHEATING_SOLVERS, HONEST_SOLVERS, HONEST_VERIFIERS, STRANGER, Strangers
from tests.harness.ledger.truth import mark

CHEAT, SECOND_CHEAT = CHEATING_SOLVERS
W = 100 * ETHER


def open_round(s: Strangers) -> Round:
    assert s.play.open_round(s.people[STRANGER]) is None
    return s.latest()


def post(s: Strangers, k: int, round_: int, base: Digest, false: bytes = b"") -> tuple[str | None, Digest]:
    """Person k posts the true step from a base, or a false one named by `false`."""
    lists = s.true_outer_of(Round(round_), base)
    if false:
        lists = (mark("false", false, lists[0]), lists[1])
    return s.play.post_outer(s.people[k], Round(round_), base, *lists), state_digest(lists)


def outer_ref(s: Strangers, round_: int, root: Digest, k: int) -> ClaimRef:
    return ClaimRef(ClaimKind.OUTER, Round(round_), party=s.people[k], outer_root=root)


def fell(s: Strangers, ref: ClaimRef, is_true: bool = False) -> None:
    """A game on the claim, which its poster loses."""
    assert s.play.open_game(s.people[STRANGER], ref, is_true) is None
    s.end_game(len(s.play.games) - 1, True)


def cheating_run(s: Strangers, lie: int | None = None) -> Round:
    """A first round with a cheat in seat 3, at T7; nothing is posted."""
    assert s.play.join(s.people[CHEAT]) is None
    round_ = open_round(s)
    assert s.commit(CHEAT, round_, Seat(3), lie, s.truth[0]) is None
    s.towards(s.times().t7)
    return round_


# --- inclusion


def test_x_holds_base_updates_and_mask(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    s.towards(s.times().t7)
    base, training = s.truth[0], s.ledger.charter.training
    mask, x, fixed = s.world.call("outers", "inclusionOf", 0, base)
    updates = [training.zero_update] * 8
    for k in range(3):
        updates[k] = s.ledger.rounds.commitments[Round(0), Seat(k)].update
    assert (mask, fixed) == (0b111, False)
    assert x == outer_input(training.parameters, training.momentum, tuple(updates), mask)
    assert s.world.call("outers", "genesis") == state_digest((training.parameters, training.momentum))


def test_every_mask_has_its_own_list() -> None:
    assert len({mask_list(mask) for mask in range(256)}) == 256


def test_a_revealed_mismatch_leaves_the_seat_out(strangers: Strangers) -> None:
    s = strangers
    cheating_run(s, lie=1)
    assert s.world.call("outers", "inclusionOf", 0, s.truth[0])[0] == 0b0111
    assert s.ledger.rounds.commitments[Round(0), Seat(3)].excluded


def test_work_from_another_base_is_not_included(strangers: Strangers) -> None:
    s = strangers
    cheating_run(s)
    refusal, false_root = post(s, CHEAT, 0, s.truth[0], b"1")
    assert refusal is None
    s.keep_posting()
    open_round(s)
    assert s.commit(CHEAT, Round(1), Seat(3), None, false_root) is None
    s.towards(s.times().t7)
    assert s.world.call("outers", "inclusionOf", 1, s.truth[1])[0] == 0b0111
    assert s.world.call("outers", "inclusionOf", 1, false_root)[0] == 0b1000


def test_the_first_post_fixes_what_is_included(strangers: Strangers) -> None:
    """A conviction after T7 moves money only: two honest posters claim the same step."""
    s = strangers
    s.withheld.add((Round(0), Seat(0)))
    cheating_run(s)
    refusal, root = post(s, HONEST_VERIFIERS[0], 0, s.truth[0])
    assert refusal is None
    before = s.world.call("outers", "inclusionOf", 0, s.truth[0])
    fell(s, s.work_ref(Round(0), Seat(3), 0), is_true=True)  # it loses a true claim on purpose
    assert s.world.call("outers", "inclusionOf", 0, s.truth[0]) == before
    assert post(s, HONEST_VERIFIERS[1], 0, s.truth[0]) == (None, root)


# --- posting


def test_members_post_from_t7_on_against_a_lock_of_one_price(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    s.towards(s.times().leaves_until)
    s.play.now = s.times().t7 - 2
    poster = HONEST_SOLVERS[0]
    assert post(s, poster, 0, s.truth[0])[0] == "TooEarly"
    assert post(s, STRANGER, 0, s.truth[0])[0] == "NotAMember"
    refusal, root = post(s, poster, 0, s.truth[0])
    assert refusal is None
    assert s.world.call("vault", "lockOf", ids.outer_lock(Round(0), root, s.people[poster])) == (s.people[poster], W)
    assert post(s, poster, 0, s.truth[0])[0] == "AlreadyPosted"


def test_a_post_for_an_inclusion_that_has_moved_is_refused_and_locks_nothing(strangers: Strangers) -> None:
    # A mismatch or a conviction mined just before an honest post would make its step another claim's.
    s = strangers
    cheating_run(s, lie=1)
    me, base = s.people[HONEST_SOLVERS[0]], s.truth[0]
    lists = s.true_outer_of(Round(0), base)
    free = s.world.call("vault", "free", me)
    assert s.play.post_outer(me, Round(0), base, *lists, x=mark("the inclusion before")) == "InclusionMoved"
    assert s.world.call("vault", "free", me) == free
    assert s.play.post_outer(me, Round(0), base, *lists) is None


def test_a_step_from_a_root_that_does_not_stand_is_refused(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    s.towards(s.times().t7)
    lists = (mark("a"), mark("b"))
    me = s.people[HONEST_SOLVERS[0]]
    assert s.play.post_outer(me, Round(0), mark("no such root"), *lists) == "BaseNotStanding"
    assert s.play.post_outer(me, Round(1), s.truth[0], *lists) == "RoundNotOpen"


def test_an_old_round_gets_a_new_root_only_when_nothing_of_it_stands(strangers: Strangers) -> None:
    s = strangers
    for _ in range(3):
        open_round(s)
        s.towards(s.times().t7)
        s.keep_posting()
    assert post(s, HONEST_SOLVERS[0], 0, s.truth[0], b"1")[0] == "RoundPassed"


# --- standing and falling


def test_a_root_stands_while_one_of_its_posters_does(strangers: Strangers) -> None:
    s = strangers
    cheating_run(s)
    refusal, root = post(s, CHEAT, 0, s.truth[0])
    assert refusal is None
    assert post(s, HONEST_VERIFIERS[0], 0, s.truth[0]) == (None, root)
    fell(s, outer_ref(s, 0, root, CHEAT), is_true=True)
    assert s.world.call("outers", "isStanding", 1, root)
    assert s.wealth_of(CHEAT) < 0
    assert s.play.open_round(s.people[STRANGER]) is None


def test_a_root_falls_with_its_last_poster_and_can_be_reposted_for_a_while(strangers: Strangers) -> None:
    s = strangers
    cheating_run(s)
    refusal, root = post(s, CHEAT, 0, s.truth[0])
    assert refusal is None
    fell(s, outer_ref(s, 0, root, CHEAT), is_true=True)
    assert not s.world.call("outers", "isStanding", 1, root)
    assert s.world.call("outers", "standingCount", 1) == 0
    assert s.play.open_round(s.people[STRANGER]) == "NoOuterRoot"
    s.play.now += s.ledger.charter.windows.rescue - 5
    assert s.world.call("outers", "statusOf", 1, root) == Status.OPEN
    assert post(s, HONEST_VERIFIERS[0], 0, s.truth[0]) == (None, root)
    assert s.world.call("outers", "isStanding", 1, root)


def test_a_root_that_nobody_backs_again_is_dead(strangers: Strangers) -> None:
    s = strangers
    cheating_run(s)
    refusal, root = post(s, CHEAT, 0, s.truth[0], b"1")
    assert refusal is None
    fell(s, outer_ref(s, 0, root, CHEAT))
    s.play.now = s.ledger.outers.roots[Round(1), root].rescue_until
    refusal, again = post(s, HONEST_SOLVERS[0], 0, s.truth[0], b"1")
    assert (refusal, again) == ("RescueOver", root)
    assert s.world.call("outers", "statusOf", 1, root) == Status.VOID


def test_work_on_a_root_that_fell_is_void_and_unpaid_and_never_slashed(strangers: Strangers) -> None:
    s = strangers
    cheating_run(s)
    assert s.play.join(s.people[SECOND_CHEAT]) is None
    refusal, root = post(s, SECOND_CHEAT, 0, s.truth[0], b"1")
    assert refusal is None
    s.keep_posting()
    open_round(s)
    assert s.commit(CHEAT, Round(1), Seat(3), None, root) is None  # true work on a false root
    s.towards(s.times().t1)
    fell(s, outer_ref(s, 0, root, SECOND_CHEAT))
    s.towards(s.times().t7)
    s.keep_posting()
    ref = outer_ref(s, 0, s.truth[1], HONEST_VERIFIERS[0])
    until = s.ledger.book_of(ref).claim_of(ref).challengeable_until
    s.towards(max(until, s.times().challenge_until) + 10)
    before = s.wealth_of(CHEAT)
    assert s.play.settle_work(s.people[STRANGER], Round(1), Seat(3)) is None
    assert s.wealth_of(CHEAT) == before
    assert ids.work_grant(Round(1), Seat(3)) not in s.ledger.settlement.grants
    assert not s.ledger.rounds.commitments[Round(1), Seat(3)].convicted
    # Work on the true root waits until that root is final, and is paid.
    assert s.play.settle_work(s.people[STRANGER], Round(1), Seat(0)) == "BaseNotFinal"
    assert s.play.finalize_outer(s.people[STRANGER], Round(0), s.truth[1], s.people[HONEST_VERIFIERS[0]]) is None
    assert s.settle_work(s.people[STRANGER], Round(1), Seat(0)) is None
    assert s.ledger.rounds.commitments[Round(1), Seat(0)].closed


def test_a_step_from_a_fallen_base_is_void_and_its_lock_returns(strangers: Strangers) -> None:
    s = strangers
    cheating_run(s)
    refusal, root = post(s, CHEAT, 0, s.truth[0], b"1")
    assert refusal is None
    assert s.play.open_game(s.people[STRANGER], outer_ref(s, 0, root, CHEAT), False) is None
    s.keep_posting()
    open_round(s)
    assert s.commit(CHEAT, Round(1), Seat(3), None, s.truth[1]) is None
    s.towards(s.times().t7)
    refusal, onward = post(s, CHEAT, 1, root)  # the true step from a false base: mask 0, nothing changed
    assert refusal is None
    assert s.play.void_outer(s.people[STRANGER], Round(1), onward, s.people[CHEAT]) == "BaseNotVoid"
    # The false base falls in a game that was opened in time, is not posted again, and the step on it goes with it.
    s.end_game(len(s.play.games) - 1, True)
    s.play.now += s.ledger.charter.windows.rescue
    before = s.wealth_of(CHEAT)
    assert s.play.void_outer(s.people[STRANGER], Round(1), onward, s.people[CHEAT]) is None
    assert s.wealth_of(CHEAT) == before
    assert s.ledger.vault.lock_amount(ids.outer_lock(Round(1), onward, s.people[CHEAT])) == 0
    assert not s.world.call("outers", "isStanding", 2, onward)


def test_a_step_is_final_when_its_window_is_over_and_its_base_is_final(strangers: Strangers) -> None:
    s = strangers
    posters = []
    for number in range(2):
        open_round(s)
        s.towards(s.times().t7)
        s.keep_posting()
        posters.append(s.people[HONEST_VERIFIERS[number % 2]])
    s.towards(s.times().challenge_until + 5)
    second = (s.people[STRANGER], Round(1), s.truth[2], posters[1])
    assert s.play.finalize_outer(*second) == "BaseNotFinal"
    assert s.play.finalize_outer(s.people[STRANGER], Round(0), s.truth[1], posters[0]) is None
    assert s.play.finalize_outer(*second) is None
    assert s.play.finalize_outer(*second) == "OuterClosed"
    assert s.world.call("outers", "statusOf", 2, s.truth[2]) == Status.FINAL
    assert s.ledger.vault.lock_amount(ids.outer_lock(Round(1), s.truth[2], posters[1])) == 0


def test_a_step_is_not_final_in_the_last_second_of_its_window(strangers: Strangers) -> None:
    s = strangers
    open_round(s)
    s.towards(s.times().t7)
    s.keep_posting()
    poster = s.people[HONEST_VERIFIERS[0]]
    ref = outer_ref(s, 0, s.truth[1], HONEST_VERIFIERS[0])
    s.play.now = s.ledger.book_of(ref).claim_of(ref).challengeable_until - 1
    step = (s.people[STRANGER], Round(0), s.truth[1], poster)
    assert s.play.finalize_outer(*step) == "TooEarly"
    assert s.play.finalize_outer(*step) is None


# --- challenges


@pytest.mark.parametrize(("k", "may"), [(HONEST_SOLVERS[0], True), (HONEST_VERIFIERS[1], True), (STRANGER, False)])
def test_whoever_trains_or_audits_challenges_an_outer_step_at_once(strangers: Strangers, k: int, may: bool) -> None:
    s = strangers
    cheating_run(s)
    _, root = post(s, CHEAT, 0, s.truth[0], b"1")
    ref = outer_ref(s, 0, root, CHEAT)
    shown = (int(ref.kind), ref.round, ref.seat, ref.duty, ref.party, ref.outer_root)
    assert s.world.call("outers", "mayChallengeDirectly", shown, s.people[k]) is may
    assert s.ledger.outers.may_challenge_directly(ref, s.people[k]) is may
    assert not s.world.call("outers", "mayChallengeDirectly", shown, s.people[CHEAT])
    assert s.play.open_game(s.people[k], ref, False) is None
