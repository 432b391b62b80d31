"""Tenures and commitments as their events tell them: the model's books, moved by what the chain decided.

Each method is one event. `now` is the chain time of its block, in seconds. Nothing is checked again: an event of a
run's own contracts is true by consensus.
"""

from __future__ import annotations

from functools import lru_cache

from assay.protocol.errors import InvariantError
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.commitments import Commitments
from assay.protocol.rounds.tenures import Tenures
from assay.protocol.rounds.terms import (
    NEVER,
    GroupState,
    RoundState,
    Tenure,
    WorkState,
)
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Digest, Round
from assay_ledger.bindings import commitments, tenures


class ToldTenures(Tenures):
    """The books of tenures, by their events."""

    def on_began(self, e: tenures.TenureBegan) -> None:
        """Somebody took a seat."""
        self.tenures[e.tenure] = Tenure(e.holder, e.seat, Round(e.from_))
        if e.seat in self.free:
            self.free.remove(e.seat)
        else:
            self.fresh = e.seat + 1

    def on_ended(self, e: tenures.TenureEnded, now: int) -> None:
        """A tenure ends, or one that had ended is convicted."""
        tenure = self.existing(e.tenure)
        if tenure.until == NEVER:
            tenure.until = e.until
            self.free.append(tenure.seat)
        if e.convicted:
            tenure.convicted_at = now

    def on_evicted(self, e: tenures.Evicted) -> None:
        """Its fee is lost."""
        self.existing(e.tenure).fee_gone = True

    def on_released(self, e: tenures.TenureReleased) -> None:
        """Its lock is free."""
        self.existing(e.tenure).released = True

    def on_games(self, number: int, change: int) -> None:
        """A game was opened (1) or ended (-1)."""
        self.existing(number).games += change


class ToldCommitments(Commitments):
    """The books of commitments, by their events."""

    def on_round(self, e: commitments.RoundBegan, base: Digest) -> None:
        """A round opened."""
        if e.round != len(self.rounds):
            raise InvariantError(f"Round {e.round} opened out of order.", code="EventOutOfOrder")
        closes = e.t0 + self.terms.commit + self.terms.inclusion
        self.rounds.append(RoundState(e.t0, closes, e.seated, e.parent, base))

    def on_committed(self, e: commitments.WorkCommitted) -> Digest:
        """A tenure committed; the commitment's digest."""
        self.books.tenures.charge(self.books.tenures.existing(e.tenure), e.round)
        self.rounds[e.round].committed += 1
        group, place = self.terms.place(e.seat)
        entry = self.groups.setdefault((e.round, group), GroupState())
        digest = ids.work_digest(e.round, e.seat, e.tenure, e.work)
        made = WorkState(e.tenure, digest, e.work.units, e.late)
        self.works[e.round, e.seat] = made
        entry.committed.add(place)
        entry.acc = e.acc
        if not e.late:
            self.rounds[e.round].groups += not entry.maskable
            entry.maskable[place] = made
        return digest

    def on_mask(self, e: commitments.MaskClosing) -> None:
        """The mask closes earlier."""
        self.rounds[e.round].mask_at = e.mask_at

    def on_held(self, e: commitments.Held, now: int) -> None:
        """Positions said what they hold."""
        entry = self.group_of(e.round, e.group)
        until = self.hold_until(e.round, e.group)
        held = _set_of(e.held)
        entry.words |= dict.fromkeys(_bits(e.positions), held)
        voices = len(entry.maskable) if self.terms.by_seats else self.terms.positions
        if len(entry.words) == voices:
            entry.close_at = now
        elif not entry.close_at and 2 * len(entry.words) > voices:
            entry.close_at = min(until, now + self.terms.grace)

    def on_prepared(self, e: commitments.ClaimPrepared) -> None:
        """A claim can be challenged now."""
        units = self.works[e.round, e.seat].units
        steps = units * self.terms.steps_per_unit if e.kind is ClaimKind.INTERVAL else 1
        self.claims[e.kind, e.round, e.seat] = e.x, e.y, steps

    def on_settled(self, e: commitments.WorkSettled) -> None:
        """A commitment ended."""
        work = self.works[e.round, e.seat]
        work.settled = True
        self.books.tenures.existing(work.tenure).unsettled -= 1

    def on_games(self, ref: ClaimRef, change: int) -> int:
        """A game on a commitment was opened (1) or ended (-1); its tenure."""
        work = self.works[ref.round, ref.seat]
        work.games += change
        return work.tenure


@lru_cache(maxsize=4096)
def _set_of(word: int) -> frozenset[int]:
    """One object for all that hold the same, as most do: a set of 64 places takes 4 KiB."""
    return frozenset(_bits(word))


def _bits(word: int) -> list[int]:
    return [k for k in range(word.bit_length()) if word >> k & 1]
