"""What rounds are merged into, above 64 seats: partial sums of groups, then the generation (GroupedGenerations.sol).

The positions of a node are tickets that the beacon of the mask's close draws. A ticket seals and opens once for all its
positions at a node, and its B stands behind its opening.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from assay.protocol.digests import ZERO
from assay.protocol.errors import not_after, not_before, refuse
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.books import RoundBooks
from assay.protocol.rounds.generation_nodes import GenerationNodes
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.terms import ONE_LEVEL, UpdateEntry, Votes
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Round


class GroupedGenerations(GenerationNodes):
    """Generations of more than 64 seats. The lock behind an opening is its ticket's."""

    def __init__(self, books: RoundBooks) -> None:
        if books.terms.seats <= ONE_LEVEL:
            raise refuse("TooFewSeats", seats=books.terms.seats)
        super().__init__(books)
        self.full_at: dict[Node, int] = {}
        """When the last of a group's voices that sealed had spoken."""

    # --- merging

    def seal(
        self, who: Address, node: Node, ticket: TicketId, positions: Iterable[int], seal: Digest, now: int
    ) -> None:
        """A seal of zero says that one cannot compute the root: a voice against every root.

        Raises TooLate, GenerationCut, GroupsOpen, AlreadySealed, and what `speaker_of` raises.
        """
        round_ = Round(ids.generation_of(node) - 1)
        not_after(now, self._seal_until(node))
        self._check_uncut(round_ + 1)
        if not ids.is_group(node) and not self.groups_closed(round_, now):
            raise refuse("GroupsOpen", round=round_)
        _, voices, of = self.books.commitments.speaker_of(node, ticket, positions, who, now)
        self._put_seal(node, ticket, None if seal == ZERO else seal, voices, of, now)

    def open(
        self, who: Address, node: Node, ticket: TicketId, first: Digest, second: Digest, salt: Digest, now: int
    ) -> Digest:
        """The root. Raises RoundNotOpen, TooLate, GenerationCut, TooEarly, SealMismatch, TicketNotFound,
        NotThePosition, AlreadySealed."""
        votes, party = self.votes.get(node, Votes()), ids.ticket_party(ticket)
        not_after(now, votes.close_at or self._until(node))
        self._check_uncut(ids.generation_of(node))
        not_before(now, self._seal_until(node) + 1)
        root = ids.root_of(node, first, second)
        over = self.over_of(node, now)
        if ids.seal_digest(node, ticket, root, over, salt, who) != votes.seals.get(ticket):
            raise refuse("SealMismatch", ticket=ticket)
        if not self.books.tickets.can_answer(ticket):
            raise refuse("NotThePosition", position=ticket, caller=who)
        if (node, party) in self.openings:
            raise refuse("AlreadySealed", ticket=ticket)
        self._put_opening(node, ticket, (first, second), now)
        if not ids.is_group(node):
            self._merge(node, root, self.terms.top_positions, now)
        return root

    def over_of(self, node: Node, now: int) -> Digest:
        """What roots of a node are over, as things stand. Raises RoundNotOpen.

        Nothing of it changes while a root can be sealed or opened: of a group since its mask is closed, of the whole
        since no group seals or opens any more.
        """
        commitments, round_ = self.books.commitments, Round(ids.generation_of(node) - 1)
        if ids.is_group(node):
            return commitments.over_of(round_, ids.group_of(node), now)
        counted = self.counted_groups(round_)
        roots = [self.votes[ids.node_of(node, group)].root or ZERO for group in counted]
        weights = [len(commitments.counted_of(round_, group, now)[0]) for group in counted]
        return ids.over_sums(commitments.round_of(round_).base, zip(counted, roots, weights, strict=True))

    # --- claims

    def prepare_partial(self, round_: Round, group: int, entries: Sequence[UpdateEntry], now: int) -> Digest:
        """X of a group's partial sum. Raises RoundNotOpen, MaskOpen, EntriesMismatch."""
        counted, closed = self.books.commitments.counted_of(round_, group, now)
        if not closed:
            raise refuse("MaskOpen", round=round_)
        updates = [self.terms.zero_update] * self.terms.group_size
        acc = ids.accumulate_entries(entries)
        if acc != (wanted := self.books.commitments.group_of(round_, group).acc):
            raise refuse("EntriesMismatch", got=acc, wanted=wanted)
        for entry in entries:
            place = self.terms.place(entry.seat)[1]
            if place in counted:
                updates[place] = entry.update
        return self._prepared(ids.node_of(round_ + 1, group), ids.partial_input(updates))

    def prepare_merge(self, round_: Round, now: int) -> Digest:
        """X of the generation. Raises RoundNotOpen, GroupsOpen."""
        if not self.groups_closed(round_, now):
            raise refuse("GroupsOpen", round=round_)
        sums, weights = [self.terms.zero_partial] * self.terms.groups, [0] * self.terms.groups
        for group in self.counted_groups(round_):
            node = ids.node_of(round_ + 1, group)
            sums[group] = self.nodes[node, self.votes[node].root or ZERO].parameters
            weights[group] = len(self.books.commitments.counted_of(round_, group, now)[0])
        parent = self.books.commitments.round_of(round_).parent
        base = self.nodes[parent, self.votes[parent].root or ZERO]
        return self._prepared(round_ + 1, ids.weighed_input(base.parameters, base.momentum, sums, weights))

    # --- views

    def counted_groups(self, round_: Round) -> list[int]:
        """Groups whose leading root has two thirds of those that spoke."""
        return [group for group in range(self.terms.groups) if self._counts(ids.node_of(round_ + 1, group))]

    def groups_until(self, round_: Round) -> int:
        """Last second of the groups' stage. Raises RoundNotOpen.

        At once when everybody who sealed has spoken in every group with weight; when the grace of the last one ends; at
        the latest at the end of its time.
        """
        commitments = self.books.commitments
        latest = commitments.partial_until(round_)
        groups = [g for g in range(self.terms.groups) if commitments.group_of(round_, g).maskable]
        votes = [self.votes.get(ids.node_of(round_ + 1, group), Votes()) for group in groups]
        full = [self.full_at.get(ids.node_of(round_ + 1, group), 0) for group in groups]
        if not groups or not all(each.close_at for each in votes):
            return latest
        return max(full) if all(full) else max(each.close_at for each in votes)

    def groups_closed(self, round_: Round, now: int) -> bool:
        """Whether it is known for good which groups count. Raises RoundNotOpen."""
        return now > self.groups_until(round_)

    # --- tickets

    def _is_convicted(self, opener: int) -> bool:
        return self.books.tickets.is_convicted(TicketId(opener))

    def _oblige(self, opener: int) -> None:
        self.books.tickets.oblige(TicketId(opener))

    def _acquit(self, opener: int) -> None:
        self.books.tickets.acquit(TicketId(opener))

    def _on_game_opened(self, opener: int) -> None:
        self.books.tickets.dispute(TicketId(opener))

    def _on_game_closed(self, opener: int, convicted: bool, now: int) -> bool:
        return self.books.tickets.undispute(TicketId(opener), convicted, now)

    # --- inside

    def _is_open(self, node: Node) -> bool:
        if not super()._is_open(ids.generation_of(node)):
            return False
        return not ids.is_group(node) or (self._counts(node) and not self.votes[node].is_final)

    def _follows_final(self, node: Node) -> bool:
        if ids.is_group(node):
            return True
        groups = self.counted_groups(Round(node - 1))
        return all(self.votes[ids.node_of(node, group)].is_final for group in groups) and super()._follows_final(node)

    def _put_seal(self, node: Node, ticket: TicketId, seal: Digest | None, voices: int, of: int, now: int) -> None:
        """A seal, or with None that the root cannot be computed, for so many voices of `of`. Raises AlreadySealed."""
        votes = self._seal(node, ticket, seal, voices, of, self._until(node), now)
        if seal is None and ids.is_group(node):
            self._speak(node, votes, voices, now)

    def _put_opening(self, node: Node, ticket: TicketId, lists: tuple[Digest, Digest], now: int) -> Digest:
        """An opening of a ticket that sealed it; its root."""
        votes, root = self.votes[node], ids.root_of(node, *lists)
        voices = votes.voices[ticket]
        self._record(node, ids.ticket_party(ticket), ticket, voices, lists, now)
        if ids.is_group(node):
            leader = self.nodes[node, votes.root].votes if votes.root else 0
            if self.nodes[node, root].votes > leader:
                votes.root = root
            self._speak(node, votes, voices, now)
        return root

    def _until(self, node: Node) -> int:
        """Last second to open at a node, if nothing ends it before. Raises RoundNotOpen."""
        commitments, round_ = self.books.commitments, Round(ids.generation_of(node) - 1)
        return commitments.partial_until(round_) if ids.is_group(node) else commitments.merge_until(round_)

    def _seal_until(self, node: Node) -> int:
        return self.votes.get(node, Votes()).seal_until or self._until(node)

    def _speak(self, node: Node, votes: Votes, voices: int, now: int) -> None:
        """Voices of a group have opened, or said that they cannot compute."""
        votes.spoke += voices
        if not votes.close_at and 2 * votes.spoke > self.terms.positions:
            votes.close_at = min(self._until(node), now + self.terms.grace)
        sealed_by_all = votes.sealed == self.terms.positions
        if votes.spoke == votes.sealed and (sealed_by_all or now > self._seal_until(node)):
            self.full_at[node] = now

    def _counts(self, node: Node) -> bool:
        votes = self.votes.get(node)
        if votes is None or votes.root is None:
            return False
        return 3 * self.nodes[node, votes.root].votes >= 2 * votes.spoke

    def _prepared(self, node: Node, x: Digest) -> Digest:
        self.inputs[node] = x
        return x
