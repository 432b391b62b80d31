"""Which duties a ticket answers, which replays come first, and when its call is opened. Pure.

Not opening costs more than missing everything, so a call is always opened in time, with what is done. Of the duties
that are owed the lowest draws come first; a pass that cannot end in time waits for those that can. A result that
accuses somebody is opened once other kernels have found the same: a duty missed costs 3 w, a false accusation B.
Source: docs/adr/0033-second-round.md, trailing path 4 to 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from assay.protocol.rounds.duty_types import NO_FINDING, DutyResult, ReplayFinding
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Seat
from assay_ledger.agents.round_actions import RoundAction
from assay_verifier.comparing import FalseClaim, against_attestation, against_work
from assay_verifier.drawing import Drawn
from assay_verifier.pacing import Pace
from assay_verifier.replaying import MOST_KEYS

LAST_MOMENT_S: Final = 120
"""Beside the chain's inclusion delay: how long before its deadline a call is opened with what is done, in seconds."""

UNKNOWN: Final = Pace()
"""Before anything was measured everything seems to end in time."""


@dataclass(frozen=True, slots=True)
class OwnDuty:
    """A duty that a ticket has to answer. `place` names the commitment with its base (`finding_book.place_of`)."""

    ticket: TicketId
    drawn: Drawn
    place: Digest
    work: SeatWork
    audited: ReplayFinding = NO_FINDING

    @property
    def keys(self) -> tuple[Digest, ...]:
        """Its own witness key, then those of the attestation that it audits."""
        return (self.drawn.key, *self.drawn.audited)


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call of this owner's that is not answered, and the duties that it owes, by rank. Chain time in seconds."""

    ticket: TicketId
    epoch: int
    seed: Digest
    deadline: int
    duties: tuple[OwnDuty, ...]


@dataclass(frozen=True, slots=True)
class ReplayPass:
    """One pass over a commitment that serves all duties of this owner on it; `rank` is that of the lowest."""

    place: Digest
    round: int
    seat: Seat
    units: int
    rank: int
    keys: tuple[Digest, ...]


@dataclass(frozen=True, slots=True)
class ReplayUnit(RoundAction):
    """Compute the next unit of a pass, `unit` from 1."""

    work: ReplayPass
    unit: int


@dataclass(frozen=True, slots=True)
class ConfirmFinding(RoundAction):
    """Have other kernels find the same before somebody is accused: the end, or the accumulator under a key."""

    place: Digest
    round: int
    seat: Seat
    key: Digest | None


@dataclass(frozen=True, slots=True)
class OpenCall(RoundAction):
    """Show a call's secret with its results, each a duty's by its rank."""

    ticket: TicketId
    epoch: int
    ranks: tuple[int, ...]


class Findings(Protocol):
    """What this auditor's replays ended in: `finding_book.FindingBook`."""

    def is_known(self, place: Digest, key: Digest) -> bool: ...
    def is_confirmed(self, place: Digest, key: Digest | None) -> bool: ...
    def finding(self, place: Digest, keys: tuple[Digest, ...]) -> ReplayFinding | None: ...


def owed(drawn: Sequence[Drawn], capacity: int) -> tuple[Drawn, ...]:
    """Of the duties of one ticket at one call those that it has to answer, by rank: the c lowest."""
    return tuple(sorted(drawn, key=lambda one: one.rank)[:capacity])


def accused_keys(own: OwnDuty, finding: ReplayFinding) -> tuple[Digest | None, ...]:
    """What has to be confirmed before a finding is opened, as `Findings.confirm` names it; nothing if it agrees."""
    wanted: list[Digest | None] = []
    if against_work(finding, own.work) is not None:
        wanted.append(None)
    found = None if own.audited == NO_FINDING else against_attestation(finding, own.audited)
    if found is not None:
        wanted.append(found.key if found.what is FalseClaim.ACCUMULATOR else None)
    return tuple(dict.fromkeys(wanted))


def passes(duties: Sequence[OwnDuty], findings: Findings) -> tuple[ReplayPass, ...]:
    """What has to be replayed for some duties of any tickets: one pass per commitment, that of the lowest draw first.

    At most MOST_KEYS keys go into a pass.
    """
    groups: dict[Digest, list[OwnDuty]] = {}
    for own in sorted(duties, key=lambda own: (own.drawn.rank, own.ticket)):
        groups.setdefault(own.place, []).append(own)
    made = []
    for place, group in groups.items():
        keys = list(dict.fromkeys(key for own in group for key in own.keys if not findings.is_known(place, key)))
        for first in range(0, len(keys), MOST_KEYS):
            part = tuple(keys[first : first + MOST_KEYS])
            # A duty waits for all of its keys: its rank counts in each part that holds one of them.
            low = next(own for own in group if not set(part).isdisjoint(own.keys))
            made.append(ReplayPass(place, low.drawn.round, low.drawn.seat, low.work.units, low.drawn.rank, part))
    return tuple(sorted(made, key=lambda p: (p.rank, p.place)))


def last_moment(deadline: int, inclusion: int) -> int:
    """The chain time from which a call is opened with what is done."""
    return deadline - inclusion - LAST_MOMENT_S


def auditing(
    calls: Sequence[OwnCall],
    findings: Findings,
    done: Mapping[tuple[Digest, tuple[Digest, ...]], int],
    now: int,
    inclusion: int,
    pace: Pace = UNKNOWN,
) -> Iterator[OpenCall | ConfirmFinding | ReplayUnit]:
    """What is due, most urgent first: openings, what accuses, units of passes that end in time, then of any others.

    done: units computed of a pass, by its place and keys; inclusion: the chain's delay, in seconds; pace: of a unit.
    """
    for call in calls:
        left = last_moment(call.deadline, inclusion) - now
        if now > call.deadline:
            continue
        waits = [p for p in passes(call.duties, findings) if pace.ends_in(left, _left(p, done)) or pace.may_try(left)]
        unsure = [own for own in call.duties if _missing(own, findings)]
        if left <= 0 or not (waits or unsure):
            yield OpenCall(call.ticket, call.epoch, tuple(own.drawn.rank for own in ready(call, findings)))
    opened = [call for call in calls if now < last_moment(call.deadline, inclusion)]
    for call in opened:
        for own in call.duties:
            for key in _missing(own, findings):
                yield ConfirmFinding(own.place, own.drawn.round, own.drawn.seat, key)
    # Passes of several calls are planned together: one commitment is replayed once for all of them.
    left = min((last_moment(call.deadline, inclusion) - now for call in opened), default=0)
    planned = passes([own for call in opened for own in call.duties], findings)
    in_time = [wanted for wanted in planned if pace.ends_in(left, _left(wanted, done))]
    # What seems too long is tried while nothing else is to do: only so is a wrong estimate found out.
    tried = [wanted for wanted in planned if wanted not in in_time and pace.may_try(left)]
    for wanted in (*in_time, *tried):
        yield ReplayUnit(wanted, done.get((wanted.place, wanted.keys), 0) + 1)


def ready(call: OwnCall, findings: Findings) -> Iterator[OwnDuty]:
    """The duties of a call that are answered and, where they accuse, confirmed."""
    for own in call.duties:
        if findings.finding(own.place, own.keys) is not None and not _missing(own, findings):
            yield own


def result_of(own: OwnDuty, findings: Findings) -> DutyResult:
    """A duty's result as it is opened."""
    finding = findings.finding(own.place, own.keys)
    assert finding is not None
    return DutyResult(own.drawn.duty, own.work, finding.ends, finding.update, finding.accumulators, own.audited)


def _missing(own: OwnDuty, findings: Findings) -> tuple[Digest | None, ...]:
    """What has still to be confirmed of a duty that was replayed."""
    finding = findings.finding(own.place, own.keys)
    wanted = () if finding is None else accused_keys(own, finding)
    return tuple(key for key in wanted if not findings.is_confirmed(own.place, key))


def _left(wanted: ReplayPass, done: Mapping[tuple[Digest, tuple[Digest, ...]], int]) -> int:
    return wanted.units - done.get((wanted.place, wanted.keys), 0)
