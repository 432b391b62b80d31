"""Rounds, and what seats did in them (Commitments.sol)."""

from __future__ import annotations

from assay.protocol.digests import state_digest
from assay.protocol.errors import not_after, refuse
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.books import RoundBooks
from assay.protocol.rounds.clock import close_mask, commit_until
from assay.protocol.rounds.committees import Committees
from assay.protocol.rounds.terms import (
    GenerationStatus,
    GroupState,
    Presence,
    RoundState,
    SeatWork,
    WorkState,
    WorkStatus,
)
from assay.protocol.run.claims import ClaimKind
from assay.protocol.trees.state import RoundScalars, list_root
from assay.protocol.types import Address, Digest, Round, Seat


class Commitments(Committees):
    """The books of commitments. Time, in seconds, is an argument of every method that depends on it."""

    def __init__(self, books: RoundBooks) -> None:
        super().__init__(books)
        self.works: dict[tuple[Round, Seat], WorkState] = {}
        self.claims: dict[tuple[ClaimKind, Round, Seat], tuple[Digest, Digest, int]] = {}
        """X, Y and steps of what was prepared."""

    # --- rounds

    def open_round(self, parent: int, base: Digest, now: int) -> Round:
        """Generations only."""
        round_ = Round(len(self.rounds))
        closes = now + self.terms.commit + self.terms.inclusion
        self.rounds.append(RoundState(now, closes, self.books.tenures.seated_at(round_), parent, base))
        return round_

    def commit(
        self, who: Address, round_: Round, seat: Seat, tenure: int, base: Digest, work: SeatWork, now: int
    ) -> None:
        """Raises RoundNotOpen, TooLate, BaseMismatch, UnitsOutOfRange, TenureNotFound, NotTheHolder, NotInTenure,
        SeatMismatch, AlreadyCommitted."""
        state = self.round_of(round_)
        not_after(now, commit_until(self.terms, state))
        if base != state.base:
            raise refuse("BaseMismatch", got=base, wanted=state.base)
        if not self.terms.min_units <= work.units <= self.terms.max_units:
            raise refuse("UnitsOutOfRange", units=work.units)
        holder = self.books.tenures.check_charge(tenure, round_, who)
        if seat != holder.seat:
            raise refuse("SeatMismatch", got=seat, wanted=holder.seat)
        group, place = self.terms.place(seat)
        entry = self.groups.setdefault((round_, group), GroupState())
        if place in entry.committed:
            raise refuse("AlreadyCommitted", round=round_, seat=seat)
        late = not self.books.tenures.charge(holder, round_) or now > state.mask_at
        made = WorkState(tenure, ids.work_digest(round_, seat, tenure, work), work.units, late)
        self.works[round_, seat] = made
        entry.committed.add(place)
        if not late:
            state.groups += not entry.maskable
            entry.maskable[place] = made
            entry.acc = ids.accumulate(entry.acc, seat, work.update, work.units)
        close_mask(self.terms, state, now)

    def settle(self, round_: Round, seat: Seat) -> WorkStatus:
        """Payments only. Raises CommitmentNotFound, AlreadySettled, StillDisputed, ParentOpen."""
        work, status = self.check_settle(round_, seat)
        work.settled = True
        self.books.tenures.existing(work.tenure).unsettled -= 1
        return status

    def check_settle(self, round_: Round, seat: Seat) -> tuple[WorkState, WorkStatus]:
        """How a commitment ends. Raises CommitmentNotFound, AlreadySettled, StillDisputed, ParentOpen."""
        work = self._existing(round_, seat)
        if work.settled:
            raise refuse("AlreadySettled", round=round_, seat=seat)
        tenure = self.books.tenures.existing(work.tenure)
        if work.games or tenure.accusations:
            raise refuse("StillDisputed", games=work.games, accusations=tenure.accusations)
        return work, self._status_of(round_, work)

    # --- claims

    def prepare(self, kind: ClaimKind, round_: Round, seat: Seat, work: SeatWork) -> tuple[Digest, Digest]:
        """X and Y of a claim. Raises CommitmentNotFound, WorkMismatch, ClaimNotFound."""
        made = self._existing(round_, seat)
        digest = ids.work_digest(round_, seat, made.tenure, work)
        if digest != made.digest:
            raise refuse("WorkMismatch", got=digest, wanted=made.digest)
        parameters, start = self.start_of(round_, seat)
        if kind is ClaimKind.INTERVAL:
            x, y, steps = start, state_digest(work.ends), work.units * self.terms.steps_per_unit
        elif kind is ClaimKind.UPDATE:
            x, y, steps = state_digest((parameters, work.ends[0])), state_digest((work.update,)), 1
        else:
            raise refuse("ClaimNotFound", kind=kind, round=round_, seat=seat)
        self.claims[kind, round_, seat] = x, y, steps
        return x, y

    def check_open(self, kind: ClaimKind, round_: Round, seat: Seat, accused: bool) -> None:
        """Whether a game may open on a claim; `accused`: by a recorded accusation.

        Raises ClaimNotFound, ClaimSettled.
        """
        if (kind, round_, seat) not in self.claims:
            raise refuse("ClaimNotFound", kind=kind, round=round_, seat=seat)
        # Whoever accused in time has as long as its accusation is recorded: nothing of the accused settles before.
        if self.works[round_, seat].settled or not (accused or self.is_disputable(round_, seat)):
            raise refuse("ClaimSettled", kind=kind, round=round_, seat=seat)

    def on_opened(self, round_: Round, seat: Seat) -> None:
        """A game was opened on a prepared claim."""
        work = self.works[round_, seat]
        work.games += 1
        self.books.tenures.existing(work.tenure).games += 1

    def on_closed(self, round_: Round, seat: Seat, convicted: bool, now: int) -> bool:
        """A game ended; whether this is the tenure's first conviction."""
        work = self.works[round_, seat]
        work.games -= 1
        return self.books.tenures.on_game_closed(work.tenure, convicted, now)

    # --- views

    def is_over(self, now: int) -> bool:
        """No round will open any more."""
        return len(self.rounds) == self.terms.rounds or now > self.terms.expiry or self.books.is_sunset()

    def is_disputable(self, round_: Round, seat: Seat) -> bool:
        """Whether work can still be accused, or challenged by a third party: until it was audited and its base is final
        or cut, or it is settled. Raises RoundNotOpen.

        Attack: puppets' games of which each is opened before the last one ends: nothing is paid until the run is wound
        down. Time alone decides, never a game.
        """
        state = self.round_of(round_)
        if self.works[round_, seat].settled:
            return False
        is_over = self.books.generations.status_of(state.parent) in (GenerationStatus.FINAL, GenerationStatus.CUT)
        return not (is_over and self.books.audits.over_after(commit_until(self.terms, state)))

    def presence_of(self, round_: Round, seat: Seat, now: int) -> Presence:
        """Raises RoundNotOpen."""
        if now <= commit_until(self.terms, self.round_of(round_)):
            return Presence.UNKNOWN
        group, place = self.terms.place(seat)
        entry = self.group_of(round_, group)
        if place not in entry.committed:
            return Presence.MISSED
        counted, closed = self.counted_of(round_, group, now)
        if not closed:
            return Presence.UNKNOWN
        if place not in entry.maskable or not entry.words or place in counted:
            return Presence.PRESENT
        spoke, holders = self.holders_of(round_, group)
        return Presence.UNHELD if 3 * holders[place] < spoke else Presence.UNCOUNTED

    def start_of(self, round_: Round, seat: Seat) -> tuple[Digest, Digest]:
        """The parameters' list root and the state root that a seat's work starts from."""
        lists = self.start_lists(round_, seat)
        return lists[0], state_digest(lists)

    def start_lists(self, round_: Round, seat: Seat) -> tuple[Digest, Digest, Digest]:
        """List roots that a seat's work starts from."""
        terms = self.terms
        scalars = RoundScalars(
            run=terms.run,
            seat=seat,
            round=round_,
            steps_per_round=terms.max_units * terms.steps_per_unit,
            shards=terms.shards,
            shard_length=terms.shard_length,
            lr=terms.learning_rate,
            data_root=terms.data,
        )
        parameters = self.books.generations.parameters_of(self.rounds[round_].parent)
        return parameters, terms.zero_optimizer, list_root(scalars.roots())

    # --- inside

    def _status_of(self, round_: Round, work: WorkState) -> WorkStatus:
        if self.books.tenures.is_convicted(work.tenure):
            return WorkStatus.CONVICTED
        parent = self.rounds[round_].parent
        status = self.books.generations.status_of(parent)
        if status is GenerationStatus.FINAL:
            return WorkStatus.FINAL
        if status is GenerationStatus.CUT:
            return WorkStatus.VOID
        raise refuse("ParentOpen", generation=parent)

    def _existing(self, round_: Round, seat: Seat) -> WorkState:
        if (round_, seat) not in self.works:
            raise refuse("CommitmentNotFound", round=round_, seat=seat)
        return self.works[round_, seat]
