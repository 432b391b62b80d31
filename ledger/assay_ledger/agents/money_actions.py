"""What is done for a run's money, one's own and everybody's. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.types import Digest, Round, Seat
from assay_ledger.agents.round_actions import RoundAction


@dataclass(frozen=True, slots=True)
class LaunchRun(RoundAction):
    """Open a run whose sponsor did not."""


@dataclass(frozen=True, slots=True)
class SettleSeat(RoundAction):
    """Settle a seat's commitment; `epoch` is the one that its round belongs to."""

    has_clock: ClassVar[bool] = False
    round: Round
    seat: Seat
    epoch: int


@dataclass(frozen=True, slots=True)
class SettleFinding(RoundAction):
    """Be paid for a finding whose window ended."""

    has_clock: ClassVar[bool] = False
    attestation: Digest


@dataclass(frozen=True, slots=True)
class SettleOpening(RoundAction):
    """Have an opening of a final root paid."""

    has_clock: ClassVar[bool] = False
    generation: int
    party: Digest


@dataclass(frozen=True, slots=True)
class FreeRound(RoundAction):
    """Give back what a settled round did not cost."""

    has_clock: ClassVar[bool] = False
    round: Round
    epoch: int


@dataclass(frozen=True, slots=True)
class FinishRun(RoundAction):
    """End a run of which every round is settled."""

    has_clock: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class WindDown(RoundAction):
    """End a run that stood still for too long."""


@dataclass(frozen=True, slots=True)
class EnterBounty(RoundAction):
    """Claim a part of what a conviction left, by an accusation of one's own that was right."""

    accusation: Digest


@dataclass(frozen=True, slots=True)
class CloseBounty(RoundAction):
    """Fix the parts of what a conviction left; `epoch` began after it."""

    has_clock: ClassVar[bool] = False
    accusation: Digest
    epoch: int


@dataclass(frozen=True, slots=True)
class TakeBounty(RoundAction):
    """Take one's part."""

    has_clock: ClassVar[bool] = False
    accusation: Digest


@dataclass(frozen=True, slots=True)
class VestShares(RoundAction):
    """Turn credits into shares."""

    has_clock: ClassVar[bool] = False
    grant: Digest
