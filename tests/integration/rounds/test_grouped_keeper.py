"""What keepers do for sums of groups and what is built on them: what is due the contracts take, and nothing is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.terms import GenerationStatus
from assay_ledger.agents import keeper
from assay_ledger.agents.round_actions import (
    CloseOpening,
    CutGeneration,
    DropOpening,
    FinalizeGeneration,
    Restart,
    RoundAction,
)
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.grouped_player import TERMS, GroupedPlayer
from tests.harness.rounds.keeper_calls import refused, same, view_of
from tests.harness.rounds.told_world import ToldGroupedWorld

SEEDS, STEPS, OFTEN = 5, 240, 9
LONG = 10_000
"""Seconds after which everybody has let those before it go first."""
KINDS = (Restart, CutGeneration, DropOpening, FinalizeGeneration, CloseOpening)


def everything(world: ToldGroupedWorld) -> Iterator[RoundAction]:
    """Every call that anybody could make for what is merged."""
    yield Restart(world.round)
    yield from (CutGeneration(node) for node in {node for node, _ in world.told.openings})
    for node, party in list(world.told.openings):
        yield from (kind(node, party) for kind in (DropOpening, FinalizeGeneration, CloseOpening))


def decides_nothing(world: ToldGroupedWorld, action: RoundAction) -> bool:
    """Whether the task is about a claim that decides nothing any more."""
    over, books = (GenerationStatus.FINAL, GenerationStatus.CUT), world.told.books.generations
    return isinstance(action, DropOpening) and books.status_of(ids.generation_of(action.node)) in over


@pytest.mark.timeout(300)
def test_contracts_take_what_is_due_of_sums_and_nothing_else_is_left() -> None:
    chain, done = RoundChain(TERMS), Counter[str]()
    for seed in range(SEEDS):
        kept = chain.evm.evm.snapshot()
        world = ToldGroupedWorld(chain)
        player = GroupedPlayer(world, seed)
        for step in range(STEPS):
            player.step()
            if step % OFTEN:
                continue
            who = player.solvers[step % len(player.solvers)]
            tasks = [task for task in keeper.tasks(view_of(world, who)) if isinstance(task.action, KINDS)]
            for task in tasks:
                if task.at <= world.now:
                    assert refused(world, task.action, who) == "", (task, world.now)
            for action in everything(world):
                if decides_nothing(world, action) or refused(world, action, who):
                    continue
                soon = [t for t in tasks if same(t.action, action) and t.at <= world.now + LONG]
                assert soon, (action, world.now)
                on_group = not isinstance(action, Restart) and ids.is_group(action.node)
                done[type(action).__name__ + " of a sum" * on_group] += 1
        chain.evm.evm.revert(kept)
    # A node that nobody stands behind any more seldom comes of this play: `test_keeper` meets it often.
    often = [kind.__name__ for kind in KINDS if kind is not CutGeneration]
    wanted = [*often, *(f"{kind} of a sum" for kind in often[1:])]
    assert [kind for kind in wanted if not done[kind]] == []
