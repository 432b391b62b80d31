"""Generations, and above 64 seats the sums of groups, as their events tell them; see `told_rounds`."""

from __future__ import annotations

from abc import abstractmethod

from assay.protocol.digests import ZERO
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.books import RoundBooks
from assay.protocol.rounds.generation_nodes import GenerationNodes
from assay.protocol.rounds.generations import Generations
from assay.protocol.rounds.grouped_generations import GroupedGenerations
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.terms import OpenedRoot, Votes
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Digest, Round
from assay_ledger.bindings import generations
from assay_ledger.bindings.grouped_generations import NodeOpened, NodeSealed

SealEvent = generations.RootSealed | generations.Abstained | NodeSealed
"""A position bound itself to a root, or said that it cannot compute one."""

OpeningEvent = generations.RootOpened | NodeOpened
"""A position opened its root."""


class ToldNodes(GenerationNodes):
    """What both kinds of generations have in common, by its events."""

    @abstractmethod
    def on_said(self, e: SealEvent, now: int) -> None:
        """A position sealed, or said that it cannot compute the root."""

    @abstractmethod
    def on_opening(self, e: OpeningEvent, now: int) -> tuple[Node, int]:
        """A position opened its root; the node, and the seat or ticket."""

    def on_round(self, round_: Round, parent: int) -> Digest:
        """A round opens on a generation; that one's root."""
        is_empty = False
        if self.segments.stack:
            merged = self.votes.get(round_, Votes()).root is not None
            _, is_empty = self.segments.newest(round_ if merged else round_ - 1)
        self.segments.go_on(round_, parent, is_empty)
        return self.votes[parent].root or ZERO

    def on_merged(self, e: generations.Merged) -> None:
        """A root has its majority."""
        self.votes[e.generation].root = e.root

    def on_backed(self, e: generations.RootBacked, now: int) -> Digest:
        """Somebody put a lock behind a root; the opening's name."""
        party = ids.backer_party(e.root, e.backer)
        self.openings[e.node, party] = OpenedRoot(e.root, 0, e.backer, now)
        self.nodes[e.node, e.root].standing += 1
        return party

    def on_fell(self, e: generations.ClaimFell) -> None:
        """A claim behind a root fell."""
        opening = self.openings[e.node, e.party]
        opening.fallen = True
        node = self.nodes[e.node, opening.root]
        node.standing -= 1
        node.rescue_until = e.rescue_until

    def on_closed_opening(self, e: generations.OpeningClosed) -> None:
        """What stands behind an opening is free."""
        opening = self.openings[e.node, e.party]
        opening.closed = True
        if opening.opener:
            self._acquit(opening.opener)

    def on_final(self, e: generations.Finalized) -> None:
        """A node is final."""
        self.votes[e.node].is_final = True

    def on_cut(self, e: generations.Cut) -> None:
        """A generation, and what builds on it, is cut."""
        self.segments.cut(e.generation)

    def on_prepared(self, e: generations.MergePrepared) -> None:
        """Roots of a node can be challenged now."""
        self.inputs[e.node] = e.x

    def on_games(self, ref: ClaimRef, change: int) -> int:
        """A game on an opening was opened (1) or ended (-1); whose lock stands behind it, 0 for a backer's."""
        node, party = node_of(ref), party_of(ref)
        opening = self.openings[node, party]
        opening.games += change
        self.nodes[node, opening.root].games += change
        return opening.opener


class ToldGenerations(ToldNodes, Generations):
    """The books of generations of at most 64 seats, by their events."""

    def on_said(self, e: SealEvent, now: int) -> None:
        """See ToldNodes."""
        assert not isinstance(e, NodeSealed)
        is_seal = isinstance(e, generations.RootSealed)
        node, seat, seal = (e.generation, e.seat, e.seal) if is_seal else (e.node, e.position, None)  # type: ignore[union-attr]
        voices = len(self.books.commitments.group_of(Round(node - 1), 0).maskable)
        self._seal(node, seat, seal, 1, voices, self._seal_until(Round(node - 1)), now)

    def on_opening(self, e: OpeningEvent, now: int) -> tuple[Node, int]:
        """See ToldNodes: a claim of its tenure."""
        assert isinstance(e, generations.RootOpened)
        tenure = self.books.commitments.group_of(Round(e.generation - 1), 0).maskable[e.seat].tenure
        self._record(e.generation, ids.seat_party(e.seat), tenure, 1, (e.parameters, e.momentum), now)
        return e.generation, e.seat


class ToldGroupedGenerations(ToldNodes, GroupedGenerations):
    """The same above 64 seats, with the sums of groups."""

    def on_said(self, e: SealEvent, now: int) -> None:
        """See ToldNodes."""
        assert isinstance(e, NodeSealed)
        of = self.terms.positions if ids.is_group(e.node) else self.terms.top_positions
        self._put_seal(e.node, e.ticket, e.seal if any(e.seal) else None, e.positions.bit_count(), of, now)

    def on_opening(self, e: OpeningEvent, now: int) -> tuple[Node, int]:
        """See ToldNodes: a claim of its ticket."""
        assert isinstance(e, NodeOpened)
        self._put_opening(e.node, e.ticket, (e.first, e.second), now)
        return e.node, e.ticket


def told_generations(books: RoundBooks) -> ToldGenerations | ToldGroupedGenerations:
    """The books of a run's generations."""
    return ToldGenerations(books) if books.terms.by_seats else ToldGroupedGenerations(books)


def node_of(ref: ClaimRef) -> Node:
    """The node that a reference to a merge means: its `duty` is the group of a sum plus one, 0 the generation."""
    return ids.node_of(ref.round + 1, ref.duty - 1) if ref.duty else ref.round + 1


def party_of(ref: ClaimRef) -> Digest:
    """The name of the opening that a reference to a merge means; `seat` is above 64 seats the ticket."""
    return ids.backer_party(ref.outer_root, ref.party) if any(ref.party) else ids.party_of(ref.seat)
