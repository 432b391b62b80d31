"""People of a run with more than 64 seats: solvers in groups, and auditors whose tickets merge what they did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from assay.protocol.digests import ZERO
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.grouped_generations import GroupedGenerations
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.terms import UpdateEntry
from assay.protocol.rounds.ticket_types import TicketId, ticket_lock
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest, Round
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.samples import ETHER, TICKET_TERMS, bits, mark, work_of
from tests.harness.rounds.world import RoundWorld


class GroupedWorld(RoundWorld):
    """People on model and contracts at once, where positions are tickets."""

    def __init__(self, chain: RoundChain) -> None:
        super().__init__(chain)
        made = self.model.generations
        assert isinstance(made, GroupedGenerations)
        self.generations = made
        self.owners: dict[TicketId, Address] = {}

    # --- people

    def staff(self, *counts: int) -> list[Address]:
        """Auditors with so many tickets each."""
        made = [self.add_person(ETHER + count * TICKET_TERMS.bond) for count in counts]
        for who, count in zip(made, counts, strict=True):
            first = len(self.owners) + 1
            self.register(who, count)
            self.owners |= {TicketId(ticket): who for ticket in range(first, first + count)}
        return made

    def start(self, solvers: int | None = None, auditors: Iterable[int] = (3,) * 8) -> list[Address]:
        """Seats taken, tickets that count, and round 0 open; the solvers."""
        self.staff(*auditors)
        people = [self.add_person(40 * ETHER) for _ in range(self.terms.seats if solvers is None else solvers)]
        assert {self.join(who) for who in people} == {""}
        self.tick(TICKET_TERMS.seasoning)
        assert self.do(lambda: self.generations.begin(self.now), "RoundsBench", "begin") == ""
        return people

    # --- committees

    def node(self, group: int, round_: Round | None = None) -> Node:
        """The node of a group's partial sum."""
        return ids.node_of((self.round if round_ is None else round_) + 1, group)

    def top(self, round_: Round | None = None) -> Node:
        """The node of the generation."""
        return (self.round if round_ is None else round_) + 1

    def committee(self, node: Node) -> dict[TicketId, list[int]]:
        """The positions of each ticket at a node."""
        round_ = Round(ids.generation_of(node) - 1)
        seed, t0 = self.model.commitments.seed_of(round_), self.model.commitments.rounds[round_].t0
        drawn_for, of = ids.generation_committee(round_), self.terms.top_positions
        if ids.is_group(node):
            drawn_for, of = ids.group_committee(round_, ids.group_of(node)), self.terms.positions
        found: dict[TicketId, list[int]] = {}
        for j in range(of):
            found.setdefault(self.tickets.position_of(seed, drawn_for, j, t0, self.now), []).append(j)
        return found

    def some(self, node: Node, voices: int) -> list[TicketId]:
        """Tickets of a node with so many voices together."""
        left, found = voices, []
        for ticket, positions in sorted(self.committee(node).items(), key=lambda item: -len(item[1])):
            if len(positions) <= left:
                found.append(ticket)
                left -= len(positions)
        assert left == 0, f"no tickets of node {node} have {voices} voices together"
        return found

    # --- nodes

    def _mine(self, node: Node, ticket: TicketId, positions: Iterable[int] | None) -> list[int]:
        return list(self.committee(node).get(ticket, []) if positions is None else positions)

    def lists_of(self, node: Node, label: object) -> tuple[Digest, Digest, Digest]:
        """Lists and root that a label names at a node."""
        first, second, _ = self.root_of(label)
        second = ZERO if ids.is_group(node) else second
        return first, second, ids.root_of(node, first, second)

    def seal_at(
        self,
        node: Node,
        ticket: TicketId,
        label: object,
        positions: Iterable[int] | None = None,
        who: Address | None = None,
        over: Digest | None = None,
    ) -> str:
        """A ticket binds its positions to a root, over what is on chain now if nothing else is named."""
        by, mine = who or self.owners[ticket], self._mine(node, ticket, positions)
        over = self.over_of(node) if over is None else over
        seal = ids.seal_digest(node, ticket, self.lists_of(node, label)[2], over, mark((ticket, "salt")), by)
        said = self.do(
            lambda: self.generations.seal(by, node, ticket, mine, seal, self.now),
            "Generations", "seal", node, ticket, bits(mine), seal, who=by,
        )  # fmt: skip
        return self.note_sealed(node, said)

    def abstain_at(
        self, node: Node, ticket: TicketId, positions: Iterable[int] | None = None, who: Address | None = None
    ) -> str:
        """A ticket says that it cannot compute the root."""
        by, mine = who or self.owners[ticket], self._mine(node, ticket, positions)
        return self.do(
            lambda: self.generations.seal(by, node, ticket, mine, ZERO, self.now),
            "Generations", "seal", node, ticket, bits(mine), ZERO, who=by,
        )  # fmt: skip

    def open_at(self, node: Node, ticket: TicketId, label: object, who: Address | None = None) -> str:
        """A ticket opens its root."""
        by, (first, second, _) = who or self.owners[ticket], self.lists_of(node, label)
        salt = mark((ticket, "salt"))
        return self.do(
            lambda: self.generations.open(by, node, ticket, first, second, salt, self.now),
            "Generations", "open", node, ticket, first, second, salt, who=by,
        )  # fmt: skip

    def vote(self, node: Node, labels: Mapping[TicketId, object]) -> None:
        """Tickets seal and open; who has no label says that it cannot compute."""
        for ticket, label in labels.items():
            assert (self.abstain_at(node, ticket) if label is None else self.seal_at(node, ticket, label)) == ""
        self.at(max(self.now, self.seal_until(node)) + 1)
        for ticket, label in labels.items():
            if label is not None:
                assert self.open_at(node, ticket, label) == ""

    def seal_until(self, node: Node) -> int:
        """Last second to seal."""
        votes = self.generations.votes.get(node)
        default = self.model.commitments.merge_until(Round(ids.generation_of(node) - 1))
        return votes.seal_until if votes is not None and votes.seal_until else default

    # --- rounds

    def groups(self) -> list[int]:
        """Groups of which somebody committed with weight."""
        held = self.model.commitments
        return [group for group in range(self.terms.groups) if held.group_of(self.round, group).maskable]

    def commit_some(self, people: Iterable[Address]) -> None:
        """They commit at the end of the training time, and the beacon of the mask's close is known."""
        self.commit_all(people)
        self.at(max(self.now, self.model.commitments.rounds[self.round].mask_at + 1, self.submit_beacon()))

    def hold_groups(self, held: Mapping[int, Iterable[int]] | None = None) -> None:
        """Every position says what it holds: everything of its group, or what is named."""
        for group in self.groups():
            by_owner: dict[Address, list[int]] = {}
            for ticket, positions in self.committee(self.node(group)).items():
                by_owner.setdefault(self.owners[ticket], []).extend(positions)
            for who, positions in by_owner.items():
                assert self.hold(who, None if held is None else held.get(group), positions, group) == ""
        self.tick(1)

    def sum_groups(self, groups: Iterable[int] | None = None) -> None:
        """Everybody seals and opens the sums of groups."""
        nodes = [self.node(group) for group in (self.groups() if groups is None else groups)]
        for node in nodes:
            for ticket in self.committee(node):
                assert self.seal_at(node, ticket, ("sum", node)) == ""
        self.tick(1)
        for node in nodes:
            for ticket in self.committee(node):
                assert self.open_at(node, ticket, ("sum", node)) == ""
        self.tick(1)

    def merge_top(self, label: object) -> None:
        """Everybody seals and opens one root of the generation."""
        self.at(max(self.now, self.generations.groups_until(self.round) + 1))
        self.vote(self.top(), dict.fromkeys(self.committee(self.top()), label))

    def play_round(self, people: Iterable[Address]) -> Round:
        """A round in which everybody does what it should; its number."""
        r = self.round
        self.commit_some(people)
        self.hold_groups()
        self.sum_groups()
        self.merge_top(("root", r))
        return r

    # --- claims

    def group_entries(self, round_: Round, group: int) -> list[UpdateEntry]:
        """The updates of a group with weight, in their order."""
        size, tenures = self.terms.group_size, self.model.tenures.tenures
        works = self.model.commitments.group_of(round_, group).maskable
        holders = {size * group + place: tenures[work.tenure].holder for place, work in works.items()}
        return [UpdateEntry(seat, 60, work_of((who, round_)).update) for seat, who in holders.items()]  # type: ignore[arg-type]

    def prepare_node(self, node: Node, entries: Iterable[UpdateEntry] | None = None) -> str:
        """Build X of a node."""
        r = Round(ids.generation_of(node) - 1)
        if not ids.is_group(node):
            return self.do(lambda: self.generations.prepare_merge(r, self.now), "Generations", "prepareMerge", r)
        group = ids.group_of(node)
        given = self.group_entries(r, group) if entries is None else list(entries)
        words = [(e.seat, e.units, e.update) for e in given]
        return self.do(
            lambda: self.generations.prepare_partial(r, group, given, self.now),
            "Generations", "preparePartial", r, group, words,
        )  # fmt: skip

    def on_node(self, function: str, node: Node, *args: Any, who: Address | None = None) -> str:
        """Drop, back, finalize, close or fall at a node."""
        method = getattr(self.generations, function)
        by = () if who is None else (who,)
        return self.do(lambda: method(*by, node, *args, self.now), "Generations", function, node, *args, who=who)

    def claim(self, node: Node, ticket: TicketId, backer: Address | None = None) -> tuple[Any, ...]:
        """The claim of a ticket's opening at a node, or of a backer of its root, as games take it."""
        root = self.generations.openings[node, ids.ticket_party(ticket)].root
        group = ids.group_of(node) + 1 if ids.is_group(node) else 0
        r = ids.generation_of(node) - 1
        return (int(ClaimKind.OUTER), r, 0 if backer else ticket, group, backer or bytes(20), root)

    def opener_of(self, opener: int) -> tuple[Digest, Address]:
        """The lock of a ticket, and its owner."""
        return ticket_lock(TicketId(opener)), self.owners[TicketId(opener)]

    def convict(self, node: Node, ticket: TicketId, challenger: Address) -> None:
        """A game over an opening that its ticket loses."""
        self.end_game(self.open_game(challenger, self.claim(node, ticket)), True)

    def check(self) -> None:
        """Besides the rest: groups, nodes and tickets are the same on both."""
        super().check()
        for r in range(self.round + 1):
            if self.now > self.model.commitments.rounds[r].mask_at:
                assert self.call("Generations", "groupsUntil", r) == self.generations.groups_until(Round(r))
            counted = self.call("Generations", "groupsOf", r)[0]
            assert counted == bits(self.generations.counted_groups(Round(r)))
        for (node, root), held in self.generations.nodes.items():
            if node:
                wanted = (held.votes, held.openings, held.standing, held.games, held.rescue_until)
                assert self.call("Generations", "nodeOf", node, root) == wanted
        for ticket in self.owners:
            if (kept := self.tickets.tickets.get(ticket)) is not None:
                assert self.call("Tickets", "ticketOf", ticket)[6] == kept.obligations
