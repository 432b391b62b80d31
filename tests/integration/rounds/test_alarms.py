"""What the watchdog says of a run: each alarm at the second, or wei, from which it holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from assay.cli.watching import weight_of
from assay.protocol.economics.limits import PPM
from assay.protocol.errors import ExitCode
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.rounds.escrow import cost_of
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, Round, Seat
from assay.watchdog.alarms import Alarm, AlarmKind, exit_code_of
from assay.watchdog.run_alarms import judge_duties, judge_epoch, judge_escrow, judge_roots, judge_seats, judge_stakes
from assay_ledger.agents.money_keeper import may_open
from assay_ledger.bindings import game
from assay_ledger.rounds.fold import fold
from assay_ledger.rounds.view import RunView
from tests.harness.rounds.samples import ETHER, mark
from tests.harness.rounds.told_money import ToldMoneyWorld
from tests.harness.rounds.told_world import TRANSACTION

NEAR = 0.25
ESCROW = 1000 * ETHER


@pytest.fixture
def world() -> Iterator[ToldMoneyWorld]:
    made = ToldMoneyWorld()
    yield made
    made.end()


def owner(world: ToldMoneyWorld, ticket: int) -> Address:
    return world.run.tickets.tickets[TicketId(ticket)].owner


def call(world: ToldMoneyWorld) -> bool:
    """Seeds the newest epoch; whether it calls anybody."""
    world.seed()
    return world.run.duties.epochs[-1].on_call > 0


def duties(world: ToldMoneyWorld, ticket: int) -> list[AlarmKind]:
    who = owner(world, ticket)
    return [alarm.kind for alarm in judge_duties(world.view(who), who, NEAR)]


def stakes(world: ToldMoneyWorld, who: Address) -> list[Alarm]:
    return list(judge_stakes(world.view(who), who))


def seats(world: ToldMoneyWorld, who: Address) -> dict[AlarmKind, str]:
    return {alarm.kind: alarm.text for alarm in judge_seats(world.view(who), who)}


def play_round(world: ToldMoneyWorld, everybody: list[Address], away: int = 0, holders: int = 4) -> None:
    """A round to which the first `away` do not commit, in which so many hold the first seat's update; it is over."""
    there = everybody[away:]
    for who in there:
        assert world.commit(who) == ""
    world.at(world.model.commitments.rounds[world.round].mask_at + 1)
    for number, who in enumerate(reversed(there)):
        assert world.hold(who, [world.seat(x) for x in there if x != everybody[0] or number < holders]) == ""
    r = world.round
    world.merge(there, ("root", r))
    world.at(max(world.now, world.view(everybody[0]).commit_until(r)))


def test_a_seat_that_one_more_absence_would_evict_is_told(world: ToldMoneyWorld) -> None:
    people = world.start(tickets=40)
    who, other = people[0], people[1]
    play_round(world, people)
    for one in people[1:]:
        assert world.commit(one) == ""
    # The last second in which it may commit: it has missed nothing yet.
    world.at(world.view(who).commit_until(Round(1)))
    assert seats(world, who) == {}
    world.tick(1)
    found = seats(world, who)
    assert list(found) == [AlarmKind.SEAT_AT_RISK] and "did not commit to round 1" in found[AlarmKind.SEAT_AT_RISK]
    assert "0.5 tokens" in found[AlarmKind.SEAT_AT_RISK] and seats(world, other) == {}
    alarms = list(judge_seats(world.view(who), who))
    assert exit_code_of(alarms) is ExitCode.DEADLINE
    for one in people[1:]:
        assert world.hold(one) == ""
    world.merge(people[1:], ("root", 1))
    play_round(world, people)
    world.tick(1)
    assert seats(world, who) == {}, "it was there again"


def test_the_first_round_of_an_outage_is_no_risk_to_a_seat(world: ToldMoneyWorld) -> None:
    people = world.start(tickets=40)
    play_round(world, people)
    world.at(world.view(people[0]).commit_until(Round(1)) + 1)
    assert world.model.commitments.rounds[1].is_under_half
    assert [seats(world, who) for who in people] == [{}] * len(people)


@pytest.mark.parametrize(("holders", "at_risk"), [(1, True), (2, False), (3, False)])
def test_updates_that_do_not_count_twice_in_a_row_are_told(world: ToldMoneyWorld, holders: int, at_risk: bool) -> None:
    people = world.start(tickets=40)
    who, last = people[0], 2
    counts = 3 * holders >= 2 * len(people)
    for number in range(last):
        play_round(world, people, holders=holders)
        world.tick(1)
        assert AlarmKind.WORK_UNCOUNTED not in seats(world, who) or number == last - 1
    found = seats(world, who)
    assert (AlarmKind.WORK_UNCOUNTED in found) is not counts
    # Of four voices one is fewer than a third, two are not: then who is right is not known, and nobody is put off.
    assert (AlarmKind.SEAT_AT_RISK in found) is at_risk
    if not counts:
        assert "of rounds 0 to 1 had no weight" in found[AlarmKind.WORK_UNCOUNTED]
    play_round(world, people)
    world.tick(1)
    assert seats(world, who) == {}


@pytest.mark.parametrize(("holders", "wanted"), [(1, "uncounted"), (2, "counted")])
def test_what_became_of_an_update_is_said_at_every_stage(world: ToldMoneyWorld, holders: int, wanted: str) -> None:
    people = world.start(tickets=40)
    who = people[0]

    def said(of: Address) -> str:
        view = world.view(of)
        work = view.work(Round(0), world.seat(of))
        assert work is not None
        return weight_of(view, work)

    for one in people[:3]:
        assert world.commit(one) == ""
    assert said(who) == "open"
    # Nearly all have committed: the fourth comes behind the mask's close.
    world.at(world.model.commitments.rounds[0].mask_at + 1)
    assert world.commit(people[3]) == ""
    assert said(people[3]) == "late"
    for number, one in enumerate(people[:3]):
        assert world.hold(one, [world.seat(x) for x in people[:3] if x != who or number < holders]) == ""
    world.at(world.model.commitments.hold_until(Round(0), 0) + 1)
    assert (said(who), said(people[3])) == (wanted, "late")


def test_a_call_is_due_in_the_last_quarter_of_its_epoch_and_missed_after_it(world: ToldMoneyWorld) -> None:
    world.start()
    while not call(world):
        world.close_epoch()
    length, deadline = world.charter.timing.epoch, world.run.duties.epochs[-1].deadline
    world.at(deadline - length // 4 - 1)
    assert duties(world, 1) == []
    world.at(deadline - length // 4)
    assert duties(world, 1) == [AlarmKind.DUTY_DUE]
    world.at(deadline)
    assert duties(world, 1) == [AlarmKind.DUTY_DUE]
    assert world.open_call(2) == ""
    assert duties(world, 2) == []
    world.at(deadline + 1)
    assert (duties(world, 1), duties(world, 2)) == ([AlarmKind.DEADLINE_MISSED], [])


def test_a_ticket_that_fines_have_drained_is_told_to_fill_up_before_it_opens(world: ToldMoneyWorld) -> None:
    world.start()
    while not call(world):
        world.close_epoch()
    world.at(world.run.duties.epochs[-1].deadline)
    view, tenth = world.view(owner(world, 1)), world.charter.economics.ticket_bond // 10
    held = view.books.registry.tickets[TicketId(1)]
    held.short_since = world.now

    def told(missing: int) -> Alarm:
        view.books.registry.missing[TicketId(1)] = missing
        (alarm,) = judge_duties(view, held.owner, NEAR)
        assert alarm.kind is AlarmKind.DUTY_DUE
        return alarm

    assert "short" not in dict(told(tenth).figures)
    drained = told(tenth + 1)
    assert dict(drained.figures)["short"] == str(tenth + 1) and "fill up" in drained.text


def test_a_missed_call_is_told_in_later_epochs_until_its_secret_is_known(world: ToldMoneyWorld) -> None:
    world.start()
    while not call(world):
        world.close_epoch()
    assert world.charter.economics.shifts == 1, "every epoch calls everybody"
    missed, secrets = world.epoch, {ticket: world.secret(ticket) for ticket in (1, 2)}
    for ticket in set(world.chains) - set(secrets):
        assert world.open_call(ticket) == ""
    world.close_epoch()
    for ticket in secrets:
        assert duties(world, ticket) == [AlarmKind.DEADLINE_MISSED]
    books, anybody = world.run.duties, world.sponsor
    shown = world.do(
        lambda: books.show(TicketId(1), missed, secrets[1], world.now), "Duties", "show", 1, missed, secrets[1],
        who=anybody,
    )  # fmt: skip
    assert shown == "" and duties(world, 1) == []
    # Whoever shows a later secret shows the one before it.
    world.seed()
    assert duties(world, 2) == [AlarmKind.DEADLINE_MISSED]
    assert world.open_call(2) == ""
    assert duties(world, 2) == []


def test_a_missed_call_of_an_epoch_without_fines_is_nobodys_alarm(world: ToldMoneyWorld) -> None:
    world.start()
    while not call(world):
        world.close_epoch()
    number = world.epoch
    while world.epoch == number:
        world.close_epoch()
    assert duties(world, 1) == []


def test_an_epoch_is_overdue_when_the_chain_could_have_taken_what_it_waits_for(world: ToldMoneyWorld) -> None:
    world.start()
    patience = world.charter.chain.inclusion_delay

    def overdue(at: int) -> list[str]:
        world.at(at)
        return [alarm.text.split(" s after")[0] for alarm in judge_epoch(world.view(world.sponsor))]

    due = world.run.duties.epochs[-1].start + world.charter.timing.seed_delay
    begun = max(world.now, due + patience)
    if begun == due + patience:
        assert overdue(begun) == []
    assert overdue(begun + 1) == [f"it has no seed {begun + 1 - due}"]
    world.seed()
    deadline = world.run.duties.epochs[-1].deadline
    assert overdue(deadline + patience) == []
    assert overdue(deadline + patience + 1) == [f"it is not closed {patience + 1}"]
    world.close_epoch()
    assert overdue(world.now) == []


def test_an_escrow_is_low_by_the_wei_that_the_next_round_lacks(world: ToldMoneyWorld) -> None:
    cost = cost_of(world.charter, 4)
    world.start(escrow=2 * cost - 1)
    (alarm,) = judge_escrow(world.view(world.sponsor))
    assert (alarm.kind, dict(alarm.figures)) == (
        AlarmKind.ESCROW_LOW,
        {"free": str(cost - 1), "wanted": str(cost)},
    )
    assert exit_code_of([alarm]) is ExitCode.FUNDS
    assert world.fund(world.sponsor, 1) == ""
    assert list(judge_escrow(world.view(world.sponsor))) == []


def test_too_few_tickets_for_a_round_s_duties_are_told(world: ToldMoneyWorld) -> None:
    world.start()
    lone = replace(world.charter, launch=replace(world.charter.launch, tickets=7))
    view = replace(world.view(world.sponsor), charter=lone)
    assert [(a.kind, a.about) for a in judge_escrow(view)] == [(AlarmKind.ESCROW_LOW, "tickets")]


def test_tickets_are_too_few_from_the_duty_on_that_they_do_not_answer_for(world: ToldMoneyWorld) -> None:
    people = world.start()
    view, e = world.view(world.sponsor), world.charter.economics
    answered = e.capacity * (view.books.registry.count_at(view.now, view.now) // e.shifts) * (PPM - e.reaudit_ppm)

    def at_rate(audit_ppm: int) -> RunView:
        return replace(view, charter=replace(world.charter, economics=replace(e, audit_ppm=audit_ppm)))

    most = answered // (2 * len(people))
    assert list(judge_escrow(at_rate(most))) == []
    assert [a.about for a in judge_escrow(at_rate(most + 1))] == ["tickets"]
    # Round 0 has opened since the epoch began: two of them are too much for it, and the next epoch takes the second.
    both = answered // (2 * 2 * len(people))
    assert may_open(at_rate(both)) and not may_open(at_rate(both + 1))
    assert list(judge_escrow(at_rate(both + 1))) == []


def accuse(world: ToldMoneyWorld) -> tuple[list[Address], int]:
    """Four people whose work is accused, and the epoch in which it is."""
    people = world.start()
    world.commit_all(people)
    world.at(world.model.commitments.round_of(world.round).t0 + world.charter.timing.commit + 10**4)
    while world.own_epoch(0) >= len(world.run.duties.epochs):
        world.play_epoch()
    number = world.epoch
    world.play_epoch(lies={ticket: set(map(Seat, range(4))) for ticket in world.chains})
    return people, number


def wind_down(world: ToldMoneyWorld) -> None:
    """The run stands still until anybody may end it."""
    world.at(world.now + world.charter.timing.stall + 1)
    assert world.wind_down() == ""


def test_a_stake_is_at_risk_while_an_accusation_of_it_is_alive(world: ToldMoneyWorld) -> None:
    people, number = accuse(world)
    accused = {a.accused for a in world.run.duties.attestations.accusations.values() if a.is_work}
    assert accused
    for who in people:
        told = stakes(world, who)
        at_risk = world.tenures[who] in accused
        assert [(a.kind, a.about) for a in told] == (
            [(AlarmKind.STAKE_AT_RISK, f"tenure {world.tenures[who]}")] if at_risk else []
        )
        assert exit_code_of(told) is (ExitCode.FRAUD if at_risk else ExitCode.OK)
    world.seed()
    while world.epoch <= number + 1:
        world.close_epoch()
    for name in world.run.duties.attestations.accusations:
        assert world.lapse(name) == ""
    assert [a for who in people for a in stakes(world, who)] == []


def test_an_accusation_that_a_stop_leaves_without_a_game_puts_no_stake_at_risk(world: ToldMoneyWorld) -> None:
    people, _ = accuse(world)
    assert [a.kind for who in people for a in stakes(world, who)]
    wind_down(world)
    made = world.run.duties.attestations.accusations
    assert {a.status for a in made.values()} == {AccusationStatus.RECORDED}
    assert [a for who in people for a in stakes(world, who)] == []


def test_a_ticket_that_a_fine_left_short_is_told_to_its_owner(world: ToldMoneyWorld) -> None:
    world.start()
    number = world.play_epoch(silent=1)
    while not world.run.duties.epochs[number].fines:
        number = world.play_epoch(silent=1)
    who, reporter = owner(world, 1), owner(world, 2)
    books = world.run.duties
    said = world.do(
        lambda: books.absent(reporter, TicketId(1), number, world.now), "Duties", "absent", 1, number, who=reporter
    )
    assert said == ""
    (alarm,) = stakes(world, who)
    assert (alarm.kind, alarm.about) == (AlarmKind.STAKE_SHORT, "ticket 1")
    assert int(dict(alarm.figures)["short"]) == world.told.books.registry.missing[TicketId(1)] > 0
    assert stakes(world, reporter) == []
    # Of a run that has ended it comes back as it is.
    wind_down(world)
    assert stakes(world, who) == []


def test_a_game_about_the_root_that_leads_is_told_and_one_about_another_is_not(world: ToldMoneyWorld) -> None:
    people = world.start()
    world.commit_all(people)
    world.hold_all(people)
    world.at(world.model.commitments.hold_until(world.round, 0) + 1)
    for step in (world.seal, world.open):
        for who in people:
            assert step(who, "another root" if who == people[3] else "root") == ""
        world.tick(world.terms.grace + 1)
    for number, seat in enumerate((0, 3), 1):
        ref = ClaimRef(ClaimKind.OUTER, Round(0), Seat(seat))
        opened = game.GameOpened(number, mark(("claim", seat)), people[1], people[seat], ref)
        fold(world.told, opened, world.now, TRANSACTION)
    (alarm,) = judge_roots(world.view(world.sponsor))
    assert (alarm.kind, alarm.about) == (AlarmKind.ROOT_CHALLENGED, "generation 1")
    assert dict(alarm.figures)["game"] == 1


def test_an_escrow_from_which_no_round_will_ever_open_is_not_low(world: ToldMoneyWorld) -> None:
    world.start(escrow=2 * cost_of(world.charter, 4) - 1)
    world.at(world.charter.expiry)
    assert [alarm.kind for alarm in judge_escrow(world.view(world.sponsor))][:1] == [AlarmKind.ESCROW_LOW]
    world.at(world.charter.expiry + 1)
    assert list(judge_escrow(world.view(world.sponsor))) == []
