"""What a party of games can do next, and a few words for any action: values that actors choose and carry out.

An action names its object and nothing else, so it can be repeated, compared and remembered as refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Digest


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


def describe(action: object) -> str:
    """A few words for heartbeats and logs: Train of round 2 is "train round 2 seat 0"."""
    name = type(action).__name__
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()
    parts = []
    for field in ("round", "seat", "game_id"):
        if hasattr(action, field):
            parts.append(f"{field.removesuffix('_id')} {getattr(action, field)}")
    ref = getattr(action, "ref", None)
    if ref is not None:
        parts.append(f"{ref.kind.name.lower()} round {ref.round} seat {ref.seat} duty {ref.duty}")
    return " ".join([words, *parts])
