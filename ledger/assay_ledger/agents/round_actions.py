"""What anybody does for a run, and the class that all actions of its actors share. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import BeaconRound, Digest, Round
from assay_ledger.agents.game_actions import Challenge, CommitChallenge, Defer, EndOverdue, Play, RevealChallenge

DEAR_S: Final = 24 * 60 * 60
"""Chain seconds for which what has no clock waits for a fee below the cap: a spike is over by then."""


@dataclass(frozen=True, slots=True)
class RoundAction:
    """Something that an actor chooses to do."""

    has_clock: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class WithoutClock(RoundAction):
    """Something whose delay costs nobody anything: it waits for a fee below the run's cap."""

    has_clock: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class TakesOn(WithoutClock):
    """Something that puts more at stake: it waits for such a fee however long that takes."""


@dataclass(frozen=True, slots=True)
class SubmitBeacon(RoundAction):
    """Prove a round of the beacon that is due."""

    beacon_round: BeaconRound


@dataclass(frozen=True, slots=True)
class SeedEpoch(RoundAction):
    """Give the newest epoch its seed."""

    epoch: int


@dataclass(frozen=True, slots=True)
class CloseEpoch(RoundAction):
    """Close the newest epoch, or repeat it; `repeats` so far."""

    epoch: int
    repeats: int


@dataclass(frozen=True, slots=True)
class Restart(RoundAction):
    """Give up what the round under way cannot finish, and open the next."""

    round: Round


@dataclass(frozen=True, slots=True)
class CutGeneration(RoundAction):
    """Cut a generation that nobody answers for any more, itself or a sum that it was merged from."""

    node: Node


@dataclass(frozen=True, slots=True)
class DropOpening(RoundAction):
    """Drop a claim whose tenure or ticket was convicted elsewhere."""

    node: Node
    party: Digest


@dataclass(frozen=True, slots=True)
class FinalizeGeneration(WithoutClock):
    """Make a generation, or a sum, final by an opening whose window is over."""

    node: Node
    party: Digest


@dataclass(frozen=True, slots=True)
class CloseOpening(WithoutClock):
    """Free what stands behind an opening."""

    node: Node
    party: Digest


@dataclass(frozen=True, slots=True)
class Evict(WithoutClock):
    """Take the seat of a holder that stayed away; `round` is the newest that is over."""

    tenure: int
    round: Round


@dataclass(frozen=True, slots=True)
class ReleaseTenure(WithoutClock):
    """Get the lock of a tenure back that is over."""

    tenure: int


@dataclass(frozen=True, slots=True)
class LapseAccusation(WithoutClock):
    """End an accusation of which no game was opened."""

    accusation: Digest


@dataclass(frozen=True, slots=True)
class RemoveTicket(WithoutClock):
    """Retire a ticket whose lock was short for too long."""

    ticket: TicketId


GameAction = Play | Defer | EndOverdue | Challenge | CommitChallenge | RevealChallenge

Choice = RoundAction | GameAction
"""What an actor can choose; each role adds actions of its own."""


def highest_base_fee(action: Choice, base_fee: int, cap: int, dear_for_s: int = 0) -> int | None:
    """The highest base fee at which an action is worth sending, in wei per gas; None for any.

    What has no clock waits below the cap, for a day at most of the seconds `dear_for_s` for which every fee was above
    it, and what takes more on without end. A move that was chosen below the cap is not sent above it: the side to move
    then waits or defers first, and chooses to move at any fee when its clock demands it (`game.clock.timing`).
    """
    # Attack: a charter's cap that is below every fee, so that nobody settles work before the run is wound down, which
    # makes it void and gives its pay back to the sponsor.
    has_none = isinstance(action, EndOverdue) or (isinstance(action, RoundAction) and not action.has_clock)
    waits = isinstance(action, TakesOn) or (has_none and dear_for_s <= DEAR_S)
    return cap if waits or (isinstance(action, Play) and base_fee <= cap) else None
