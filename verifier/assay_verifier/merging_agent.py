"""The auditor's third duty, above 64 seats: its tickets merge what seats did, and answer for what they opened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assay.protocol.errors import AssayError
from assay.protocol.program.trace import Trace
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.ids import Node
from assay.protocol.trees.state import ListBytes
from assay.protocol.types import Digest, Wei
from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.node_merges import NodeMerges, NodeResult, seal_salt
from assay_ledger.agents.round_actions import Choice
from assay_ledger.agents.updates_asked import TRIES, UpdatesAsked
from assay_ledger.index.computing import Computation
from assay_ledger.index.games import Game
from assay_ledger.rounds import nodes
from assay_ledger.rounds.told_generations import node_of
from assay_ledger.rounds.view import RunView
from assay_ledger.store.errors import StoreUnreachable
from assay_verifier import merging
from assay_verifier.agent import ReplayingAgent
from assay_verifier.merging import ComputeNode, FetchGroupUpdate, HoldGroup, NodesKnown, OpenNodeRoot, SealNodeRoot


class MergingAgent(ReplayingAgent):
    """An owner of tickets that also merges; idle where seats do it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.merges = NodeMerges(self.archive, self.compute)
        self._updates = UpdatesAsked(self.archive, self.objects)
        self._vain: dict[tuple[Node, Digest], int] = {}
        """Merges whose inputs were not to be had, by X: how often they were asked for."""

    # --- strategy

    def candidates(self, view: RunView) -> Iterator[Choice]:
        """See ActorLoop: what others wait for comes before what is audited."""
        yield from self.play(view)
        yield from merging.merging(view, self.nodes_known(view), self._lead(view))
        yield from super().candidates(view)

    def times(self, view: RunView) -> Iterator[int]:
        """See ActorLoop."""
        yield from super().times(view)
        yield from merging.times(view, self._lead(view))

    def nodes_known(self, view: RunView) -> NodesKnown:
        """What this owner has of the rounds that are merged now."""
        rounds = merging.recent(view)
        vain = (key for key, misses in self._vain.items() if misses >= TRIES and nodes.round_of(key[0]) in rounds)
        failed = {node for node, x in vain if x == nodes.input_of(view, node)}
        return NodesKnown(
            self._updates.held(view), self._updates.lost(view), self.merges.roots(view), frozenset(failed)
        )

    def _lead(self, view: RunView) -> int:
        return min(view.rules.inclusion, view.rules.hold // 2)

    # --- actions

    def handlers(self) -> Handlers[RunView]:
        """See ActorLoop."""
        table = super().handlers()
        table.add(FetchGroupUpdate, self.do_fetch_group_update).add(HoldGroup, self.do_hold_group)
        table.add(ComputeNode, self.do_compute_node)
        return table.add(SealNodeRoot, self.do_seal_node).add(OpenNodeRoot, self.do_open_node)

    def do_fetch_group_update(self, action: FetchGroupUpdate, view: RunView) -> None:
        """Fetches an update and checks it against its root. Raises UnavailableError."""
        self._updates.forget_before(action.round - 1)
        self._updates.fetch(view, action.round, action.seat)

    def do_hold_group(self, action: HoldGroup, view: RunView) -> None:
        """Says which updates its positions hold, over what is committed now."""
        entry = view.group(action.round, action.group)
        tickets = nodes.tickets_at(view, ids.node_of(action.round + 1, action.group))
        mine = sum(1 << j for positions in tickets.values() for j in positions if j not in entry.words)
        held = Wei(sum(1 << view.rules.place(seat)[1] for seat in action.held))
        self.send(self.target.commitments.hold(action.round, action.group, mine, entry.acc, held))

    def do_compute_node(self, action: ComputeNode, view: RunView) -> None:
        """Computes a merge and publishes it: others build on a sum, and train from a generation."""
        try:
            self.merges.merge(view, action.node, lambda job: self.run_node(action.node, job), publish=True)
        except StoreUnreachable:
            raise  # see UpdatesAsked
        except AssayError:
            key = action.node, nodes.input_of(view, action.node)
            self._vain[key] = self._vain.get(key, 0) + 1
            raise

    def do_seal_node(self, action: SealNodeRoot, view: RunView) -> None:
        """Binds a ticket to its root and what that is over, or says that there is none; its key gives the salt."""
        seal = Digest(bytes(32))
        if not action.is_empty:
            root, over = self._result(view, action.node).root, nodes.over_of(view, action.node)
            seal = ids.seal_digest(action.node, action.ticket, root, over, self._salt(action.node, root), self.me)
        positions = sum(1 << j for j in nodes.tickets_at(view, action.node)[action.ticket])
        self.send(self.target.grouped.seal(action.node, action.ticket, positions, seal))

    def do_open_node(self, action: OpenNodeRoot, view: RunView) -> None:
        """Opens its root: from here on the ticket's stake stands behind it. Raises RecheckMismatch."""
        if self.merges.result(view, action.node) is None:  # a former life sealed it
            self.merges.merge(view, action.node, lambda job: self.run_node(action.node, job), publish=True)
        made = self._result(view, action.node)
        if {opening.root for opening in view.openings(action.node)} - {made.root}:
            self.confirm_node(view, action.node)
        salt = self._salt(action.node, made.root)
        self.send(self.target.grouped.open(action.node, action.ticket, made.first, made.second, salt), tail=made.tail)

    def _result(self, view: RunView, node: Node) -> NodeResult:
        found = self.merges.result(view, node)
        assert found is not None  # nothing is sealed or opened before it is computed
        return found

    def _salt(self, node: Node, root: Digest) -> Digest:
        return seal_salt(bytes(self.keys.local.key), self.target.facts.identity, node, root)

    # --- lies, for those that tell some

    def run_node(self, node: Node, job: Computation) -> ListBytes:
        """A merge as this owner claims it."""
        return self.compute.run(job.program, job.lists, job.steps)

    def confirm_node(self, view: RunView, node: Node) -> None:
        """Has other kernels find the same before anything is said against others. Raises RecheckMismatch."""
        self.merges.confirm(view, node)

    def node_trace(self, game: Game, view: RunView) -> Trace:
        """The run behind an opening of one of its tickets, as it was claimed."""
        return self.merges.trace(view, node_of(game.ref))
