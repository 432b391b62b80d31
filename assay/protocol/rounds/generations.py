"""What rounds are merged into, at one level: the seats that committed are the positions (Generations.sol)."""

from __future__ import annotations

from collections.abc import Sequence

from assay.protocol.digests import ZERO
from assay.protocol.errors import not_after, not_before, refuse
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.books import RoundBooks
from assay.protocol.rounds.generation_nodes import GenerationNodes
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.terms import ONE_LEVEL, UpdateEntry, Votes
from assay.protocol.types import Address, Digest, Round, Seat


class Generations(GenerationNodes):
    """Generations of at most 64 seats. The lock behind an opening is its tenure's."""

    def __init__(self, books: RoundBooks) -> None:
        if books.terms.seats > ONE_LEVEL:
            raise refuse("TooManySeats", seats=books.terms.seats)
        super().__init__(books)

    # --- merging

    def seal(self, who: Address, round_: Round, seat: Seat, seal: Digest, now: int) -> None:
        """Raises TooLate, GenerationCut, AlreadySealed, and what `speaker_of` raises."""
        self._say(who, round_, seat, seal, now)

    def abstain(self, who: Address, round_: Round, seat: Seat, now: int) -> None:
        """Say that one cannot compute the root. Raises what `seal` raises."""
        self._say(who, round_, seat, None, now)

    def open(
        self, who: Address, round_: Round, seat: Seat, parameters: Digest, momentum: Digest, salt: Digest, now: int
    ) -> Digest:
        """The root. Raises TooLate, GenerationCut, TooEarly, SealMismatch, AlreadySealed, and what `speaker_of`
        raises.

        Attack: a reorganization that changes which updates count, and an honest root that is opened over others.
        """
        node, party = round_ + 1, ids.seat_party(seat)
        not_after(now, self.books.commitments.merge_until(round_))
        self._check_uncut(node)
        not_before(now, self._seal_until(round_) + 1)
        root = ids.root_of(node, parameters, momentum)
        over = self.over_of(node, now)
        if ids.seal_digest(round_, seat, root, over, salt, who) != self.votes.get(node, Votes()).seals.get(seat):
            raise refuse("SealMismatch", seat=seat)
        tenure, voices, of = self.books.commitments.speaker_of(node, seat, (), who, now)
        if (node, party) in self.openings:
            raise refuse("AlreadySealed", seat=seat)
        self._record(node, party, tenure, voices, (parameters, momentum), now)
        self._merge(node, root, of, now)
        return root

    def over_of(self, node: Node, now: int) -> Digest:
        """What roots of a generation are over, as things stand. Raises RoundNotOpen."""
        return self.books.commitments.over_of(Round(node - 1), 0, now)

    # --- claims

    def prepare(self, round_: Round, entries: Sequence[UpdateEntry], now: int) -> Digest:
        """X of the round's merge. Raises RoundNotOpen, MaskOpen, EntriesMismatch."""
        counted, closed = self.books.commitments.counted_of(round_, 0, now)
        if not closed:
            raise refuse("MaskOpen", round=round_)
        updates, acc = [self.terms.zero_update] * self.terms.seats, ids.accumulate_entries(entries)
        if acc != (wanted := self.books.commitments.group_of(round_, 0).acc):
            raise refuse("EntriesMismatch", got=acc, wanted=wanted)
        for entry in entries:
            if entry.seat in counted:
                updates[entry.seat] = entry.update
        parent = self.books.commitments.round_of(round_).parent
        base = self.nodes[parent, self.votes[parent].root or ZERO]
        mask = sum(1 << seat for seat in counted)
        self.inputs[round_ + 1] = ids.merge_input(base.parameters, base.momentum, updates, mask)
        return self.inputs[round_ + 1]

    # --- tenures

    def _is_convicted(self, opener: int) -> bool:
        return self.books.tenures.is_convicted(opener)

    def _oblige(self, opener: int) -> None:
        self.books.tenures.existing(opener).unsettled += 1

    def _acquit(self, opener: int) -> None:
        self.books.tenures.existing(opener).unsettled -= 1

    def _on_game_opened(self, opener: int) -> None:
        self.books.tenures.existing(opener).games += 1

    def _on_game_closed(self, opener: int, convicted: bool, now: int) -> bool:
        return self.books.tenures.on_game_closed(opener, convicted, now)

    # --- inside

    def _say(self, who: Address, round_: Round, seat: Seat, seal: Digest | None, now: int) -> None:
        until = self._seal_until(round_)
        not_after(now, until)
        self._check_uncut(round_ + 1)
        node = round_ + 1
        _, voices, of = self.books.commitments.speaker_of(node, seat, (), who, now)
        self._seal(node, seat, seal, voices, of, until, now)

    def _seal_until(self, round_: Round) -> int:
        default = self.books.commitments.merge_until(round_)
        return self.votes.get(round_ + 1, Votes()).seal_until or default
