"""What a solver chooses to do beside what everybody does. Pure values."""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.rounds.ids import Node
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.agents.round_actions import RoundAction, TakesOn, WithoutClock


@dataclass(frozen=True, slots=True)
class TakeSeat(TakesOn):
    """Lock S and the fee for a seat that nobody holds."""


@dataclass(frozen=True, slots=True)
class LeaveTenure(WithoutClock):
    """End one's tenure with the round under way."""

    tenure: int


@dataclass(frozen=True, slots=True)
class TrainUnit(RoundAction):
    """Train one more unit of a round, which starts from a base; `unit` counts from 0."""

    round: Round
    seat: Seat
    base: Digest
    unit: int


@dataclass(frozen=True, slots=True)
class CommitWork(RoundAction):
    """Publish the update of what was trained from a base, and commit to it."""

    round: Round
    seat: Seat
    base: Digest


@dataclass(frozen=True, slots=True)
class RestoreUpdate(WithoutClock):
    """Look whether the store still has one's own update of a round, and put it back where it is gone."""

    round: Round
    epoch: int


@dataclass(frozen=True, slots=True)
class ServeBase(WithoutClock):
    """Look whether the store has a generation, and publish it where it has not."""

    generation: int


@dataclass(frozen=True, slots=True)
class PrepareMerge(RoundAction):
    """Have the contract build X of a merge, so that a false root of it can be challenged."""

    node: Node


@dataclass(frozen=True, slots=True)
class ChallengeRoot(RoundAction):
    """Open a game on a root that is not what the merge gives: that of a seat, or of a backer."""

    ref: ClaimRef


@dataclass(frozen=True, slots=True)
class BackRoot(RoundAction):
    """Put a lock of one's own behind a true root of which a claim fell."""

    node: Node
    root: Digest


@dataclass(frozen=True, slots=True)
class CheckNode(RoundAction):
    """Compute a merge of tickets of which different roots were opened."""

    node: Node
