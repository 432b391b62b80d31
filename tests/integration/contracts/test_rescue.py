"""Rescue: an outer root whose poster loses a true claim on purpose is upheld by others, for a while and no longer."""

from __future__ import annotations

from assay.protocol.digests import state_digest
from assay.protocol.economics.formulas import last_verdict
from assay.protocol.model import ids
from assay.protocol.types import Digest, Round, Seat, Status
from tests.harness.contracts.world import WINDOWS
from tests.harness.ledger.strangers import HONEST, HONEST_SOLVERS, HONEST_VERIFIERS, LAZY_VERIFIER, STRANGER, Strangers
from tests.integration.contracts.test_outers import CHEAT, SECOND_CHEAT, W, cheating_run, open_round, outer_ref, post

RESCUER = HONEST_VERIFIERS[0]
CROOKS = (CHEAT, SECOND_CHEAT, LAZY_VERIFIER, STRANGER)


def true_root(s: Strangers, round_: int) -> Digest:
    """The root of a round's true outer step, posted or not."""
    return state_digest(s.true_outer_of(Round(round_), s.truth[round_]))


def build_on(s: Strangers, rounds: int, poster: int = HONEST_VERIFIERS[1]) -> None:
    """Whole rounds of honest work; `poster` posts where the true root is not there yet."""
    for _ in range(rounds):
        number = s.latest()
        s.truth[number + 1] = true_root(s, number)
        if not s.ledger.outers.is_standing(Round(number + 1), s.truth[number + 1]):
            assert post(s, poster, number, s.truth[number])[0] is None
        s.done.add(("posted", number))
        open_round(s)
        s.towards(s.times().t7)


def challenge(s: Strangers, round_: int, root: Digest, k: int, is_true: bool = True) -> int:
    """A game against poster k, by a puppet if the claim is true; its number."""
    challenger = s.people[STRANGER] if is_true else s.people[RESCUER]
    assert s.play.open_game(challenger, outer_ref(s, round_, root, k), is_true) is None
    return len(s.play.games) - 1


def posted_by_a_cheat(s: Strangers) -> Digest:
    """The true root of round 0 with a cheat alone behind it."""
    cheating_run(s)
    assert s.play.join(s.people[SECOND_CHEAT]) is None
    refusal, root = post(s, CHEAT, 0, s.truth[0])
    assert refusal is None
    return root


def lost_on_purpose(s: Strangers) -> Digest:
    """The same, after the cheat has lost to its puppet."""
    root = posted_by_a_cheat(s)
    s.end_game(challenge(s, 0, root, CHEAT), True)
    return root


def wealth(s: Strangers, people: tuple[int, ...]) -> int:
    return sum(s.wealth_of(k) for k in people)


def until_final(s: Strangers, rounds: int) -> None:
    """The windows of all outer claims pass; the true root of each of these rounds becomes final."""
    s.towards(s.play.now + WINDOWS.challenge + 2)
    for number in range(rounds):
        root = s.truth[number + 1]
        for (r, posted, who), claim in sorted(s.ledger.outers.claims.items()):
            if (r, posted) == (number, root) and not claim.closed and not claim.convicted:
                assert s.play.finalize_outer(s.people[STRANGER], Round(number), root, who) is None
        assert s.world.call("outers", "statusOf", number + 1, root) == Status.FINAL


def settle_honest_work(s: Strangers, round_: int) -> None:
    """`Strangers.settle_work` demands the price for it."""
    for seat in range(len(HONEST_SOLVERS)):
        s.settle_work(s.people[STRANGER], Round(round_), Seat(seat))
        assert s.ledger.rounds.commitments[Round(round_), Seat(seat)].closed
        assert ids.work_grant(Round(round_), Seat(seat)) in s.ledger.settlement.grants


# --- what a coalition gets for losing a true root on purpose


def test_a_true_root_is_posted_again_rounds_later_beside_any_false_one(strangers: Strangers) -> None:
    """The false root is slow-played to keep the round passed; the true one is lost to a puppet two rounds later."""
    s = strangers
    root = posted_by_a_cheat(s)
    lost = challenge(s, 0, root, CHEAT)
    refusal, false_root = post(s, SECOND_CHEAT, 0, s.truth[0], b"1")
    assert refusal is None
    slow = challenge(s, 0, false_root, SECOND_CHEAT, is_true=False)
    poor, rich = wealth(s, CROOKS), [s.wealth_of(k) for k in HONEST]
    build_on(s, 2)
    assert s.ledger.rounds.latest == 2
    s.end_game(lost, True)
    outers = s.world
    assert outers.call("outers", "isStanding", 1, false_root) and not outers.call("outers", "isStanding", 1, root)
    assert post(s, RESCUER, 0, s.truth[0]) == (None, root)
    s.end_game(slow, True)
    until_final(s, 1)
    settle_honest_work(s, 1)
    assert wealth(s, CROOKS) <= poor - W // 2 - W
    assert all(s.wealth_of(k) >= before for k, before in zip(HONEST, rich, strict=True))


def test_two_rescuers_at_once_one_of_whom_loses_on_purpose_too(strangers: Strangers) -> None:
    s = strangers
    root = lost_on_purpose(s)
    assert post(s, SECOND_CHEAT, 0, s.truth[0]) == (None, root)
    assert post(s, RESCUER, 0, s.truth[0]) == (None, root)
    poor, rescuer = wealth(s, CROOKS), s.wealth_of(RESCUER)
    s.end_game(challenge(s, 0, root, SECOND_CHEAT), True)
    s.play.now = s.ledger.outers.roots[Round(1), root].rescue_until + 1
    assert s.world.call("outers", "isStanding", 1, root)
    build_on(s, 1)
    until_final(s, 1)
    settle_honest_work(s, 1)
    assert wealth(s, CROOKS) == poor - W // 2 and s.wealth_of(RESCUER) == rescuer


def test_a_rescuer_that_claims_another_root_loses_its_lock_to_whoever_challenges_it(strangers: Strangers) -> None:
    s = strangers
    root = lost_on_purpose(s)
    refusal, false_root = post(s, SECOND_CHEAT, 0, s.truth[0], b"rescue")
    assert refusal is None
    assert post(s, HONEST_SOLVERS[0], 0, s.truth[0]) == (None, root)
    poor, challenger = wealth(s, CROOKS), s.wealth_of(RESCUER)
    s.end_game(challenge(s, 0, false_root, SECOND_CHEAT, is_true=False), True)
    assert wealth(s, CROOKS) == poor - W and s.wealth_of(RESCUER) == challenger + W // 2
    build_on(s, 1)
    until_final(s, 1)
    settle_honest_work(s, 1)


def test_roots_of_two_generations_are_rescued_in_any_order(strangers: Strangers) -> None:
    """What may be built upon need not stand: a rescue waits for no other, nor does a commitment."""
    s = strangers
    first = posted_by_a_cheat(s)
    games = [challenge(s, 0, first, CHEAT)]
    build_on(s, 1)
    second = true_root(s, 1)
    assert post(s, CHEAT, 1, s.truth[1]) == (None, second)
    games.append(challenge(s, 1, second, CHEAT))
    s.truth[2] = second
    s.done.add(("posted", 1))
    open_round(s)
    for game in games:
        s.end_game(game, True)
    assert not s.world.call("outers", "isStanding", 1, first) and not s.world.call("outers", "isStanding", 2, second)
    assert s.commit(HONEST_SOLVERS[0], Round(2), Seat(0), None, second) is None
    assert post(s, RESCUER, 1, s.truth[1]) == (None, second)
    assert post(s, RESCUER, 0, s.truth[0]) == (None, first)
    s.towards(s.times().t7)
    until_final(s, 2)
    settle_honest_work(s, 1)
    settle_honest_work(s, 2)


# --- who, and when


def test_anybody_backs_what_was_posted_and_participants_alone_post_what_is_new(strangers: Strangers) -> None:
    """Who trained on a root may have left by the time that it falls."""
    s = strangers
    root = lost_on_purpose(s)
    assert post(s, STRANGER, 0, s.truth[0], b"new")[0] == "NotAMember"
    assert post(s, STRANGER, 0, s.truth[0]) == (None, root)
    assert s.world.call("outers", "isStanding", 1, root)
    # The same name does not stand up twice: its lock would answer for games that it has lost already.
    assert post(s, CHEAT, 0, s.truth[0])[0] == "AlreadyPosted"


def test_a_rescue_in_the_last_second_counts_and_the_next_second_is_too_late(strangers: Strangers) -> None:
    s = strangers
    root = lost_on_purpose(s)
    until = s.ledger.outers.roots[Round(1), root].rescue_until
    assert until == s.play.now + WINDOWS.rescue
    assert s.world.call("outers", "rootOf", 1, root)[4] == until
    s.play.now = until - 1  # the next call is a second later
    assert post(s, RESCUER, 0, s.truth[0]) == (None, root)
    assert post(s, HONEST_SOLVERS[0], 0, s.truth[0])[0] == "RescueOver"
    assert s.world.call("outers", "isStanding", 1, root)


def test_whoever_loses_again_gains_no_second_window(strangers: Strangers) -> None:
    """Else a root could be kept in doubt, and what hangs on it unsettled, for a lock a lap."""
    s = strangers
    root = lost_on_purpose(s)
    until = s.ledger.outers.roots[Round(1), root].rescue_until
    assert post(s, SECOND_CHEAT, 0, s.truth[0]) == (None, root)
    game = challenge(s, 0, root, SECOND_CHEAT)
    s.play.now = until - 1
    s.end_game(game, True)
    assert s.world.call("outers", "statusOf", 1, root) == Status.OPEN
    assert s.ledger.outers.roots[Round(1), root].rescue_until == until
    assert post(s, STRANGER, 0, s.truth[0])[0] == "RescueOver"
    assert s.world.call("outers", "statusOf", 1, root) == Status.VOID
    assert not s.world.call("outers", "isAlive", 1, root)


def test_a_first_loss_starts_the_window_though_others_stand(strangers: Strangers) -> None:
    """Else posters could relieve each other for ever, one losing as the next one stands up."""
    s = strangers
    root = posted_by_a_cheat(s)
    assert post(s, SECOND_CHEAT, 0, s.truth[0]) == (None, root)
    s.end_game(challenge(s, 0, root, CHEAT), True)
    assert s.world.call("outers", "isStanding", 1, root)
    s.play.now = s.ledger.outers.roots[Round(1), root].rescue_until
    assert post(s, STRANGER, 0, s.truth[0])[0] == "RescueOver"


def test_the_last_verdict_comes_when_the_formula_says_and_not_before(strangers: Strangers) -> None:
    """Everything at its last second: challenge, verdict, rescue, challenge of the rescuer, verdict. F is 0 here."""
    s = strangers
    root = posted_by_a_cheat(s)
    t7 = s.times().t7

    def slow_trial(k: int) -> None:
        s.play.now = s.ledger.outers.claims[Round(0), root, s.people[k]].posted_at + WINDOWS.challenge - 1
        game = challenge(s, 0, root, k)
        s.play.now += WINDOWS.longest_dispute - 1
        s.end_game(game, True)

    slow_trial(CHEAT)
    s.play.now = s.ledger.outers.roots[Round(1), root].rescue_until - 1
    assert post(s, SECOND_CHEAT, 0, s.truth[0]) == (None, root)
    slow_trial(SECOND_CHEAT)
    late = s.ledger.outers.claims[Round(0), root, s.people[CHEAT]].posted_at - t7
    assert 0 <= late < 60, "the first post is the test's, not the chain's"
    assert s.play.now - t7 == last_verdict(WINDOWS, 0) + late
    assert s.world.call("outers", "statusOf", 1, root) == Status.VOID


# --- a root under another base


def test_a_true_root_first_claimed_from_a_false_base_is_upheld_from_the_true_one(strangers: Strangers) -> None:
    s = strangers
    posted_by_a_cheat(s)
    refusal, false_root = post(s, SECOND_CHEAT, 0, s.truth[0], b"1")
    assert refusal is None
    game = challenge(s, 0, false_root, SECOND_CHEAT, is_true=False)
    build_on(s, 1)
    lists, root = s.true_outer_of(Round(1), s.truth[1]), true_root(s, 1)
    assert s.play.post_outer(s.people[CHEAT], Round(1), false_root, *lists) is None
    assert post(s, RESCUER, 1, s.truth[1]) == (None, root)
    s.truth[2] = root
    s.end_game(game, True)
    s.play.now = s.ledger.outers.roots[Round(1), false_root].rescue_until + 1
    assert s.play.void_outer(s.people[STRANGER], Round(1), root, s.people[CHEAT]) is None
    assert s.world.call("outers", "isStanding", 2, root)
    # The end of the odd claim starts a rescue like any loss: others may be its poster's puppets.
    assert s.ledger.outers.roots[Round(2), root].rescue_until == s.play.now + WINDOWS.rescue
    until_final(s, 2)


def test_a_root_of_which_only_a_claim_from_a_dead_base_is_left_can_be_reposted(strangers: Strangers) -> None:
    s = strangers
    posted_by_a_cheat(s)
    refusal, false_root = post(s, SECOND_CHEAT, 0, s.truth[0], b"1")
    assert refusal is None
    game = challenge(s, 0, false_root, SECOND_CHEAT, is_true=False)
    build_on(s, 1)
    lists, root = s.true_outer_of(Round(1), s.truth[1]), true_root(s, 1)
    assert s.play.post_outer(s.people[CHEAT], Round(1), false_root, *lists) is None
    s.end_game(game, True)
    s.play.now = s.ledger.outers.roots[Round(1), false_root].rescue_until + 1
    assert s.play.void_outer(s.people[STRANGER], Round(1), root, s.people[CHEAT]) is None
    assert not s.world.call("outers", "isStanding", 2, root)
    assert post(s, RESCUER, 1, s.truth[1]) == (None, root)
    assert s.world.call("outers", "isStanding", 2, root)
