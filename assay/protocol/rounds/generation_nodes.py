"""What stands behind the roots of generations, whoever opened them (GenerationNodes.sol, GenerationMoves.sol).

A node is one merge that somebody claims: a generation, or above 64 seats also the partial sum of a group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from assay.protocol.digests import ZERO, state_digest
from assay.protocol.errors import InvariantError, not_after, not_before, refuse
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.books import RoundBooks
from assay.protocol.rounds.clock import commit_until
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.segments import Segments
from assay.protocol.rounds.terms import NO_ONE_HERE, GenerationStatus, MergeNode, OpenedRoot, Votes
from assay.protocol.types import Address, Digest, Round


class GenerationNodes(ABC):
    """The books of generations: round r is merged into generation r + 1. Time, in seconds, is an argument."""

    def __init__(self, books: RoundBooks) -> None:
        terms = books.terms
        self.books = books
        self.terms = terms
        self.segments = Segments()
        genesis = state_digest((terms.parameters, terms.momentum))
        self.votes: dict[Node, Votes] = {0: Votes(root=genesis, is_final=True)}
        self.nodes = {(0, genesis): MergeNode(terms.parameters, terms.momentum)}
        self.openings: dict[tuple[Node, Digest], OpenedRoot] = {}
        self.inputs: dict[Node, Digest] = {}
        self.final_at = 0
        """Chain time at which a generation became final for the last time; 0: none did."""

    # --- rounds

    def begin(self, now: int) -> None:
        """Launcher only: open round 0. Raises AlreadyBegun, Paused."""
        if self._next:
            raise refuse("AlreadyBegun")
        if not self._open_next(0, False, now):
            raise refuse("Paused")

    def restart(self, now: int) -> None:
        """Cut what the round under way cannot finish, and open the next one if the run can.

        Raises RunStopped, RoundAlive, Paused.
        """
        # Attack: nobody commits after a stop, so that a base whose game is not over is cut with the round.
        self._check_running()
        count = self._next
        if count == 0:
            raise refuse("RoundAlive", round=0)
        merged = self.votes.get(count, Votes()).root is not None
        gives_up = not merged and not self.segments.is_cut(count)
        if gives_up:
            self.segments.cut(self._given_up(Round(count - 1), now))
        parent, is_empty = self.segments.newest(count if merged else count - 1)
        if not self._open_next(parent, is_empty, now) and not gives_up:
            raise refuse("Paused")

    # --- what stands

    def drop(self, node: Node, party: Digest, now: int) -> None:
        """Raises NotStanding, NotConvicted."""
        opening = self._standing(node, party)
        if not self._is_taken_elsewhere(opening):
            raise refuse("NotConvicted", node=node, party=party)
        self._lose(node, opening, now)

    def back(self, who: Address, node: Node, root: Digest, now: int) -> None:
        """Raises RunStopped, NotBackable, TooLate, InsufficientFree."""
        self._check_running()
        party = ids.backer_party(root, who)
        known = self.nodes.get((node, root)) if self._is_open(node) and root == self.votes[node].root else None
        if known is None or not known.rescue_until or (node, party) in self.openings:
            raise refuse("NotBackable", node=node, root=root)
        not_after(now, known.rescue_until)
        self.books.vault.lock(ids.back_lock(node, party), who, self.terms.seat_lock)
        self.openings[node, party] = OpenedRoot(root, 0, who, now)
        known.standing += 1

    def finalize(self, node: Node, party: Digest, now: int) -> None:
        """Raises NotFinalizable, NotStanding, TooEarly, GamesOpen."""
        if not self._is_open(node) or not self._follows_final(node):
            raise refuse("NotFinalizable", node=node)
        opening, votes = self._standing(node, party), self.votes[node]
        if opening.root != votes.root or self._is_taken_elsewhere(opening):
            raise refuse("NotStanding", node=node, party=party)
        until = opening.at + self.terms.challenge
        not_before(now, until + 1)
        # Attack: an invented root that is opened when a run has stopped, or just before: no game opens any more.
        if 0 < self.books.rights.stopped_at() <= until:
            raise refuse("NotFinalizable", node=node)
        if games := self.nodes[node, opening.root].games:
            raise refuse("GamesOpen", games=games)
        votes.is_final = True
        if not ids.is_group(node):
            self.final_at = now

    def close(self, node: Node, party: Digest, now: int) -> None:
        """Raises NotStanding, GamesOpen, GenerationOpen."""
        opening = self.openings.get((node, party))
        if opening is None or opening.closed:
            raise refuse("NotStanding", node=node, party=party)
        if opening.games:
            raise refuse("GamesOpen", games=opening.games)
        over = self.status_of(ids.generation_of(node)) in (GenerationStatus.FINAL, GenerationStatus.CUT)
        over = over and now > opening.at + self.terms.challenge
        if not over and not self.books.rights.is_stopped():
            raise refuse("GenerationOpen", node=node)
        opening.closed = True
        if opening.opener:
            self._acquit(opening.opener)
        elif not opening.fallen:
            self.books.vault.release(ids.back_lock(node, party))

    def fall(self, node: Node, now: int) -> None:
        """Raises NotFallen."""
        known = self.nodes.get((node, self.votes[node].root or ZERO)) if self._is_open(node) else None
        if known is None or known.standing or now <= known.rescue_until:
            raise refuse("NotFallen", node=node)
        self.segments.cut(ids.generation_of(node))

    # --- games

    def on_opened(self, node: Node, party: Digest) -> None:
        """A game was opened on an opening."""
        opening = self.openings[node, party]
        opening.games += 1
        self.nodes[node, opening.root].games += 1
        if opening.opener:
            self._on_game_opened(opening.opener)

    def on_closed(self, node: Node, party: Digest, convicted: bool, now: int) -> bool:
        """A game ended; whether it is the first conviction of this lock."""
        opening = self.openings[node, party]
        opening.games -= 1
        self.nodes[node, opening.root].games -= 1
        first = convicted and not opening.fallen
        if opening.opener:
            first = self._on_game_closed(opening.opener, convicted, now)
        if convicted and not opening.fallen:
            self._lose(node, opening, now)
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

    # --- whose lock stands behind an opening

    @abstractmethod
    def _is_convicted(self, opener: int) -> bool:
        """Whether its lock is gone."""

    @abstractmethod
    def _oblige(self, opener: int) -> None:
        """One more claim hangs on it."""

    @abstractmethod
    def _acquit(self, opener: int) -> None:
        """One claim fewer hangs on it."""

    @abstractmethod
    def _on_game_opened(self, opener: int) -> None:
        """A game on one of its claims is open."""

    @abstractmethod
    def _on_game_closed(self, opener: int, convicted: bool, now: int) -> bool:
        """Whether this is its first conviction."""

    # --- inside

    @property
    def _next(self) -> int:
        return len(self.books.commitments.rounds)

    def _is_open(self, node: Node) -> bool:
        """Whether rounds build on the node, and it is not final."""
        return self.status_of(node) is GenerationStatus.MERGED

    def _follows_final(self, node: Node) -> bool:
        """Whether all that the node was merged from is final."""
        parent = self.books.commitments.round_of(Round(node - 1)).parent
        return self.status_of(parent) is GenerationStatus.FINAL

    def _record(
        self, node: Node, party: Digest, opener: int, voices: int, lists: tuple[Digest, Digest], now: int
    ) -> None:
        """An opening, with as many voices as its seal had."""
        root = ids.root_of(node, *lists)
        self._oblige(opener)
        self.openings[node, party] = OpenedRoot(root, opener, NO_ONE_HERE, now)
        made = self.nodes.setdefault((node, root), MergeNode(*lists))
        made.openings += 1
        made.standing += 1
        made.votes += voices

    def _merge(self, generation: int, root: Digest, voices: int, now: int) -> None:
        """Give the generation its root if more than half of the positions opened it."""
        votes = self.votes[generation]
        if 2 * self.nodes[generation, root].votes <= voices or votes.root is not None:
            return
        votes.root = root
        if generation == self._next:
            self._open_next(generation, False, now)

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
            # Half of the seats away in the last round would take the one before with it; none could make good for that.
            stays = self.status_of(state.parent) is GenerationStatus.FINAL or self.books.commitments.is_over(now)
            return round_ + 1 if stays else state.parent
        if now > self.books.commitments.merge_until(round_):
            return round_ + 1
        raise refuse("RoundAlive", round=round_)

    def _check_running(self) -> None:
        if self.books.rights.is_stopped():
            raise refuse("RunStopped")

    def _check_uncut(self, generation: int) -> None:
        if self.segments.is_cut(generation):
            raise refuse("GenerationCut", generation=generation)

    def _seal(
        self, node: Node, position: int, seal: Digest | None, voices: int, of: int, until: int, now: int
    ) -> Votes:
        """A position sealed, or without a seal said that it cannot compute. Raises AlreadySealed."""
        votes = self.votes.setdefault(node, Votes())
        if position in votes.seals:
            raise refuse("AlreadySealed", position=position)
        votes.seals[position], votes.voices[position] = seal, voices
        if votes.sealed == of:
            votes.seal_until = now
        elif not votes.seal_until and 2 * votes.sealed > of:
            votes.seal_until = min(until, now + self.terms.grace)
        return votes

    def _lose(self, node: Node, opening: OpenedRoot, now: int) -> None:
        opening.fallen = True
        known = self.nodes[node, opening.root]
        known.standing -= 1
        known.rescue_until = known.rescue_until or now + self.terms.rescue

    def _standing(self, node: Node, party: Digest) -> OpenedRoot:
        """Attack: close after a stop what stood its window, while a game goes on, so that nothing is final after it."""
        opening = self.openings.get((node, party))
        if opening is None or opening.fallen:
            raise refuse("NotStanding", node=node, party=party)
        return opening

    def _is_taken_elsewhere(self, opening: OpenedRoot) -> bool:
        return opening.opener != 0 and self._is_convicted(opening.opener)
