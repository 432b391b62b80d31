"""How actors share what anybody may do for a run. Pure.

Many see the same task at the same time. Participants stand in an order that turns with every round, epoch or
generation: the first goes at once, the second STAGGER_S later, the next two 2 STAGGER_S, the next four 3 STAGGER_S, and
so on, so that a task that was done is sent once, and one whose first doers are dead is late by a minute, not by hours.
Losing a race is not an error. Whose money waits on a task does it at once; others only GRACE_S later.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from assay.protocol.rounds.terms import NEVER
from assay.protocol.types import Address
from assay_ledger.agents.round_actions import RoundAction
from assay_ledger.rounds.view import RunView

STAGGER_S: Final = 30
GRACE_S: Final = 600

PATIENCE: Final = 2
"""What is waited of a window for somebody else's game about the same: one part of so many. Who plays it may lose on
purpose, and one conviction takes everything, so waiting for it costs nothing else."""


@dataclass(frozen=True, slots=True)
class Task:
    """An action, and the first chain time of a head, in seconds, at which this actor takes it."""

    at: int
    action: RoundAction


def participants(view: RunView) -> tuple[Address, ...]:
    """Who has a seat or a ticket, in the order of their addresses."""
    holders = {t.holder for t in view.books.tenures.tenures.values() if t.until == NEVER}
    return tuple(sorted(holders | {t.owner for t in view.books.registry.tickets.values()}))


def wait(view: RunView, number: int) -> int:
    """How long this actor leaves a task to those before it, in seconds; `number` turns the order."""
    order = _order(participants(view))
    if view.me not in order:
        return STAGGER_S * (len(order).bit_length() + 1)
    return STAGGER_S * ((order[view.me] - number) % len(order)).bit_length()


@lru_cache(maxsize=4)
def _order(who: tuple[Address, ...]) -> dict[Address, int]:
    return {address: place for place, address in enumerate(who)}
