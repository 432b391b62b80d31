"""Seals, openings, cut and restart, on the contracts and their model at once."""

from __future__ import annotations

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.terms import GenerationStatus, WorkStatus
from assay.protocol.types import Address, Digest, Round, Seat
from tests.harness.rounds.samples import TERMS, mark, node_ref
from tests.harness.rounds.world import RoundWorld

OPEN, MERGED, FINAL, CUT = GenerationStatus


def ready(w: RoundWorld, people: list[Address]) -> None:
    """All but the merge of a round."""
    w.commit_all(people)
    w.hold_all(people)


def statuses(w: RoundWorld) -> list[GenerationStatus]:
    return [w.model.generations.status_of(g) for g in range(w.round + 2)]


def finalize(w: RoundWorld, generation: int, party: Digest) -> str:
    model = w.model.generations
    return w.do(lambda: model.finalize(generation, party, w.now), "Generations", "finalize", generation, party)


def drop(w: RoundWorld, generation: int, party: Digest) -> str:
    model = w.model.generations
    return w.do(lambda: model.drop(generation, party, w.now), "Generations", "drop", generation, party)


def back(w: RoundWorld, who: Address, generation: int, root: Digest) -> str:
    model = w.model.generations
    return w.do(lambda: model.back(who, generation, root, w.now), "Generations", "back", generation, root, who=who)


def close(w: RoundWorld, generation: int, party: Digest) -> str:
    model = w.model.generations
    return w.do(lambda: model.close(generation, party, w.now), "Generations", "close", generation, party)


def fall(w: RoundWorld, generation: int) -> str:
    return w.do(lambda: w.model.generations.fall(generation, w.now), "Generations", "fall", generation)


def prepare(w: RoundWorld, round_: Round) -> str:
    entries = w.entries(round_)
    words = [(e.seat, e.units, e.update) for e in entries]
    return w.do(
        lambda: w.model.generations.prepare(round_, entries, w.now), "Generations", "prepare", round_, words
    )  # fmt: skip


def convict(w: RoundWorld, round_: Round, who: Address, challenger: Address) -> None:
    """A game over an opening that its tenure loses."""
    seat = w.seat(who)
    root = w.model.generations.openings[round_ + 1, ids.seat_party(seat)].root
    w.end_game(w.open_game(challenger, node_ref(round_, seat, root)), True)


def test_the_majority_opens_the_next_round_in_its_own_block(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    ready(w, people)
    w.tick(1)
    for who in people:
        assert w.seal(who, "root") == ""
    w.tick(1)
    for number, who in enumerate(people):
        assert w.round == (0 if number <= 4 else 1)
        assert w.open(who, "root", Round(0)) == ""
    state = w.model.commitments.rounds[1]
    assert (state.t0, state.parent, state.base) == (w.now, 1, w.root_of("root")[2])
    assert statuses(w) == [FINAL, MERGED, OPEN]
    assert w.call("Generations", "parametersOf", 1) == w.root_of("root")[0]


def test_no_root_is_sealed_before_it_is_known_which_updates_count(world: RoundWorld) -> None:
    """A2, E13."""
    w = world
    people = w.begin()
    w.commit_all(people)
    w.tick(1)
    assert w.seal(people[0], "root") == "MaskOpen"
    for who in people:
        assert w.hold(who) == ""
    assert w.seal(people[0], "root") == "MaskOpen"  # in the same second
    w.tick(1)
    assert w.seal(people[0], "root") == ""
    assert w.seal(people[0], "another root") == "AlreadySealed"


def test_nobody_opens_before_sealing_is_over(world: RoundWorld) -> None:
    """Else a root is copied from whoever opens first, and stands for nobody's work."""
    w = world
    people = w.begin()
    ready(w, people)
    w.tick(1)
    for who in people[:4]:
        assert w.seal(who, "root") == ""
    w.tick(1)
    assert w.open(people[0], "root") == "TooEarly"  # half is not more than half
    assert w.seal(people[4], "root") == ""
    sealed_until = w.now + TERMS.grace
    w.at(sealed_until)
    assert w.open(people[0], "root") == "TooEarly"
    assert w.seal(people[5], "root") == ""
    w.tick(1)
    assert w.seal(people[6], "root") == "TooLate"
    assert w.open(people[0], "another root") == "SealMismatch"
    assert w.open(people[6], "root") == "SealMismatch"
    assert w.open(people[0], "root") == ""
    assert w.open(people[0], "root") == "AlreadySealed"


def test_a_seal_or_opening_is_its_position_s_alone(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    ready(w, people[:7])
    w.at(w.model.commitments.hold_until(Round(0), 0) + 1)
    assert w.seal(people[7], "root") == "NotThePosition"  # it did not commit
    stranger = w.add_person()
    w.tenures[stranger] = w.tenures[people[0]]
    assert w.seal(stranger, "root") == "NotThePosition"


def test_a_generation_without_a_majority_is_cut_at_its_last_second(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    w.play_round(people)
    ready(w, people)
    w.tick(1)
    for number, who in enumerate(people):
        assert w.seal(who, number % 2) == ""
    w.tick(1)
    for number, who in enumerate(people[:7]):
        assert w.open(who, number % 2) == ""
    w.at(w.model.commitments.merge_until(Round(1)))
    assert w.restart() == "RoundAlive"
    w.tick(1)
    assert w.open(people[7], 1) == "TooLate"
    assert w.restart() == ""
    assert w.model.commitments.rounds[2].parent == 1
    # A4: a root that is opened after its time forks nothing.
    assert w.open(people[7], 1, Round(1)) == "TooLate"
    assert statuses(w) == [FINAL, MERGED, CUT, OPEN]


def test_a_majority_in_the_last_second_counts(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    ready(w, people)
    w.tick(1)
    for who in people:
        assert w.seal(who, "root") == ""
    w.at(w.model.commitments.merge_until(Round(0)))
    for who in people[:5]:
        assert w.open(who, "root", Round(0)) == ""
    assert w.round == 1


def test_a_base_on_which_fewer_than_half_commit_is_cut(world: RoundWorld) -> None:
    """A4: a majority of roots that nobody trains from is no history, and work on it is void."""
    w = world
    people = w.begin()
    w.play_round(people)
    w.commit_all(people[:3])
    w.at(w.model.commitments.rounds[1].t0 + TERMS.commit + TERMS.inclusion)
    assert w.restart() == "RoundAlive"
    w.tick(1)
    for who in people[:3]:
        assert w.hold(who) == ""
    w.tick(1)
    assert w.seal(people[0], "minority") == "TooFewCommitted"
    assert w.restart() == ""
    assert statuses(w) == [FINAL, CUT, CUT, OPEN]
    assert w.model.commitments.rounds[2].parent == 0
    assert w.settle(Round(1), w.seat(people[0])) == ""
    assert w.settle(Round(0), w.seat(people[0])) == ""  # its own base is final
    assert w.model.commitments.works[Round(1), Seat(0)].settled
    assert w.call("Commitments", "workOf", 1, 0)[-1] is True


def test_one_seat_alone_trains_round_after_round(world: RoundWorld) -> None:
    w = world
    (alone,) = w.begin(1)
    for number in range(3):
        assert w.play_round([alone]) == number
    assert statuses(w) == [FINAL, MERGED, MERGED, MERGED, OPEN]
    assert w.model.commitments.counted_of(Round(0), 0, w.now) == (frozenset({0}), True)


def test_half_of_the_seats_are_enough(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    ready_ones = people[:4]
    w.at(w.now + TERMS.commit)
    for who in ready_ones:
        assert w.commit(who) == ""
    w.hold_all(ready_ones)
    w.merge(ready_ones, "root")
    assert w.round == 1


def test_what_builds_on_a_fallen_generation_is_cut_with_it(world: RoundWorld) -> None:
    """B12: in one call, however much was built."""
    w = world
    people = w.begin(8)
    challenger = w.add_person()
    for _ in range(3):
        w.play_round(people)
    # A restart in between: generation 4 has no majority.
    w.at(w.model.commitments.merge_until(Round(3)) + 1)
    assert w.restart() == ""
    base = w.model.commitments.rounds[4].parent
    assert base == 2  # nobody committed on generation 3
    for _ in range(2):
        w.play_round(people)
    assert prepare(w, Round(0)) == ""
    opener = {who: ids.seat_party(w.seat(who)) for who in people}
    convict(w, Round(0), people[0], challenger)
    assert fall(w, 1) == "NotFallen"
    for who in people[1:]:
        assert drop(w, 1, opener[who]) == "NotConvicted"
        convict(w, Round(0), who, challenger)
    until = w.model.generations.nodes[1, w.root_of(("root", 0))[2]].rescue_until
    w.at(until)
    assert fall(w, 1) == "NotFallen"
    w.tick(1)
    assert fall(w, 1) == ""
    assert statuses(w) == [FINAL, *[CUT] * 7]
    assert fall(w, 1) == "NotFallen"
    assert w.restart() == "Paused"  # nobody holds a seat any more
    newcomer = w.add_person()
    assert w.join(newcomer) == w.restart() == ""
    assert w.model.commitments.rounds[-1].parent == 0
    assert w.settle(Round(2), Seat(0)) == ""


def test_backers_convicted_elsewhere_are_dropped_and_others_back_the_root(world: RoundWorld) -> None:
    """A6: who loses its lock in a puppet's game leaves a root that no game could refute."""
    w = world
    people = w.begin()
    puppet, friend = w.add_person(), w.add_person()
    w.play_round(people)
    w.play_round(people)
    root = w.root_of(("root", 1))[2]
    party = {who: ids.seat_party(w.seat(who)) for who in people}
    assert back(w, friend, 2, root) == "NotBackable"  # no claim behind it fell
    assert prepare(w, Round(0)) == ""
    for who in people:
        convict(w, Round(0), who, puppet)
    w.tick(TERMS.challenge + 1)
    # Generation 1 was lost, not generation 2: but all its openers have no lock left.
    assert finalize(w, 2, party[people[0]]) == "NotFinalizable"  # its parent is not final
    for who in people:
        assert drop(w, 2, party[who]) == ""
        assert drop(w, 2, party[who]) == "NotStanding"
    w.at(w.model.generations.nodes[2, root].rescue_until)
    assert back(w, friend, 2, mark("no root")) == "NotBackable"
    assert back(w, friend, 2, root) == ""
    assert back(w, friend, 2, root) == "NotBackable"
    w.tick(1)
    assert back(w, puppet, 2, root) == "TooLate"
    assert fall(w, 2) == "NotFallen"
    assert w.vault.lock_amount(ids.back_lock(2, ids.backer_party(root, friend))) == TERMS.seat_lock


def test_a_generation_is_final_after_the_window_of_an_opener_with_a_lock(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    challenger = w.add_person()
    w.play_round(people)
    opened_at = w.now
    w.play_round(people)
    party = [ids.seat_party(w.seat(who)) for who in people]
    root = w.root_of(("root", 0))[2]
    assert prepare(w, Round(0)) == ""
    assert prepare(w, Round(1)) == ""
    convict(w, Round(1), people[0], challenger)
    w.at(opened_at + TERMS.challenge)
    game = w.open_game(challenger, node_ref(Round(0), w.seat(people[1]), root))
    assert finalize(w, 1, party[2]) == "TooEarly"
    assert close(w, 1, party[2]) == "GenerationOpen"
    w.tick(1)
    assert finalize(w, 2, party[2]) == "NotFinalizable"  # its parent first
    assert finalize(w, 1, party[2]) == "GamesOpen"
    w.end_game(game, False)
    assert finalize(w, 1, party[0]) == "NotStanding"  # convicted elsewhere
    assert finalize(w, 1, ids.seat_party(Seat(99))) == "NotStanding"
    assert finalize(w, 1, party[2]) == ""
    assert finalize(w, 1, party[2]) == "NotFinalizable"
    assert fall(w, 1) == "NotFallen"
    assert close(w, 1, party[2]) == ""
    assert close(w, 1, party[2]) == "NotStanding"
    assert w.settle(Round(1), w.seat(people[2])) == ""
    assert w.settle(Round(0), w.seat(people[2])) == ""
    assert WorkStatus.FINAL == 3


def test_a_gate_that_is_shut_costs_no_majority(world: RoundWorld) -> None:
    """An escrow that is short by a wei must not make the call that crosses half revert."""
    w = world
    people = w.begin()
    w.neighbours.is_open = False
    w.call("RoundsBench", "setOpen", False)
    ready(w, people)
    w.merge(people, "root")
    assert w.round == 0
    assert statuses(w) == [FINAL, MERGED]
    assert w.restart() == "Paused"
    w.neighbours.is_open = True
    w.call("RoundsBench", "setOpen", True)
    assert w.restart() == ""
    assert w.model.commitments.rounds[1].parent == 1
    assert w.restart() == "RoundAlive"


def test_x_of_a_merge_is_built_from_what_was_committed_in_its_order(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    w.commit_all(people[:6])
    w.tick(1)
    w.at(w.model.commitments.rounds[0].mask_at + 1)
    for who in people[:6]:
        assert w.hold(who, [0, 2, 5]) == ""
    assert prepare(w, Round(0)) == "MaskOpen"
    w.tick(1)
    entries = w.entries(Round(0))
    swapped = [entries[1], entries[0], *entries[2:]]
    for wrong in (entries[:-1], swapped):
        words = [(e.seat, e.units, e.update) for e in wrong]
        refused = w.do(
            lambda wrong=wrong: w.model.generations.prepare(Round(0), wrong, w.now),  # type: ignore[misc]
            "Generations", "prepare", 0, words,
        )  # fmt: skip
        assert refused == "EntriesMismatch"
    assert prepare(w, Round(0)) == ""
    updates = [e.update if e.seat in (0, 2, 5) else TERMS.zero_update for e in entries] + [TERMS.zero_update] * 2
    expected = ids.merge_input(TERMS.parameters, TERMS.momentum, updates, 0b100101)
    assert w.model.generations.inputs[1] == expected
    w.merge(people[:6], "root")
    seat, root = w.seat(people[0]), w.root_of("root")[2]
    view = w.call("Generations", "claimOf", node_ref(Round(0), seat, root))
    assert view[2:4] == (expected, root)
    assert w.call("Generations", "mayChallengeDirectly", node_ref(Round(0), seat, root), "0x" + people[7].hex())
    assert not w.call("Generations", "mayChallengeDirectly", node_ref(Round(0), seat, root), "0x" + bytes(20).hex())
    assert w.call("Generations", "claimOf", node_ref(Round(0), seat, mark("no root")))[7] == 0


def test_only_peers_move_the_books(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    ref, me = node_ref(Round(0), Seat(0), mark("root")), "0x" + people[0].hex()
    calls = [
        ("Tenures", "charge", 1, 0, me), ("Tenures", "oblige", 1), ("Tenures", "acquit", 1),
        ("Tenures", "onGameOpened", 1), ("Tenures", "onGameClosed", 1, True), ("Tenures", "accuse", 1),
        ("Tenures", "unaccuse", 1), ("Tenures", "suspend", 1), ("Tenures", "resume", 1),
        ("Commitments", "openRound", 0, mark(0)), ("Commitments", "settle", 0, 0), ("Commitments", "onOpened", ref, me),
        ("Commitments", "onClosed", ref, True), ("Generations", "begin"), ("Generations", "onOpened", ref, me),
        ("Generations", "onClosed", ref, True),
    ]  # fmt: skip
    refusals = {"NotAPeer", "NotGenerations", "NotPayments", "NotTheGame", "NotTheLauncher"}
    for contract, function, *args in calls:
        assert w.refusal(contract, function, *args, who=people[0]) in refusals
    assert w.do(lambda: w.model.generations.begin(w.now), "RoundsBench", "begin") == "AlreadyBegun"
