"""What anybody does for a run, after random play on the contracts: they take what is due, and nothing is forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Address, Round
from assay_ledger.agents import keeper, keeping
from assay_ledger.agents.keeping import Task
from assay_ledger.agents.round_actions import (
    CloseOpening,
    CutGeneration,
    DropOpening,
    Evict,
    FinalizeGeneration,
    ReleaseTenure,
    Restart,
    RoundAction,
)
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.keeper_calls import call_of, refused, same, view_of
from tests.harness.rounds.player import TERMS, RoundPlayer
from tests.harness.rounds.told_world import ToldWorld

SEEDS = 12
FEW_ROUNDS_SEEDS = 4
STEPS = 200
LONG = 10_000
"""Seconds after which everybody has let those before it go first."""


@pytest.fixture(scope="module")
def chain() -> RoundChain:
    return RoundChain(TERMS)


def everything(world: ToldWorld) -> Iterator[RoundAction]:
    """Every call that anybody could make for the run."""
    yield Restart(world.round)
    for generation in range(1, world.round + 3):
        yield CutGeneration(generation)
    for generation, party in list(world.told.openings):
        yield from (kind(generation, party) for kind in (DropOpening, FinalizeGeneration, CloseOpening))
    for tenure in world.told.books.tenures.tenures:
        yield from (Evict(tenure, Round(r)) for r in (world.round - 1, world.round) if r >= 0)
        yield ReleaseTenure(tenure)


def tasks_of(world: ToldWorld, who: Address) -> list[Task]:
    """What somebody would do now or later, of what this stage has."""
    return [task for task in keeper.tasks(view_of(world, who)) if call_of(task.action)]


def is_left_out(world: ToldWorld, action: RoundAction) -> bool:
    """Whether the task is about a claim that decides nothing any more."""
    over = GenerationStatus.FINAL, GenerationStatus.CUT
    return isinstance(action, DropOpening) and world.told.books.generations.status_of(action.node) in over


def play(chain: RoundChain, seeds: int) -> Counter[str]:
    """How often each kind of task that the contracts took was due or soon to be."""
    done: Counter[str] = Counter()
    for seed in range(seeds):
        kept = chain.evm.evm.snapshot()
        player = RoundPlayer(ToldWorld(chain), seed)
        world = player.w
        assert isinstance(world, ToldWorld)
        for step in range(STEPS):
            player.step()
            if step % 10:
                continue
            who = world.people[step // 10 % 5]
            tasks = tasks_of(world, who)
            for task in tasks:
                if task.at <= world.now:
                    assert refused(world, task.action, who) == "", (task, world.now)
            for action in everything(world):
                if is_left_out(world, action) or refused(world, action, who):
                    continue
                # A lock is left to the one whose it is.
                seen = world.told.books.tenures.tenures
                mine = tasks_of(world, seen[action.tenure].holder) if isinstance(action, ReleaseTenure) else tasks
                soon = [t for t in mine if same(t.action, action) and t.at <= world.now + LONG]
                assert soon, (action, world.now)
                done[type(action).__name__] += 1
                done["at the end"] += isinstance(action, Restart) and world.told.books.commitments.is_over(world.now)
        chain.evm.evm.revert(kept)
    return done


def test_contracts_take_what_is_due_and_nothing_else_is_left(chain: RoundChain) -> None:
    done = play(chain, SEEDS)
    kinds = (Restart, CutGeneration, DropOpening, FinalizeGeneration, CloseOpening, Evict, ReleaseTenure)
    assert {kind.__name__: done[kind.__name__] for kind in kinds if not done[kind.__name__]} == {}


def test_in_a_run_whose_rounds_are_over_the_last_one_is_given_up_too() -> None:
    assert play(RoundChain(replace(TERMS, rounds=3)), FEW_ROUNDS_SEEDS)["at the end"]


def test_an_order_that_turns_lets_few_go_first_and_all_go_in_the_end(chain: RoundChain) -> None:
    kept = chain.evm.evm.snapshot()
    world = ToldWorld(chain)
    people = world.begin(5)
    waits = [[keeping.wait(view_of(world, who), number) for who in sorted(people)] for number in range(5)]
    assert [sorted(row) for row in waits] == [[0, 30, 60, 60, 90]] * 5
    assert [row.index(0) for row in waits] == [0, 1, 2, 3, 4]
    stranger = Address(b"\x01" * 20)
    assert keeping.wait(view_of(world, stranger), 0) == 120
    chain.evm.evm.revert(kept)
