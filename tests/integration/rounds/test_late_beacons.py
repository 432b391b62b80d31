"""A beacon that comes late, in the last second or never: what actors do about it, and what it costs the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.errors import ExitCode
from assay.protocol.rounds.escrow import RunPhase, cost_of
from assay.protocol.types import Address, BeaconRound
from assay.watchdog.alarms import AlarmKind, exit_code_of
from assay.watchdog.run_alarms import judge_beacon
from assay_ledger.agents import keeper, keeping
from assay_ledger.agents.money_actions import WindDown
from assay_ledger.agents.round_actions import RoundAction, SeedEpoch, SubmitBeacon
from assay_ledger.agents.stalls import winds_down_at
from tests.harness.rounds.samples import mark
from tests.harness.rounds.told_money import ToldMoneyWorld

LATE = 5 * 3600


@pytest.fixture
def world() -> Iterator[ToldMoneyWorld]:
    made = ToldMoneyWorld()
    yield made
    made.end()


def wanted(world: ToldMoneyWorld) -> BeaconRound:
    """The round that seeds the newest epoch."""
    start = world.run.duties.epochs[-1].start
    return BeaconRound(world.neighbours.round_after(start + world.charter.timing.seed_delay))


def bring(world: ToldMoneyWorld, at: int) -> None:
    """Somebody submits the round that is waited for, at a time in seconds."""
    number = wanted(world)
    world.at(max(world.now, at))
    world.neighbours.known[number] = mark(("audit", world.label, number))
    world.call("RoundsBench", "submit", number, world.neighbours.known[number])


def begin_next(world: ToldMoneyWorld) -> None:
    """The newest epoch is seeded and passes."""
    world.seed()
    while world.run.duties.epochs[-1].seed is not None:
        world.close_epoch()  # nobody opens, so that it is repeated first


def turns(world: ToldMoneyWorld, action: RoundAction) -> dict[Address, int]:
    """When each participant does something, in seconds of chain time; without those who do not."""
    people = keeping.participants(world.view(world.sponsor))
    tasks = {who: [t.at for t in keeper.tasks(world.view(who)) if t.action == action] for who in people}
    return {who: found[0] for who, found in tasks.items() if found}


def test_one_brings_a_round_when_it_is_due_and_another_one_the_next(world: ToldMoneyWorld) -> None:
    world.start()
    for _ in range(3):
        number = wanted(world)
        due = world.neighbours.time_of(number)
        found = turns(world, SubmitBeacon(number))
        waits = sorted(at - due for at in found.values())
        assert waits == sorted(keeping.STAGGER_S * k.bit_length() for k in range(len(found))) and len(found) > 3
        # By the epoch: epochs of equal length are as many rounds apart, and one actor would pay for all.
        assert min(found, key=lambda who: found[who]) == sorted(found)[world.epoch % len(found)]
        bring(world, due)
        assert turns(world, SubmitBeacon(number)) == {}
        begin_next(world)


def test_a_round_that_comes_late_seeds_its_epoch_by_one_and_not_by_all_at_once(world: ToldMoneyWorld) -> None:
    world.start()
    number, epoch = wanted(world), world.epoch
    by = turns(world, SubmitBeacon(number))
    bring(world, world.neighbours.time_of(number) + LATE)
    found = turns(world, SeedEpoch(epoch))
    assert sorted(at - world.now for at in found.values())[:3] == [0, keeping.STAGGER_S, 2 * keeping.STAGGER_S]
    # Who is second to bring it is the first to seed by it: one actor that is dead is waited for once.
    assert sorted(by, key=lambda who: by[who])[1] == min(found, key=lambda who: found[who])


def test_an_epoch_that_is_seeded_late_has_its_whole_length(world: ToldMoneyWorld) -> None:
    world.start()
    while not world.run.duties.epochs[-1].on_call:
        if world.run.duties.epochs[-1].seed is not None:
            world.close_epoch()
        bring(world, world.neighbours.time_of(wanted(world)) + LATE)
        world.seed()
    assert world.run.duties.epochs[-1].deadline == world.now + world.charter.timing.epoch
    world.at(world.run.duties.epochs[-1].deadline)
    assert world.open_call(1) == ""


def test_a_late_beacon_is_told_once_everybody_s_turn_has_come(world: ToldMoneyWorld) -> None:
    world.start()
    begin_next(world)
    number = wanted(world)
    world.at(world.neighbours.time_of(number) + keeping.GRACE_S)
    assert list(judge_beacon(world.view(world.sponsor))) == []
    world.tick(1)
    (alarm,) = judge_beacon(world.view(world.sponsor))
    assert (alarm.kind, alarm.about) == (AlarmKind.BEACON_LATE, f"beacon round {number}")
    assert dict(alarm.figures) == {"seconds_late": keeping.GRACE_S + 1} and exit_code_of([alarm]) is ExitCode.DEADLINE
    bring(world, world.now)
    assert list(judge_beacon(world.view(world.sponsor))) == []


def test_a_beacon_that_never_comes_ends_the_run_and_nobody_waits_for_it_then(world: ToldMoneyWorld) -> None:
    world.start()
    number = wanted(world)
    ends = turns(world, WindDown())
    first, at = min(ends.items(), key=lambda pair: pair[1])
    world.at(at - 1)
    assert world.wind_down() == "RunMoves"
    assert SubmitBeacon(number) in list(keeper.due(world.view(first))), "it may come up to the last second"
    world.tick(1)
    assert WindDown() in list(keeper.due(world.view(first)))
    assert world.wind_down() == ""
    assert world.view(first).state.money.phase is RunPhase.WOUND_DOWN
    assert turns(world, SubmitBeacon(number)) == {} and list(judge_beacon(world.view(first))) == []


@pytest.mark.parametrize("is_back", [True, False])
def test_nobody_winds_a_run_down_whose_beacon_came_back(world: ToldMoneyWorld, is_back: bool) -> None:
    """Else the honest themselves void what waits for its audits, in the hours in which the run moves again."""
    w, timing = world, world.charter.timing
    people = w.start(escrow=cost_of(w.charter, 4))
    w.play_round(people)
    w.at(w.run.escrow.launched_at + timing.stall // 2)
    assert w.finalize(1) == ""
    ends = winds_down_at(w.view(w.sponsor))
    assert ends == w.run.escrow.launched_at + timing.stall + 1 and min(turns(w, WindDown()).values()) == ends
    if is_back:
        bring(w, ends - 3600)
        w.seed()
        deadline = w.run.duties.epochs[-1].deadline
        assert deadline > ends and min(turns(w, WindDown()).values()) == deadline + 1 + keeping.GRACE_S
        w.at(deadline + 1)
        w.close_epoch()
        assert winds_down_at(w.view(w.sponsor)) == w.run.escrow.launched_at + timing.stall // 2 + timing.stall + 1
    assert min(turns(w, WindDown()).values()) == winds_down_at(w.view(w.sponsor))
