"""Games of a run that was wound down, on the contracts and their model: none opens, and deposits come back."""

from __future__ import annotations

import pytest

from assay.protocol.digests import ZERO
from assay.protocol.errors import RejectedError
from assay.protocol.run.claims import NO_ADDRESS, ClaimKind, ClaimRef
from assay.protocol.types import Round
from tests.harness.rounds.played_scenes import LIAR, began
from tests.harness.rounds.played_world import PlayedWorld


def test_no_game_opens_after_a_wind_down_and_what_was_committed_to_comes_back() -> None:
    world = PlayedWorld()
    people = began(world, "run")
    world.prepare_work(Round(0), LIAR)
    third = world.add_person(10**5 * 10**18)
    ref = ClaimRef(ClaimKind.INTERVAL, Round(0), LIAR, 0, NO_ADDRESS, ZERO)
    own = world.truth(LIAR).run.state_root(world.truth(LIAR).run.steps)
    # What Challenges opens, and what it does not, is the same claim a second apart.
    wait = max(world.charter.chain.reorg_depth, 24)
    world.at(world.run.escrow.launched_at + world.charter.timing.stall - wait)
    free = world.vault.free_of(third)
    world.bind(third, ref, own)
    world.tick(wait)
    assert world.wind_down() == "RunMoves"
    world.tick(1)
    assert world.wind_down() == ""
    # Attack: convict a claim whose lock was released, so that what has left is convicted, or its game holds others.
    for who in (third, people[0]):
        with pytest.raises(RejectedError) as refused:
            world.open_direct(who, ref)
        assert refused.value.code == "RunStopped"
    assert world.vault.free_of(third) < free
    assert world.reveal(third, ref, own) == 0
    assert (world.vault.free_of(third), world.book.games) == (free, {})
    world.check_money()
    world.end()
