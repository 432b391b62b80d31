"""What a verifier does next: pure, from what it sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.ledger import attesting, chores
from assay.ledger.actions import Action
from assay.ledger.view import View
from assay.protocol.types import Role, Wei


@dataclass(frozen=True, slots=True)
class VerifierPlan:
    """How a verifier takes part. `stake` registers it; a lazy one accuses no other, since it computes nothing.

    `free` is its stake that nothing locks, None if not known: no rescue takes the bond of a challenge.
    """

    stake: Wei | None = None
    leaving: bool = False
    lazy: bool = False
    first_seats: int = 1
    first_verifiers: int = 1
    free: Wei | None = None


def candidates(view: View, plan: VerifierPlan) -> Iterator[Action]:
    """Actions, most urgent first: clocks of games, then windows of the round, then what trails behind."""
    yield from chores.play(view)
    yield from chores.rescue(view, chores.affordable_rescues(view, plan.free, view.charter.economics.challenge_bond))
    yield from attesting.membership(view, Role.VERIFIER, plan.stake, plan.leaving)
    yield from attesting.receipts(view)
    yield from chores.draw_seeds(view)
    record = view.state.round
    if record is not None:
        t = record.times
        yield from attesting.attest(view, t.t3)
        yield from attesting.reveal_draw(view, t.t3, t.t4)
        yield from attesting.reveal_leaves(view, t.leaves_until)
    if not plan.lazy:
        yield from attesting.accuse_solvers(view)
        yield from attesting.accuse_attesters(view)
    yield from chores.outer_steps(view)
    if not plan.leaving:
        yield from chores.open_round(view, plan.first_seats, plan.first_verifiers)
    yield from chores.settle(view)


def times(view: View) -> Iterator[int]:
    """Chain times at which something may become due."""
    yield from chores.times(view)
    yield from attesting.times(view, Role.VERIFIER)
