"""The auditor's half that replays and opens: its tickets, their calls, passes over commitments, results.

Everything that costs time is done unit by unit, so that games, openings and secrets never wait for a replay.
Source: docs/adr/0033-second-round.md, trailing path; docs/adr/0034-second-round-wired.md.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Final

from assay.protocol.errors import AssayError, InvariantError
from assay.protocol.program.trace import OnStep
from assay.protocol.types import Digest, Round, Seat
from assay.training.rounds import TorchCompute
from assay_ledger.agents import patience
from assay_ledger.agents.agent import Agent
from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.loop import RunStore
from assay_ledger.agents.money_keeper import has_unpaid_openings, is_owed
from assay_ledger.agents.round_actions import Choice, RoundAction
from assay_ledger.contract import Call
from assay_ledger.index.computing import Compute, RecheckMismatch
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.keys.ticket_seed import ticket_seed
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.progress import remove_before
from assay_verifier.answering import (
    ConfirmFinding,
    Findings,
    OpenCall,
    OwnCall,
    Progressed,
    ReplayPass,
    ReplayUnit,
    answers_to,
    auditing,
    last_moment,
)
from assay_verifier.audit_jobs import AuditJobs
from assay_verifier.calling import own_calls
from assay_verifier.erring import ErredMachine
from assay_verifier.finding_book import Ended, FindingBook
from assay_verifier.pacing import SLOWER, Measured, OutOfTime, Stint, UnitPace
from assay_verifier.replaying import CommitmentReplay
from assay_verifier.secret_chains import TicketChains
from assay_verifier.ticket_keeping import (
    ReclaimTicket,
    RegisterTicket,
    ReplaceChain,
    RetireTicket,
    ShowSecret,
    TicketPlan,
    TopUpTicket,
    needs_stake,
    secret_of,
    secrets_owed,
    ticket_actions,
)
from assay_verifier.view_records import ViewRecords

MOST_REPLAYS: Final = 2
"""Passes whose state is in memory at once; the others are on disk."""


@dataclass(frozen=True, slots=True)
class PublishBase(RoundAction):
    """Publish what a round starts from, once it was replayed from: who joins needs the last base alone."""

    round: Round


class ReplayingAgent(Agent):
    """An owner of tickets that answers their calls. `tickets` is how many it wants; 0 leaves that to a command.

    Raises JournalInUse, FolderOfAnotherRun, UnavailableError.
    """

    role = "verifier"

    def __init__(
        self,
        run: Run,
        keys: ActorKeys,
        store: RunStore,
        data_dir: Path,
        *,
        compute: Compute | None = None,
        tickets: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(run, keys, store, data_dir, compute or TorchCompute(), **options)
        self.tickets_wanted = tickets
        self.jobs = AuditJobs(self.archive, self.compute)
        self._chains_sent = [int(entry["number"]) for entry in self.journal.entries("chain")]
        self.chains = TicketChains(ticket_seed(keys.local), run.facts.identity, sent=self._chains_sent)
        self._named: int | None = None
        """The number of the chain that the newest call names, which was not mined."""
        self._offered: bytes | None = None
        """What of such a call went out."""
        self.book = FindingBook(self.journal)
        self.findings: Findings = self.book
        """What it answers from."""
        self.calls: tuple[OwnCall, ...] = ()
        self.inclusion = run.charter.chain.inclusion_delay
        self._folder = data_dir / "replays"
        self._published = {Round(entry["round"]) for entry in self.journal.entries("base")}
        self._replays: OrderedDict[tuple[Digest, tuple[Digest, ...]], CommitmentReplay] = OrderedDict()
        self._done: dict[tuple[Digest, tuple[Digest, ...]], int] = {}
        self._unchecked: dict[tuple[Digest, Digest | None], int] = {}
        self._units, self._again = Measured(), Measured()
        self._called_at: tuple[object, ...] = ()
        self._erred = ErredMachine()
        self._free = 0

    def keep_copies(self, view: RunView) -> None:
        """See ActorLoop. Progress of replays is kept as long as what they start from."""
        super().keep_copies(view)
        remove_before(self._folder, self.oldest_kept(view))

    # --- what is seen

    def refresh(self, view: RunView) -> None:
        """See ActorLoop: this owner's calls, and its free stake while a ticket may need it."""
        super().refresh(view)
        self.records = ViewRecords(view)
        held = self.records.held_tickets()
        newest, epoch = len(view.epochs) - 1, view.epochs[-1]
        # What a call owes changes with its epoch alone, and with a reorganization of what it is drawn over; who may
        # answer it, with each fine and each amount put back.
        homes = range(max(0, newest - 1), newest + 1)
        drawn_over = tuple(made.digest for home in homes for made in view.works_of(home))
        able = tuple((h.id, h.can_answer, h.is_convicted) for h in held)
        at = (newest, epoch.seed, epoch.deadline, able, drawn_over, tuple(self._answered(view)))
        if at != self._called_at:
            self.calls, self._called_at = own_calls(self.records, held, self.chains), at
        if view.state.money.is_stopped:
            self.calls = ()
        if needs_stake(held, self.tickets_wanted, self.records, is_leaving=self._is_leaving(view)):
            self._free = self.chain.ask(self.target.vault.free(self.me))

    def candidates(self, view: RunView) -> Iterator[Choice]:
        """See ActorLoop."""
        yield from self.play(view)
        held, stopped = self.records.held_tickets(), view.state.money.is_stopped
        audits = list(auditing(self.calls, self.findings, self._progressed(view), view.now, self.inclusion))
        yield from (action for action in audits if isinstance(action, OpenCall))
        # Bad luck: away for a call, and back with replays as long as the epoch: a hidden secret costs the stake.
        yield from () if stopped else secrets_owed(held, self.records)
        yield from (action for action in audits if not isinstance(action, OpenCall))
        wanted = 0 if self.lost_gpu or self._erred.has_erred(view) else self.tickets_wanted
        plan = TicketPlan(wanted, self._is_leaving(view), self._free, self.target.facts.tickets.bond, stopped)
        yield from ticket_actions(plan, held, self.chains, self.records, view.now)
        yield from self.keep(view)
        yield from self._bases(view)

    def times(self, view: RunView) -> Iterator[int]:
        """See ActorLoop."""
        yield from self.keeping_times(view)
        yield from (last_moment(call.deadline, self.inclusion) for call in self.calls)

    def share(self, action: Choice, view: RunView) -> float:
        """See Agent. A replay waits for stores as long as the first call leaves to each of its duties."""
        if not self.calls or not isinstance(action, ReplayUnit | ConfirmFinding | PublishBase):
            return super().share(action, view)
        left = min(call.deadline for call in self.calls) - view.now
        return patience.share(left, sum(len(call.duties) for call in self.calls))

    def handlers(self) -> Handlers[RunView]:
        """See ActorLoop."""
        table = super().handlers()
        table.add(ReplayUnit, self.do_replay_unit).add(ConfirmFinding, self.do_confirm).add(OpenCall, self.do_open)
        table.add(RegisterTicket, self.do_register).add(TopUpTicket, self.do_top_up)
        table.add(ReplaceChain, self.do_replace_chain).add(ShowSecret, self.do_show)
        table.add(RetireTicket, self.do_retire).add(ReclaimTicket, self.do_reclaim)
        return table.add(PublishBase, self.do_publish_base)

    def is_finished(self, view: RunView) -> bool:
        """See ActorLoop: it leaves, or the run is over, no stake of its tickets is left, and they are owed nothing."""
        gone = all(t.convicted_at for _, t in view.tickets_of(self.me)) and not (view.open_games() or is_owed(view))
        over = view.is_over or view.state.money.is_ended
        if self.leaving:
            return gone and not has_unpaid_openings(view)
        return gone and over and self.deadline is None

    def _is_leaving(self, view: RunView) -> bool:
        """Whether it was told to leave, or the run has nothing more to audit.

        What its tickets earned is paid when their stakes are back, too: it stays to ask for that, without them.
        """
        return self.leaving or view.state.money.is_ended

    # --- replays

    def do_replay_unit(self, action: ReplayUnit, view: RunView) -> None:
        """Computes a unit; after the last one the update. Raises RecheckMismatch, UnavailableError."""
        work = action.work
        replay = self.replay_of(view, work.place, work.round, work.seat, work.keys)
        self._done[work.place, work.keys] = replay.done
        if not replay.is_done:
            self._within_time(replay.advance, self._units, view)
            self._done[work.place, work.keys] = replay.done
            self.progress(f"replaying seat {work.seat} of round {work.round}", replay.done, work.units)
        if replay.is_done:
            self._finish(replay, work, view)

    def _progressed(self, view: RunView) -> Progressed:
        unit_s, again_s = self._units.unit_s, self._again.unit_s
        if again_s is None and unit_s is not None:
            again_s = SLOWER * unit_s
        pace = UnitPace(unit_s, self.target.facts.rounds.steps_per_unit, view.terms.length)
        return Progressed(self._done, self._unchecked, pace, replace(pace, unit_s=again_s))

    def _within_time(self, compute: Callable[[OnStep], None], measured: Measured, view: RunView) -> None:
        """Computes a unit, or gives it up where it would keep a call from being opened; notes how long it took."""
        moments = [last_moment(call.deadline, self.inclusion) - view.now for call in self.calls]
        left = min((moment for moment in moments if moment > 0), default=inf)
        stint = Stint(self._clock, self.target.facts.rounds.steps_per_unit, left)
        with suppress(OutOfTime):
            compute(stint)
        if stint.seconds is not None:
            measured.note(stint.seconds)

    def _finish(self, replay: CommitmentReplay, work: ReplayPass, view: RunView) -> None:
        job = self.jobs.update_job(replay.work.lists[0], replay.lists[0])
        update = self.jobs.root_of_update(self.compute.run(job.program, job.lists, 1)[0])
        ended, found = Ended(replay.ends, update), dict(zip(replay.keys, replay.accumulators, strict=True))
        if self.book.ended(work.place) not in (None, ended):
            self._begin_anew(replay, work, view)
            raise RecheckMismatch(f"Two passes over seat {work.seat} of round {work.round} end in different states.")
        self.book.add(work.place, ended, found)

    def _begin_anew(self, replay: CommitmentReplay, work: ReplayPass, view: RunView) -> None:
        """Forgets all passes over a commitment: one of them is false, and what it sampled would cost B.

        Bad luck: a machine errs in the pass of a later duty, and what is checked then is the pass of an earlier one.
        """
        passes = self.book.passes_of(work.place)
        for each in (replay, *(self.replay_of(view, work.place, work.round, work.seat, keys) for keys in passes)):
            each.forget()
        for keys in passes:
            self.book.withdraw(work.place, keys)
        self._replays.clear()
        self._done = {at: n for at, n in self._done.items() if at[0] != work.place}
        self._unchecked = {at: n for at, n in self._unchecked.items() if at[0] != work.place}

    def do_confirm(self, action: ConfirmFinding, view: RunView) -> None:
        """Has other kernels find the same, a unit at a time. Raises RecheckMismatch, UnavailableError."""
        place, key = action.place, action.key
        keys = self.book.pass_of(place, key)
        replay = self.replay_of(view, place, Round(action.round), action.seat, keys)
        try:
            if action.left and not replay.is_done:  # the disk lost the last states
                self._within_time(replay.advance, self._units, view)
            elif action.left:
                self._within_time(lambda on_step: replay.check_unit(key, on_step), self._again, view)
            self._unchecked[place, key] = left = replay.unchecked(key) + replay.work.units - replay.done
            self.progress(f"computing seat {action.seat} of round {action.round} again", 1, 1 + left)
            if action.left == left == 0:
                self._check_noted(replay, place)
                if key is None:
                    self._confirm_update(replay, place)
                self.book.confirm(place, key)
        except RecheckMismatch:
            # Either calculation may be the false one: the pass is done again from there.
            self._unchecked = {at: n for at, n in self._unchecked.items() if at[0] != place}
            self._done[place, keys] = replay.done
            self.book.withdraw(place, keys)
            raise

    def _check_noted(self, replay: CommitmentReplay, place: Digest) -> None:
        """What the journal noted of a pass may be from before a part of it was taken back. Raises RecheckMismatch."""
        noted = self.book.finding(place, replay.keys)
        if noted is None or (noted.ends, noted.accumulators) != (replay.ends, replay.accumulators):
            raise RecheckMismatch("A pass does not end in what was noted of it.")

    def _confirm_update(self, replay: CommitmentReplay, place: Digest) -> None:
        job, ended = self.jobs.update_job(replay.work.lists[0], replay.lists[0]), self.book.ended(place)
        again = self.jobs.root_of_update(self.compute.recheck(job.program, job.lists, 1)[0])
        if ended is None or again != ended.update:
            raise RecheckMismatch("Two calculations of an update differ.")

    def replay_of(
        self, view: RunView, place: Digest, round_: int, seat: Seat, keys: tuple[Digest, ...]
    ) -> CommitmentReplay:
        """A pass, from memory or from what the disk keeps of it. Raises UnavailableError."""
        if (place, keys) not in self._replays:
            while len(self._replays) >= MOST_REPLAYS:
                self._replays.popitem(last=False)
            work = self.jobs.work(view, Round(round_), seat)
            self._replays[place, keys] = CommitmentReplay(self.compute, work, keys, self._folder / str(round_))
        self._replays.move_to_end((place, keys))
        return self._replays[place, keys]

    # --- calls

    def do_open(self, action: OpenCall, view: RunView) -> None:
        """Shows a call's secret with its results."""
        call = next(c for c in self.calls if (c.ticket, c.epoch) == (action.ticket, action.epoch))
        results, secret = answers_to(call, action.ranks, self.findings), self.secret(action.ticket, action.epoch)
        self.send(self.target.duties.open(action.ticket, call.seed, secret, results))

    def do_show(self, action: ShowSecret, view: RunView) -> None:
        """Shows the secret of a call that was not answered."""
        self.send(self.target.duties.show(action.ticket, action.epoch, self.secret(action.ticket, action.epoch)))

    def secret(self, ticket: int, epoch: int) -> Digest:
        """The secret of one of this owner's tickets. Raises InvariantError (NoSecret)."""
        held = next(h for h in self.records.held_tickets() if h.id == ticket)
        secret = secret_of(held, self.chains, self.records, epoch)
        if secret is None:
            raise InvariantError(f"This key's seed gives no secret of ticket {ticket}.", code="NoSecret")
        return secret

    # --- tickets

    def do_register(self, action: RegisterTicket, view: RunView) -> None:
        """Locks B behind one more ticket, in a run whose programs were looked at."""
        self.archive.check()
        self._name_chain(view, self.target.tickets.register)

    def do_replace_chain(self, action: ReplaceChain, view: RunView) -> None:
        """Names the chain that follows."""
        self._name_chain(view, lambda anchor: self.target.tickets.replace_anchor(action.ticket, anchor))

    def _name_chain(self, view: RunView, naming: Callable[[Digest], Call]) -> None:
        """Sends a call that names a chain which no ticket used; its number is on disk before its anchor is sent.

        A number whose anchor never went out is named again, and so is one whose very call is still on its way: else a
        time of dear gas would use up numbers without end. What went out and was replaced may be mined all the same
        after a reorganization: its number is not used again.
        """
        if self._named is None or not self._is_free(view, naming):
            self._named, self._offered = self._next_chain(view), None
        call = naming(self.chains.anchor(self._named))
        try:
            self.send(call, seen=view.head.number)
        except AssayError:
            self._offered = call.data if self._is_on_its_way(call) else self._offered
            raise
        self._named = None

    def _is_free(self, view: RunView, naming: Callable[[Digest], Call]) -> bool:
        assert self._named is not None
        call = naming(anchor := self.chains.anchor(self._named))
        on_its_way = self._offered == call.data and self._is_on_its_way(call)
        return anchor not in self._anchors_of(view) and (self._offered is None or on_its_way)

    def _is_on_its_way(self, call: Call) -> bool:
        return any(sent.data == call.data for sent in self.chain.outbox(self.account).in_flight.values())

    def _next_chain(self, view: RunView) -> int:
        """A number above all that were ever sent, on disk when it returns. Raises DiskRefuses."""
        number = self.chains.next_number(self._chains_sent, self._anchors_of(view))
        self.journal.append("chain", number=number)
        self._chains_sent.append(number)
        return number

    def _anchors_of(self, view: RunView) -> list[Digest]:
        """Every anchor that a ticket of this owner ever named."""
        named = view.books.registry.anchors
        return [anchor for number, _ in view.tickets_of(self.me) for _, anchor in named[number]]

    def do_top_up(self, action: TopUpTicket, view: RunView) -> None:
        """Locks what fines have taken."""
        self.send(self.target.tickets.top_up(action.ticket))

    def do_retire(self, action: RetireTicket, view: RunView) -> None:
        """Announces leave."""
        self.send(self.target.tickets.retire(action.ticket))

    def do_reclaim(self, action: ReclaimTicket, view: RunView) -> None:
        """Takes the stake back."""
        self.send(self.target.tickets.reclaim(action.ticket))

    # --- bases

    def _bases(self, view: RunView) -> Iterator[PublishBase]:
        """The newest base that a replay was run from."""
        rounds = sorted({Round(own.drawn.round) for call in self.calls for own in call.duties})
        if rounds and rounds[-1] not in self._published:
            yield PublishBase(rounds[-1])

    def do_publish_base(self, action: PublishBase, view: RunView) -> None:
        """Publishes parameters and momentum where the store lacks them. Raises UnavailableError, StateMismatch."""
        self.jobs.publish_base(view, action.round)
        self.journal.note("base", round=action.round)
        self._published.add(action.round)

    def _answered(self, view: RunView) -> Sequence[int]:
        newest = len(view.epochs) - 1
        return [number for number, _ in view.tickets_of(self.me) if view.answer_of(newest, number) is not None]
