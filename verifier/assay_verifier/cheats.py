"""Dishonest auditors, for demonstrations and tests: what each says that it found, or does not say.

A cheat answers from findings of its own making, or leaves something out; all else it does as an honest auditor does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from assay.protocol.digests import keccak
from assay.protocol.errors import UsageError
from assay.protocol.program.nodes import Output
from assay.protocol.program.trace import Tamper
from assay.protocol.rounds.duty_types import ReplayFinding
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.types import Digest
from assay_ledger.agents.round_actions import Choice
from assay_ledger.index.computing import Computation
from assay_ledger.rounds.view import RunView
from assay_verifier.agent import ReplayingAgent
from assay_verifier.answering import Findings, OpenCall, OwnCall, ReplayPass
from assay_verifier.replaying import CommitmentReplay
from assay_verifier.ticket_keeping import ShowSecret


class AuditCheat(StrEnum):
    """Ways to audit falsely."""

    BLIND = "blind"
    """Signs as committed without computing: its accumulators are made up."""
    COPYING = "copying"
    """Signs as committed, with the accumulators that others showed."""
    SILENT = "silent"
    """Computes, and agrees with whatever it re-audits."""
    ABSENT = "absent"
    """Never opens a call, and never shows its secret."""
    DROPPING = "dropping"
    """Leaves the lowest duty of each call out."""
    FALSE_ACCUSER = "false-accuser"
    """Computes, and names another update than it found."""
    FALSE_SUM = "false-sum"
    """Above 64 seats: opens a false sum of the first group in which its tickets are too few to change what counts."""


def audit_cheat_named(name: str) -> AuditCheat:
    """The cheat of this name. Raises UsageError (UnknownCheat)."""
    if name not in set(AuditCheat):
        raise UsageError(
            f"There is no way of auditing falsely called {name!r}.",
            code="UnknownCheat",
            remedy=f"Choose one of: {', '.join(sorted(AuditCheat))}.",
        )
    return AuditCheat(name)


COMPUTES_NOTHING: Final = (AuditCheat.BLIND, AuditCheat.COPYING)


class FakeFindings:
    """Findings of a cheat, over those that it really made."""

    def __init__(self, cheat: AuditCheat, honest: Findings) -> None:
        self._cheat, self._honest = cheat, honest
        self.works: dict[Digest, SeatWork] = {}
        """Commitments by place."""
        self.shown: dict[Digest, Digest] = {}
        """Accumulators that others showed, by their keys, in the order in which they came."""
        self.updates: dict[Digest, Digest] = {}
        """Roots of false updates by place: calculations that are wrong by one bit, so that they can be defended."""

    def is_known(self, place: Digest, key: Digest) -> bool:
        """See Findings."""
        return self._cheat in COMPUTES_NOTHING or self._honest.is_known(place, key)

    def is_confirmed(self, place: Digest, key: Digest | None) -> bool:
        """See Findings: it does not look twice."""
        return True

    def finding(self, place: Digest, keys: tuple[Digest, ...]) -> ReplayFinding | None:
        """See Findings."""
        if self._cheat in COMPUTES_NOTHING:
            work = self.works[place]
            return ReplayFinding(work.ends, work.update, keys, tuple(map(self._made_up, keys)))
        found = self._honest.finding(place, keys)
        if found is None:
            return None
        if self._cheat is AuditCheat.SILENT:
            told = tuple(self.shown.get(key, own) for key, own in zip(keys, found.accumulators, strict=True))
            return replace(found, accumulators=told)
        if self._cheat is AuditCheat.FALSE_ACCUSER:
            return replace(found, update=self.updates.get(place, keccak(b"another update" + found.update)))
        return found

    def _made_up(self, key: Digest) -> Digest:
        if key in self.shown:
            return self.shown[key]
        if self._cheat is AuditCheat.COPYING and self.shown:
            return next(reversed(self.shown.values()))
        return keccak(b"made up" + key)


class CheatingReplays(ReplayingAgent):
    """An auditor that cheats; put before an honest class of agents."""

    def __init__(self, *args: Any, cheat: AuditCheat, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cheat = cheat
        self.fake = FakeFindings(cheat, self.book)
        self.findings = self.fake

    def _finish(self, replay: CommitmentReplay, work: ReplayPass, view: RunView) -> None:
        super()._finish(replay, work, view)
        job = self.jobs.update_job(replay.work.lists[0], replay.lists[0])
        if (lie := self.update_lie(job)) is not None:
            false = self.compute.run(job.program, job.lists, 1, lie)[0]
            self.fake.updates[work.place] = self.jobs.root_of_update(false)

    def update_lie(self, job: Computation) -> Tamper | None:
        """How what it says of an update differs from the truth: by one bit of the first element."""
        return first_bit_wrong(job) if self.cheat is AuditCheat.FALSE_ACCUSER else None

    def refresh(self, view: RunView) -> None:
        """See ActorLoop."""
        super().refresh(view)
        self.fake.works |= {own.place: own.work for call in self.calls for own in call.duties}
        self.fake.shown = shown_by_others(view)
        if self.cheat is AuditCheat.DROPPING:
            self.calls = tuple(without_lowest(self.calls))

    def candidates(self, view: RunView) -> Iterator[Choice]:
        """See ActorLoop."""
        for action in super().candidates(view):
            if self.cheat is not AuditCheat.ABSENT or not isinstance(action, OpenCall | ShowSecret):
                yield action


def first_bit_wrong(job: Computation) -> Tamper:
    """A calculation whose first result is wrong by one bit."""
    ends = (job.program.nodes[k] for k in job.program.output_nodes[0])
    source = next(end.node for end in ends if isinstance(end, Output))
    return lambda step, node, data: bytes([data[0] ^ 1]) + data[1:] if node == source else data


def shown_by_others(view: RunView) -> dict[Digest, Digest]:
    """Accumulators of all attestations of others by their keys, as whoever the key belongs to showed them."""
    mine = {number for number, _ in view.tickets_of(view.me)}
    return first_shown(made.finding for made in view.state.attestations.values() if made.ticket not in mine)


def first_shown(findings: Iterable[ReplayFinding]) -> dict[Digest, Digest]:
    """Accumulators by their keys; who audits an attestation shows its keys again, later."""
    found: dict[Digest, Digest] = {}
    for finding in findings:
        for key, accumulator in zip(finding.keys, finding.accumulators, strict=True):
            found.setdefault(key, accumulator)
    return found


def without_lowest(calls: Iterable[OwnCall]) -> Iterator[OwnCall]:
    """Calls without the duty that their secret draws lowest."""
    yield from (replace(call, duties=call.duties[1:]) for call in calls)
