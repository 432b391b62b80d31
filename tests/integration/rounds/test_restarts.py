"""Rounds that are given up where no other can follow at once: the cut stays."""

from __future__ import annotations

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Round
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.samples import TERMS, terms_of
from tests.harness.rounds.world import RoundWorld
from tests.integration.rounds.test_generations import close, ready, statuses

OPEN, MERGED, FINAL, CUT = GenerationStatus


def test_a_last_generation_without_a_majority_is_cut_and_frees_what_was_opened() -> None:
    """The cut stays though no round follows it; else half of the positions keep locks of the other half for good."""
    w = RoundWorld(RoundChain(terms_of(rounds=1)))
    people = w.begin()
    ready(w, people)
    w.tick(1)
    for number, who in enumerate(people):
        assert w.seal(who, number % 2) == ""
    w.tick(1)
    for number, who in enumerate(people):
        assert w.open(who, number % 2) == ""
    opened_at, party = w.now, ids.seat_party(w.seat(people[0]))
    w.at(w.model.commitments.merge_until(Round(0)))
    assert w.restart() == "RoundAlive"
    w.tick(1)
    assert w.restart() == ""
    assert w.restart() == "Paused"
    assert w.round == 0
    assert statuses(w) == [FINAL, CUT]
    w.at(opened_at + TERMS.challenge)
    assert close(w, 1, party) == "GenerationOpen"
    w.tick(1)
    assert close(w, 1, party) == w.settle(Round(0), w.seat(people[0])) == ""
    who, tenure = people[0], w.tenures[people[0]]
    assert w.do(lambda: w.model.tenures.leave(who, tenure), "Tenures", "leave", tenure, who=who) == ""
    assert w.release(who) == ""
    w.check()


def test_a_round_is_given_up_while_the_gate_is_shut_and_the_next_one_waits(world: RoundWorld) -> None:
    w = world
    people = w.begin()
    w.play_round(people)
    ready(w, people)
    w.neighbours.is_open = False
    w.call("RoundsBench", "setOpen", False)
    w.at(w.model.commitments.merge_until(Round(1)) + 1)
    assert w.restart() == ""
    assert statuses(w) == [FINAL, MERGED, CUT]
    assert w.restart() == "Paused"
    w.neighbours.is_open = True
    w.call("RoundsBench", "setOpen", True)
    assert w.restart() == ""
    assert w.model.commitments.rounds[2].parent == 1
    assert w.restart() == "RoundAlive"


@pytest.mark.parametrize(("rounds", "kept"), [(2, MERGED), (3, CUT)])
def test_half_of_the_seats_away_in_the_last_round_cut_it_alone(rounds: int, kept: GenerationStatus) -> None:
    """Nobody can make good for the one before; where a round can follow, that is given up too."""
    w = RoundWorld(RoundChain(terms_of(rounds=rounds)))
    people = w.begin()
    w.play_round(people)
    w.commit_all(people[:3])
    w.at(w.model.commitments.rounds[1].t0 + TERMS.commit + TERMS.inclusion)
    assert w.restart() == "RoundAlive"
    w.tick(1)
    assert w.restart() == ""
    assert statuses(w)[:3] == [FINAL, kept, CUT]
    w.check()
