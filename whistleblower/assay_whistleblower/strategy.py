"""What a whistleblower does next: pure, from what it sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Role, Wei
from assay_ledger.agents import keeper
from assay_ledger.agents.actions import Action
from assay_ledger.index.records import RoundRecord
from assay_ledger.index.view import Duty, RunView
from assay_verifier import attesting


@dataclass(frozen=True, slots=True)
class WhistleblowerPlan:
    """How a whistleblower takes part. `stake` registers it."""

    stake: Wei | None = None
    leaving: bool = False


def candidates(view: RunView, plan: WhistleblowerPlan) -> Iterator[Action]:
    """Actions, most urgent first. Verifiers reveal before it does, so that it cannot be copied."""
    yield from keeper.play(view)
    yield from attesting.participation(view, Role.WHISTLEBLOWER, plan.stake, plan.leaving)
    yield from keeper.draw_seeds(view)
    record = view.state.round
    if record is not None:
        t = record.times
        yield from attesting.attest(view, t.t5)
        yield from attesting.reveal_draw(view, t.t4, t.t5)
        if attesting.verifiers_have_revealed(record, view):
            yield from attesting.reveal_leaves(view, t.t7 - 1)
    yield from attesting.accuse_attesters(view)
    yield from attesting.accuse_solvers_as_third_party(view)
    yield from keeper.settle(view)


def times(view: RunView) -> Iterator[int]:
    """Chain times at which something may become due."""
    yield from keeper.times(view)
    yield from attesting.times(view, Role.WHISTLEBLOWER)


def attested(view: RunView, record: RoundRecord, drawn: tuple[Duty, ...]) -> tuple[Duty, ...]:
    """Those duties that some verifier's revealed draw makes its own: what is not attested is not attested falsely."""
    covered: set[ClaimRef] = set()
    for who, attendance in record.attendance.items():
        attester = view.state.attesters[who]
        if attester.role is Role.VERIFIER and attendance.y is not None:
            covered.update(duty.ref for duty in view.drawn(record, attester, attendance.y))
    return tuple(duty for duty in drawn if duty.ref in covered)
