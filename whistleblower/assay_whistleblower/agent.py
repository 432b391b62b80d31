"""The auditor whole: what its tickets found it pursues, and what others left undone it reports.

One opening carries the results of both kinds of duties, so one process answers for all tickets of an owner; whoever
accuses has to pursue, or is fined. The commands differ in one thing: a whistleblower also reports on others.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assay.protocol.program.trace import Trace
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest
from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.keeping import participants
from assay_ledger.agents.loop import RunStore
from assay_ledger.agents.round_actions import Choice
from assay_ledger.index.computing import Computation
from assay_ledger.index.games import Game
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.records import AccusationRecord, AttestationRecord
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_verifier.comparing import FalseClaim, against_attestation, against_work, part_of
from assay_verifier.finding_book import place_of
from assay_verifier.merging_agent import MergingAgent
from assay_verifier.replaying import CommitmentReplay
from assay_whistleblower.pursuing import NEVER, OwnAccusation, TryAccusation, pursuit, pursuit_times
from assay_whistleblower.reporting import MissesDrawn, ReportAbsence, ReportDue, ReportForfeit, ReportMiss, reports


class AuditorAgent(MergingAgent):
    """An owner of tickets. With `reports` it also has others fined for what they left undone."""

    role = "verifier"

    def __init__(
        self, run: Run, keys: ActorKeys, store: RunStore, data_dir: Path, *, reports: bool = False, **options: Any
    ) -> None:
        self.role = "whistleblower" if reports else "verifier"
        super().__init__(run, keys, store, data_dir, **options)
        self._reports = reports
        self._misses, self._misses_of = MissesDrawn(), self.state

    def candidates(self, view: RunView) -> Iterator[Choice]:
        """See ActorLoop."""
        yield from self.play(view)
        yield from pursuit(self.accusations(view), view.epochs, view.terms.length, view.now)
        yield from super().candidates(view)
        yield from (due.report for due in self.reports(view) if due.at <= view.now)

    def times(self, view: RunView) -> Iterator[int]:
        """See ActorLoop."""
        yield from super().times(view)
        waits = pursuit_times(self.accusations(view), view.epochs, view.terms.length)
        yield from (at for at in waits if at < NEVER)
        yield from (due.at for due in self.reports(view))

    def reports(self, view: RunView) -> Iterator[ReportDue]:
        """What others left undone, if this owner reports."""
        if self._reports and not view.state.money.is_stopped:
            if self._misses_of is not view.state:  # events were read anew
                self._misses, self._misses_of = MissesDrawn(), view.state
            yield from reports(self.records, participants(view), self.me, self._misses)

    def handlers(self) -> Handlers[RunView]:
        """See ActorLoop."""
        table = super().handlers()
        table.add(TryAccusation, self.do_try_accusation)
        table.add(ReportMiss, self.do_report_miss).add(ReportAbsence, self.do_report_absence)
        return table.add(ReportForfeit, self.do_report_forfeit)

    # --- pursuit

    def accusations(self, view: RunView) -> list[OwnAccusation]:
        """What this owner's tickets accuse, and can still be tried."""
        made: list[OwnAccusation] = []
        if view.state.money.is_stopped:
            return made
        for name, record in view.state.accusations.items():
            kept = view.books.duties.attestations.accusations[name]
            held = view.books.registry.tickets.get(kept.ticket)
            if held is None or held.owner != self.me:
                continue
            made.append(
                OwnAccusation(
                    *(name, kept.status, kept.epoch, self._is_convicted(view, kept.is_work, kept.accused)),
                    is_tried_elsewhere=is_tried_elsewhere(view, record, self.me),
                )
            )
        return made

    @staticmethod
    def _is_convicted(view: RunView, is_work: bool, accused: int) -> bool:
        if is_work:
            return view.books.tenures.is_convicted(accused)
        held = view.books.registry.tickets.get(accused)  # type: ignore[call-overload]
        return held is None or held.convicted_at != 0

    def do_try_accusation(self, action: TryAccusation, view: RunView) -> None:
        """Prepares the claim that is false and challenges it."""
        record = view.state.accusations[action.accusation]
        ours = view.state.attestations[record.by]
        if record.is_work:
            work = view.state.works[ours.round, ours.seat].work
            found = against_work(ours.finding, work)
            assert found is not None  # the contract accuses of nothing else
            kind = ClaimKind.UPDATE if found.what is FalseClaim.UPDATE else ClaimKind.INTERVAL
            ref = ClaimRef(kind, ours.round, ours.seat, outer_root=action.accusation)
            if (kind, ours.round, ours.seat) not in view.books.commitments.claims:
                self.send(self.target.commitments.prepare(kind, ours.round, ours.seat, work))
        else:
            theirs = view.state.attestations[record.against]
            found = against_attestation(ours.finding, theirs.finding)
            assert found is not None
            part = part_of(found, theirs.finding)
            ref = ClaimRef(ClaimKind.ATTESTATION, ours.round, ours.seat, part, outer_root=action.accusation)
            if (theirs.id, part) not in view.books.duties.attestations.claims:
                self.send(self.target.attestations.prepare(theirs.id, theirs.finding, part))
        self.send(self.target.game.challenge(ref))

    # --- games

    def trace_of(self, game: Game, view: RunView) -> Trace:
        """The run behind a disputed claim, from what its replay kept; as one claimed it where it is one's own."""
        ref = game.ref
        if ref.kind is ClaimKind.OUTER:
            return self.node_trace(game, view)
        key = None
        if ref.kind is ClaimKind.ATTESTATION:
            made = attestation_of(view, ref.outer_root)
            if ref.duty < len(made.finding.keys):
                key = made.finding.keys[ref.duty]
        place = place_of(view.base(ref.round).parameters, view.state.works[ref.round, ref.seat].digest)
        keys = self.book.pass_of(place, key) or (() if key is None else (key,))
        replay = self.replay_of(view, place, ref.round, ref.seat, keys)
        if key is not None or ref.kind is ClaimKind.INTERVAL:
            return self.run_behind(replay, key, game)
        while not replay.is_done:
            replay.advance()
        return self.update_behind(self.jobs.update_job(replay.work.lists[0], replay.lists[0]))

    def run_behind(self, replay: CommitmentReplay, key: Digest | None, game: Game) -> Trace:
        """The run of a claim about all of a commitment's steps, under a witness key or none."""
        return replay.trace(key)

    def update_behind(self, job: Computation) -> Trace:
        """The run of a claim about an update."""
        return self.compute.trace(job.program, job.lists, 1)

    # --- reports

    def do_report_miss(self, action: ReportMiss, view: RunView) -> None:
        """Has a ticket fined for a duty that it did not answer."""
        self.send(self.target.duties.miss(action.ticket, action.epoch, action.via, action.duty))

    def do_report_absence(self, action: ReportAbsence, view: RunView) -> None:
        """Has a ticket fined that did not open."""
        self.send(self.target.duties.absent(action.ticket, action.epoch))

    def do_report_forfeit(self, action: ReportForfeit, view: RunView) -> None:
        """Has the stake of a ticket burnt that never showed its secret."""
        self.send(self.target.duties.forfeit(action.ticket, action.epoch, action.later))


def attestation_of(view: RunView, name: Digest) -> AttestationRecord:
    """The attestation that a claim's reference names: its own id, or an accusation's of it."""
    accusation = view.state.accusations.get(name)
    return view.state.attestations[name if accusation is None else accusation.against]


def is_tried_elsewhere(view: RunView, record: AccusationRecord, me: Address) -> bool:
    """Whether somebody else's game is open on what an accusation accuses; one about a merge is about neither."""
    by = view.state.attestations[record.by]
    for game in view.games.values():
        if game.is_over or game.challenger == me or (game.ref.round, game.ref.seat) != (by.round, by.seat):
            continue
        match game.ref.kind:
            case ClaimKind.INTERVAL | ClaimKind.UPDATE if record.is_work:
                return True
            case ClaimKind.ATTESTATION if not record.is_work:
                if attestation_of(view, game.ref.outer_root).id == record.against:
                    return True
    return False
