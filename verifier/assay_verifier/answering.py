"""Which duties a ticket answers, which replays come first, and when its call is opened. Pure.

Not opening costs more than missing everything, so a call is always opened in time, with what is done. Of the duties
that are owed the lowest draws come first; a pass that cannot end in time is left out for one that can.
Source: docs/adr/0033-second-round.md, trailing path 4 to 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from assay.protocol.rounds.duty_types import DrawnDuty
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Seat
from assay_verifier.replaying import MOST_KEYS

LAST_MOMENT_S: Final = 120
"""Beside the chain's inclusion delay: how long before its deadline a call is opened with what is done, in seconds."""


@dataclass(frozen=True, slots=True)
class OwnDuty:
    """A duty that one of this owner's tickets is drawn for in an epoch.

    `keys`: its own witness key, then those of the attestation that it audits; `steps` of the commitment underneath.
    """

    ticket: TicketId
    epoch: int
    rank: int
    duty: DrawnDuty
    target: Digest
    round: int
    seat: Seat
    units: int
    keys: tuple[Digest, ...]


@dataclass(frozen=True, slots=True)
class ReplayPass:
    """One pass over a commitment that serves all duties of this owner on it; `rank` is that of the lowest."""

    round: int
    seat: Seat
    units: int
    rank: int
    keys: tuple[Digest, ...]


def owed(drawn: Sequence[OwnDuty], capacity: int) -> tuple[OwnDuty, ...]:
    """Of the duties of one ticket at one call those that it has to answer, by rank: the c lowest."""
    return tuple(sorted(drawn, key=lambda own: own.rank)[:capacity])


def passes(duties: Sequence[OwnDuty], is_done: Callable[[OwnDuty, Digest], bool]) -> tuple[ReplayPass, ...]:
    """What has to be replayed for some duties of any tickets: one pass per commitment, that of the lowest draw first.

    is_done: whether the accumulator of a duty's commitment is known under a key. At most MOST_KEYS keys go into a pass.
    """
    found: dict[tuple[int, Seat], list[OwnDuty]] = {}
    for own in sorted(duties, key=lambda own: (own.rank, own.ticket)):
        found.setdefault((own.round, own.seat), []).append(own)
    made = []
    for (round_, seat), group in found.items():
        keys = list(dict.fromkeys(key for own in group for key in own.keys if not is_done(own, key)))
        for first in range(0, len(keys), MOST_KEYS):
            part = tuple(keys[first : first + MOST_KEYS])
            # A duty waits for all of its keys: its rank counts in each part that holds one of them.
            rank = min(own.rank for own in group if not set(part).isdisjoint(own.keys))
            made.append(ReplayPass(round_, seat, group[0].units, rank, part))
    return tuple(sorted(made, key=lambda p: (p.rank, p.round, p.seat)))


def next_pass(
    wanted: Sequence[ReplayPass], done: Mapping[ReplayPass, int], left_s: float, unit_s: float | None
) -> ReplayPass | None:
    """The pass to go on with: the lowest draw of those that end in time; None where none does.

    done: units that were computed of a pass; left_s: seconds until the last moment to open; unit_s: what a unit took
    here, in seconds, None before the first one.
    """
    for candidate in wanted:
        remaining = candidate.units - done.get(candidate, 0)
        if left_s > 0 and (unit_s is None or remaining * unit_s <= left_s):
            return candidate
    return None


def last_moment(deadline: int, inclusion: int) -> int:
    """The chain time from which a call is opened with what is done."""
    return deadline - inclusion - LAST_MOMENT_S


def is_time_to_open(missing: int, now: int, deadline: int, inclusion: int, hopeless: bool) -> bool:
    """Whether a call is opened now: everything is done, nothing more will be, or its last moment has come."""
    return now <= deadline and (not missing or hopeless or now >= last_moment(deadline, inclusion))
