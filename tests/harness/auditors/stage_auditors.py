"""Auditors on the executable model of audits: real secrets, real replays of a small step, no chain in between.

Every commitment is to the same three units of `mlp_step`, so that its truth is known; a test may alter what is said.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest
from assay.training.rounds import TorchCompute
from assay_ledger.agents.journal import Journal
from assay_ledger.store.objects import root_of_list
from assay_verifier.answering import (
    ConfirmFinding,
    Findings,
    OpenCall,
    OwnCall,
    Progressed,
    ReplayUnit,
    answers_to,
    auditing,
)
from assay_verifier.calling import own_calls
from assay_verifier.cheats import AuditCheat, FakeFindings, first_shown, without_lowest
from assay_verifier.finding_book import Ended, FindingBook
from assay_verifier.replaying import CommitmentReplay, WorkToReplay
from assay_verifier.secret_chains import TicketChains
from assay_verifier.ticket_keeping import HeldTicket
from tests.harness.actors.programs import update_program
from tests.harness.auditors.stage_records import StageRecords
from tests.harness.programs import mlp_step
from tests.harness.rounds.duties import DutyStage
from tests.harness.rounds.staged_rounds import mark

UNITS, STEPS = 3, 2
COMPUTE = TorchCompute()


@cache
def truth() -> Ended:
    """Where every commitment really ends."""
    example = mlp_step()
    trace = COMPUTE.trace(example.program, example.state, UNITS * STEPS)
    parameters, optimizer, scalars = trace.list_roots(UNITS * STEPS)
    specs = [example.program.specs[k] for k in example.program.input_nodes[0]]
    end = COMPUTE.run(example.program, example.state, UNITS * STEPS)
    update = COMPUTE.run(update_program(specs), (example.state[0], end[0]), 1)[0]
    return Ended((parameters, optimizer, scalars), root_of_list(specs, update))


def computed_work(round_: int, seat: int) -> SeatWork:
    """A true commitment."""
    return SeatWork(UNITS, mark("marks", round_, seat), truth().ends, truth().update)


class StageAuditor:
    """One owner with one ticket, honest or not."""

    def __init__(self, stage: DutyStage, who: int, folder: Path, cheat: AuditCheat | None = None) -> None:
        self.stage, self.who, self.cheat = stage, stage.people[who], cheat
        self.book = FindingBook(Journal(folder / str(who)))
        self.findings: Findings = self.book if cheat is None else FakeFindings(cheat, self.book)
        self.folder = folder / str(who) / "replays"
        self.chains = TicketChains(f"owner {who}".encode(), Digest(bytes(32)), 40)
        chain = self.chains.chain(0)
        self.ticket = stage.register(who, [chain.anchor, *(chain.secret(k) for k in range(1, 40))])
        self.replays = 0
        self.is_late = False
        """Whether it comes to its calls with no time left to replay anything."""

    def calls(self) -> tuple[OwnCall, ...]:
        """Its calls of the newest epoch."""
        records, t = StageRecords(self.stage), self.stage.tickets.tickets[self.ticket]
        shift, anchors = self.stage.tickets.shift_of(self.ticket), ((t.from_, self.chains.anchor(0)),)
        able = self.stage.tickets.can_answer(self.ticket)
        held = HeldTicket(self.ticket, shift, t.from_, anchors, is_convicted=t.convicted_at != 0, can_answer=able)
        calls = own_calls(records, [held], self.chains)
        if isinstance(self.findings, FakeFindings):
            book, mine = self.stage.attestations, self.ticket
            self.findings.works |= {own.place: own.work for call in calls for own in call.duties}
            others = [book.findings[name] for name, made in book.attestations.items() if made.ticket != mine]
            self.findings.shown = first_shown(others)
        return tuple(without_lowest(calls)) if self.cheat is AuditCheat.DROPPING else calls

    def answer(self) -> None:
        """Everything it does in the newest epoch."""
        done: dict[tuple[Digest, tuple[Digest, ...]], int] = {}
        while calls := self.calls():
            now = calls[0].deadline if self.is_late else self.stage.now
            action = next(auditing(calls, self.findings, Progressed(done), now, 0))
            match action:
                case OpenCall() if self.cheat is AuditCheat.ABSENT:
                    return
                case OpenCall(_, epoch, ranks):
                    (call,) = calls
                    results = answers_to(call, ranks, self.findings)
                    secret = self.stage.secret(self.ticket, epoch)
                    self.stage.duties.open(self.who, self.ticket, call.seed, secret, results, self.stage.now)
                case ReplayUnit(work, unit):
                    replay = self._replay(work.keys)
                    replay.advance()
                    done[work.place, work.keys] = replay.done
                    assert replay.done == unit
                    if replay.is_done:
                        self.replays += 1
                        found = dict(zip(replay.keys, replay.accumulators, strict=True))
                        self.book.add(work.place, Ended(replay.ends, truth().update), found)
                        replay.forget()
                case ConfirmFinding(place, _, _, key):
                    replay = self._replay(self.book.pass_of(place, key))
                    while not replay.is_done:
                        replay.advance()
                    replay.confirm(key)
                    self.book.confirm(place, key)

    def _replay(self, keys: tuple[Digest, ...]) -> CommitmentReplay:
        example = mlp_step()
        return CommitmentReplay(COMPUTE, WorkToReplay(example.program, example.state, UNITS, STEPS), keys, self.folder)


class AuditedStage:
    """A stage with auditors by name; rounds of two commitments, an epoch each."""

    def __init__(self, stage: DutyStage, folder: Path, cheats: dict[str, AuditCheat | None]) -> None:
        self.stage = stage
        self.auditors = {
            name: StageAuditor(stage, who, folder, cheat) for who, (name, cheat) in enumerate(cheats.items())
        }
        stage.pass_time(stage.tickets.terms.seasoning)

    def epoch(self, works: dict[int, SeatWork] | None = None) -> int:
        """A round of commitments, true unless told otherwise, its epoch, everybody's answers; the epoch's number."""
        stage = self.stage
        round_ = stage.open_round(stage.duties.epochs[-1].start - 1)
        for seat in range(2):
            stage.commit(round_, seat, (works or {}).get(seat, computed_work(round_, seat)))
        stage.seed(round_)
        number = stage.duties.number
        for auditor in self.auditors.values():
            if StageRecords(stage).is_called(auditor.ticket, number):
                auditor.answer()
        while stage.duties.number == number:
            stage.close()
        return number

    def accused(self) -> set[tuple[str, str]]:
        """Who accuses whom: names of auditors, and seats."""
        names = {auditor.ticket: name for name, auditor in self.auditors.items()}
        return {
            (names[made.ticket], f"seat {made.accused - 1}" if made.is_work else names[TicketId(made.accused)])
            for made in self.stage.attestations.accusations.values()
        }
