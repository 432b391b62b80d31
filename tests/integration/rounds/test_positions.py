"""Positions drawn from tickets, above 64 seats: who may say which updates it holds, and from when on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Round
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.samples import TERMS, TICKET_TERMS, bits, terms_of
from tests.harness.rounds.world import RoundWorld

SEATS, SIZE = 70, 40


@pytest.fixture(scope="module")
def chain() -> RoundChain:
    return RoundChain(terms_of(seats=SEATS, group_size=SIZE))


@pytest.fixture
def world(chain: RoundChain) -> Iterator[RoundWorld]:
    kept = chain.evm.evm.snapshot()
    made = RoundWorld(chain)
    for who in [made.add_person() for _ in range(SEATS)]:
        assert made.join(who) == ""
    yield made
    chain.evm.evm.revert(kept)


def committed(w: RoundWorld, owners: list[tuple[Address, int]]) -> int:
    """A round in which all have committed, tickets of these owners counting; when its beacon is due."""
    for who, count in owners:
        w.register(who, count)
    w.tick(TICKET_TERMS.seasoning)
    assert w.do(lambda: w.model.generations.begin(w.now), "RoundsBench", "begin") == ""
    w.tick(TERMS.commit)
    for who in w.people[:SEATS]:
        assert w.commit(who) == ""
    return w.neighbours.time_of(w.neighbours.round_after(w.now + TERMS.beacon_delay))


def positions_of(w: RoundWorld, who: Address, group: int) -> list[int]:
    """The positions of somebody in a group's committee."""
    state = w.model.commitments.rounds[0]
    seed = w.neighbours.known[w.neighbours.round_after(state.mask_at + TERMS.beacon_delay)]
    committee, holder = ids.group_committee(Round(0), group), w.tickets.holder_of_position
    return [j for j in range(TERMS.positions) if holder(seed, committee, j, state.t0, w.now) == who]


def test_positions_speak_once_for_their_owner_when_their_beacon_is_known(world: RoundWorld) -> None:
    w = world
    a, b = w.add_person(), w.add_person()
    due = committed(w, [(a, 6), (b, 3)])
    everything = frozenset(range(SIZE))
    w.at(due - 1)
    assert w.hold(a, everything, [0]) == "TooEarly"
    w.at(due)
    assert w.hold(a, everything, [0]) == "BeaconNotSubmitted"
    w.submit_beacon()
    ours, theirs = positions_of(w, a, 0), positions_of(w, b, 0)
    assert sorted(ours + theirs) == list(range(TERMS.positions))
    assert positions_of(w, a, 1) != ours
    assert w.hold(a, everything, [*ours, theirs[0]]) == "NotMyPosition"
    assert w.hold(w.people[0], everything, [ours[0]]) == "NotMyPosition"
    assert w.hold(a, everything, [*ours, TERMS.positions]) == "NotMyPosition"
    assert w.hold(a, everything, ours) == ""
    assert w.hold(a, everything, ours[:1]) == "AlreadySpoke"
    # Every position has a voice of its own: two thirds of 15 are 10.
    assert w.hold(b, frozenset(range(SIZE - 1)), theirs) == ""
    counted = everything if len(ours) >= 10 else frozenset(range(SIZE - 1))
    assert w.call("Commitments", "countedOf", 0, 0) == (bits(counted), False)
    w.tick(1)
    assert w.call("Commitments", "countedOf", 0, 0)[1]
    assert w.call("Commitments", "countedOf", 0, 1) == (0, False)


def test_positions_speak_as_long_as_hold_says_from_their_beacons_time(world: RoundWorld) -> None:
    """The table of rounds in docs/protocol/round.md: the mask's close and beaconDelay alone would be too early."""
    w = world
    who = w.add_person()
    due = committed(w, [(who, 9)])
    w.at(due)
    w.submit_beacon()
    first, second, *_ = positions_of(w, who, 0)
    assert w.model.commitments.rounds[0].mask_at + TERMS.beacon_delay < due - 1
    w.at(due - 1 + TERMS.hold)
    assert w.hold(who, frozenset(range(SIZE)), [first]) == ""
    w.tick(1)
    assert w.hold(who, frozenset(range(SIZE)), [second]) == "TooLate"


def test_positions_of_a_convicted_ticket_are_silent(world: RoundWorld) -> None:
    """It sits in committees until its seasoning is over, with nothing left to lose."""
    w = world
    a, b = w.add_person(), w.add_person()
    w.at(committed(w, [(a, 1), (b, 6)]))
    w.submit_beacon()
    ours, theirs = positions_of(w, a, 0), positions_of(w, b, 0)
    assert ours
    assert w.do(lambda: w.tickets.convict(TicketId(1), w.now), "RoundsBench", "convict", 1) == ""
    everything = frozenset(range(SIZE))
    assert w.hold(a, everything, ours) == "NotMyPosition"
    assert w.hold(b, everything, [*theirs, ours[0]]) == "NotMyPosition"
    assert w.hold(b, everything, theirs) == ""


@pytest.mark.parametrize("drained", [False, True])
def test_positions_of_a_ticket_below_nine_tenths_of_its_stake_are_silent(world: RoundWorld, drained: bool) -> None:
    """Half of what fines take goes to who proves them: what is left must answer for what it says."""
    w = world
    a, b = w.add_person(), w.add_person()
    due = committed(w, [(a, 1), (b, 6)])
    fine = TICKET_TERMS.bond // 10 + drained
    to = "0x" + b.hex()
    assert w.do(lambda: w.tickets.fine(TicketId(1), fine, b, w.now), "RoundsBench", "fine", 1, fine, to) == ""
    w.at(due)
    w.submit_beacon()
    state, seed = w.model.commitments.rounds[0], w.model.commitments.seed_of(Round(0))
    at = lambda committee, j: w.tickets.position_of(seed, committee, j, state.t0, w.now)  # noqa: E731
    ours = [j for j in range(TERMS.positions) if at(ids.group_committee(Round(0), 0), j) == 1]
    assert ours
    assert w.hold(a, frozenset(range(SIZE)), ours) == ("NotMyPosition" if drained else "")
    w.at(w.model.commitments.hold_until(Round(0), 0) + 1)
    said = w.do(
        lambda: w.model.commitments.speaker_of(ids.node_of(1, 0), TicketId(1), ours, a, w.now),
        "Commitments", "speakerOf", ids.node_of(1, 0), 1, bits(ours), "0x" + a.hex(),
    )  # fmt: skip
    assert said == ("NotThePosition" if drained else "")


def test_a_group_of_which_nobody_speaks_counts_nothing_and_puts_nobody_off(world: RoundWorld) -> None:
    """A beacon that is late costs the round its merge and no seat its place."""
    w = world
    due = committed(w, [(w.add_person(), 1)])
    w.at(due + TERMS.hold - 1)
    assert w.call("Commitments", "countedOf", 0, 0) == (0, False)
    w.at(max(due + TERMS.hold, w.model.commitments.rounds[0].t0 + TERMS.commit + TERMS.inclusion + 1))
    assert w.call("Commitments", "countedOf", 0, 0) == (0, True)
    assert w.call("Commitments", "presenceOf", 0, 5) == w.model.commitments.presence_of(Round(0), 5, w.now) == 1  # type: ignore[arg-type]
