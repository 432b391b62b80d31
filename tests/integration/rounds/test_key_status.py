"""What a key has in a run, and until or from which second: what is said is what the contracts then take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import cast

import pytest

from assay.cli.joining import outlook_now
from assay.cli.run_documents import after_the_end
from assay.cli.status import _seat
from assay.cli.this_machine import income_of
from assay.explorer.documents import Document
from assay.explorer.money import Account
from assay.explorer.reader import RunReader
from assay.explorer.work_documents import phase
from assay.protocol.game.state import REVEAL_WINDOW
from assay.protocol.game.table import Side, Stage
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay.status.account import OwnMoney, status_of, withdraw_at
from assay.status.locks import challenge_lock, game_lock
from assay_ledger.agents import keeper
from assay_ledger.agents.round_actions import ReleaseTenure
from assay_ledger.index.records import GameRecord
from tests.harness.rounds.samples import ETHER, mark
from tests.harness.rounds.told_money import ToldMoneyWorld

STRANGER = Address(b"\x77" * 20)
COMMITMENT = mark("a challenge")


@pytest.fixture
def world() -> Iterator[ToldMoneyWorld]:
    made = ToldMoneyWorld()
    yield made
    made.end()


def status(world: ToldMoneyWorld, who: Address, challenges: Mapping[Digest, int] | None = None) -> Document:
    """Of somebody, by the events of the run and the vault's books."""
    locks = {name: int(lock.amount) for name, lock in world.vault.locks.items() if lock.owner == who}
    leaving, after = world.vault.exits.get(who, (0, 0))
    figures = Account(free=world.vault.free_of(who), locked=sum(locks.values()), leaving=leaving)
    return status_of(world.view(who), OwnMoney(figures, locks, after, challenges or {}))


def lock(world: ToldMoneyWorld, who: Address, kind: str) -> Document:
    """Somebody's only lock of a kind."""
    (found,) = [each for each in status(world, who)["locks"] if each["kind"] == kind]
    return dict(found)


def due(world: ToldMoneyWorld, who: Address, kind: str) -> list[int]:
    """Until when somebody must do something of a kind."""
    return [each["until"] for each in status(world, who)["deadlines"] if each["kind"] == kind]


def leave(world: ToldMoneyWorld, who: Address) -> None:
    tenure = world.tenures[who]
    call = lambda: world.model.tenures.leave(who, tenure)  # noqa: E731
    assert world.do(call, "Tenures", "leave", tenure, who=who) == ""


def test_every_lock_is_named_by_what_it_stands_behind(world: ToldMoneyWorld) -> None:
    solver, *_ = world.start()
    auditor = world.run.tickets.owner_of(TicketId(1))
    economics = world.charter.economics
    found = {each["kind"]: int(each["amount"]) for each in status(world, solver)["locks"]}
    assert found == {"seat": economics.seat_lock, "seat fee": economics.seat_fee}
    assert lock(world, auditor, "ticket")["number"] == 1
    assert all(each["waits_for"] and each["ends_at"] is None for each in status(world, solver)["locks"])
    assert int(status(world, solver)["stake"]["locked"]) == sum(found.values())


def test_the_lock_of_a_seat_that_was_never_held_can_end_at_once(world: ToldMoneyWorld) -> None:
    who = world.add_person(10**5 * ETHER)
    assert world.join(who) == ""
    assert lock(world, who, "seat")["ends_at"] is None
    leave(world, who)
    assert lock(world, who, "seat")["ends_at"] == world.now
    assert world.release(who) == ""
    assert status(world, who)["locks"] == [] and status(world, who)["seats"][0]["status"] == "released"


def test_the_lock_of_a_seat_that_was_left_ends_in_the_second_that_is_said(world: ToldMoneyWorld) -> None:
    who, *others = world.start()
    leave(world, who)
    world.commit_all(others)
    at = lock(world, who, "seat")["ends_at"]
    assert "as it was held and never worked in" in lock(world, who, "seat")["waits_for"]
    assert at > world.now and at == lock(world, who, "seat fee")["ends_at"]
    world.at(at - 1)
    assert lock(world, who, "seat")["ends_at"] == at
    assert world.release(who) == "TenureLasts"
    world.at(at)
    assert lock(world, who, "seat")["ends_at"] == at and world.release(who) == ""


def test_the_lock_of_a_seat_waits_for_commitments_that_are_not_settled(world: ToldMoneyWorld) -> None:
    who, *_ = world.start()
    assert world.commit(who) == ""
    leave(world, who)
    found = lock(world, who, "seat")
    assert found["ends_at"] is None and found["waits_for"] == "1 commitment or root to be settled"
    assert world.release(who) == "TenureObliged"
    unpaid, seat = status(world, who)["earned"]["unpaid"], status(world, who)["seats"][0]
    units = world.works[Round(0), world.seat(who)].units
    assert (unpaid["commitments"], int(unpaid["pay_at_most"])) == (1, units * world.charter.economics.unit_price)
    assert (seat["status"], seat["until"], seat["unsettled"]) == ("left", 1, 1)


def test_the_stake_of_a_ticket_can_end_exactly_when_the_contract_gives_it_back(world: ToldMoneyWorld) -> None:
    world.start()
    ticket, who = TicketId(1), world.run.tickets.owner_of(TicketId(1))
    assert lock(world, who, "ticket")["not_before"] >= world.now + world.charter.timing.seasoning
    call = lambda: world.run.tickets.retire(who, ticket, world.now)  # noqa: E731
    assert world.do(call, "Tickets", "retire", ticket, who=who) == ""
    until = world.run.tickets.tickets[ticket].until
    assert lock(world, who, "ticket")["not_before"] >= until
    said, earliest = set(), [until]
    for _ in range(20):
        found = lock(world, who, "ticket")
        said.add(found["waits_for"])
        earliest.append(found["not_before"] or 0)
        if not world.reclaim(ticket):
            break
        assert found["ends_at"] is None and found["waits_for"] is not None
        world.play_epoch()
    assert found["ends_at"] is not None and found["ends_at"] <= world.now and len(said) > 1
    assert max(earliest) <= world.now, "it was said to come back later than it did"
    assert status(world, who)["locks"] == []


def test_after_a_stop_only_games_hold_the_locks_of_a_seat(world: ToldMoneyWorld) -> None:
    who, *_ = world.start()
    assert world.commit(who) == ""
    world.at(world.charter.timing.stall + world.told.money.launched_at + 1)
    assert world.wind_down() == ""
    leave(world, who)
    assert lock(world, who, "seat")["ends_at"] == world.now
    (task,) = [task for task in keeper.tasks(world.view(who)) if isinstance(task.action, ReleaseTenure)]
    assert task.at == world.now, "its actor takes it back"
    assert status(world, who)["deadlines"] == [] and status(world, who)["income"] is None
    (seat,) = status(world, who)["seats"]
    assert _seat(seat, status(world, who)["phase"])[-1] == "1 commitment, 1 never settled, and unpaid for good"
    assert int(status(world, who)["earned"]["unpaid"]["pay_at_most"]) == 0
    assert world.release(who) == ""


def test_of_a_run_that_was_stopped_no_round_is_said_to_go_on(world: ToldMoneyWorld) -> None:
    people = world.start(tickets=8)
    world.play_round(people)
    world.tick(1)
    world.commit_all(people)
    view = world.view(people[0])
    reader, money = cast(RunReader, SimpleNamespace(view=view, state=view.state)), view.state.money
    merged, latest = Round(0), Round(1)
    assert view.round == latest
    ends = max(opening.at for opening in view.openings(1)) + view.rules.challenge
    goes_on = ("merged, not yet final", "training")
    for stopped, said in (
        (0, goes_on),
        (ends, ("merged, never final", "ended with the run")),
        (ends + 1, ("merged, not yet final", "ended with the run")),
    ):
        money.stopped_at = stopped
        assert tuple(phase(reader, round_, is_closed=False) for round_ in (merged, latest)) == said
    money.stopped_at = 0


def test_who_paid_for_a_run_that_has_ended_is_told_how_to_have_the_rest_back(world: ToldMoneyWorld) -> None:
    world.start(escrow=1000 * ETHER)
    world.at(world.charter.timing.stall + world.told.money.launched_at)
    assert list(after_the_end(world.view(world.sponsor))) == []
    world.tick(1)
    assert world.wind_down() == ""
    (said,) = after_the_end(world.view(world.sponsor))
    assert said.startswith("The escrow still holds 1000 tokens") and "`assay run refund`" in said
    assert world.refund(world.sponsor) == ""
    assert list(after_the_end(world.view(world.sponsor))) == []


def test_what_was_asked_out_is_due_in_the_second_that_is_said(world: ToldMoneyWorld) -> None:
    who = world.add_person()
    amount = Wei(3 * ETHER)
    ask = lambda: world.vault.request_exit(who, amount, world.now)  # noqa: E731
    assert world.do(ask, "Vault", "requestExit", amount, who=who) == ""
    leaving = status(world, who)["leaving"]
    assert leaving == {"amount": str(amount), "ends_at": withdraw_at(world.vault.exits[who][1]), "is_due": False}
    take = lambda: world.vault.withdraw(who, world.now)  # noqa: E731
    world.at(leaving["ends_at"] - 1)
    assert not status(world, who)["leaving"]["is_due"]
    assert world.do(take, "Vault", "withdraw", who=who) == "ExitTooEarly"
    world.at(leaving["ends_at"])
    assert status(world, who)["leaving"]["is_due"] and world.do(take, "Vault", "withdraw", who=who) == ""
    assert status(world, who)["leaving"] is None


# --- deadlines


def test_a_commitment_is_due_to_the_last_second_that_takes_it(world: ToldMoneyWorld) -> None:
    first, second, *_ = world.start()
    until = world.view(first).commit_until(Round(0))
    assert due(world, first, "commitment") == [until]
    assert status(world, first)["next_deadline"]["until"] == until
    world.at(until)
    assert due(world, first, "commitment") == [until] and world.commit(first) == ""
    assert due(world, first, "commitment") == []
    world.at(until + 1)
    assert due(world, second, "commitment") == [] and world.commit(second) != ""


def test_a_commitment_without_weight_has_a_later_deadline_than_one_with_it(world: ToldMoneyWorld) -> None:
    *others, last = world.start()
    world.commit_all(others)
    view = world.view(last)
    assert view.round_of(Round(0)).mask_at < view.commit_until(Round(0))
    assert due(world, last, "commitment") == [view.round_of(Round(0)).mask_at, view.commit_until(Round(0))]
    world.at(view.round_of(Round(0)).mask_at + 1)
    assert due(world, last, "commitment") == [view.commit_until(Round(0))]


def test_a_seat_that_committed_must_speak_seal_and_open_in_time(world: ToldMoneyWorld) -> None:
    people = world.start()
    world.commit_all(people)
    world.tick(1)
    who, commitments = people[0], world.model.commitments
    assert due(world, who, "merge")[0] == commitments.hold_until(Round(0), 0)
    world.hold_all(people)
    world.at(commitments.hold_until(Round(0), 0) + 1)
    assert due(world, who, "merge") == [world.view(who).seal_until(Round(0))]
    assert world.seal(who, "root") == ""
    assert due(world, who, "merge") == [world.view(who).merge_until(Round(0))]


def called(world: ToldMoneyWorld) -> TicketId:
    """A ticket that the newest epoch calls, which has its seed: the first that calls anybody."""
    for _ in range(4):
        world.seed()
        for ticket in world.view(STRANGER).called_tickets(world.epoch):
            return ticket
        world.close_epoch()
    raise AssertionError("nobody is called")


def test_a_call_is_due_to_its_deadline_and_a_missed_one_owes_its_secret(world: ToldMoneyWorld) -> None:
    world.start()
    ticket, until = called(world), world.run.duties.epochs[-1].deadline
    who = world.run.tickets.owner_of(ticket)
    world.at(until)
    assert due(world, who, "call") == [until] and due(world, who, "secret") == []
    world.at(until + 1)
    assert due(world, who, "call") == []
    repeats = world.epoch
    while world.epoch == repeats:
        # Nobody opened: the epoch waits once more, and calls again.
        world.close_epoch()
    assert status(world, who)["tickets"][0]["secrets_owed"] == 1
    world.seed()
    assert due(world, who, "secret") == [world.run.duties.epochs[-1].deadline]


def test_a_call_that_was_opened_is_due_no_more(world: ToldMoneyWorld) -> None:
    world.start()
    ticket = called(world)
    who = world.run.tickets.owner_of(ticket)
    world.at(world.run.duties.epochs[-1].deadline)
    assert len(due(world, who, "call")) == 1 and world.open_call(ticket) == ""
    assert due(world, who, "call") == []


def test_a_stake_that_a_fine_left_short_is_topped_up_or_lost_its_ticket(world: ToldMoneyWorld) -> None:
    world.start()
    who = world.run.tickets.owner_of(TicketId(1))
    world.told.books.registry.tickets[TicketId(1)].short_since = world.now
    assert due(world, who, "top up") == [world.now + world.charter.timing.seasoning]


def test_who_is_to_move_in_a_game_has_its_clock_as_a_deadline(world: ToldMoneyWorld) -> None:
    defender, challenger, *_ = world.start()
    ref = ClaimRef(ClaimKind.INTERVAL, Round(0), Seat(0))
    game = GameRecord(1, mark("claim"), ref, challenger, defender, b"", Stage.NODES, Side.DEFENDER, world.now + 60)
    world.told.games[1] = game
    assert due(world, defender, "game") == [world.now + 60] and due(world, challenger, "game") == []
    game.turn = Side.CHALLENGER
    world.tick(60)
    assert due(world, defender, "game") == [] and due(world, challenger, "game") == [world.now]
    world.tick(1)
    assert due(world, challenger, "game") == []
    found = status_of(world.view(challenger), OwnMoney(Account(), {game_lock(1): 5}))["locks"]
    assert [(each["kind"], each["number"], each["waits_for"]) for each in found] == [
        ("game", 1, "the verdict of game 1")
    ]


def test_a_committed_challenge_is_revealed_in_its_window_or_burns(world: ToldMoneyWorld) -> None:
    who, at, chain = world.add_person(), world.now, world.charter.chain
    until = at + REVEAL_WINDOW + chain.reorg_depth + chain.inclusion_delay
    money = OwnMoney(Account(), {challenge_lock(COMMITMENT): 5}, challenges={COMMITMENT: at})
    (found,) = status_of(world.view(who), money)["locks"]
    assert (found["kind"], found["ends_at"], found["lost_after"]) == ("challenge", at + chain.reorg_depth, until)
    world.at(until)
    assert status_of(world.view(who), money)["next_deadline"]["until"] == until
    world.at(until + 1)
    assert status_of(world.view(who), money)["next_deadline"] is None


# --- income, and who has nothing


def test_income_is_what_the_charter_pays_for_what_is_held(world: ToldMoneyWorld) -> None:
    solver, *_ = world.start()
    auditor, economics = world.run.tickets.owner_of(TicketId(1)), world.charter.economics
    assert int(status(world, solver)["income"]["per_round_at_most"]) == world.charter.price
    assert int(status(world, auditor)["income"]["per_finding"]) == economics.wage
    assert int(status(world, solver)["income"]["per_merge"]) == economics.merge_pay
    assert "per_merge" not in status(world, auditor)["income"], "up to 64 seats merges are the solvers'"
    assert "per_round_at_most" not in status(world, auditor)["income"]


def test_income_is_at_the_price_that_was_voted(world: ToldMoneyWorld) -> None:
    solver, *_ = world.start()
    price, merge = world.charter.price, world.charter.economics.merge_pay
    whole = income_of(world.view(solver), "solver", 1)
    world.told.books.price_ppm = 500_000
    day = income_of(world.view(solver), "solver", 1)
    assert int(status(world, solver)["income"]["per_round_at_most"]) == price // 2
    assert outlook_now(world.view(solver), "solver", 1).pay == price // 2
    assert day.mean == pytest.approx(whole.mean * (price // 2 + merge) / (price + merge))


@pytest.mark.parametrize("role", ["solver", "verifier"])
def test_a_run_that_begins_no_further_round_brings_nothing(role: str, world: ToldMoneyWorld) -> None:
    solver, *_ = world.start()
    assert income_of(world.view(solver), role, 1).mean > 0
    world.told.books.sunset = True
    day = income_of(world.view(solver), role, 1)
    assert (day.mean, day.high, day.loses_pay) == (0, 0, 0)


def test_an_address_that_the_run_does_not_know_has_nothing_and_owes_nothing(world: ToldMoneyWorld) -> None:
    world.start()
    found = status(world, STRANGER)
    assert found["known"] is False and found["income"] is None and found["next_deadline"] is None
    assert [found[name] for name in ("locks", "seats", "tickets", "deadlines")] == [[], [], [], []]
    assert set(found["stake"].values()) == {"0"} and found["leaving"] is None
