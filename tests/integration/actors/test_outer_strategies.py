"""What participants do about outer roots, strategies alone: post, rescue, challenge, finalize, each from its base."""

from __future__ import annotations

from assay.protocol.types import Address, Digest, Round, Status, Wei
from assay_ledger.agents import keeper
from assay_ledger.agents.actions import Action, Challenge, FinalizeOuter, PostOuter, VoidOuter
from assay_ledger.index.records import OuterRecord, RoundRecord, RunState
from assay_ledger.index.view import Memory, OuterStep, turn_of
from assay_solver import strategy as solving
from assay_verifier import strategy as verifying
from tests.integration.actors.test_strategies import (
    ADA,
    BOB,
    FACTS,
    TIMES,
    VERA,
    VIKTOR,
    audited,
    digest,
    person,
    times,
    view,
)

MALLORY, TRUDY = person("mallory"), person("trudy")
X, RIGHT, WRONG = digest("x"), OuterStep(digest("p"), digest("m")), OuterStep(digest("false"), digest("m"))
NOW = TIMES.t7 + 1_000
GENESIS, ELSEWHERE = FACTS.genesis, digest("elsewhere")


def posted(step: OuterStep, *posters: tuple[Address, Digest], **flags: int) -> OuterRecord:
    """A root with open claims, each from its poster's base."""
    made = OuterRecord(step.root, posters[0][1], step.parameters, step.momentum)
    made.posters = dict.fromkeys((who for who, _ in posters), Status.OPEN)
    made.bases = dict(posters)
    for name, value in flags.items():
        setattr(made, name, value)
    return made


def after_round_0(*outers: OuterRecord) -> tuple[RunState, Memory]:
    """Round 0 is over, its inclusion fixed, and everybody knows where its outer step ends."""
    made, memory = audited(NOW)
    made.rounds[0].inclusions[GENESIS] = 3, X
    made.rounds[0].outers = {outer.root: outer for outer in outers}
    memory.outers[X] = RIGHT
    return made, memory


def steps(who: Address, made: RunState, memory: Memory, now: int = NOW) -> list[Action]:
    return list(keeper.outer_steps(view(who, now, made, memory)))


def rescues(who: Address, made: RunState, memory: Memory, now: int = NOW) -> list[Action]:
    return list(keeper.rescue(view(who, now, made, memory)))


def test_a_false_root_is_challenged_wherever_another_of_its_posters_started() -> None:
    """Else a claim from a base that is void anyway would shield one from the true base."""
    false = posted(WRONG, (TRUDY, ELSEWHERE), (MALLORY, GENESIS))
    made, memory = after_round_0(posted(RIGHT, (BOB, GENESIS)), false)
    challenged = [a.ref.party for a in steps(VERA, made, memory) if isinstance(a, Challenge)]
    assert challenged == [MALLORY]


def test_a_right_root_claimed_only_from_another_base_is_posted_from_the_true_one() -> None:
    made, memory = after_round_0(posted(RIGHT, (TRUDY, ELSEWHERE)))
    assert steps(VERA, made, memory) == [PostOuter(Round(0), GENESIS)]
    made.rounds[0].outers[RIGHT.root] = posted(RIGHT, (TRUDY, ELSEWHERE), (BOB, GENESIS))
    assert not steps(VERA, made, memory)


def test_each_claim_is_finalized_or_voided_by_its_own_base() -> None:
    right = posted(RIGHT, (TRUDY, ELSEWHERE), (BOB, GENESIS))
    made, memory = after_round_0(right)
    late = TIMES.challenge_until + keeper.GRACE_S + 1
    ended = {a for a in keeper.settle(view(VERA, late, made, memory)) if isinstance(a, FinalizeOuter | VoidOuter)}
    assert ended == {FinalizeOuter(Round(0), RIGHT.root, BOB), VoidOuter(Round(0), RIGHT.root, TRUDY)}


def test_every_actor_upholds_a_root_that_lost_a_poster_whoever_else_backs_it() -> None:
    right = posted(RIGHT, (MALLORY, GENESIS), (TRUDY, GENESIS), rescue_until=NOW + 60)
    right.posters[MALLORY] = Status.CONVICTED
    made, memory = after_round_0(right)
    for who in (ADA, BOB, VERA, VIKTOR, person("long gone")):
        assert rescues(who, made, memory) == [PostOuter(Round(0), GENESIS)]
    assert not rescues(TRUDY, made, memory), "it stands behind it already"
    assert rescues(VERA, made, memory, NOW + 60) and not rescues(VERA, made, memory, NOW + 61)
    assert not steps(VERA, made, memory, NOW + 61), "the contract would refuse it"
    right.posters[BOB] = Status.FINAL
    assert not rescues(VERA, made, memory), "nothing can happen to it any more"


def test_nothing_wrong_is_upheld_and_nothing_that_nobody_lost() -> None:
    wrong = posted(WRONG, (MALLORY, GENESIS), rescue_until=NOW + 60, fallen=True)
    made, memory = after_round_0(posted(RIGHT, (BOB, GENESIS)), wrong)
    assert not rescues(VERA, made, memory)
    memory.outers.clear()
    assert not rescues(VERA, made, memory), "it does not know what is right yet"


def test_members_with_little_stake_share_the_roots_that_fell() -> None:
    """Each begins with those whose turn it has first, and waits for no other root to stand."""
    made, memory = after_round_0(posted(RIGHT, (MALLORY, GENESIS), rescue_until=NOW + 60, fallen=True))
    base = RIGHT.root
    for number in range(1, 4):
        step, x = OuterStep(digest(f"p{number}"), digest("m")), digest(f"x{number}")
        record = RoundRecord(Round(number), times(TIMES.t0), (ADA, BOB, *[None] * 6))
        record.inclusions[base] = 3, x
        record.outers[step.root] = posted(step, (MALLORY, base), rescue_until=NOW + 60, fallen=True)
        made.rounds.append(record)
        memory.outers[x], base = step, step.root
    participants = view(ADA, NOW, made, memory).participants
    firsts = set()
    for who in participants:
        order = [action.round for action in rescues(who, made, memory) if isinstance(action, PostOuter)]
        assert sorted(order) == [0, 1, 2, 3]
        turns = [turn_of(participants, who, number) for number in order]
        assert turns == sorted(turns)
        firsts.add(order[0])
    assert len(firsts) == min(len(participants), 4)


def test_rescues_leave_what_the_next_commitment_locks_and_a_challenge_needs() -> None:
    """Else a party that makes enough roots fall takes the seats of those who back them."""
    made, memory = after_round_0(posted(RIGHT, (MALLORY, GENESIS), rescue_until=NOW + 3000))
    terms = FACTS.charter.economics
    kept = terms.claim_lock + terms.challenge_bond

    def first(free: int) -> list[Action]:
        seen = view(ADA, NOW, made, memory)
        found = solving.candidates(seen, solving.SolverPlan(free=Wei(free)))
        return [a for a in found if isinstance(a, PostOuter) and a.round == 0]

    assert first(kept + terms.price) == [PostOuter(Round(0), GENESIS)]
    assert not first(kept + terms.price - 1)
    # A verifier has no commitment to make.
    seen = view(VERA, NOW, made, memory)
    for free, count in ((terms.challenge_bond + terms.price, 1), (terms.challenge_bond + terms.price - 1, 0)):
        found = verifying.candidates(seen, verifying.VerifierPlan(free=Wei(free)))
        assert len([a for a in found if isinstance(a, PostOuter)]) == count


def test_a_root_that_nobody_stands_behind_at_half_time_is_rescued_with_what_there_is() -> None:
    half = FACTS.charter.windows.rescue // 2
    right = posted(RIGHT, (MALLORY, GENESIS), rescue_until=NOW + half, fallen=True)
    made, memory = after_round_0(right)
    assert list(keeper.rescue(view(ADA, NOW, made, memory), 0)) == [PostOuter(Round(0), GENESIS)]
    assert not list(keeper.rescue(view(ADA, NOW - 1, made, memory), 0))
    assert NOW in set(keeper.times(view(ADA, NOW - 1, made, memory)))
    right.fallen = False
    assert not list(keeper.rescue(view(ADA, NOW, made, memory), 0))
