"""Who sits in the committee of a node, and which updates a group's committee holds (Committees.sol)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from assay.protocol.digests import ZERO
from assay.protocol.errors import not_after, not_before, refuse
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.books import RoundBooks
from assay.protocol.rounds.clock import merge_until, partial_until
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.terms import NO_ONE_HERE, GroupState, RoundState
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Round, Seat


class Committees:
    """The rounds, and the groups of each. Time, in seconds, is an argument of every method that depends on it."""

    def __init__(self, books: RoundBooks) -> None:
        self.books = books
        self.terms = books.terms
        self.rounds: list[RoundState] = []
        self.groups: dict[tuple[Round, int], GroupState] = {}

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
        self._check_positions(who, round_, group, positions, entry, now)
        entry.words |= dict.fromkeys(positions, held)
        voices = len(entry.maskable) if self.terms.by_seats else self.terms.positions
        if len(entry.words) == voices:
            entry.close_at = now
        elif not entry.close_at and 2 * len(entry.words) > voices:
            entry.close_at = min(until, now + self.terms.grace)

    # --- views

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

    def merge_until(self, round_: Round) -> int:
        """T_m. Raises RoundNotOpen."""
        return merge_until(self.terms, self.round_of(round_))

    def seed_of(self, round_: Round) -> Digest:
        """What draws the positions of a round's nodes. Raises RoundNotOpen, BeaconNotSubmitted."""
        return self.books.beacon.randomness_of(self._beacon_round_of(self.round_of(round_).mask_at))

    def hold_until(self, round_: Round, group: int) -> int:
        """Last second to say what one holds. Raises RoundNotOpen."""
        default = self._hold_after(round_) + self.terms.hold
        entry = self.groups.get((round_, group))
        return entry.close_at if entry and entry.close_at else default

    def counted_of(self, round_: Round, group: int, now: int) -> tuple[frozenset[int], bool]:
        """Places of the group whose update counts, at two thirds of the positions that spoke; whether that is final."""
        closed = now > self.round_of(round_).mask_at and now > self.hold_until(round_, group)
        spoke, holders = self.holders_of(round_, group)
        return frozenset(place for place, count in holders.items() if 3 * count >= 2 * spoke), closed

    def holders_of(self, round_: Round, group: int) -> tuple[int, Counter[int]]:
        """Positions that spoke, and how many of them hold the update of each place of the group."""
        words = self.group_of(round_, group).words
        holders: Counter[int] = Counter()
        for held, voices in Counter(words.values()).items():
            holders.update(dict.fromkeys(held, voices))
        return len(words), holders

    def over_of(self, round_: Round, group: int, now: int) -> Digest:
        """What a merge of the group's updates is over, as things stand. Raises RoundNotOpen.

        Nothing of it changes once it is known which updates count, and before that nobody seals: no word goes through
        after the last second to hold, no commitment has weight after the mask closed, and the base had its majority
        before the round.
        """
        mask = sum(1 << place for place in self.counted_of(round_, group, now)[0])
        return ids.over_updates(self.round_of(round_).base, mask, self.group_of(round_, group).acc)

    def speaker_of(
        self, node: Node, position: Seat | TicketId, positions: Iterable[int], who: Address, now: int
    ) -> tuple[int, int, int]:
        """Whose lock answers for an account at a node (a tenure's or ticket's), its voices there, and all voices there.

        Raises RoundNotOpen, MaskOpen, NobodyCommitted, TooFewCommitted, TicketNotFound, BeaconNotSubmitted,
        NotThePosition.
        """
        round_, by_seats = Round(ids.generation_of(node) - 1), self.terms.by_seats
        state = self.round_of(round_)
        group = 0 if by_seats else ids.group_of(node)
        maskable = self.group_of(round_, group).maskable
        if by_seats or ids.is_group(node):
            if not self.counted_of(round_, group, now)[1]:
                raise refuse("MaskOpen", round=round_)
            if not maskable:
                raise refuse("NobodyCommitted", round=round_, group=group)
        if state.is_under_half:
            raise refuse("TooFewCommitted", round=round_)
        if not by_seats:
            return self._tickets_voices(node, TicketId(position), set(positions), who, now)
        work = maskable.get(position)
        if work is None or self.books.tenures.existing(work.tenure).holder != who:
            raise refuse("NotThePosition", position=position, caller=who)
        if not self.books.tenures.can_answer(work.tenure):
            raise refuse("NotThePosition", position=position, caller=who)
        return work.tenure, 1, len(maskable)

    # --- inside

    def _tickets_voices(
        self, node: Node, ticket: TicketId, mine: set[int], who: Address, now: int
    ) -> tuple[int, int, int]:
        round_, tickets = Round(ids.generation_of(node) - 1), self.books.tickets
        committee, of = ids.generation_committee(round_), self.terms.top_positions
        if ids.is_group(node):
            committee, of = ids.group_committee(round_, ids.group_of(node)), self.terms.positions
        is_mine = tickets.owner_of(ticket) == who and tickets.can_answer(ticket) and mine and max(mine) < of
        if is_mine:
            seed, t0 = self.seed_of(round_), self.rounds[round_].t0
            is_mine = all(tickets.position_of(seed, committee, j, t0, now) == ticket for j in sorted(mine))
        if not is_mine:
            raise refuse("NotThePosition", position=ticket, caller=who)
        return ticket, len(mine), of

    def _hold_after(self, round_: Round) -> int:
        mask_at = self.round_of(round_).mask_at
        return mask_at if self.terms.by_seats else self.books.beacon.time_of(self._beacon_round_of(mask_at)) - 1

    def _beacon_round_of(self, mask_at: int) -> int:
        return self.books.beacon.round_after(mask_at + self.terms.beacon_delay)

    def _check_positions(
        self, who: Address, round_: Round, group: int, positions: Sequence[int], entry: GroupState, now: int
    ) -> None:
        if not positions:
            raise refuse("NotMyPosition", position=64, caller=who)
        state = self.rounds[round_]
        by_seats = self.terms.by_seats
        seed = ZERO if by_seats else self.seed_of(round_)
        committee = ids.group_committee(round_, group)
        for j in sorted(positions):
            holder = NO_ONE_HERE
            if by_seats and j in entry.maskable:
                tenure = entry.maskable[j].tenure
                # Attack: a liar whose lock is gone, or came back after a long merge, still says whose work counts.
                if self.books.tenures.can_answer(tenure):
                    holder = self.books.tenures.existing(tenure).holder
            elif not by_seats and j < self.terms.positions:
                holder = self.books.tickets.holder_of_position(seed, committee, j, state.t0, now)
            if holder != who:
                raise refuse("NotMyPosition", position=j, caller=who)
