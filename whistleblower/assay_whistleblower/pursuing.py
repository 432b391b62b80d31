"""When an accuser opens the game of what it accused. Pure.

A recorded accusation costs what a miss costs if no game is opened before the epoch after its own has closed. One
conviction takes everything, so that an accuser may wait while somebody else's game against the same lock is open; but
who plays it may lose on purpose, so no longer than half of what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from assay.protocol.rounds.duty_types import AccusationStatus, Epoch
from assay.protocol.types import Digest
from assay_ledger.agents.keeping import PATIENCE
from assay_ledger.agents.round_actions import RoundAction


@dataclass(frozen=True, slots=True)
class OwnAccusation:
    """An accusation by one of this owner's tickets, as events tell it; `epoch` is the one in which it was recorded."""

    id: Digest
    status: AccusationStatus
    epoch: int
    is_accused_convicted: bool
    is_tried_elsewhere: bool
    """Whether somebody else's game is open against the same lock."""


@dataclass(frozen=True, slots=True)
class TryAccusation(RoundAction):
    """Prepare the claim and challenge it."""

    accusation: Digest


def pursuit(
    accusations: Sequence[OwnAccusation], epochs: Sequence[Epoch], length: int, now: int
) -> Iterator[TryAccusation]:
    """What is due, the oldest accusation first; `length` is what an epoch gives to open, in seconds."""
    for made in sorted(accusations, key=lambda a: (a.epoch, a.id)):
        # Whose accused was convicted elsewhere anybody ends.
        if made.status is not AccusationStatus.RECORDED or made.is_accused_convicted:
            continue
        if not made.is_tried_elsewhere or now >= patience_until(made.epoch, epochs, length):
            yield TryAccusation(made.id)


def pursuit_times(accusations: Sequence[OwnAccusation], epochs: Sequence[Epoch], length: int) -> Iterator[int]:
    """Chain times at which a game may become due."""
    for made in accusations:
        if made.status is AccusationStatus.RECORDED and made.is_tried_elsewhere:
            yield patience_until(made.epoch, epochs, length)


def patience_until(epoch: int, epochs: Sequence[Epoch], length: int) -> int:
    """Until when somebody else's game is waited for: the middle of the window of the epoch after the accusation's."""
    if len(epochs) > epoch + 2:
        return 0
    after = epochs[epoch + 1] if len(epochs) == epoch + 2 else None
    if after is None or after.seed is None:
        # Its window has not begun, and gives its whole length.
        return NEVER
    return after.deadline - length // PATIENCE


NEVER: Final = 1 << 63
