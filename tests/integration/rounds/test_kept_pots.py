"""What keepers do for pots: epochs until they can be closed, and everything that a stop leaves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest
from assay_ledger.agents import keeper
from assay_ledger.agents.money_actions import CloseBounty, EnterBounty, TakeBounty, WindDown
from assay_ledger.agents.money_keeper import is_owed, money_tasks, pots_wait
from assay_ledger.agents.round_actions import CloseEpoch, LapseAccusation, RoundAction, SeedEpoch, SubmitBeacon
from assay_ledger.agents.stalls import winds_down_at
from assay_verifier.secret_chains import TicketChains
from assay_verifier.ticket_keeping import ReclaimTicket, TicketPlan, ticket_actions
from assay_verifier.view_records import ViewRecords
from tests.harness.rounds.money_scenes import with_work_prepared
from tests.harness.rounds.told_money import ToldMoneyWorld
from tests.integration.rounds.test_bounties import convict, everybody
from tests.integration.rounds.test_stopped_pots import LABEL, accused_before_the_stop, owner, stop


@pytest.fixture
def world() -> Iterator[ToldMoneyWorld]:
    """Round 0 has taken its commitments; all work was prepared for games."""
    made = ToldMoneyWorld()
    made.label = LABEL
    with with_work_prepared(made):
        yield made


def tasks(world: ToldMoneyWorld, who: Address, *kinds: type[RoundAction]) -> list[keeper.Task]:
    """Of somebody, of some kinds."""
    return [task for task in keeper.tasks(world.view(who)) if isinstance(task.action, kinds)]


def only(world: ToldMoneyWorld, who: Address, action: RoundAction) -> int:
    """When somebody's only task of its kind is due."""
    (task,) = tasks(world, who, type(action))
    assert task.action == action
    return task.at


def test_epochs_go_on_until_a_pot_can_be_closed_though_nobody_has_entered(world: ToldMoneyWorld) -> None:
    accusation, *others = everybody(world)
    tenure, accuser = convict(world, accusation)
    for name in others:
        assert world.lapse(name) == ""
    convicted_at = world.model.tenures.tenures[tenure].convicted_at
    while world.run.duties.epochs[-1].start <= convicted_at:
        world.play_epoch()
    first = world.epoch
    while not world.run.duties.over_since(first + 2):
        assert pots_wait(world.view(accuser))
        world.play_epoch()
    assert not pots_wait(world.view(accuser))
    assert world.enter(accusation) == ""
    closes = world.run.duties.over_since(first + 2) + world.run.bounties.time + 1
    assert only(world, accuser, CloseBounty(accusation, first)) >= closes


def test_who_waits_for_a_pot_winds_down_a_run_whose_epochs_have_stopped(world: ToldMoneyWorld) -> None:
    """Bad luck: a beacon ends when a run is over and all tickets have left: a pot was never closed, nobody paid."""
    accusation, *others = everybody(world)
    _, accuser = convict(world, accusation)
    for name in others:
        assert world.lapse(name) == ""
    registry = world.told.books.registry
    registry.left |= {ticket: held.owner for ticket, held in registry.tickets.items()}
    registry.tickets.clear()
    world.told.money.phase = RunPhase.OVER
    view = world.view(accuser)
    assert pots_wait(view) and is_owed(view)
    ends = [task.at for task in money_tasks(view) if isinstance(task.action, WindDown)]
    stall = view.charter.timing.stall
    assert len(ends) == 1 and ends[0] >= max(winds_down_at(view), view.epochs[-1].start + stall + 1)
    world.told.money.pots.clear()
    assert not [task for task in money_tasks(world.view(accuser)) if isinstance(task.action, WindDown)]


def test_keepers_share_a_pot_and_end_accusations_after_a_stop(world: ToldMoneyWorld) -> None:
    accusation, *others = accused_before_the_stop(world)
    accuser = owner(world, accusation)
    made = world.run.duties.attestations.accusations[accusation]
    seat = world.model.tenures.tenures[made.accused].seat
    ref = (int(ClaimKind.INTERVAL), 0, seat, 0, bytes(20), accusation)
    assert world.open_verdict(ref, accuser) == ""
    stopped = stop(world)
    due = {task.action: task.at for task in tasks(world, accuser, LapseAccusation)}
    recorded = {n for n, a in world.told.books.duties.attestations.accusations.items() if a.status == 1}
    assert set(others) <= recorded and {action.accusation for action in due} == recorded  # type: ignore[attr-defined]
    for name in others:
        world.at(max(world.now, due[LapseAccusation(name)]))
        assert world.lapse(name) == ""
    assert not tasks(world, accuser, SeedEpoch, CloseEpoch, SubmitBeacon)
    world.end_verdict(ref, True, True, accuser)
    assert made.status is AccusationStatus.UPHELD
    # Whose accusation nobody could try has no part.
    assert [tasks(world, owner(world, name), EnterBounty) for name in others if owner(world, name) != accuser] == [
        [] for name in others if owner(world, name) != accuser
    ]
    # What a ticket is owed is paid to who has taken its stake back, too: nothing of it stays locked.
    assert ReclaimTicket(made.ticket) in reclaimed(world, accuser)
    assert world.reclaim(made.ticket) == "" and is_owed(world.view(accuser))
    world.at(max(world.now, only(world, accuser, EnterBounty(accusation))))
    assert world.enter(accusation) == ""
    closes = only(world, accuser, CloseBounty(accusation, _later(world, accusation)))
    assert closes > stopped + world.run.bounties.time
    world.at(closes)
    assert world.close_pot(accusation, _later(world, accusation)) == ""
    assert only(world, accuser, TakeBounty(accusation)) == world.now
    before = world.vault.free_of(accuser)
    assert world.take(accusation) == "" and world.vault.free_of(accuser) > before
    assert not tasks(world, accuser, EnterBounty, CloseBounty, TakeBounty) and not is_owed(world.view(accuser))


def reclaimed(world: ToldMoneyWorld, who: Address) -> list[object]:
    """What somebody's actor takes back after a stop."""
    records, chains = ViewRecords(world.view(who)), TicketChains(bytes(32), Digest(bytes(32)))
    plan = TicketPlan(0, True, 0, world.charter.economics.ticket_bond, is_stopped=True)
    return list(ticket_actions(plan, records.held_tickets(), chains, records, world.now))


def _later(world: ToldMoneyWorld, accusation: Digest) -> int:
    """The epoch that a pot is closed by: the first that began after the conviction, or none of them."""
    made = world.run.duties.attestations.accusations[accusation]
    convicted_at = world.model.tenures.tenures[made.accused].convicted_at
    return next((n for n, e in enumerate(world.run.duties.epochs) if e.start > convicted_at), 0)
