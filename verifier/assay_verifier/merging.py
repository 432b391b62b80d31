"""What an owner of tickets does at the nodes of a round above 64 seats: hold, seal and open sums and generations. Pure.

Above 64 seats the positions of nodes are tickets, and merging is the third duty of auditors: who has a position of a
group fetches its updates, says which it holds, adds them up, seals the sum and opens it; who has one of the generation
does so with the sums that count. Source: docs/adr/0033-second-round.md, critical path 3 to 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.agents.round_actions import RoundAction
from assay_ledger.rounds import nodes
from assay_ledger.rounds.view import RunView

RECENT = 2
"""Rounds that are looked at: the one under way, and the one before, whose openings may still be due."""


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """A node at which this owner has positions, as the chain shows it; times in seconds of chain time."""

    node: Node
    is_ready: bool
    """What goes into it can change no more, and somebody may train from it."""
    counted: frozenset[Seat]
    """Seats of a group whose updates go into its sum; none of a generation."""
    silent: tuple[TicketId, ...]
    """Tickets of this owner that have not sealed."""
    sealed: tuple[TicketId, ...]
    """Those that sealed a root and have not opened it."""
    seal_until: int
    open_until: int


@dataclass(frozen=True, slots=True)
class HoldSeen:
    """A group in whose committee this owner sits, while it may still say what it holds."""

    round: Round
    group: int
    maskable: frozenset[Seat]
    """Seats whose commitment has weight."""
    silent: bool
    """A position of this owner has not spoken."""
    hold_until: int


@dataclass(frozen=True, slots=True)
class NodesKnown:
    """What this owner has: updates that it fetched and hashed, and roots of nodes that it computed."""

    held: frozenset[tuple[Round, Seat]]
    lost: frozenset[tuple[Round, Seat]]
    """Updates that were asked for and not there."""
    roots: dict[Node, Digest]
    failed: frozenset[Node]
    """Nodes whose inputs are not to be had."""


@dataclass(frozen=True, slots=True)
class FetchGroupUpdate(RoundAction):
    """Fetch one update and check its hash."""

    round: Round
    seat: Seat


@dataclass(frozen=True, slots=True)
class HoldGroup(RoundAction):
    """Say which updates of a group all positions of this owner hold."""

    round: Round
    group: int
    held: frozenset[Seat]


@dataclass(frozen=True, slots=True)
class ComputeNode(RoundAction):
    """Compute the merge of a node."""

    node: Node


@dataclass(frozen=True, slots=True)
class SealNodeRoot(RoundAction):
    """Bind a ticket's positions to the root that was computed; `is_empty`: say that it cannot be computed."""

    node: Node
    ticket: TicketId
    is_empty: bool = False


@dataclass(frozen=True, slots=True)
class OpenNodeRoot(RoundAction):
    """Open the root that a ticket sealed."""

    node: Node
    ticket: TicketId


NodeAction = FetchGroupUpdate | HoldGroup | ComputeNode | SealNodeRoot | OpenNodeRoot


def merging(view: RunView, known: NodesKnown, lead: int) -> Iterator[NodeAction]:
    """What is due at the head, most urgent first. `lead`: how long before a window ends its last word goes out."""
    seen = [node for round_ in recent(view) for node in nodes_seen(view, round_)]
    holds = [hold for round_ in recent(view) for hold in holds_seen(view, round_)]
    for node in seen:
        if node.seal_until <= view.now < node.open_until:
            yield from (OpenNodeRoot(node.node, ticket) for ticket in node.sealed)
    for hold in holds:
        yield from _hold(hold, known, view.now, lead)
    for node in seen:
        if node.is_ready and node.silent and view.now < node.seal_until:
            yield from _seal(node, known)


def _hold(seen: HoldSeen, known: NodesKnown, now: int, lead: int) -> Iterator[NodeAction]:
    """Nobody vouches for what it did not fetch; and who is silent leaves its weight to others."""
    if not seen.silent or now >= seen.hold_until:
        return
    missing = [s for s in sorted(seen.maskable) if not {(seen.round, s)} & (known.held | known.lost)]
    if missing and now + lead < seen.hold_until:
        yield from (FetchGroupUpdate(seen.round, seat) for seat in missing)
        return
    yield HoldGroup(seen.round, seen.group, frozenset(s for s in seen.maskable if (seen.round, s) in known.held))


def _seal(seen: NodeSeen, known: NodesKnown) -> Iterator[NodeAction]:
    """Its root, once it is computed; or that there is none to be had, so that nobody waits for it."""
    round_ = nodes.round_of(seen.node)
    needed = {(round_, seat) for seat in seen.counted} - known.held
    if seen.node in known.roots:
        yield from (SealNodeRoot(seen.node, ticket) for ticket in seen.silent)
    elif seen.node in known.failed or needed & known.lost:
        yield from (SealNodeRoot(seen.node, ticket, is_empty=True) for ticket in seen.silent)
    elif needed:
        yield from (FetchGroupUpdate(round_, seat) for _, seat in sorted(needed))
    else:
        yield ComputeNode(seen.node)


def times(view: RunView, lead: int) -> Iterator[int]:
    """Chain times at which something of a merge may become due. A window's last second still belongs to it."""
    for round_ in recent(view):
        yield from (last for hold in holds_seen(view, round_) for last in (hold.hold_until - lead, hold.hold_until + 1))
        if not view.rules.by_seats and view.is_mask_closed(round_):
            yield from (view.hold_until(round_, g) + 1 for g in nodes.groups_of(view, round_))
            yield nodes.groups_until(view, round_) + 1
            for node in nodes_seen(view, round_):
                yield from (last + late for last in (node.seal_until, node.open_until) for late in (0, 1))


def recent(view: RunView) -> list[Round]:
    """Rounds that tickets may still merge, the newest last; none where seats do it, and after a stop: see solvers."""
    newest = view.round
    if newest is None or view.rules.by_seats or view.state.money.is_stopped:
        return []
    return [Round(r) for r in range(max(newest - RECENT + 1, 0), newest + 1)]


def holds_seen(view: RunView, round_: Round) -> Iterator[HoldSeen]:
    """The groups of a round in whose committees this owner sits."""
    for group in nodes.groups_of(view, round_):
        positions = {j for mine in nodes.tickets_at(view, ids.node_of(round_ + 1, group)).values() for j in mine}
        if positions:
            entry = view.group(round_, group)
            maskable = frozenset(view.seat_at(group, place) for place in entry.maskable)
            silent = bool(positions - entry.words.keys())
            yield HoldSeen(round_, group, maskable, silent, view.hold_until(round_, group))


def nodes_seen(view: RunView, round_: Round) -> Iterator[NodeSeen]:
    """The nodes of a round at which this owner has positions."""
    groups = nodes.groups_of(view, round_)
    is_dead = view.round_of(round_).is_under_half or view.books.generations.segments.is_cut(round_ + 1)
    for node in (*(ids.node_of(round_ + 1, group) for group in groups), Node(round_ + 1)):
        tickets = nodes.tickets_at(view, node)
        if is_dead or not tickets:
            continue
        votes, opened = view.votes(node), view.books.generations.openings
        counted, is_ready = frozenset[Seat](), view.now > nodes.groups_until(view, round_)
        if ids.is_group(node):
            counted, is_ready = view.counted(round_, ids.group_of(node))
        sealed = (t for t in tickets if votes.seals.get(t) is not None and (node, ids.ticket_party(t)) not in opened)
        silent = (t for t in tickets if t not in votes.seals)
        yield NodeSeen(node, is_ready, counted, tuple(silent), tuple(sealed), *nodes.speak_until(view, node))
