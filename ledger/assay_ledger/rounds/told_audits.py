"""Tickets and duties as their events tell them: the model's books, moved by what the chain decided.

Each method is one event. `now` is the chain time of its block, in seconds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from assay.protocol.errors import InvariantError
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.accusations import AuditedRounds
from assay.protocol.rounds.attestations import Attestations, PreparedClaim
from assay.protocol.rounds.duties import Duties
from assay.protocol.rounds.duty_types import (
    AGAIN_PPM,
    AccusationStatus,
    Attestation,
    CallAnswer,
    DutyKind,
    DutyTerms,
    Epoch,
)
from assay.protocol.rounds.epochs import AuditBeacon, unopened
from assay.protocol.rounds.ticket_types import Calls, Debt, TicketId, TicketTerms
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.rounds.timeline import Timeline
from assay.protocol.rounds.vault import Vault
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Digest, Wei
from assay_ledger.bindings import duties, tickets
from assay_ledger.bindings.attestations import AccusationMoved, Accused, Attested, FindingPrepared


class ToldTickets(Tickets):
    """The books of tickets, by their events."""

    def __init__(self, vault: Vault, calls: Calls, terms: TicketTerms) -> None:
        super().__init__(vault, calls, terms)
        self.anchors: dict[TicketId, list[tuple[int, Digest]]] = {}
        """The anchors that each ticket named, with the chain time from which each counts."""
        self.missing: Counter[TicketId] = Counter()
        """What fines have taken of each ticket's lock, in wei."""
        self.quiet_at: dict[TicketId, int] = {}
        """When the last accusation of each ticket, or game about it, was over: its debts wait no longer."""

    def undispute(self, ticket: TicketId, convicted: bool, now: int) -> bool:
        """See Tickets."""
        self.quiet_at[ticket] = now
        return super().undispute(ticket, convicted, now)

    def on_registered(self, e: tickets.TicketRegistered) -> None:
        """A ticket is registered."""
        self.anchors[e.ticket] = [(e.from_, e.anchor)]
        if self.register(e.owner, e.anchor, e.from_ - self.terms.seasoning) != e.ticket:
            raise InvariantError(f"Ticket {e.ticket} was registered out of order.", code="EventOutOfOrder")

    def on_retired(self, e: tickets.TicketRetired) -> None:
        """A ticket retires."""
        self._retire(e.ticket, self._known(e.ticket), e.until - self.terms.seasoning)

    def on_reclaimed(self, e: tickets.TicketReclaimed) -> None:
        """Its stake went back."""
        self.left[e.ticket] = self.tickets.pop(e.ticket).owner

    def on_replaced(self, e: tickets.AnchorReplaced) -> None:
        """Another chain of secrets follows."""
        held = self._known(e.ticket)
        held.next_anchor, held.next_from = e.anchor, e.from_
        self.anchors[e.ticket].append((e.from_, e.anchor))

    def on_fined(self, e: tickets.TicketFined, now: int) -> None:
        """Its lock is short."""
        held = self._known(e.ticket)
        held.short_since = held.short_since or now
        self.missing[e.ticket] += e.amount

    def on_owed(self, e: tickets.FineOwed) -> None:
        """A fine waits for verdicts."""
        self._owe(e.ticket, self._known(e.ticket), Debt(Wei(e.amount), e.to if any(e.to) else None))

    def on_collected(self, e: tickets.FineCollected) -> None:
        """It waits no longer; what it took is told apart."""
        del self.debts[e.ticket, e.number]
        self.acquit(e.ticket)

    def on_topped_up(self, e: tickets.TicketToppedUp) -> None:
        """Its lock is whole."""
        self._known(e.ticket).short_since = 0
        del self.missing[e.ticket]

    def on_convicted(self, e: tickets.TicketConvictedNow, now: int) -> None:
        """It takes no part any more."""
        self._known(e.ticket).convicted_at = now

    def _left(self, ticket: TicketId) -> int:
        return self.terms.bond - self.missing[ticket]


class ToldAttestations(Attestations):
    """The books of attestations and accusations, by their events."""

    def on_attested(self, e: Attested, differs: bool) -> None:
        """A ticket found something, `differs` from the commitment."""
        self._doubt(e.epoch, e.ticket)
        digest, keys = draws.finding_digest(e.round, e.seat, e.finding), len(e.finding.keys)
        self.attestations[e.attestation] = Attestation(digest, e.epoch, e.ticket, e.round, e.seat, keys, differs)
        self.findings[e.attestation] = e.finding

    def on_prepared(self, e: FindingPrepared) -> None:
        """A part of a finding can be challenged."""
        made = self.attestations[e.attestation]
        steps = self.rounds.steps_of(made.round, made.seat) if e.part < made.keys else 1
        self.claims[e.attestation, e.part] = PreparedClaim(e.x, e.y, steps)

    def on_accused(self, e: Accused, now: int) -> None:
        """An accusation is recorded, and freezes the accused."""
        by = self.attestations[e.attestation]
        if e.is_work:
            accused = self.rounds.work_of(by.round, by.seat)[1]
        else:
            accused = self.attestations[e.against].ticket
        self._accuse(e.attestation, e.against, by.epoch, by.ticket, e.is_work, accused, now)

    def on_accusation(self, e: AccusationMoved, now: int) -> None:
        """An accusation is tried, judged, or over without a game."""
        made = self.accusations[e.id]
        if e.status is AccusationStatus.TRIED:
            self.on_tried(e.id, made.against, self.tickets.owner_of(made.ticket))
        elif made.status is AccusationStatus.TRIED:
            self.on_judged(e.id, e.status is AccusationStatus.UPHELD, now)
        else:
            self._end(made, e.status, now)

    def on_games(self, ref: ClaimRef, change: int, now: int) -> None:
        """A game was opened (1) or ended (-1) on a part of an attestation."""
        made = self.attestations[self.named(ref.outer_root)]
        if change > 0:
            made.disputes += 1
            self.tickets.dispute(made.ticket)
        else:
            self._quiet(made, now)
            self.tickets.undispute(made.ticket, False, now)


class ToldDuties(Duties):
    """The books of epochs, answers and fines, by their events."""

    attestations: ToldAttestations

    def __init__(self, tickets: Tickets, beacon: AuditBeacon, rounds: AuditedRounds, terms: DutyTerms) -> None:
        super().__init__(tickets, beacon, rounds, terms)
        self.attestations = ToldAttestations(tickets, self, rounds, self.fine)

    def on_epoch(self, e: duties.EpochBegan) -> None:
        """An epoch has its seed and calls a shift."""
        epoch = self.epochs[e.epoch]
        epoch.seed, epoch.deadline, epoch.shift, epoch.on_call = e.seed, e.deadline, e.shift, e.on_call
        if e.on_call:
            calls = self._calls.setdefault(e.shift, Timeline())
            epoch.call = calls.latest() + 1
            calls.push(epoch.start, epoch.call)

    def on_repeated(self, e: duties.EpochRepeated) -> None:
        """Too few opened: it waits once more."""
        epoch = self.epochs[e.epoch]
        epoch.repeats += 1
        epoch.deadline = e.deadline

    def on_epoch_closed(self, e: duties.EpochClosed, now: int) -> None:
        """An epoch closed, and the next began."""
        epoch = self.epochs[e.epoch]
        epoch.closed, epoch.fines = True, e.fines
        self.epochs.append(Epoch(now, idle=self._is_idle(self.number + 1)))

    def on_end(self, e: duties.DutiesEnd) -> None:
        """The last epoch is known in which duties are drawn."""
        self.last_epoch = e.last

    def on_secret(self, e: tickets.SecretShown) -> None:
        """A ticket showed the secret of a call: with its results while the epoch is open, bare afterwards."""
        epoch = self.epochs[e.epoch]
        self.tickets.advance(e.ticket, e.epoch, epoch.call, epoch.start, e.secret)
        in_time = not epoch.closed
        epoch.opened += in_time
        self.answers[e.epoch, e.ticket] = CallAnswer(e.secret, 0, 0, e.skipped, self.number, in_time)

    def on_attested(self, e: Attested, differs: bool) -> DutyKind:
        """A ticket found something, `differs` from the commitment; the kind of its duty."""
        kind = self._kind_of(e)
        self.attestations.on_attested(e, differs)
        self._on_named(e.epoch, e.ticket, kind, e.target)
        return kind

    def on_left_out(self, e: duties.DutyLeftOut) -> None:
        """A ticket named a duty that it does not answer."""
        self._on_named(e.epoch, e.ticket, DutyKind(e.kind), e.target)

    def on_duty_fined(self, e: duties.DutyFined) -> None:
        """A miss or an absence was proven."""
        self._fined.add(e.id)

    def is_fined(self, name: Digest) -> bool:
        """Whether a miss or an absence of this name was proven."""
        return name in self._fined

    @property
    def fined(self) -> int:
        """Misses and absences that were proven."""
        return len(self._fined)

    # --- inside

    def _on_named(self, number: int, ticket: TicketId, kind: DutyKind, target: Digest) -> None:
        """Duties come in the order of their ranks."""
        answer, seed = self.answers[number, ticket], self.epochs[number].seed
        assert seed is not None
        rank = draws.rank_of(draws.draw(answer.secret, seed, target, ticket, kind), self._threshold_of(number, kind))
        self.answers[number, ticket] = replace(answer, top_rank=rank, answered=answer.answered + 1)

    def _kind_of(self, e: Attested) -> DutyKind:
        kinds = [kind for kind in DutyKind if kind is not DutyKind.NONE]
        names = {draws.attestation_id(e.epoch, e.ticket, kind, e.target): kind for kind in kinds}
        if e.attestation not in names:
            raise InvariantError("An attestation has another name than its duty gives it.", code="EventOutOfOrder")
        return names[e.attestation]

    def _threshold_of(self, number: int, kind: DutyKind) -> int:
        """Below what a draw is a duty of this kind in an epoch."""
        on_call = self.epochs[number].on_call
        rates = {
            DutyKind.WORK: self.terms.audit_ppm,
            DutyKind.REAUDIT: self.terms.reaudit_ppm,
            DutyKind.MISSED: AGAIN_PPM,
        }
        if kind in rates:
            return draws.threshold(rates[kind], on_call)
        plain = self.terms.audit_ppm if kind is DutyKind.WORK_AGAIN else self.terms.reaudit_ppm
        return draws.threshold(unopened(self.epochs[number - 1], plain), on_call)
