"""What a finding contradicts, and which claim of the accused is the false one. Pure.

The contracts compare by themselves what an opening shows, so whoever opens a result accuses; here it is known before,
so that nobody is accused by a fault of this machine, and afterwards which claim to try.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from assay.protocol.rounds.duty_types import MAX_AUDITED, ReplayFinding
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.types import Digest


class FalseClaim(StrEnum):
    """What is wrong with a commitment or with an attestation of it."""

    END = "end"
    UPDATE = "update"
    ACCUMULATOR = "accumulator"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What is false, and the witness key under which it shows; None for what shows under any."""

    what: FalseClaim
    key: Digest | None = None


def against_work(ours: ReplayFinding, work: SeatWork) -> Contradiction | None:
    """What a finding contradicts of a commitment."""
    if ours.ends != work.ends:
        return Contradiction(FalseClaim.END)
    # An update that follows from a false end is not what is tried: X of its claim holds that end.
    if ours.update != work.update:
        return Contradiction(FalseClaim.UPDATE)
    return None


def against_attestation(ours: ReplayFinding, theirs: ReplayFinding) -> Contradiction | None:
    """What a finding contradicts of an attestation of the same commitment, under the keys that are in both.

    Raises KeyError where ours lacks a key that whoever audits theirs answers for.
    """
    if ours.ends != theirs.ends:
        return Contradiction(FalseClaim.END, theirs.keys[0])
    if len(theirs.keys) <= MAX_AUDITED:
        found = dict(zip(ours.keys, ours.accumulators, strict=True))
        for key, accumulator in zip(theirs.keys, theirs.accumulators, strict=True):
            if found[key] != accumulator:
                return Contradiction(FalseClaim.ACCUMULATOR, key)
    if ours.update != theirs.update:
        return Contradiction(FalseClaim.UPDATE)
    return None


def part_of(contradiction: Contradiction, theirs: ReplayFinding) -> int:
    """The part of an attestation's claims that is false: one per key, its update last (docs/adr/0034)."""
    if contradiction.what is FalseClaim.UPDATE:
        return len(theirs.keys)
    assert contradiction.key is not None
    return theirs.keys.index(contradiction.key)
