"""What a solver does between its commitment and the next round: hold, seal and open the merge. Pure.

Each stage is as short as who takes part makes it, so whatever chain state allows is done at once, and nothing is waited
for that is not there when its window ends. Source: docs/adr/0033-second-round.md, critical path 3 to 5 and 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.protocol.types import Digest, Round, Seat
from assay_ledger.agents.round_actions import RoundAction


@dataclass(frozen=True, slots=True)
class MergeSeen:
    """A round whose mask closes, as the holder of one of its seats sees it on chain; times in seconds."""

    round: Round
    seat: Seat
    is_position: bool
    """Its commitment has weight, and its tenure is not convicted."""
    maskable: frozenset[Seat]
    """Seats whose commitment has weight so far."""
    mask_at: int
    hold_until: int
    """Last second to say what one holds, as far as it is known."""
    spoke: bool
    counted: frozenset[Seat]
    """Seats whose update counts by what was said so far."""
    is_alive: bool
    """At least half of the seats committed, and the generation is not cut."""
    seal_until: int
    """Last second to seal, as far as it is known; T_m unless more than half have sealed or abstained."""
    has_sealed: bool
    has_opened: bool
    merge_until: int
    """T_m."""


@dataclass(frozen=True, slots=True)
class MergeKnown:
    """What this solver has: updates that it fetched and hashed, and the root that it computed over some of them."""

    held: frozenset[Seat] = frozenset()
    lost: frozenset[Seat] = frozenset()
    """Updates that were asked for and not there."""
    merged: frozenset[Seat] | None = None
    """Seats over whose updates the merge was computed; None: not yet."""
    root: Digest | None = None


@dataclass(frozen=True, slots=True)
class FetchUpdate(RoundAction):
    """Fetch one update and check its hash."""

    round: Round
    seat: Seat


@dataclass(frozen=True, slots=True)
class HoldUpdates(RoundAction):
    """Say which updates this position holds."""

    round: Round
    seat: Seat
    held: frozenset[Seat]


@dataclass(frozen=True, slots=True)
class ComputeMerge(RoundAction):
    """Compute the round's merge over these seats' updates."""

    round: Round
    counted: frozenset[Seat]


@dataclass(frozen=True, slots=True)
class SealRoot(RoundAction):
    """Bind this position to the root that it computed."""

    round: Round
    seat: Seat


@dataclass(frozen=True, slots=True)
class Abstain(RoundAction):
    """Say that this position cannot compute the root."""

    round: Round
    seat: Seat


@dataclass(frozen=True, slots=True)
class OpenRoot(RoundAction):
    """Open the root that was sealed."""

    round: Round
    seat: Seat


MergeAction = FetchUpdate | HoldUpdates | ComputeMerge | SealRoot | Abstain | OpenRoot


def merging(seen: MergeSeen, known: MergeKnown, now: int, lead: int) -> Iterator[MergeAction]:
    """What is due at the chain time of the newest block, most urgent first; a call sent now is mined later than that.

    `lead`: how long before a window ends this solver sends the last word that it will have, in seconds.
    """
    # A root that an earlier process of this key sealed is computed here before it is opened.
    may_open = seen.is_position and seen.has_sealed and not seen.has_opened and known.merged == seen.counted
    if may_open and seen.seal_until <= now < seen.merge_until:
        yield OpenRoot(seen.round, seen.seat)
    if seen.mask_at <= now < seen.hold_until and seen.is_position and not seen.spoke:
        yield from _hold(seen, known, now, lead)
    # Updates are fetched as they are committed: once the mask has closed everybody asks for all of them.
    yield from (FetchUpdate(seen.round, s) for s in sorted(seen.maskable - known.held - known.lost))
    if now < max(seen.mask_at, seen.hold_until) or not seen.is_alive or now >= seen.merge_until:
        return
    if known.merged != seen.counted:
        if seen.counted <= known.held:
            yield ComputeMerge(seen.round, seen.counted)
        else:
            # Two thirds of those that spoke hold it: it is there, and this round's root cannot be had without it.
            yield from (FetchUpdate(seen.round, s) for s in sorted(seen.counted - known.held))
            yield from _abstain(seen, known, now)
    elif seen.is_position and not seen.has_sealed and now < seen.seal_until:
        yield SealRoot(seen.round, seen.seat)


def _hold(seen: MergeSeen, known: MergeKnown, now: int, lead: int) -> Iterator[HoldUpdates]:
    """Nobody vouches for what it did not fetch; and one that is silent leaves its weight to others."""
    held = known.held & seen.maskable
    if seen.maskable <= known.held | known.lost or now + lead >= seen.hold_until:
        yield HoldUpdates(seen.round, seen.seat, held)


def _abstain(seen: MergeSeen, known: MergeKnown, now: int) -> Iterator[Abstain]:
    """Silence costs everybody the rest of the grace, and a word the chance that the next fetch succeeds.

    An abstention counts like a seal for when sealing ends. So before more than half have spoken it helps nobody, and
    could end sealing before those who can compute have sealed. Afterwards the majority needs this voice no more.
    """
    is_ending = seen.seal_until < seen.merge_until
    is_lost = seen.counted - known.held <= known.lost
    if seen.is_position and not seen.has_sealed and is_lost and is_ending and now < seen.seal_until:
        yield Abstain(seen.round, seen.seat)


def times(seen: MergeSeen, lead: int) -> Iterator[int]:
    """Chain times at which something of a merge may become due. A window's last second still belongs to it: what comes
    after it goes through from the next one."""
    yield seen.hold_until - lead
    for last in (seen.mask_at, seen.hold_until, seen.seal_until, seen.merge_until):
        yield from (last, last + 1)
