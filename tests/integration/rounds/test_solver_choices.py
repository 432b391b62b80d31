"""What a solver chooses, after random play on the contracts: they take all of it, and nothing is left out.

Decisions are pure: what somebody does follows from the run as its events tell it, and from what that somebody has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.agents import patience
from assay_ledger.agents.round_actions import Choice
from assay_ledger.rounds.nodes import over_of
from assay_ledger.rounds.view import BaseLists, RunView
from assay_solver import strategy
from assay_solver.actions import (
    BackRoot,
    ChallengeRoot,
    CommitWork,
    LeaveTenure,
    PrepareMerge,
    TakeSeat,
    TrainUnit,
)
from assay_solver.memory import FinishedWork
from assay_solver.merging import ComputeMerge, FetchUpdate, HoldUpdates, OpenRoot, SealRoot
from assay_solver.pace import JITTER, OwnPace
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.player import TERMS, RoundPlayer
from tests.harness.rounds.samples import fields, mark, node_ref, work_of
from tests.harness.rounds.told_world import ToldWorld
from tests.integration.rounds.test_keeper import view_of

SEEDS = 10
STEPS = 200
OFTEN = (CommitWork, HoldUpdates, SealRoot, OpenRoot, TakeSeat, LeaveTenure)
CALLS = (*OFTEN, PrepareMerge, BackRoot, ChallengeRoot)
CUT = GenerationStatus.CUT
UNTIL, FALLEN = 7, 10
"""Their places in ClaimView."""


@pytest.fixture(scope="module")
def chain() -> RoundChain:
    return RoundChain(TERMS)


def own_of(world: ToldWorld, view: RunView, is_ready: bool, leaving: bool) -> strategy.OwnRounds:
    """What somebody has that trained and fetched everything in no time, or has only just begun."""
    parameters, momentum, _ = world.root_of("root")
    finished, merges, held = {}, {}, {}
    for r in map(Round, range(world.round + 1)):
        base, tenure = view.round_of(r).base, view.tenure_in(r)
        if is_ready and tenure is not None:
            finished[r, base] = FinishedWork(tenure[1].seat, work_of((view.me, r)), mark("manifest"))
        if is_ready:
            held[r] = frozenset(map(Seat, view.group(r, 0).maskable))
            merges[r, over_of(view, r + 1)] = BaseLists(parameters, momentum)
    pace = OwnPace(0.0)
    return strategy.OwnRounds(pace, lead=0, leaving=leaving, finished=finished, merges=merges, held=held)


def chosen(world: ToldWorld, who: Address, is_ready: bool = True, leaving: bool = False) -> list[Choice]:
    """What somebody would do now, in its order."""
    view = view_of(world, who)
    return list(strategy.candidates(view, own_of(world, view, is_ready, leaving), []))


def label_of(world: ToldWorld, who: Address, round_: Round) -> str:
    """The root that somebody sealed: the true one, or another."""
    seat, seal = world.seat(who), view_of(world, who).votes(round_ + 1).seals
    over = world.over_of(round_ + 1)
    made = ids.seal_digest(round_, seat, world.root_of("root")[2], over, mark((who, "salt")), who)
    return "root" if seal[seat] == made else "false"


def send(world: ToldWorld, who: Address, action: Choice) -> str:
    """The contract's answer to an action of somebody's."""
    refusal: Callable[..., str] = super(ToldWorld, world).refusal
    salt = mark((who, "salt"))
    match action:
        case CommitWork(r, seat, base):
            tenure, work = world.tenures[who], work_of((who, r))
            return refusal("Commitments", "commit", r, seat, tenure, base, fields(work), who=who)
        case HoldUpdates(r, seat, held):
            acc, mask = world.told.books.commitments.group_of(r, 0).acc, sum(1 << s for s in held)
            return refusal("Commitments", "hold", r, 0, 1 << seat, acc, mask, who=who)
        case SealRoot(r, seat):
            over = over_of(view_of(world, who), r + 1)
            seal = ids.seal_digest(r, seat, world.root_of("root")[2], over, salt, who)
            return refusal("Generations", "seal", r, seat, seal, who=who)
        case OpenRoot(r, seat):
            parameters, momentum, _ = world.root_of(label_of(world, who, r))
            return refusal("Generations", "open", r, seat, parameters, momentum, salt, who=who)
        case TakeSeat():
            return refusal("Tenures", "join", who=who)
        case LeaveTenure(tenure):
            return refusal("Tenures", "leave", tenure, who=who)
        case PrepareMerge(node):
            r = Round(node - 1)
            words = [(e.seat, e.units, e.update) for e in world.entries(r)]
            return refusal("Generations", "prepare", r, words, who=who)
        case BackRoot(generation, root):
            return refusal("Generations", "back", generation, root, who=who)
        case ChallengeRoot(ref):
            named = (int(ref.kind), ref.round, ref.seat, ref.duty, ref.party, ref.outer_root)
            claim = world.call("Generations", "claimOf", named)
            return "" if world.now <= claim[UNTIL] and not claim[FALLEN] else "NotChallengeable"
    raise AssertionError(f"{action} is no call")


def refused(world: ToldWorld, who: Address, action: Choice) -> str:
    """The same in the next second, which is when a call is mined that is sent now; it changes nothing."""
    kept, now = world.chain.evm.evm.snapshot(), world.now
    try:
        world.at(now + 1)
        return send(world, who, action)
    finally:
        world.chain.evm.evm.revert(kept)
        world.at(now)


def everything(world: ToldWorld, who: Address) -> Iterator[Choice]:
    """What the holder of a seat could say of the round under way, and commit to those before."""
    view = view_of(world, who)
    for r in map(Round, range(world.round)):
        if (former := view.tenure_in(r)) is not None and view.status(view.round_of(r).parent) is not CUT:
            yield CommitWork(r, former[1].seat, view.round_of(r).base)
    r, tenure = world.round, view.tenure_in(world.round)
    if tenure is not None:
        seat, state = tenure[1].seat, world.told.books.commitments
        yield CommitWork(r, seat, state.rounds[r].base)
        yield HoldUpdates(r, seat, frozenset(map(Seat, state.group_of(r, 0).maskable)))
        if seat in view.votes(r + 1).seals:
            yield OpenRoot(r, seat)
        else:
            yield SealRoot(r, seat)


class WatchedWorld(ToldWorld):
    """People who are asked what they would do whenever time has passed."""

    watch: Callable[[], None] = staticmethod(lambda: None)

    def at(self, now: int) -> None:
        """See RoundCalls."""
        super().at(now)
        self.watch()


def base_of(view: RunView) -> Digest:
    return view.round_of(Round(0)).base


def all_held(chain: RoundChain) -> tuple[ToldWorld, list[Address]]:
    """A round of five whose updates all hold, the moment after the time to say so."""
    world = ToldWorld(chain)
    people = world.begin(5)
    world.commit_all(people)
    world.hold_all(people)
    world.at(max(world.now, world.model.commitments.hold_until(world.round, 0)) + 1)
    return world, people


def test_contracts_take_what_a_solver_chooses_and_nothing_is_left_out(chain: RoundChain) -> None:
    done: Counter[str] = Counter()
    for seed in range(SEEDS):
        kept = chain.evm.evm.snapshot()
        player = RoundPlayer(world := WatchedWorld(chain), seed)

        def watch(player: RoundPlayer = player, world: WatchedWorld = world) -> None:
            world.watch = lambda: None
            who, leaving = player.random.choice(world.people), player.random.random() < 0.1
            found = chosen(world, who, leaving=leaving)
            for action in found:
                if isinstance(action, CALLS):
                    assert refused(world, who, action) == "", (player, action, world.now)
                    done[type(action).__name__] += 1
            for action in everything(world, who):
                if refused(world, who, action) == "":
                    assert action in found, (player, action, world.now)
                    done[f"{type(action).__name__} in time"] += 1
            world.watch = watch

        world.watch = watch
        for _ in range(STEPS):
            player.step()
        world.watch = lambda: None
        chain.evm.evm.revert(kept)
    print(dict(done))
    wanted = {kind.__name__ for kind in OFTEN} | {f"{kind.__name__} in time" for kind in OFTEN[:4]}
    assert wanted - done.keys() == set()


def test_who_has_nothing_yet_fetches_and_trains_and_says_nothing(chain: RoundChain) -> None:
    kept = chain.evm.evm.snapshot()
    world = ToldWorld(chain)
    people = world.begin(5)
    base = world.told.books.commitments.rounds[0].base
    train = TrainUnit(Round(0), world.seat(people[0]), base, 0)
    assert chosen(world, people[0], is_ready=False) == [train]
    for who in people[1:]:
        assert world.commit(who) == ""
    others = [world.seat(who) for who in people[1:]]
    fetches = [FetchUpdate(Round(0), seat) for seat in sorted(others)]
    assert chosen(world, people[0], is_ready=False) == [*fetches, train]
    chain.evm.evm.revert(kept)


def test_who_was_late_commits_to_the_last_second_though_the_next_round_began(chain: RoundChain) -> None:
    kept = chain.evm.evm.snapshot()
    world = ToldWorld(chain)
    late, *others = world.begin(5)
    bases = [world.told.books.commitments.rounds[0].base]
    world.play_round(others)
    assert world.round == 1
    bases.append(world.told.books.commitments.rounds[1].base)
    first, second = (CommitWork(Round(r), world.seat(late), base) for r, base in enumerate(bases))
    assert [a for a in chosen(world, late) if isinstance(a, CommitWork)] == [second, first]
    assert not [a for who in others for a in chosen(world, who) if isinstance(a, CommitWork) and not a.round]
    # What is not done yet is trained behind the newest round's, as far as a commitment needs.
    trains = [TrainUnit(Round(r), world.seat(late), base, 0) for r, base in [(1, bases[1]), (0, bases[0])]]
    assert [a for a in chosen(world, late, is_ready=False) if isinstance(a, TrainUnit)] == trains
    world.at(until := world.told.books.commitments.rounds[0].t0 + TERMS.commit + TERMS.inclusion - 1)
    assert first in chosen(world, late) and refused(world, late, first) == ""
    world.at(until + 1)
    assert first not in chosen(world, late) and refused(world, late, first) == "TooLate"
    chain.evm.evm.revert(kept)


@pytest.mark.parametrize(("unit", "trains"), [(0.0, True), (18.0, True), (18.1, False), (100.0, False)])
def test_a_position_trains_for_an_older_round_only_what_keeps_nobody_waiting(
    chain: RoundChain, unit: float, trains: bool
) -> None:
    """Speaking, sealing and opening go on for the grace (30 s) once most have; a unit takes a tenth more now and then,
    and a word some seconds until it is mined."""
    kept = chain.evm.evm.snapshot()
    world = ToldWorld(chain)
    late, *others = world.begin(5)
    world.play_round(others)
    base = world.told.books.commitments.rounds[0].base
    pace = OwnPace(TERMS.grace - JITTER * 18.0, (unit, unit), finishes=(5.0,))
    done = TERMS.min_units - 1
    older = TrainUnit(Round(0), world.seat(late), base, done)

    def chooses() -> list[Choice]:
        own = strategy.OwnRounds(pace, lead=0, units={(Round(0), older.seat, base): done})
        return list(strategy.candidates(view_of(world, late), own, []))

    assert older in chooses()  # nothing of the newest round is its to say yet
    assert world.commit(late) == ""
    assert (older in chooses()) == trains
    chain.evm.evm.revert(kept)


def test_who_has_no_weight_in_the_newest_round_trains_for_an_older_one(chain: RoundChain) -> None:
    kept = chain.evm.evm.snapshot()
    world = ToldWorld(chain)
    late, *others = world.begin(5)
    world.play_round(others)
    assert [world.commit(who) for who in others] == [""] * 4
    world.at(world.told.books.commitments.rounds[1].mask_at + 1)
    assert world.commit(late) == ""
    view = view_of(world, late)
    base = world.told.books.commitments.rounds[0].base
    units = {(Round(0), world.seat(late), base): TERMS.min_units - 1}
    pace = OwnPace(12.0, (100.0, 100.0), (5.0,))
    found = strategy.candidates(view, strategy.OwnRounds(pace, lead=0, units=units), [])
    assert TrainUnit(Round(0), world.seat(late), base, TERMS.min_units - 1) in list(found)
    chain.evm.evm.revert(kept)


def test_units_of_another_seat_count_for_nothing_after_a_reorganization(chain: RoundChain) -> None:
    kept = chain.evm.evm.snapshot()
    world = ToldWorld(chain)
    who, *_ = world.begin(5)
    view, seat = view_of(world, who), world.seat(who)
    units = {(Round(0), Seat(seat + 1), base_of(view)): TERMS.min_units}
    own = strategy.OwnRounds(OwnPace(12.0, (1.0, 1.0), (5.0,)), lead=0, units=units)
    assert TrainUnit(Round(0), seat, base_of(view), 0) in strategy.candidates(view, own, [])
    chain.evm.evm.revert(kept)


def test_a_root_over_an_update_that_a_reorganization_replaced_is_computed_anew(chain: RoundChain) -> None:
    """Attack: the same seats count from the same base, and one of them has committed to something else."""
    kept = chain.evm.evm.snapshot()
    world, people = all_held(chain)
    before = view_of(world, people[0])
    own = own_of(world, before, is_ready=True, leaving=False)
    assert SealRoot(Round(0), world.seat(people[0])) in strategy.candidates(before, own, [])
    chain.evm.evm.revert(kept)
    kept = chain.evm.evm.snapshot()
    world = ToldWorld(chain)
    *others, last = world.begin(5)
    world.commit_all(others)
    assert world.commit(last, work_of("something else")) == ""
    world.hold_all([*others, last])
    world.at(max(world.now, world.model.commitments.hold_until(world.round, 0)) + 1)
    view = view_of(world, people[0])
    assert view.counted(Round(0)) == before.counted(Round(0)) and base_of(view) == base_of(before)
    found = list(strategy.candidates(view, own, []))
    assert ComputeMerge(Round(0), view.counted(Round(0))[0]) in found
    assert not any(isinstance(action, SealRoot) for action in found)
    chain.evm.evm.revert(kept)


def test_a_solver_goes_on_from_the_root_of_the_majority_and_from_no_other(chain: RoundChain) -> None:
    """What it computed itself it challenges others with; what it trains from is chain state."""
    kept = chain.evm.evm.snapshot()
    world, people = all_held(chain)
    for who, label in zip(people, ("false", *["root"] * 4), strict=True):
        assert world.seal(who, label) == ""
    world.tick(1)
    assert world.open(people[0], "false", Round(0)) == ""
    me = people[4]
    assert not [a for a in chosen(world, me) if isinstance(a, TrainUnit | CommitWork)]
    for who in people[1:4]:
        assert world.open(who, "root", Round(0)) == ""
    assert CommitWork(Round(1), world.seat(me), world.root_of("root")[2]) in chosen(world, me)
    assert ComputeMerge not in {type(action) for action in chosen(world, me)}
    # X of the merge has to be built before the false root can be challenged.
    world.tick(600)
    assert [a for a in chosen(world, me) if isinstance(a, CALLS[-3:])] == [PrepareMerge(1)]
    assert send(world, me, PrepareMerge(1)) == ""
    world._read()
    (challenge,) = (a for a in chosen(world, me) if isinstance(a, CALLS[-3:]))
    assert isinstance(challenge, ChallengeRoot) and challenge.ref.seat == world.seat(people[0])
    assert send(world, me, challenge) == ""
    chain.evm.evm.revert(kept)


def test_solvers_back_in_turns_what_they_computed_once_nobody_stands_behind_it(chain: RoundChain) -> None:
    kept = chain.evm.evm.snapshot()
    world = ToldWorld(chain)
    people = world.begin(5)
    base = world.root_of("root")[2]
    world.commit_all(people)
    world.hold_all(people)
    openers, others = people[:3], people[3:]
    world.at(max(world.now, world.model.commitments.hold_until(world.round, 0)) + 1)
    assert [world.seal(who, "root") for who in openers] == [""] * 3
    world.tick(TERMS.grace + 1)
    assert [world.open(who, "root", Round(0)) for who in openers] == [""] * 3
    assert send(world, people[0], PrepareMerge(1)) == ""
    world._read()

    def convict(who: Address) -> None:
        world.end_game(world.open_game(people[4], node_ref(Round(0), world.seat(who), base)), True)

    def backs(who: Address, is_ready: bool = True) -> list[Choice]:
        return [action for action in chosen(world, who, is_ready) if isinstance(action, BackRoot)]

    for who in openers:
        assert not any(backs(other) for other in people), "somebody stands behind it"
        convict(who)
    fell, until = world.now, world.told.books.generations.nodes[1, base].rescue_until
    assert until == fell + TERMS.rescue
    firsts = []
    for who in others:
        world.at(fell)
        waited = next(after for after in range(0, TERMS.rescue, 10) if world.at(fell + after) or backs(who))
        firsts.append(waited)
        assert refused(world, who, BackRoot(1, base)) == ""
        assert not backs(who, is_ready=False), "it does not know what is right"
    assert sorted(firsts) == [0, 30]
    world.at(until - 1)
    assert all(backs(who) == [BackRoot(1, base)] for who in others)
    world.at(until)
    assert not any(backs(who) for who in people)
    chain.evm.evm.revert(kept)


def test_a_root_that_is_sealed_is_waited_for_as_long_as_it_can_be_opened(chain: RoundChain) -> None:
    kept = chain.evm.evm.snapshot()
    world, people = all_held(chain)
    assert [world.seal(who, "root") for who in people] == [""] * 5
    view, own = view_of(world, people[0]), strategy.OwnRounds(OwnPace(0.0), lead=0)
    last, left = view.merge_until(Round(0)), 20 * int(patience.LEAST_S)
    assert view.seal_until(Round(0)) < last - left

    def shares(time: int) -> list[float | None]:
        world.at(time)
        actions = FetchUpdate(Round(0), Seat(0)), ComputeMerge(Round(0), frozenset(map(Seat, range(5))))
        return [strategy.share(action, view_of(world, people[0]), own) for action in actions]

    # Half of what is left, shared by the five updates that are to be fetched.
    assert shares(last - left) == [left / 10, left / 2]
    assert shares(last) == [patience.LEAST_S] * 2
    chain.evm.evm.revert(kept)
