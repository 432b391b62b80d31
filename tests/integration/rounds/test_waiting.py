"""Why a run stands where it stands: each reason at the second, or wei, from which it holds, and what ends it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.node.keeper import waits_for_people
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.escrow import cost_of
from assay.protocol.types import Address, Round, Seat
from assay_ledger.agents.keeper import missing_beacons
from assay_ledger.agents.stalls import winds_down_at
from assay_ledger.agents.waiting import Wait, stands_still, waits
from tests.harness.rounds.money_chain import SOLVERS
from tests.harness.rounds.money_scenes import LAST_ROUND, audited, final_round, settle_findings
from tests.harness.rounds.samples import ETHER
from tests.harness.rounds.told_money import ToldMoneyWorld

NOBODY = frozenset[Address]()


@pytest.fixture
def world() -> Iterator[ToldMoneyWorld]:
    made = ToldMoneyWorld()
    yield made
    made.end()


def told(world: ToldMoneyWorld) -> dict[str, Wait]:
    return {wait.code: wait for wait in waits(world.view(world.sponsor))}


def stands(world: ToldMoneyWorld) -> bool:
    return stands_still(world.view(world.sponsor))


def waits_for(world: ToldMoneyWorld, living: frozenset[Address] = NOBODY) -> bool:
    return waits_for_people(world.view(world.sponsor), living)


def test_before_its_first_round_a_run_names_tickets_seats_and_escrow_that_it_lacks(world: ToldMoneyWorld) -> None:
    assert list(told(world)) == ["TicketsMissing", "SeatsEmpty", "EscrowShort"] and stands(world)
    least = world.charter.launch.tickets
    assert f"{least} more tickets" in told(world)["TicketsMissing"].remedy
    world.join(world.add_person(10**5 * ETHER))
    wanted = cost_of(world.charter, 1)
    assert world.fund(world.sponsor, wanted - 1) == ""
    assert list(told(world)) == ["TicketsMissing", "EscrowShort"]
    assert world.fund(world.sponsor, 1) == ""
    assert list(told(world)) == ["TicketsMissing"]


def test_registered_tickets_are_waited_for_until_the_last_one_needed_counts(world: ToldMoneyWorld) -> None:
    world.join(world.add_person(10**5 * ETHER))
    world.fund(world.sponsor, 1000 * ETHER)
    for _ in range(world.charter.launch.tickets - 1):
        assert list(told(world)) == ["TicketsMissing"]
        world.add_ticket(world.add_person(10**5 * ETHER))
        world.tick(7)
    world.add_ticket(world.add_person(10**5 * ETHER))
    (young,) = told(world).values()
    assert (young.code, young.until) == ("TicketsYoung", world.now + world.charter.timing.seasoning)
    assert not stands(world), "time alone brings what is missing"
    assert not waits_for(world)
    assert young.until is not None
    world.at(young.until - 1)
    assert list(told(world)) == ["TicketsYoung"] and not waits_for(world)
    world.at(young.until)
    assert list(told(world)) == ["NotOpened"]
    assert waits_for(world, frozenset(world.people)), "only its sponsor brings it on"


def test_a_run_that_lacks_nothing_says_that_its_sponsor_has_not_opened_it(world: ToldMoneyWorld) -> None:
    world.gather(solvers=world.charter.launch.seats)
    (wait,) = told(world).values()
    assert (wait.code, wait.until) == ("NotOpened", world.charter.launch.open_from)
    assert "assay run open" in wait.remedy


def test_a_round_is_trained_until_its_mask_closes_and_then_merged(world: ToldMoneyWorld) -> None:
    people = world.start()
    state = world.view(world.sponsor).round_of(Round(0))
    assert told(world)["Training"].until == state.mask_at and not stands(world)
    for who in people:
        assert world.commit(who) == ""
    mask_at = world.view(world.sponsor).round_of(Round(0)).mask_at
    assert f"{SOLVERS} of {SOLVERS} seats" in told(world)["Training"].text
    world.at(mask_at)
    assert "Training" in told(world)
    world.at(mask_at + 1)
    assert "Training" not in told(world) and f"{SOLVERS} updates" in told(world)["Merging"].text


def test_a_round_of_fewer_than_half_is_void_after_the_last_second_to_commit(world: ToldMoneyWorld) -> None:
    world.start()
    last = world.view(world.sponsor).commit_until(Round(0))
    world.at(last)
    assert "Deserted" not in told(world)
    world.at(last + 1)
    assert "Deserted" in told(world) and stands(world)


def test_an_escrow_that_is_a_wei_short_of_the_next_round_is_told(world: ToldMoneyWorld) -> None:
    people = world.start(escrow=2 * cost_of(world.charter, SOLVERS) - 1)
    for who in people:
        assert world.commit(who) == ""
    # Nobody merges: the round is lost, and the next one cannot open either.
    world.at(world.view(world.sponsor).merge_until(Round(0)) + 1)
    found = told(world)
    assert (
        "1 cannot open" in found["EscrowShort"].text
        and "assay run fund 0.000000000000000001`" in found["EscrowShort"].remedy
    )
    assert found["WindsDown"].until == winds_down_at(world.view(world.sponsor))
    assert stands(world)
    assert world.fund(world.sponsor, 1) == ""
    assert "EscrowShort" not in told(world)


def test_a_round_of_the_beacon_is_missed_from_the_second_in_which_it_is_due(world: ToldMoneyWorld) -> None:
    world.start()
    view = world.view(world.sponsor)
    ((wanted, _),) = missing_beacons(view)
    due = view.books.beacon.time_of(wanted)
    world.at(due - 1)
    assert "BeaconMissing" not in told(world)
    world.at(due)
    assert "bring-beacon" in told(world)["BeaconMissing"].remedy


def test_time_does_not_jump_in_a_run_whose_seats_nobody_here_holds(world: ToldMoneyWorld) -> None:
    people = world.start()
    assert waits_for(world)
    assert waits_for(world, frozenset({world.sponsor}))
    assert not waits_for(world, frozenset({people[0]}))


def test_time_does_not_jump_while_only_a_wei_of_escrow_keeps_a_round_from_opening(world: ToldMoneyWorld) -> None:
    living = frozenset(world.start(escrow=2 * cost_of(world.charter, SOLVERS) - 1))
    until = world.view(world.sponsor).merge_until(Round(0))
    world.at(until)
    assert not waits_for(world, living), "time alone ends the round"
    world.at(until + 1)
    assert "EscrowShort" in told(world) and waits_for(world, living)
    assert world.fund(world.sponsor, 1) == ""
    assert not waits_for(world, living)


def test_a_run_that_has_ended_waits_for_nothing(world: ToldMoneyWorld) -> None:
    world.gather()
    assert world.cancel(world.sponsor) == ""
    assert told(world) == {} and not waits_for(world)


def test_time_goes_on_for_somebody_who_leaves_a_run_that_waits_for_people(world: ToldMoneyWorld) -> None:
    who = world.add_person(10**5 * ETHER)
    ticket = world.add_ticket(who)
    living = frozenset({who})
    world.at(world.now + world.charter.timing.seasoning)
    assert waits_for(world, living)
    retire = lambda: world.run.tickets.retire(who, ticket, world.now)  # noqa: E731
    assert world.do(retire, "Tickets", "retire", ticket, who=who) == ""
    assert not waits_for(world, living) and waits_for(world)


def test_of_a_run_that_nobody_opened_in_time_the_one_way_out_is_said(world: ToldMoneyWorld) -> None:
    world.gather(solvers=world.charter.launch.seats)
    world.at(world.charter.expiry)
    assert list(told(world)) == ["NotOpened"]
    world.at(world.charter.expiry + 1)
    (wait,) = told(world).values()
    assert (wait.code, wait.until) == ("NeverOpened", None) and "assay run cancel" in wait.remedy
    assert stands(world) and waits_for(world)
    assert world.launch(world.sponsor) == "Paused", "what was advised before is refused"
    assert world.cancel(world.sponsor) == "" and told(world) == {}


def test_where_rounds_end_before_all_are_opened_it_is_not_said_that_they_were(world: ToldMoneyWorld) -> None:
    world.commit_all(world.start())
    world.at(world.charter.expiry)
    assert "Settling" not in told(world)
    world.at(world.charter.expiry + 1)
    assert told(world)["Settling"].text.startswith(
        f"No round opens after 1 of {world.charter.rounds}, as the charter's last second for it is over; {SOLVERS} "
    )
    assert "All rounds were opened" not in told(world)["Settling"].text


def test_a_run_whose_work_is_settled_says_what_it_waits_for_until_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Epochs pass between its last commitment's pay and its end, and nothing was said of why it does not end."""
    world = ToldMoneyWorld(LAST_ROUND)
    people = world.start()
    r = final_round(world, people)
    own = audited(world, r, more=5)
    assert list(told(world)) == ["Settling"]
    for seat in range(len(people)):
        assert world.settle_work(r, seat, own) == world.settle_opening(r + 1, ids.seat_party(Seat(seat))) == ""
    findings = len(world.told.attestations)
    assert findings and f"(left: {findings}), and what rounds did not cost is freed (left: 1)" in paying(world)
    assert world.settle_round(r, own) == ""
    assert f"(left: {findings}), and what rounds did not cost is freed (left: 0)" in paying(world)
    settle_findings(world)
    assert list(told(world)) == ["Ending"] and "actor" in told(world)["Ending"].remedy and not stands(world)
    with monkeypatch.context() as patch:
        patch.setattr(world.told.books.duties, "last_epoch", world.epoch)
        assert f"once epoch {world.epoch} is over" in told(world)["LastDuties"].text
        patch.setattr(world.told.books.duties, "last_epoch", 0)
        assert "once the last epoch with duties is over" in told(world)["LastDuties"].text
    assert world.finish() == "" and told(world) == {}
    world.end()


def paying(world: ToldMoneyWorld) -> str:
    """What is said while all work is settled, and nothing else is said."""
    (wait,) = told(world).values()
    assert wait.code == "Paying" and not wait.stands
    return wait.text
