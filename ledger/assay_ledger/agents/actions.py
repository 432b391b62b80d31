"""What an actor can do next: values that strategies choose and agents carry out.

An action names its object and nothing else, so it can be repeated, compared and remembered as refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address, Digest, Role, Round, Seat, Wei


@dataclass(frozen=True, slots=True)
class Join:
    """Take a seat."""


@dataclass(frozen=True, slots=True)
class LeaveSeat:
    """Give up the seat."""


@dataclass(frozen=True, slots=True)
class Register:
    """Register the drawing key with a stake."""

    role: Role
    stake: Wei


@dataclass(frozen=True, slots=True)
class Retire:
    """Stop being drawn."""


@dataclass(frozen=True, slots=True)
class OpenRound:
    """Open the next round."""

    round: Round


@dataclass(frozen=True, slots=True)
class Train:
    """Train a round and publish everything that a commitment to it names."""

    round: Round
    seat: Seat
    base: Digest


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit to what was trained from a base and published."""

    round: Round
    seat: Seat
    base: Digest


@dataclass(frozen=True, slots=True)
class Receipt:
    """Fetch and hash every object of a commitment, and say so."""

    round: Round
    seat: Seat
    digest: Digest


@dataclass(frozen=True, slots=True)
class DrawSeed:
    """Draw a round's audit seed."""

    round: Round


@dataclass(frozen=True, slots=True)
class DrawWhistleSeed:
    """Draw a round's whistle seed."""

    round: Round


@dataclass(frozen=True, slots=True)
class Replay:
    """Compute the end of a drawn duty from what is published."""

    round: Round
    seat: Seat
    duty: int


@dataclass(frozen=True, slots=True)
class Attest:
    """Bind the results of all duties drawn from a seed, hidden."""

    round: Round
    seed: Digest


@dataclass(frozen=True, slots=True)
class RevealDraw:
    """Reveal the signature that draws the duties."""

    round: Round


@dataclass(frozen=True, slots=True)
class RevealLeaves:
    """Reveal the results."""

    round: Round


@dataclass(frozen=True, slots=True)
class Challenge:
    """Open a game on a claim."""

    ref: ClaimRef


@dataclass(frozen=True, slots=True)
class CommitChallenge:
    """Commit to a third-party challenge, hidden."""

    ref: ClaimRef
    own_root: Digest


@dataclass(frozen=True, slots=True)
class RevealChallenge:
    """Open a game from a committed challenge."""

    ref: ClaimRef
    own_root: Digest
    salt: Digest


@dataclass(frozen=True, slots=True)
class Play:
    """Make the move that is due in a game; `turn` counts moves, so that every turn is an action of its own."""

    game_id: int
    turn: int


@dataclass(frozen=True, slots=True)
class Defer:
    """Take an hour more because the base fee is above the cap; `number` counts this side's deferrals in the game."""

    game_id: int
    number: int


@dataclass(frozen=True, slots=True)
class EndOverdue:
    """End a game whose other side let its clock run out."""

    game_id: int


@dataclass(frozen=True, slots=True)
class ComputeOuter:
    """Compute the outer step of a round from a base and a fixed inclusion."""

    round: Round
    base: Digest
    x: Digest


@dataclass(frozen=True, slots=True)
class PostOuter:
    """Post the outer step of a round from a base."""

    round: Round
    base: Digest


@dataclass(frozen=True, slots=True)
class FinalizeOuter:
    """End a poster's claim whose window is over."""

    round: Round
    root: Digest
    poster: Address


@dataclass(frozen=True, slots=True)
class VoidOuter:
    """End a poster's claim whose base is dead."""

    round: Round
    root: Digest
    poster: Address


@dataclass(frozen=True, slots=True)
class SettleWork:
    """Settle a commitment."""

    round: Round
    seat: Seat


@dataclass(frozen=True, slots=True)
class SettleDuties:
    """Settle an attester's duties of a round."""

    round: Round
    attester: Address


@dataclass(frozen=True, slots=True)
class SettleRound:
    """Return what a round did not cost to the escrow."""

    round: Round


@dataclass(frozen=True, slots=True)
class ReleaseWork:
    """Turn vested credits for a commitment into shares."""

    round: Round
    seat: Seat


@dataclass(frozen=True, slots=True)
class ReleaseDuties:
    """Turn vested credits for a round's duties into shares."""

    round: Round
    attester: Address


Action = (
    Join
    | LeaveSeat
    | Register
    | Retire
    | OpenRound
    | Train
    | Commit
    | Receipt
    | DrawSeed
    | DrawWhistleSeed
    | Replay
    | Attest
    | RevealDraw
    | RevealLeaves
    | Challenge
    | CommitChallenge
    | RevealChallenge
    | Play
    | Defer
    | EndOverdue
    | ComputeOuter
    | PostOuter
    | FinalizeOuter
    | VoidOuter
    | SettleWork
    | SettleDuties
    | SettleRound
    | ReleaseWork
    | ReleaseDuties
)


HAS_NO_CLOCK = (
    Join,
    LeaveSeat,
    Register,
    Retire,
    OpenRound,
    EndOverdue,
    FinalizeOuter,
    VoidOuter,
    SettleWork,
    SettleDuties,
    SettleRound,
    ReleaseWork,
    ReleaseDuties,
)
"""Actions whose delay costs no party anything: they wait for a fee below the run's cap."""


def highest_base_fee(action: Action, base_fee: int, cap: int) -> int | None:
    """The highest base fee at which an action is worth sending, in wei per gas; None for any.

    What has no clock waits below the cap. A move that was chosen below the cap is not sent above it: the side to move
    then waits or defers first, and chooses to move at any fee when its clock demands it (`game_clock.timing`).
    """
    if isinstance(action, HAS_NO_CLOCK) or (isinstance(action, Play) and base_fee <= cap):
        return cap
    return None


def describe(action: object) -> str:
    """A few words for heartbeats and logs: Train of round 2 is "train round 2 seat 0"."""
    name = type(action).__name__
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()
    parts = []
    for field in ("round", "seat", "duty", "game_id"):
        if hasattr(action, field):
            parts.append(f"{field.removesuffix('_id')} {getattr(action, field)}")
    ref = getattr(action, "ref", None)
    if ref is not None:
        parts.append(f"{ref.kind.name.lower()} round {ref.round} seat {ref.seat} duty {ref.duty}")
    return " ".join([words, *parts])
