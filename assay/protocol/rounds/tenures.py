"""Seats, who holds them, and the one lock behind all work of a holder (Tenures.sol)."""

from __future__ import annotations

from assay.protocol.errors import refuse
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.books import RoundBooks
from assay.protocol.rounds.clock import commit_until
from assay.protocol.rounds.terms import NEVER, Presence, Tenure
from assay.protocol.types import Address, Round, Seat, Wei


class Tenures:
    """The books of tenures. Time, in seconds, is an argument of every method that depends on it."""

    def __init__(self, books: RoundBooks) -> None:
        self.books = books
        self.tenures: dict[int, Tenure] = {}
        self.free: list[Seat] = []
        self.fresh = 0

    # --- holders

    def join(self, who: Address, now: int) -> int:
        """A seat from the next T0 on. Raises NoRoundsLeft, NoSeatFree, NoRoomForSeat, InsufficientFree."""
        terms = self.books.terms
        if self.books.commitments.is_over(now):
            raise refuse("NoRoundsLeft")
        if not self.free and self.fresh == terms.seats:
            raise refuse("NoSeatFree", seats=terms.seats)
        seated = self.seated_at(self._next) + 1
        # Attack: seats that nobody works in, held until no round can open any more, so that the run is wound down.
        if not self.books.rights.carries(seated, now):
            raise refuse("NoRoomForSeat", seated=seated)
        price = terms.seat_lock + terms.seat_fee
        if self.books.vault.free_of(who) < price:
            raise refuse("InsufficientFree", owner=who, wanted=price)
        if self.free:
            seat = self.free.pop()
        else:
            seat = Seat(self.fresh)
            self.fresh += 1
        number = len(self.tenures) + 1
        self.tenures[number] = Tenure(who, seat, self._next)
        self.books.vault.lock(ids.tenure_lock(number), who, terms.seat_lock)
        if terms.seat_fee:
            self.books.vault.lock(ids.fee_lock(number), who, terms.seat_fee)
        return number

    def leave(self, who: Address, number: int) -> None:
        """End with the round under way. Raises TenureNotFound, NotTheHolder, TenureOver."""
        tenure = self.existing(number)
        if tenure.holder != who:
            raise refuse("NotTheHolder", tenure=number, holder=tenure.holder, caller=who)
        if tenure.until != NEVER:
            raise refuse("TenureOver", tenure=number)
        self._end(tenure)

    def evict(self, who: Address, number: int, round_: Round, now: int) -> None:
        """Raises TenureNotFound, TenureOver, RunStopped, NotEvictable."""
        tenure, fee = self.existing(number), self.books.terms.seat_fee
        if tenure.until != NEVER:
            raise refuse("TenureOver", tenure=number)
        # Attack: half of the fee of who was away before a stop, for a seat that nobody waits for any more.
        if self.books.rights.is_stopped():
            raise refuse("RunStopped")
        if not self.is_evictable(tenure, round_, now):
            raise refuse("NotEvictable", tenure=number, round=round_)
        tenure.fee_gone = True
        self._end(tenure)
        if fee:
            self.books.vault.seize(ids.fee_lock(number), who, Wei(fee // 2))
            self.books.vault.burn(ids.fee_lock(number), Wei(fee - fee // 2))

    def release(self, number: int, now: int) -> None:
        """Raises TenureNotFound, AlreadyReleased, TenureLasts, TenureObliged."""
        tenure, fee = self.existing(number), self.books.terms.seat_fee
        if tenure.released:
            raise refuse("AlreadyReleased", tenure=number)
        if tenure.until == NEVER:
            raise refuse("TenureLasts", tenure=number)
        stopped = self.books.rights.is_stopped()
        # A run that stands still for good holds only what a game does.
        if tenure.games or (not stopped and (tenure.unsettled or tenure.accusations)):
            raise refuse("TenureObliged", unsettled=tenure.unsettled, games=tenure.games)
        if not stopped and tenure.never_worked and now <= self._idle_until(tenure):
            raise refuse("TenureLasts", tenure=number)
        fee_lost = not stopped and not tenure.fee_gone and self._missed_its_last(number, tenure, now)
        tenure.released = True
        if not tenure.convicted_at:
            self.books.vault.release(ids.tenure_lock(number))
        if fee and not tenure.fee_gone:
            if fee_lost:
                self.books.vault.burn(ids.fee_lock(number), fee)
            else:
                self.books.vault.release(ids.fee_lock(number))

    # --- peers

    def check_charge(self, number: int, round_: Round, who: Address) -> Tenure:
        """Raises TenureNotFound, NotTheHolder, NotInTenure."""
        tenure = self.existing(number)
        if tenure.holder != who:
            raise refuse("NotTheHolder", tenure=number, holder=tenure.holder, caller=who)
        # Attack: evict oneself, take the lock back, and commit to the round under way with nothing behind it.
        if not tenure.from_ <= round_ < tenure.until or tenure.convicted_at or tenure.released:
            raise refuse("NotInTenure", tenure=number, round=round_)
        return tenure

    def charge(self, tenure: Tenure, round_: Round) -> bool:
        """The holder commits to a round; whether its work has weight."""
        tenure.unsettled += 1
        tenure.last = max(tenure.last, round_ + 1)
        # Attack: a puppet accuses one's own tenure, and keeps its game: the lock comes back, and it poisons meanwhile.
        return not tenure.suspensions

    def on_game_closed(self, number: int, convicted: bool, now: int) -> bool:
        """Whether this is the tenure's first conviction."""
        tenure = self.existing(number)
        tenure.games -= 1
        if not convicted or tenure.convicted_at:
            return False
        tenure.convicted_at = now
        if tenure.until == NEVER:
            self._end(tenure)
        return True

    def accuse(self, number: int) -> None:
        """An accusation is recorded: nothing of the tenure settles before it is over."""
        self.existing(number).accusations += 1

    def unaccuse(self, number: int) -> None:
        """An accusation was judged, or lapsed."""
        self.existing(number).accusations -= 1

    def resume(self, number: int) -> None:
        """The game of an accusation is over."""
        self.existing(number).suspensions -= 1

    def suspend(self, number: int) -> None:
        """The game of an accusation is open."""
        self.existing(number).suspensions += 1

    # --- views

    def existing(self, number: int) -> Tenure:
        """Raises TenureNotFound."""
        if number not in self.tenures:
            raise refuse("TenureNotFound", tenure=number)
        return self.tenures[number]

    def is_convicted(self, number: int) -> bool:
        """Whether its lock is gone."""
        return self.tenures[number].convicted_at != 0

    def can_answer(self, number: int) -> bool:
        """Whether a lock stands behind what it says: it was neither lost nor taken back."""
        tenure = self.tenures[number]
        return not tenure.convicted_at and not tenure.released

    def seated_at(self, round_: Round) -> int:
        """Seats held in a round."""
        return sum(t.from_ <= round_ < t.until for t in self.tenures.values())

    def is_evictable(self, tenure: Tenure, round_: Round, now: int) -> bool:
        """Whether anybody may evict a tenure by a round that is over."""
        if tenure.last > round_ + 1 or not self._is_newest_over(tenure.seat, round_, now):
            return False
        seen = [self._presence(r, tenure.seat, now) for r in range(max(tenure.from_, round_ - 2), round_ + 1)]
        if len(seen) < 2 or not all(presence.is_absence for presence in seen[-2:]):
            return False
        missed = all(p is Presence.MISSED for p in seen[-2:])
        if missed and not self.is_waived(round_) and not self.is_waived(round_ - 1):
            return True
        return len(seen) == 3 and all(presence.is_absence for presence in seen)

    def is_waived(self, round_: int) -> bool:
        """Whether a round without a commitment leads to no eviction: the first one of an outage."""
        rounds = self.books.commitments.rounds
        return rounds[round_].is_under_half and (round_ == 0 or not rounds[round_ - 1].is_under_half)

    # --- inside

    @property
    def _next(self) -> Round:
        return Round(len(self.books.commitments.rounds))

    def _end(self, tenure: Tenure) -> None:
        tenure.until = self._next
        self.free.append(tenure.seat)

    def _presence(self, round_: int, seat: Seat, now: int) -> Presence:
        return self.books.commitments.presence_of(Round(round_), seat, now)

    def _is_newest_over(self, seat: Seat, round_: int, now: int) -> bool:
        if round_ >= self._next or self._presence(round_, seat, now) is Presence.UNKNOWN:
            return False
        return round_ + 1 == self._next or self._presence(round_ + 1, seat, now) is Presence.UNKNOWN

    def _missed_its_last(self, number: int, tenure: Tenure, now: int) -> bool:
        if tenure.until <= tenure.from_ or tenure.convicted_at:
            return False
        last = self._presence(tenure.until - 1, tenure.seat, now)
        if last is Presence.UNKNOWN:
            raise refuse("TenureLasts", tenure=number)
        return last is Presence.MISSED and (tenure.never_worked or not self.is_waived(tenure.until - 1))

    def _idle_until(self, tenure: Tenure) -> int:
        """The last second in which the lock stays of a seat that nobody worked in.

        Attack: take free seats before a round opens and leave in it, so that fewer than half commit and what was merged
        is cut; and with the same locks again in the next.
        """
        last, terms = self.books.commitments.rounds[tenure.until - 1], self.books.terms
        return commit_until(terms, last) + terms.longest_dispute
