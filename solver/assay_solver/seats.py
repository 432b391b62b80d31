"""Whether a solver takes a seat, and what it says where it takes none. Pure.

Source: docs/adr/0055-before-staking.md.
"""

from __future__ import annotations

from typing import Final

from assay.protocol.rounds.terms import Tenure
from assay.protocol.types import Address
from assay_ledger.agents.money_keeper import carries_another
from assay_ledger.rounds.view import RunView

SLOWED: Final = (
    "its GPU is gone, and by the CPU alone its work may come too late: mend the GPU and start again, or start with "
    "`--device cpu`"
)


def why_no_seat(view: RunView, forgiven: int = 0, free: int | None = None, *, lost_gpu: bool = False) -> str:
    """Why this actor, which holds no seat, takes none in a run that goes on; empty where it takes one.

    forgiven: its newest tenure that counts no more, as a person looked after it. free: wei of its stake that nothing
    locks; None: nobody asked. lost_gpu: see ActorLoop.
    """
    barring = barred(view, view.me, forgiven)
    # Bad luck: nobody asked for a machine that is too slow, which would lose the fee of one seat after the other.
    slowed = SLOWED if lost_gpu else ""
    return barring or slowed or full(view) or ("" if free is None else _short(view, free))


def barred(view: RunView, who: Address, forgiven: int = 0) -> str:
    """Why somebody should take no seat again; empty where nothing speaks against it."""
    mine = view.tenures_of(who)
    if any(tenure.convicted_at for _, tenure in mine):
        return "a seat of this key was convicted: its machine is to be mended first, and begins with another key"
    if mine and mine[-1][0] > forgiven and _was_idle(mine[-1][1]):
        seat, fee = mine[-1][1].seat, view.facts.currency.brief(view.charter.economics.seat_fee)
        return (
            f"this key was evicted from seat {seat} without one commitment, for a fee of {fee} tokens: once it is "
            "known why, `assay solver start --again`"
        )
    return ""


def full(view: RunView) -> str:
    """Why a run has no seat for anybody; empty where it has one."""
    if not view.free_seats:
        return f"all {view.charter.training.seats} seats are taken"
    return "" if carries_another(view) else "the run's tickets answer for, and its escrow pays, no more seats than held"


def _short(view: RunView, free: int) -> str:
    """What of its stake is missing for a seat; empty where nothing is."""
    e, money = view.charter.economics, view.facts.currency
    missing = e.seat_lock + e.seat_fee - free
    if missing <= 0:
        return ""
    return (
        f"{money.show(free)} tokens of its stake are free, and a seat locks {money.show(e.seat_lock + e.seat_fee)}: "
        f"it takes one once {money.show(missing)} more are free (`assay ledger stake {money.show(missing)}`)"
    )


def _was_idle(tenure: Tenure) -> bool:
    # A machine that cannot work in time loses the fee of each seat that it takes, for as long as it has any.
    return tenure.fee_gone and tenure.never_worked
