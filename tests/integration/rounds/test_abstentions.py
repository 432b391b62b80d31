"""A position that cannot compute a root says so: nobody waits for it, and no root has its voice."""

from __future__ import annotations

from assay.protocol.digests import ZERO
from assay.protocol.types import Round
from tests.harness.rounds.world import RoundWorld


def test_who_cannot_compute_the_root_holds_nobody_up(world: RoundWorld) -> None:
    """A1: silence and incapacity differ. All eight have spoken, so sealing is over at once."""
    w = world
    people = w.begin()
    w.commit_all(people)
    w.hold_all(people)
    w.tick(1)
    for who in people[:5]:
        assert w.seal(who, "root") == ""
    for who in people[5:]:
        assert w.abstain(who) == ""
    w.tick(1)
    assert w.seal(people[5], "root") == "TooLate"
    assert w.open(people[5], "root") == "SealMismatch"
    for who in people[:5]:
        assert w.open(who, "root", Round(0)) == ""
    assert w.round == 1


def test_a_position_speaks_once_with_a_root_or_without(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    w.commit_all(people[:7])
    w.at(w.model.commitments.rounds[0].mask_at + 1)
    assert w.abstain(people[0]) == "MaskOpen"
    for who in people[:7]:
        assert w.hold(who) == ""
    w.tick(1)
    assert w.abstain(people[0]) == ""
    assert w.abstain(people[0]) == w.seal(people[0], "root") == "AlreadySealed"
    assert w.seal(people[1], "root") == ""
    assert w.abstain(people[1]) == "AlreadySealed"
    assert w.abstain(people[7]) == "NotThePosition"
    w.at(w.model.commitments.merge_until(Round(0)))
    assert w.abstain(people[2]) == ""
    w.tick(1)
    assert w.abstain(people[3]) == "TooLate"


def test_a_majority_is_of_all_positions_whoever_cannot_compute(world: RoundWorld) -> None:
    """Else a root over an update that is served to four of eight is the base of everybody."""
    w = world
    people = w.begin()
    w.commit_all(people)
    w.hold_all(people)
    w.tick(1)
    for who in people[:4]:
        assert w.seal(who, "root") == ""
    for who in people[4:]:
        assert w.abstain(who) == ""
    w.tick(1)
    for who in people[:4]:
        assert w.open(who, "root", Round(0)) == ""
    assert w.round == 0
    w.at(w.model.commitments.merge_until(Round(0)) + 1)
    assert w.restart() == ""
    assert w.model.commitments.rounds[1].parent == 0


def test_a_seal_of_zero_speaks_once_and_ends_no_sealing(world: RoundWorld) -> None:
    """Attack: one seat that seals zero eight times has spoken for all, so that nobody else's seal is taken any more:
    no root has a majority, in no round, and once the run has stood still for long enough its work is void."""
    w = world
    people = w.begin()
    w.commit_all(people)
    w.hold_all(people)
    w.tick(1)
    liar, seat = people[7], w.seat(people[7])
    said = [
        w.do(
            lambda: w.model.generations.seal(liar, Round(0), seat, ZERO, w.now),
            "Generations", "seal", 0, seat, ZERO, who=liar,
        )
        for _ in people
    ]  # fmt: skip
    assert said == ["", *["AlreadySealed"] * 7]
    w.tick(1)
    for who in people[:7]:
        assert w.seal(who, "root") == ""
    w.tick(w.model.commitments.terms.grace + 1)
    for who in people[:5]:
        assert w.open(who, "root", Round(0)) == ""
    assert w.round == 1
