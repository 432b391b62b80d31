"""What a verifier does next: pure, from what it sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.protocol.types import Role, Wei
from assay_ledger.agents import keeper
from assay_ledger.agents.actions import Action
from assay_ledger.index.view import RunView
from assay_verifier import attesting


@dataclass(frozen=True, slots=True)
class VerifierPlan:
    """How a verifier takes part. `stake` registers it.

    `free` is its stake that nothing locks, None if not known: no rescue takes the bond of a challenge.
    """

    stake: Wei | None = None
    leaving: bool = False
    first_seats: int = 1
    first_verifiers: int = 1
    free: Wei | None = None


def candidates(view: RunView, plan: VerifierPlan) -> Iterator[Action]:
    """Actions, most urgent first: clocks of games, then windows of the round, then what trails behind."""
    yield from keeper.play(view)
    yield from keeper.rescue(view, keeper.affordable_rescues(view, plan.free, view.charter.economics.challenge_bond))
    yield from attesting.participation(view, Role.VERIFIER, plan.stake, plan.leaving)
    yield from attesting.receipts(view)
    yield from keeper.draw_seeds(view)
    record = view.state.round
    if record is not None:
        t = record.times
        yield from attesting.attest(view, t.t3)
        yield from attesting.reveal_draw(view, t.t3, t.t4)
        yield from attesting.reveal_leaves(view, t.leaves_until)
    yield from attesting.accuse_solvers(view)
    yield from attesting.accuse_attesters(view)
    yield from keeper.outer_steps(view)
    if not plan.leaving:
        yield from keeper.open_round(view, plan.first_seats, plan.first_verifiers)
    yield from keeper.settle(view)


def times(view: RunView) -> Iterator[int]:
    """Chain times at which something may become due."""
    yield from keeper.times(view)
    yield from attesting.times(view, Role.VERIFIER)
