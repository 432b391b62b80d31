"""What is done for a run's money, one's own and everybody's. Pure values."""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.agents.round_actions import RoundAction, WithoutClock


@dataclass(frozen=True, slots=True)
class LaunchRun(RoundAction):
    """Open a run whose sponsor did not."""


@dataclass(frozen=True, slots=True)
class SettleSeat(WithoutClock):
    """Settle a seat's commitment; `epoch` is the one that its round belongs to."""

    round: Round
    seat: Seat
    epoch: int


@dataclass(frozen=True, slots=True)
class SettleFinding(WithoutClock):
    """Be paid for a finding whose window ended."""

    attestation: Digest


@dataclass(frozen=True, slots=True)
class CollectFine(WithoutClock):
    """Take a fine that waited for verdicts about its ticket."""

    ticket: TicketId
    number: int


@dataclass(frozen=True, slots=True)
class SettleOpening(WithoutClock):
    """Have an opening of a final root paid."""

    node: Node
    party: Digest


@dataclass(frozen=True, slots=True)
class FreeRound(WithoutClock):
    """Give back what a settled round did not cost."""

    round: Round
    epoch: int


@dataclass(frozen=True, slots=True)
class FinishRun(WithoutClock):
    """End a run of which every round is settled."""


@dataclass(frozen=True, slots=True)
class CancelRun(RoundAction):
    """Give up a run that nobody opened before its expiry."""


@dataclass(frozen=True, slots=True)
class WindDown(RoundAction):
    """End a run that stood still for too long."""


@dataclass(frozen=True, slots=True)
class EnterBounty(RoundAction):
    """Claim a part of what a conviction left, by an accusation of one's own that was right."""

    accusation: Digest


@dataclass(frozen=True, slots=True)
class CloseBounty(WithoutClock):
    """Fix the parts of what a conviction left; `epoch` began after it."""

    accusation: Digest
    epoch: int


@dataclass(frozen=True, slots=True)
class TakeBounty(WithoutClock):
    """Take one's part."""

    accusation: Digest


@dataclass(frozen=True, slots=True)
class VestShares(WithoutClock):
    """Turn credits into shares."""

    grant: Digest
