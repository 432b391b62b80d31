"""What a round set aside for its work is there for it, however many findings its work led to: contracts and model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.escrow import cost_of
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Seat
from tests.harness.rounds.money_scenes import LAST_ROUND, audited_after_misses, final_round
from tests.harness.rounds.money_world import MoneyWorld
from tests.harness.rounds.samples import work_ref


@pytest.fixture
def world() -> Iterator[MoneyWorld]:
    """A run of one round."""
    made = MoneyWorld(LAST_ROUND)
    yield made
    made.check_money()
    made.end()


def test_wages_beyond_a_rounds_reserve_take_nothing_of_its_works_pay(world: MoneyWorld) -> None:
    """Attack: a sponsor whose tickets miss what they are drawn for, and whose puppets hold the work in games."""
    people = world.start(escrow=cost_of(world.charter, 4))
    r = final_round(world, people)
    puppet, games = world.add_person(10**5), [work_ref(ClaimKind.INTERVAL, r, Seat(seat)) for seat in range(4)]
    for seat, game in enumerate(games):
        world.prepare_work(r, Seat(seat))
        assert world.open_verdict(game, puppet) == ""
    own = audited_after_misses(world, r)
    for seat in range(4):
        assert world.settle_opening(r + 1, ids.seat_party(Seat(seat))) == ""
    # Each wage as soon as it may be, while no work can be settled.
    for name in world.run.duties.attestations.attestations:
        assert world.settle_duty(name) in ("", "EscrowShort")
    for seat, game in enumerate(games):
        world.end_verdict(game, convicted=False, to_pot=False, who=puppet)
        before = world.vault.free_of(people[seat])
        assert world.settle_work(r, seat, own) == ""
        assert world.vault.free_of(people[seat]) - before == world.charter.price
    assert world.settle_round(r, own) == ""
