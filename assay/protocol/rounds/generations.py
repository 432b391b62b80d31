"""What rounds are merged into, at one level (Generations.sol): seals, openings, cut and restart."""

from __future__ import annotations

from collections.abc import Sequence

from assay.protocol.digests import ZERO, state_digest
from assay.protocol.errors import InvariantError
from assay.protocol.model.errors import not_after, not_before, refuse
from assay.protocol.rounds import round_ids as ids
from assay.protocol.rounds.round_books import RoundBooks
from assay.protocol.rounds.round_clock import commit_until
from assay.protocol.rounds.round_terms import (
    NO_ONE_HERE,
    ONE_LEVEL,
    GenerationStatus,
    MergeNode,
    OpenedRoot,
    UpdateEntry,
    Votes,
)
from assay.protocol.rounds.segments import Segments
from assay.protocol.types import Address, Digest, Round, Seat


class Generations:
    """The books of generations: round r is merged into generation r + 1. Time, in seconds, is an argument."""

    def __init__(self, books: RoundBooks) -> None:
        terms = books.terms
        if terms.seats > ONE_LEVEL:
            raise refuse("TooManySeats", seats=terms.seats)
        self.books = books
        self.terms = terms
        self.segments = Segments()
        genesis = state_digest((terms.parameters, terms.momentum))
        self.votes: dict[int, Votes] = {0: Votes(root=genesis, is_final=True)}
        self.nodes = {(0, genesis): MergeNode(terms.parameters, terms.momentum)}
        self.openings: dict[tuple[int, Digest], OpenedRoot] = {}
        self.inputs: dict[int, Digest] = {}

    # --- merging

    def begin(self, now: int) -> None:
        """Launcher only: open round 0. Raises AlreadyBegun, Paused."""
        if self._next:
            raise refuse("AlreadyBegun")
        if not self._open_next(0, False, now):
            raise refuse("Paused")

    def seal(self, who: Address, round_: Round, seat: Seat, seal: Digest, now: int) -> None:
        """Raises RoundNotOpen, TooLate, GenerationCut, MaskOpen, TooFewCommitted, NotThePosition, AlreadySealed."""
        until = self._seal_until(round_)
        not_after(now, until)
        self._check_uncut(round_ + 1)
        if not self.books.commitments.counted_of(round_, 0, now)[1]:
            raise refuse("MaskOpen", round=round_)
        if self.books.commitments.round_of(round_).is_under_half:
            raise refuse("TooFewCommitted", round=round_)
        _, voices = self._position(who, round_, seat)
        votes = self.votes.setdefault(round_ + 1, Votes())
        if seat in votes.seals:
            raise refuse("AlreadySealed", seat=seat)
        votes.seals[seat] = seal
        if len(votes.seals) == voices:
            votes.seal_until = now
        elif not votes.seal_until and 2 * len(votes.seals) > voices:
            votes.seal_until = min(until, now + self.terms.grace)

    def open(
        self, who: Address, round_: Round, seat: Seat, parameters: Digest, momentum: Digest, salt: Digest, now: int
    ) -> Digest:
        """The root. Raises RoundNotOpen, TooLate, GenerationCut, TooEarly, SealMismatch, NotThePosition,
        AlreadySealed."""
        generation = round_ + 1
        not_after(now, self.books.commitments.merge_until(round_))
        self._check_uncut(generation)
        not_before(now, self._seal_until(round_) + 1)
        root = state_digest((parameters, momentum))
        votes = self.votes.get(generation, Votes())
        if ids.seal_digest(round_, seat, root, salt, who) != votes.seals.get(seat):
            raise refuse("SealMismatch", seat=seat)
        tenure, voices = self._position(who, round_, seat)
        party = ids.seat_party(seat)
        if (generation, party) in self.openings:
            raise refuse("AlreadySealed", seat=seat)
        self.openings[generation, party] = OpenedRoot(root, tenure, NO_ONE_HERE, now)
        node = self.nodes.setdefault((generation, root), MergeNode(parameters, momentum))
        node.standing += 1
        node.votes += 1
        self.books.tenures.existing(tenure).unsettled += 1
        if 2 * node.votes > voices and votes.root is None:
            votes.root = root
            if generation == self._next:
                self._open_next(generation, False, now)
        return root

    def restart(self, now: int) -> Round:
        """The round that opens. Raises RoundAlive, Paused."""
        count = self._next
        if count == 0:
            raise refuse("RoundAlive", round=0)
        merged = self.votes.get(count, Votes()).root is not None
        cut = None if merged or self.segments.is_cut(count) else self._given_up(Round(count - 1), now)
        if not self._may_open(now):
            raise refuse("Paused")
        if cut is not None:
            self.segments.cut(cut)
        parent, is_empty = self.segments.newest(count if merged else count - 1)
        self._open_next(parent, is_empty, now)
        return Round(count)

    # --- what stands

    def drop(self, generation: int, party: Digest, now: int) -> None:
        """Raises NotStanding, NotConvicted."""
        opening = self._standing(generation, party)
        if not self._is_taken_elsewhere(opening):
            raise refuse("NotConvicted", generation=generation, party=party)
        self._lose(generation, opening, now)

    def back(self, who: Address, generation: int, root: Digest, now: int) -> None:
        """Raises NotBackable, TooLate, InsufficientFree."""
        party = ids.backer_party(root, who)
        node = self.nodes.get((generation, root))
        known = self.status_of(generation) is GenerationStatus.MERGED and root == self.votes[generation].root
        if not known or node is None or not node.rescue_until or (generation, party) in self.openings:
            raise refuse("NotBackable", generation=generation, root=root)
        not_after(now, node.rescue_until)
        self.books.vault.lock(ids.back_lock(generation, party), who, self.terms.seat_lock)
        self.openings[generation, party] = OpenedRoot(root, 0, who, now)
        node.standing += 1

    def finalize(self, generation: int, party: Digest, now: int) -> None:
        """Raises NotFinalizable, NotStanding, TooEarly, GamesOpen."""
        if self.status_of(generation) is not GenerationStatus.MERGED:
            raise refuse("NotFinalizable", generation=generation)
        parent = self.books.commitments.round_of(Round(generation - 1)).parent
        if self.status_of(parent) is not GenerationStatus.FINAL:
            raise refuse("NotFinalizable", generation=generation)
        opening = self._standing(generation, party)
        if opening.root != self.votes[generation].root or self._is_taken_elsewhere(opening):
            raise refuse("NotStanding", generation=generation, party=party)
        not_before(now, opening.at + self.terms.challenge + 1)
        if games := self.nodes[generation, opening.root].games:
            raise refuse("GamesOpen", games=games)
        self.votes[generation].is_final = True

    def close(self, generation: int, party: Digest, now: int) -> None:
        """Raises NotStanding, GamesOpen, GenerationOpen."""
        opening = self.openings.get((generation, party))
        if opening is None or opening.closed:
            raise refuse("NotStanding", generation=generation, party=party)
        if opening.games:
            raise refuse("GamesOpen", games=opening.games)
        over = self.status_of(generation) in (GenerationStatus.FINAL, GenerationStatus.CUT)
        if not over or now <= opening.at + self.terms.challenge:
            raise refuse("GenerationOpen", generation=generation)
        opening.closed = True
        if opening.tenure:
            self.books.tenures.existing(opening.tenure).unsettled -= 1
        elif not opening.fallen:
            self.books.vault.release(ids.back_lock(generation, party))

    def fall(self, generation: int, now: int) -> None:
        """Raises NotFallen."""
        if generation == 0 or self.status_of(generation) is not GenerationStatus.MERGED:
            raise refuse("NotFallen", generation=generation)
        node = self.nodes[generation, self.votes[generation].root or ZERO]
        if node.standing or now <= node.rescue_until:
            raise refuse("NotFallen", generation=generation)
        self.segments.cut(generation)

    # --- claims

    def prepare(self, round_: Round, entries: Sequence[UpdateEntry], now: int) -> Digest:
        """X of the round's merge. Raises RoundNotOpen, MaskOpen, EntriesMismatch."""
        counted, closed = self.books.commitments.counted_of(round_, 0, now)
        if not closed:
            raise refuse("MaskOpen", round=round_)
        updates, acc = [self.terms.zero_update] * self.terms.seats, ZERO
        for entry in entries:
            acc = ids.accumulate(acc, entry.seat, entry.update, entry.units)
            if entry.seat in counted:
                updates[entry.seat] = entry.update
        wanted = self.books.commitments.group_of(round_, 0).acc
        if acc != wanted:
            raise refuse("EntriesMismatch", got=acc, wanted=wanted)
        parent = self.books.commitments.round_of(round_).parent
        base = self.nodes[parent, self.votes[parent].root or ZERO]
        mask = sum(1 << seat for seat in counted)
        self.inputs[round_ + 1] = ids.merge_input(base.parameters, base.momentum, updates, mask)
        return self.inputs[round_ + 1]

    def on_opened(self, generation: int, party: Digest) -> None:
        """A game was opened on an opening."""
        opening = self.openings[generation, party]
        opening.games += 1
        self.nodes[generation, opening.root].games += 1
        if opening.tenure:
            self.books.tenures.existing(opening.tenure).games += 1

    def on_closed(self, generation: int, party: Digest, convicted: bool, now: int) -> bool:
        """A game ended; whether it is the first conviction of this lock."""
        opening = self.openings[generation, party]
        opening.games -= 1
        self.nodes[generation, opening.root].games -= 1
        first = convicted and not opening.fallen
        if opening.tenure:
            first = self.books.tenures.on_game_closed(opening.tenure, convicted, now)
        if convicted and not opening.fallen:
            self._lose(generation, opening, now)
        return first

    # --- views

    def status_of(self, generation: int) -> GenerationStatus:
        """What became of a generation."""
        votes = self.votes.get(generation, Votes())
        if votes.is_final:
            return GenerationStatus.FINAL
        if generation not in self.segments.segment_of:
            return GenerationStatus.OPEN
        if self.segments.is_cut(generation):
            return GenerationStatus.CUT
        return GenerationStatus.OPEN if votes.root is None else GenerationStatus.MERGED

    def parameters_of(self, generation: int) -> Digest:
        """List root of a generation's parameters."""
        root = self.votes.get(generation, Votes()).root
        return ZERO if root is None else self.nodes[generation, root].parameters

    def newest(self) -> int:
        """The newest generation that has a majority and is not cut."""
        count = self._next
        if count == 0:
            return 0
        merged = self.votes.get(count, Votes()).root is not None
        return self.segments.newest(count if merged else count - 1)[0]

    # --- inside

    @property
    def _next(self) -> int:
        return len(self.books.commitments.rounds)

    def _may_open(self, now: int) -> bool:
        seated = self.books.tenures.seated_at(Round(self._next))
        over = self.books.commitments.is_over(now)
        return not over and seated != 0 and self.books.rights.may_open(seated, now)

    def _open_next(self, parent: int, is_empty: bool, now: int) -> bool:
        if not self._may_open(now):
            return False
        root = self.votes[parent].root
        if root is None:
            raise InvariantError("A round cannot start from a generation without a root.", code="NoRoot")
        self.books.rights.reserve(Round(self._next), self.books.tenures.seated_at(Round(self._next)), now)
        self.segments.go_on(self._next, parent, is_empty)
        self.books.commitments.open_round(parent, root, now)
        return True

    def _given_up(self, round_: Round, now: int) -> int:
        """The generation to cut for what the round under way cannot finish. Raises RoundAlive."""
        state = self.books.commitments.round_of(round_)
        if now > commit_until(self.terms, state) and state.is_under_half:
            is_final = self.status_of(state.parent) is GenerationStatus.FINAL
            return round_ + 1 if is_final else state.parent
        if now > self.books.commitments.merge_until(round_):
            return round_ + 1
        raise refuse("RoundAlive", round=round_)

    def _check_uncut(self, generation: int) -> None:
        if self.segments.is_cut(generation):
            raise refuse("GenerationCut", generation=generation)

    def _position(self, who: Address, round_: Round, seat: Seat) -> tuple[int, int]:
        maskable = self.books.commitments.group_of(round_, 0).maskable
        work = maskable.get(seat) if seat < self.terms.seats else None
        if work is None or self.books.tenures.existing(work.tenure).holder != who:
            raise refuse("NotThePosition", seat=seat, caller=who)
        if self.books.tenures.is_convicted(work.tenure):
            raise refuse("NotThePosition", seat=seat, caller=who)
        return work.tenure, len(maskable)

    def _seal_until(self, round_: Round) -> int:
        default = self.books.commitments.merge_until(round_)
        return self.votes.get(round_ + 1, Votes()).seal_until or default

    def _lose(self, generation: int, opening: OpenedRoot, now: int) -> None:
        opening.fallen = True
        node = self.nodes[generation, opening.root]
        node.standing -= 1
        node.rescue_until = node.rescue_until or now + self.terms.rescue

    def _standing(self, generation: int, party: Digest) -> OpenedRoot:
        opening = self.openings.get((generation, party))
        if opening is None or opening.fallen or opening.closed:
            raise refuse("NotStanding", generation=generation, party=party)
        return opening

    def _is_taken_elsewhere(self, opening: OpenedRoot) -> bool:
        return opening.tenure != 0 and self.books.tenures.is_convicted(opening.tenure)
