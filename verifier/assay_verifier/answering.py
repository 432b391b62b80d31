"""Which duties a ticket answers, which replays come first, and when its call is opened. Pure.

Not opening costs more than missing everything, so a call is always opened in time, with what is done. Of the duties
that are owed the lowest draws come first; a pass that cannot end in time waits for those that can. A result that
accuses somebody is opened once other kernels have found the same, and left out if they have not by then: a duty missed
costs 3 w and is drawn again for others, a false accusation by a fault of this machine costs B. What is left out is
named where more was drawn than is owed: else all of that would be owed too.
Source: docs/adr/0033-second-round.md, trailing path 4 to 7.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from assay.protocol.rounds.duty_types import NO_FINDING, DutyResult, ReplayFinding, left_out
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Seat
from assay_ledger.agents.round_actions import RoundAction
from assay_verifier.comparing import FalseClaim, against_attestation, against_work
from assay_verifier.drawing import Drawn
from assay_verifier.pacing import UnitPace
from assay_verifier.replaying import MOST_KEYS

LAST_MOMENT_S: Final = 120
"""Beside the chain's inclusion delay: how long before its deadline a call is opened with what is done, in seconds."""

UNKNOWN: Final = UnitPace()
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
    draws_more: bool = False
    """Whether more was drawn than is owed."""


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
    """Have other kernels find the same before somebody is accused: the end, or the accumulator under a key.

    `left` units are still to be computed by them: the next one; of none the update; None: look how many there are.
    """

    place: Digest
    round: int
    seat: Seat
    key: Digest | None
    left: int | None = None


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


@dataclass(frozen=True, slots=True)
class Progressed:
    """How far this machine is, and how quick: what is planned by. `unchecked` are units left to other kernels.

    `done` counts units of a pass, by its place and keys; `again` is the pace of units that are computed again.
    """

    done: Mapping[tuple[Digest, tuple[Digest, ...]], int] = field(default_factory=dict)
    unchecked: Mapping[tuple[Digest, Digest | None], int] = field(default_factory=dict)
    pace: UnitPace = UNKNOWN
    again: UnitPace = UNKNOWN

    def left(self, wanted: ReplayPass | ConfirmFinding) -> int:
        """Units to compute."""
        if isinstance(wanted, ConfirmFinding):
            return wanted.left or 0
        return wanted.units - self.done.get((wanted.place, wanted.keys), 0)

    def ends_in(self, left_s: float, wanted: ReplayPass | ConfirmFinding) -> bool:
        """Whether it seems to end in so many seconds."""
        pace = self.again if isinstance(wanted, ConfirmFinding) and wanted.left else self.pace
        return pace.ends_in(left_s, self.left(wanted))

    def may_try(self, left_s: float, wanted: ReplayPass | ConfirmFinding) -> bool:
        """Whether there is time to try what seems to take longer."""
        return (self.again if isinstance(wanted, ConfirmFinding) else self.pace).may_try(left_s)


def auditing(
    calls: Sequence[OwnCall], findings: Findings, at: Progressed, now: int, inclusion: int
) -> Iterator[OpenCall | ConfirmFinding | ReplayUnit]:
    """What is due, most urgent first: openings, what ends in time, then what seems to take longer.

    Passes come before second calculations: a duty costs the same whichever it is, and the second calculation of one
    takes as long as the passes of many. inclusion: the chain's delay, in seconds.
    """
    for call in calls:
        left = last_moment(call.deadline, inclusion) - now
        if now > call.deadline:
            continue
        if left <= 0 or not any(at.ends_in(left, w) or at.may_try(left, w) for w in _wanted([call], findings, at)):
            yield OpenCall(call.ticket, call.epoch, tuple(own.drawn.rank for own in ready(call, findings)))
    opened = [call for call in calls if now < last_moment(call.deadline, inclusion)]
    left = min((last_moment(call.deadline, inclusion) - now for call in opened), default=0)
    # Passes of several calls are planned together: one commitment is replayed once for all of them.
    planned = _wanted(opened, findings, at)
    in_time = [wanted for wanted in planned if at.ends_in(left, wanted)]
    # What seems too long is tried while nothing else is to do: only so is a wrong estimate found out.
    tried = [wanted for wanted in planned if wanted not in in_time and at.may_try(left, wanted)]
    for wanted in (*in_time, *tried):
        if isinstance(wanted, ConfirmFinding):
            yield wanted
        else:
            yield ReplayUnit(wanted, at.done.get((wanted.place, wanted.keys), 0) + 1)


def ready(call: OwnCall, findings: Findings) -> Iterator[OwnDuty]:
    """The duties of a call that are answered and, where they accuse, confirmed."""
    for own in call.duties:
        if findings.finding(own.place, own.keys) is not None and not _missing(own, findings):
            yield own


def answers_to(call: OwnCall, ranks: Collection[int], findings: Findings) -> list[DutyResult]:
    """What a call is opened with: the results of the duties of these ranks that are ready, by rank.

    What is left out is named, if more was drawn than is owed.
    """
    opened = {own.drawn.rank for own in ready(call, findings)} & set(ranks)
    return [
        result_of(own, findings) if own.drawn.rank in opened else left_out(own.drawn.duty)
        for own in call.duties
        if own.drawn.rank in opened or call.draws_more
    ]


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


def _wanted(calls: Sequence[OwnCall], findings: Findings, at: Progressed) -> list[ReplayPass | ConfirmFinding]:
    """What some calls wait for: what takes no time, then passes, the lowest draw first, then second calculations."""
    duties = [own for call in calls for own in call.duties]
    found: dict[ConfirmFinding, None] = {}
    for own in duties:
        for key in _missing(own, findings):
            left = at.unchecked.get((own.place, key))
            found[ConfirmFinding(own.place, own.drawn.round, own.drawn.seat, key, left)] = None
    return [*(c for c in found if not c.left), *passes(duties, findings), *(c for c in found if c.left)]
