"""What a solver does next: pure, from what it sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.protocol.types import SEATS, Wei
from assay_ledger.agents import keeper
from assay_ledger.agents.actions import Action, Commit, Join, LeaveSeat, Train
from assay_ledger.agents.keeper import attestation_ref, challenge_once
from assay_ledger.index.view import RunView


@dataclass(frozen=True, slots=True)
class SolverPlan:
    """How a solver takes part.

    The first round is opened with `first_seats` taken and `first_verifiers` registered. `free` is its stake that
    nothing locks, None if not known.
    """

    leaving: bool = False
    first_seats: int = 1
    first_verifiers: int = 1
    free: Wei | None = None


def candidates(view: RunView, plan: SolverPlan) -> Iterator[Action]:
    """Actions, most urgent first: clocks of games, then the commitment, then what trails behind."""
    yield from keeper.play(view)
    yield from _seat(view, plan.leaving)
    yield from keeper.rescue(view, keeper.affordable_rescues(view, plan.free, _kept(view)))
    yield from _commit(view)
    yield from keeper.draw_seeds(view)
    yield from defend_own_work(view)
    yield from keeper.outer_steps(view)
    if not plan.leaving:
        yield from keeper.open_round(view, plan.first_seats, plan.first_verifiers)
    yield from keeper.settle(view)


def times(view: RunView) -> Iterator[int]:
    """Chain times at which something may become due."""
    yield from keeper.times(view)


def _seat(view: RunView, leaving: bool) -> Iterator[Action]:
    seated = view.me in view.state.holders.values()
    over = len(view.state.rounds) >= view.charter.rounds or view.now > view.charter.expiry
    if leaving and seated:
        if not _owes(view):
            yield LeaveSeat()
    elif not leaving and not seated and not over and len(view.state.holders) < SEATS:
        yield Join()


def _kept(view: RunView) -> Wei:
    """Free stake that no rescue may take: a commitment that is not made costs the seat, a claim denied is defended."""
    terms = view.charter.economics
    commits = view.me in view.state.holders.values() and (
        _owes(view) or (len(view.state.rounds) < view.charter.rounds and view.now <= view.charter.expiry)
    )
    return Wei(terms.challenge_bond + (terms.claim_lock if commits else 0))


def _owes(view: RunView) -> bool:
    """Is this solver's commitment for the round under way still to come?"""
    record = view.state.round
    seat = None if record is None else record.seat_of(view.me)
    return record is not None and seat is not None and seat not in record.commitments and view.now <= record.times.t1


def _commit(view: RunView) -> Iterator[Action]:
    """Train from the outer root that this solver verified itself, and commit."""
    record = view.state.round
    seat = None if record is None else record.seat_of(view.me)
    if record is None or seat is None or seat in record.commitments or view.now >= record.times.t1:
        return
    base = view.verified_base(record.number)
    if base is None or not view.is_alive(record.number, base):
        return
    if (record.number, base) in view.memory.trained:
        yield Commit(record.number, seat, base)
    else:
        yield Train(record.number, seat, base)


def defend_own_work(view: RunView) -> Iterator[Action]:
    """A solver challenges attestations that deny its work."""
    for record in view.state.rounds:
        seat = next((s for s, c in record.commitments.items() if c.solver == view.me), None)
        if seat is None or not record.times.t5 < view.now <= record.times.challenge_until:
            continue
        for who, other in sorted(record.attendance.items()):
            if view.state.attesters[who].convicted_at is not None:
                continue
            duties = [view.duty(record, record.commitments[seat], j) for s, j in sorted(other.leaves) if s == seat]
            refs = [d.attestation(who) for d in duties if other.leaves[seat, d.number] != d.y]
            everything = [attestation_ref(view, record, who, *place) for place in sorted(other.leaves)]
            if refs:
                yield from challenge_once(view, refs, everything)
