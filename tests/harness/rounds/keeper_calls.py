"""What keepers want done, as calls of the contracts that a stage has."""

from __future__ import annotations

from typing import Any

from assay.protocol.types import Address
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
from assay_ledger.chain.client import Head
from assay_ledger.rounds.view import RunView
from tests.harness.rounds.charters import RUN
from tests.harness.rounds.told_world import ToldWorld


def view_of(world: ToldWorld, who: Address) -> RunView:
    """The run as somebody sees it now."""
    world.told.head = Head(1, world.now)
    return RunView(RUN, world.told.books.facts, who, world.told)


def call_of(action: RoundAction) -> tuple[str, str, tuple[Any, ...]] | None:
    """Contract, function and arguments of a task of rounds; None for one of audits, which this stage has not."""
    match action:
        case Restart():
            return "Generations", "restart", ()
        case CutGeneration(generation):
            return "Generations", "fall", (generation,)
        case DropOpening(generation, party):
            return "Generations", "drop", (generation, party)
        case FinalizeGeneration(generation, party):
            return "Generations", "finalize", (generation, party)
        case CloseOpening(generation, party):
            return "Generations", "close", (generation, party)
        case Evict(tenure, round_):
            return "Tenures", "evict", (tenure, round_)
        case ReleaseTenure(tenure):
            return "Tenures", "release", (tenure,)
    return None


def refused(world: ToldWorld, action: RoundAction, who: Address) -> str:
    """The error of a task on the contracts as they are now, which it does not change."""
    call = call_of(action)
    assert call is not None
    kept = world.chain.evm.evm.snapshot()
    try:
        contract, function, arguments = call
        return super(ToldWorld, world).refusal(contract, function, *arguments, who=who)
    finally:
        world.chain.evm.evm.revert(kept)


def same(a: RoundAction, b: RoundAction) -> bool:
    """Whether doing one does the other: any opening behind a root makes its generation final."""
    if isinstance(a, FinalizeGeneration) and isinstance(b, FinalizeGeneration):
        return a.node == b.node
    return a == b
