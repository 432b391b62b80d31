"""A run's money, from its launch to its end, by nothing but what keepers do: contracts and model take all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Address, Wei
from assay_ledger.agents import keeper, keeping
from assay_ledger.agents.money_actions import (
    CancelRun,
    CollectFine,
    FinishRun,
    FreeRound,
    LaunchRun,
    SettleFinding,
    SettleOpening,
    SettleSeat,
    VestShares,
    WindDown,
)
from assay_ledger.agents.round_actions import (
    CloseEpoch,
    CloseOpening,
    FinalizeGeneration,
    Restart,
    RoundAction,
    SeedEpoch,
    SubmitBeacon,
)
from assay_ledger.bindings.tickets import FineOwed
from assay_ledger.rounds.records import RunState
from tests.harness.rounds.money_chain import DENSE
from tests.harness.rounds.told_money import ToldMoneyWorld


class KeptWorld(ToldMoneyWorld):
    """People who do no more than train and audit; whatever else the run needs is done as keepers would."""

    def __init__(self, rounds: int) -> None:
        super().__init__(replace(DENSE, rounds=rounds))
        self.done: Counter[str] = Counter()

    def tasks(self) -> Iterator[keeper.Task]:
        """Of everybody."""
        for who in self.people:
            yield from keeper.tasks(self.view(who))

    def carry_out(self, action: RoundAction) -> None:
        """One action on model and contracts, which must take it."""
        self.done[type(action).__name__] += 1
        said = ""
        match action:
            case Restart():
                said = self.restart()
            case LaunchRun():
                said = self.launch(self.people[0])
            case SubmitBeacon() | SeedEpoch():
                self.seed_and_answer()
            case CloseEpoch():
                self.close_epoch()
            case FinalizeGeneration(generation, party):
                books = self.model.generations
                call = lambda: books.finalize(generation, party, self.now)  # noqa: E731
                said = self.do(call, "Generations", "finalize", generation, party)
            case CloseOpening(generation, party):
                books = self.model.generations
                call = lambda: books.close(generation, party, self.now)  # noqa: E731
                said = self.do(call, "Generations", "close", generation, party)
            case SettleSeat(round_, seat, epoch):
                said = self.settle_work(round_, seat, epoch)
            case SettleFinding(attestation):
                said = self.settle_duty(attestation)
            case SettleOpening(generation, party):
                said = self.settle_opening(generation, party)
            case FreeRound(round_, epoch):
                said = self.settle_round(round_, epoch)
            case FinishRun():
                said = self.finish()
            case WindDown():
                said = self.wind_down()
            case CancelRun():
                said = self.cancel(self.people[-1])
            case VestShares(grant):
                said = self.do(lambda: self.run.grants.release(grant, self.now), "Grants", "release", grant)
            case _:
                raise AssertionError(action)
        assert said == "", (action, said)

    def seed_and_answer(self) -> None:
        """The epoch is seeded, and whoever it calls answers."""
        self.seed()
        for ticket in self.chains:
            if self.run.duties._is_called(ticket, self.run.duties.epochs[-1], self.now):  # type: ignore[arg-type]
                assert self.open_call(ticket) == ""

    def train(self, half: bool = False) -> None:
        """A round up to its generation's majority, which opens the next; up to half of the votes."""
        holders = [who for who in self.people if who in self.tenures]
        self.commit_all(holders)
        self.hold_all(holders)
        self.at(self.model.commitments.hold_until(self.round, 0) + 1)
        for step in (self.seal, self.open):
            for number, who in enumerate(holders):
                assert step(who, "another root" if half and number % 2 else "root") == ""
            self.tick(self.terms.grace + 1)

    def keep(self, until: Callable[[RunState], bool]) -> None:
        """Everything that is due is done, and time moves on to what is next, until the state is so."""
        for _ in range(4000):
            if until(self.told):
                return
            tasks = [t for t in self.tasks() if not isinstance(t.action, VestShares)]
            due = next((t for t in tasks if t.at <= self.now), None)
            if due is not None:
                self.carry_out(due.action)
            else:
                self.at(min(t.at for t in tasks))
        raise AssertionError("the run does not end")


@pytest.fixture
def world() -> Iterator[KeptWorld]:
    made = KeptWorld(rounds=2)
    yield made
    made.end()


def test_keepers_end_a_run_whose_last_round_has_no_majority(world: KeptWorld) -> None:
    world.gather()
    world.keep(lambda told: told.money.phase is RunPhase.RUNNING)
    world.train()
    world.keep(lambda told: len(told.books.commitments.rounds) == 2)
    world.train(half=True)
    world.keep(lambda told: told.money.phase is RunPhase.OVER and not told.unclosed)
    assert world.model.generations.status_of(2) is GenerationStatus.CUT
    world.check_money()
    assert world.told.money.reserves == {} and world.told.unsettled == {}
    assert world.done["CloseOpening"] == 8


def test_keepers_carry_a_run_from_its_launch_to_its_end(world: KeptWorld) -> None:
    world.gather()
    world.keep(lambda told: told.money.phase is RunPhase.RUNNING)
    assert world.now >= world.charter.launch.open_from
    world.train()
    # Tickets on call have no room for the duties of two rounds in one epoch: the second waits for the next.
    assert world.round == 0
    world.keep(lambda told: len(told.books.commitments.rounds) == 2)
    assert world.done["Restart"] == 1 and world.epoch > 0
    world.train()
    world.keep(lambda told: told.money.phase is RunPhase.OVER)
    world.check_money()
    assert world.told.money.reserves == {} and world.told.unsettled == {} and world.told.unclosed == {}
    assert world.done["SettleSeat"] == world.done["SettleOpening"] == world.done["CloseOpening"] == 8
    assert world.done["FreeRound"] == 2 and world.done["LaunchRun"] == 1 and not world.done["WindDown"]
    # Duties end with the work, and the run only when the last of their wages is paid.
    made = world.run.duties.attestations
    assert world.done["SettleFinding"] == len(made.attestations) > 8
    assert world.told.money.findings_paid == made.attestations.keys()
    paid = {name for name, grant in world.run.grants.grants.items() if not grant.done}
    assert world.told.money.vesting.keys() == paid
    vests_at = max(grant.vests_at for grant in world.told.money.vesting.values())
    world.at(vests_at)
    for task in [t for t in world.tasks() if isinstance(t.action, VestShares)]:
        world.carry_out(task.action)
    assert world.told.money.vesting == {}
    world.check_money()


def test_keepers_wind_a_run_down_that_stands_still_and_not_before(world: KeptWorld) -> None:
    world.start()
    due = world.charter.timing.stall + world.told.money.launched_at + 1
    first = min(t.at for t in world.tasks() if isinstance(t.action, WindDown))
    assert first == due
    world.at(due - 1)
    assert world.wind_down() == "RunMoves"
    world.at(due)
    world.carry_out(WindDown())
    assert world.told.money.phase is RunPhase.WOUND_DOWN and world.told.money.is_stopped


def test_keepers_cancel_a_run_that_nobody_opened_in_time_and_not_before(world: KeptWorld) -> None:
    """An operator's stake shall not wait in a dead run until somebody types a command."""
    world.gather()
    due = world.charter.expiry + 1
    assert min(t.at for t in world.tasks() if isinstance(t.action, CancelRun)) == due
    world.at(due - 1)
    assert world.cancel(world.people[-1]) == "NotTheSponsor"
    world.at(due)
    actions = [t.action for t in world.tasks() if t.at <= world.now]
    assert CancelRun() in actions and LaunchRun() not in actions
    world.carry_out(CancelRun())
    assert world.told.money.phase is RunPhase.CANCELLED and world.told.money.is_stopped
    world.check_money()


def collects_at(world: KeptWorld, who: Address) -> list[int]:
    """From when on somebody collects what is owed."""
    return [t.at for t in keeper.tasks(world.view(who)) if isinstance(t.action, CollectFine)]


def test_a_forfeit_that_waited_is_collected_by_the_next_where_the_first_is_gone(world: KeptWorld) -> None:
    world.gather()
    books = world.told.books
    ticket, order = next(iter(books.registry.tickets)), keeping.participants(world.view(world.sponsor))
    first, second, third = (order[(ticket + k) % len(order)] for k in range(3))
    # Games are told by the game's own events, which these people have none of.
    books.registry.dispute(ticket)
    books.registry.on_owed(FineOwed(ticket, 0, Wei(1), Address(bytes(20))))
    world.tick(100)
    assert collects_at(world, first) == []
    over = world.now
    books.registry.undispute(ticket, False, over)
    for passed in (0, 29, 30, 10_000):
        world.at(over + passed)
        assert [collects_at(world, who) for who in (first, second, third)] == [[over], [over + 30], [over + 60]]
        assert (CollectFine(ticket, 0) in keeper.due(world.view(second))) == (passed >= keeping.STAGGER_S)
