"""Rounds' times, commitments, and who holds which update (Commitments.sol)."""

from __future__ import annotations

from collections.abc import Sequence

from assay.protocol.digests import ZERO, state_digest
from assay.protocol.model.errors import not_after, not_before, refuse
from assay.protocol.rounds import round_ids as ids
from assay.protocol.rounds.round_books import RoundBooks
from assay.protocol.rounds.round_clock import close_mask, commit_until, merge_until, partial_until
from assay.protocol.rounds.round_terms import (
    NO_ONE_HERE,
    GenerationStatus,
    GroupState,
    Presence,
    RoundState,
    SeatWork,
    WorkState,
    WorkStatus,
)
from assay.protocol.run.claims import ClaimKind
from assay.protocol.trees.state import RoundScalars, initial_state
from assay.protocol.types import Address, Digest, Round, Seat


class Commitments:
    """The books of commitments. Time, in seconds, is an argument of every method that depends on it."""

    def __init__(self, books: RoundBooks) -> None:
        self.books = books
        self.terms = books.terms
        self.rounds: list[RoundState] = []
        self.groups: dict[tuple[Round, int], GroupState] = {}
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

    def commit(self, who: Address, round_: Round, tenure: int, base: Digest, work: SeatWork, now: int) -> Seat:
        """Raises RoundNotOpen, TooLate, BaseMismatch, UnitsOutOfRange, TenureNotFound, NotTheHolder, NotInTenure,
        AlreadyCommitted."""
        state = self.round_of(round_)
        not_after(now, commit_until(self.terms, state))
        if base != state.base:
            raise refuse("BaseMismatch", got=base, wanted=state.base)
        if not self.terms.min_units <= work.units <= self.terms.max_units:
            raise refuse("UnitsOutOfRange", units=work.units)
        holder = self.books.tenures.check_charge(tenure, round_, who)
        seat = holder.seat
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
        return seat

    def hold(
        self,
        who: Address,
        round_: Round,
        group: int,
        positions: Sequence[int],
        acc: Digest,
        held: frozenset[int],
        now: int,
    ) -> None:
        """Raises RoundNotOpen, TooEarly, TooLate, AccumulatorMismatch, NotMaskable, AlreadySpoke, NotMyPosition,
        BeaconNotSubmitted."""
        not_before(now, self._hold_after(round_) + 1)
        until = self.hold_until(round_, group)
        not_after(now, until)
        entry = self.group_of(round_, group)
        if acc != entry.acc:
            raise refuse("AccumulatorMismatch", got=acc, wanted=entry.acc)
        if not entry.maskable or not held <= entry.maskable.keys():
            raise refuse("NotMaskable", named=sorted(held))
        if entry.words.keys() & set(positions):
            raise refuse("AlreadySpoke", positions=sorted(positions))
        self._check_positions(who, round_, group, positions, entry)
        entry.words |= dict.fromkeys(positions, held)
        voices = len(entry.maskable) if self.terms.by_seats else self.terms.positions
        if len(entry.words) == voices:
            entry.close_at = now
        elif not entry.close_at and 2 * len(entry.words) > voices:
            entry.close_at = min(until, now + self.terms.grace)

    def settle(self, round_: Round, seat: Seat) -> WorkStatus:
        """Settlement only. Raises CommitmentNotFound, AlreadySettled, StillDisputed, ParentOpen."""
        work = self._existing(round_, seat)
        if work.settled:
            raise refuse("AlreadySettled", round=round_, seat=seat)
        tenure = self.books.tenures.existing(work.tenure)
        if work.games or tenure.accusations:
            raise refuse("StillDisputed", games=work.games, accusations=tenure.accusations)
        status = self._status_of(round_, work)
        work.settled = True
        tenure.unsettled -= 1
        return status

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
        return len(self.rounds) == self.terms.rounds or now > self.terms.expiry

    def round_of(self, round_: Round) -> RoundState:
        """Raises RoundNotOpen."""
        if not 0 <= round_ < len(self.rounds):
            raise refuse("RoundNotOpen", round=round_)
        return self.rounds[round_]

    def group_of(self, round_: Round, group: int) -> GroupState:
        """The seats of a group in a round; empty before the first commitment."""
        return self.groups.get((round_, group), GroupState())

    def partial_until(self, round_: Round) -> int:
        """Last second to open a group's partial sum. Raises RoundNotOpen."""
        return partial_until(self.terms, self.round_of(round_))

    def seed_of(self, round_: Round) -> Digest:
        """What draws the positions of a round's nodes. Raises RoundNotOpen, BeaconNotSubmitted."""
        return self.books.beacon.randomness_of(self._beacon_round_of(self.round_of(round_).mask_at))

    def merge_until(self, round_: Round) -> int:
        """T_m. Raises RoundNotOpen."""
        return merge_until(self.terms, self.round_of(round_))

    def hold_until(self, round_: Round, group: int) -> int:
        """Last second to say what one holds. Raises RoundNotOpen."""
        default = self._hold_after(round_) + self.terms.hold
        entry = self.groups.get((round_, group))
        return entry.close_at if entry and entry.close_at else default

    def counted_of(self, round_: Round, group: int, now: int) -> tuple[frozenset[int], bool]:
        """Places of the group whose update counts, at two thirds of the positions that spoke; whether that is final."""
        closed = now > self.round_of(round_).mask_at and now > self.hold_until(round_, group)
        words = self.group_of(round_, group).words
        votes = [place for held in words.values() for place in held]
        least = -(-2 * len(words) // 3)
        return frozenset(place for place in votes if votes.count(place) >= least), closed

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
        unheard = place not in entry.maskable or not entry.words
        return Presence.PRESENT if unheard or place in counted else Presence.UNCOUNTED

    def start_of(self, round_: Round, seat: Seat) -> tuple[Digest, Digest]:
        """The parameters' list root and the state root that a seat's work starts from."""
        terms = self.terms
        parameters = self.books.generations.parameters_of(self.rounds[round_].parent)
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
        return parameters, initial_state(parameters, terms.zero_optimizer, scalars)

    # --- inside

    def _hold_after(self, round_: Round) -> int:
        mask_at = self.round_of(round_).mask_at
        return mask_at if self.terms.by_seats else self.books.beacon.time_of(self._beacon_round_of(mask_at)) - 1

    def _beacon_round_of(self, mask_at: int) -> int:
        return self.books.beacon.round_after(mask_at + self.terms.beacon_delay)

    def _check_positions(
        self, who: Address, round_: Round, group: int, positions: Sequence[int], entry: GroupState
    ) -> None:
        if not positions:
            raise refuse("NotMyPosition", position=64, caller=who)
        state = self.rounds[round_]
        by_seats = self.terms.by_seats
        seed = ZERO if by_seats else self.seed_of(round_)
        node = ids.group_node(round_, group)
        for j in sorted(positions):
            holder = NO_ONE_HERE
            if by_seats and j in entry.maskable:
                tenure = self.books.tenures.existing(entry.maskable[j].tenure)
                # Attack: a liar whose lock is gone still says whose work counts.
                holder = NO_ONE_HERE if tenure.convicted_at else tenure.holder
            elif not by_seats and j < self.terms.positions:
                holder = self.books.tickets.holder_of_position(seed, node, j, state.t0)
            if holder != who:
                raise refuse("NotMyPosition", position=j, caller=who)

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
