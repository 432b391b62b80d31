"""People of a run above 64 seats who do what comes to their mind, mostly what is allowed."""

from __future__ import annotations

import random

from assay.protocol.digests import ZERO
from assay.protocol.errors import RejectedError
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Round, Seat
from tests.harness.rounds.grouped_world import GroupedWorld
from tests.harness.rounds.samples import ETHER, terms_of

TERMS = terms_of(
    seats=65, group_size=16, positions=5, top_positions=9, group_merge=180, challenge=9_000, rescue=2_000,
    longest_dispute=4_000,
)  # fmt: skip


class GroupedPlayer:
    """People who do what comes to their mind, mostly what is allowed."""

    def __init__(self, world: GroupedWorld, seed: int) -> None:
        self.w, self.random = world, random.Random(seed)
        self.solvers = world.start(auditors=(2,) * 8)
        self.others = [world.add_person(2000 * ETHER) for _ in range(2)]
        self.open_games: list[int] = []

    def step(self) -> None:
        """One call, or a stage, or some time."""
        whole = [self.whole_round] * 4
        stages = [self.stage_commit, self.stage_hold, self.stage_sums, self.stage_top, *whole]
        calls = [
            self.seal, self.seal, self.abstain, self.open, self.open, self.restart, self.finalize, self.finalize,
            self.close, self.drop, self.back, self.fall, self.prepare, self.prepare, self.play, self.judge, self.judge,
            self.ruin, self.settle, self.retire, self.wait, self.drop, self.fall,
        ]  # fmt: skip
        self.random.choice(stages if self.random.random() < 0.3 else calls)()

    # --- choices

    def some_round(self) -> Round:
        return Round(max(0, self.w.round - self.random.choice([0, 0, 0, 1, 2])))

    def node(self) -> Node:
        r = self.some_round()
        return self.w.top(r) if self.random.random() < 0.4 else self.w.node(self.random.randrange(6), r)

    def ticket(self, node: Node) -> TicketId:
        try:
            members = list(self.w.committee(node))
        except RejectedError:  # the beacon is not known
            members = []
        return self.random.choice([*members, *members, *list(self.w.owners)[:2]])

    def label(self) -> str:
        return "false" if self.random.random() < 0.15 else "true"

    def opened(self) -> tuple[Node, Digest]:
        made = list(self.w.generations.openings)
        return self.random.choice(made[-60:]) if made else (self.node(), ids.ticket_party(TicketId(1)))

    # --- stages, each as far as it goes

    def whole_round(self) -> None:
        """A round in which nearly everybody does what it should, if it has only begun."""
        w = self.w
        if w.model.commitments.rounds[w.round].committed:
            self.restart()
            return
        self.stage_commit()
        self.stage_hold()
        self.stage_sums()
        w.at(max(w.now, w.generations.groups_until(w.round) + 1))
        self.stage_top()

    def stage_commit(self) -> None:
        w, state = self.w, self.w.model.commitments.rounds[self.w.round]
        if state.committed:
            return
        w.at(max(w.now, state.t0 + w.terms.commit))
        share = self.random.choice([0.3, 0.8, 1, 1])
        for who in self.solvers:
            if self.random.random() < share:
                w.commit(who)
        w.at(max(w.now, state.mask_at + 1, w.submit_beacon()))

    def stage_hold(self) -> None:
        w = self.w
        for group in w.groups():
            maskable = sorted(w.model.commitments.group_of(w.round, group).maskable)
            try:
                members = w.committee(w.node(group))
            except RejectedError:  # the beacon is not known
                return
            for ticket, positions in members.items():
                held = maskable if self.random.random() < 0.8 else self.random.sample(maskable, len(maskable) // 2)
                if self.random.random() < 0.95:
                    w.hold(w.owners[ticket], held, positions, group)
        w.tick(1)

    def stage_sums(self) -> None:
        self._vote([self.w.node(group) for group in self.w.groups()])

    def stage_top(self) -> None:
        w = self.w
        if self.random.random() < 0.7:
            w.at(max(w.now, w.generations.groups_until(w.round) + 1))
        self._vote([w.top()])

    def _vote(self, nodes: list[Node]) -> None:
        w, share = self.w, self.random.choice([0.5, 0.9, 1, 1])
        said: list[tuple[Node, TicketId, str]] = []
        for node in nodes:
            try:
                members = w.committee(node)
            except RejectedError:  # the beacon is not known
                return
            for ticket in members:
                label = "true" if self.random.random() < 0.93 else "false"
                if self.random.random() > share:
                    continue
                if self.random.random() < 0.05:
                    w.abstain_at(node, ticket)
                elif w.seal_at(node, ticket, label) == "":
                    said.append((node, ticket, label))
        w.tick(self.random.choice([1, 1, w.terms.grace, w.terms.grace + 1]))
        for node, ticket, label in said:
            if self.random.random() < 0.97:
                w.open_at(node, ticket, label)
        w.tick(1)

    # --- calls

    def wait(self) -> None:
        w = self.w
        held = w.model.commitments
        moments = [
            held.partial_until(w.round), held.partial_until(w.round) + 1, held.merge_until(w.round),
            held.merge_until(w.round) + 1, w.now + 1, w.now + w.terms.grace + 1,
            w.now + self.random.choice([60, w.terms.rescue, w.terms.challenge]),
        ]  # fmt: skip
        w.at(max(w.now, self.random.choice(moments)))

    def seal(self) -> None:
        node = self.node()
        self.w.seal_at(node, self.ticket(node), self.label(), self._positions(node))

    def abstain(self) -> None:
        node = self.node()
        self.w.abstain_at(node, self.ticket(node), self._positions(node))

    def _positions(self, node: Node) -> list[int]:
        return self.random.choice([[0], [1, 2], [3], [4, 8]])

    def open(self) -> None:
        node = self.node()
        self.w.open_at(node, self.ticket(node), self.label())

    def restart(self) -> None:
        self.w.restart()

    def finalize(self) -> None:
        made = self.w.generations
        merged = [g for g in range(1, self.w.round + 2) if made.status_of(g) is GenerationStatus.MERGED]
        mine = [key for key in made.openings if merged and ids.generation_of(key[0]) == merged[0]]
        if not mine or self.random.random() < 0.2:
            self.w.on_node("finalize", *self.opened())
            return
        if self.random.random() < 0.3:
            self.w.at(max(self.w.now, max(made.openings[key].at for key in mine) + self.w.terms.challenge + 1))
        for key in self.random.sample(mine, len(mine)):
            self.w.on_node("finalize", *key)

    def close(self) -> None:
        node, party = self.opened()
        self.w.on_node("close", node, party)

    def drop(self) -> None:
        made, lost = self.w.generations.openings, self.w.tickets.is_convicted
        taken = [key for key, o in made.items() if not o.fallen and o.opener and lost(TicketId(o.opener))]
        self.w.on_node("drop", *(self.random.choice(taken) if taken else self.opened()))

    def back(self) -> None:
        fallen = [(n, o.root) for (n, _), o in self.w.generations.openings.items() if o.fallen]
        node = self.node()
        node, root = self.random.choice(fallen) if fallen else (node, self.w.lists_of(node, "true")[2])
        self.w.on_node("back", node, root, who=self.random.choice(self.others))

    def fall(self) -> None:
        w, made = self.w, self.w.generations
        dead = [n for n, votes in made.votes.items() if votes.root and n and not made.nodes[n, votes.root].standing]
        node = self.random.choice(dead) if dead else self.node()
        if dead and self.random.random() < 0.5:
            w.at(max(w.now, made.nodes[node, made.votes[node].root or ZERO].rescue_until + 1))
        w.on_node("fall", node)

    def prepare(self) -> None:
        node = self.opened()[0]
        if ids.generation_of(node):
            self.w.prepare_node(node)

    def settle(self) -> None:
        self.w.settle(self.some_round(), Seat(self.random.randrange(66)))

    def retire(self) -> None:
        if self.random.random() < 0.1:
            ticket = self.random.choice(list(self.w.owners))
            owner, tickets = self.w.owners[ticket], self.w.tickets
            self.w.do(lambda: tickets.retire(owner, ticket, self.w.now), "Tickets", "retire", ticket, who=owner)

    def _challengeable(self) -> list[tuple[Node, Digest]]:
        made = self.w.generations
        return [
            (node, party)
            for (node, party), o in made.openings.items()
            if node in made.inputs and not o.fallen and not o.closed and self.w.now <= o.at + self.w.terms.challenge
            and not (o.opener and self.w.tickets.is_convicted(TicketId(o.opener)))
        ]  # fmt: skip

    def play(self) -> None:
        """Open a game on something that was prepared and still has its lock."""
        if not (found := self._challengeable()):
            return
        node, party = self.random.choice(found)
        self.open_games.append(self._game(node, party))

    def _game(self, node: Node, party: Digest) -> int:
        opening, w = self.w.generations.openings[node, party], self.w
        group = ids.group_of(node) + 1 if ids.is_group(node) else 0
        backer = bytes(20) if opening.opener else opening.backer
        ref = (3, ids.generation_of(node) - 1, opening.opener, group, backer, opening.root)
        return w.open_game(self.others[0], ref)

    def judge(self) -> None:
        if self.open_games:
            game = self.open_games.pop(self.random.randrange(len(self.open_games)))
            self.w.end_game(game, self.random.random() < 0.4)

    def ruin(self) -> None:
        """All who opened the sum of a group lose their tickets, now and then."""
        made = self.w.generations
        sums = [n for n, _ in made.openings if ids.is_group(n) and made.status_of(ids.generation_of(n)) in (1, 2)]
        if not sums or self.random.random() < 0.6:
            return
        node = self.random.choice(sums)
        self.w.prepare_node(node)
        found = self._challengeable()
        for other, party in found:
            if other == node and (other, party) in self._challengeable():
                self.w.end_game(self._game(other, party), True)
        if self.random.random() < 0.5:
            self.fall()
