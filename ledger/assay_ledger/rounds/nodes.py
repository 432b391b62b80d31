"""What a view shows of the nodes that a round is merged by: its generation, above 64 seats also sums of groups. Pure.

Above 64 seats the positions of nodes are tickets. A reader asks here who they are, what goes into a merge as things
stand on chain, and whose lock stands behind an opening.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.protocol.digests import ZERO
from assay.protocol.errors import RejectedError
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.grouped_generations import GroupedGenerations
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.terms import GenerationStatus, OpenedRoot
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Round
from assay_ledger.rounds.view import RunView


@dataclass(frozen=True, slots=True)
class OpeningOwner:
    """Whose lock stands behind an opening: a tenure's holder, above 64 seats a ticket's owner, or a backer."""

    who: Address | None
    """None: nobody is paid for it any more."""
    convicted_at: int
    """Chain time; 0: its lock stands."""
    is_accused: bool


def opener_of(view: RunView, opening: OpenedRoot) -> OpeningOwner:
    """Who answers for an opening."""
    books = view.books
    if not opening.opener:
        return OpeningOwner(opening.backer, 0, False)
    if view.rules.by_seats:
        tenure = books.tenures.existing(opening.opener)
        return OpeningOwner(tenure.holder, tenure.convicted_at, tenure.accusations > 0)
    ticket = TicketId(opening.opener)
    held, accused = books.registry.tickets.get(ticket), books.duties.attestations.against[ticket] > 0
    return OpeningOwner(books.registry.payee_of(ticket), held.convicted_at if held else 0, accused)


# --- committees


def round_of(node: Node) -> Round:
    """The round that a node is merged from."""
    return Round(ids.generation_of(node) - 1)


def committee(view: RunView, node: Node) -> Mapping[TicketId, tuple[int, ...]]:
    """The positions of each ticket at a node; none while the mask is open, or the beacon that draws them unknown."""
    books, round_, is_group = view.books, round_of(node), ids.is_group(node)
    if node in books.committees or not view.is_mask_closed(round_):
        return books.committees.get(node, {})
    drawn_for = ids.group_committee(round_, ids.group_of(node)) if is_group else ids.generation_committee(round_)
    found: dict[TicketId, tuple[int, ...]] = {}
    try:
        seed, t0 = books.commitments.seed_of(round_), view.round_of(round_).t0
        for j in range(view.rules.positions if is_group else view.rules.top_positions):
            ticket = books.registry.position_of(seed, drawn_for, j, t0, view.now)
            found[ticket] = (*found.get(ticket, ()), j)
    except RejectedError:
        return {}
    return books.committees.setdefault(node, found)


def tickets_at(view: RunView, node: Node) -> dict[TicketId, tuple[int, ...]]:
    """This actor's tickets that may speak at a node, with their positions there."""
    registry = view.books.registry
    return {
        ticket: positions
        for ticket, positions in committee(view, node).items()
        if registry.can_answer(ticket) and registry.owner_of(ticket) == view.me
    }


def groups_of(view: RunView, round_: Round) -> list[int]:
    """Groups of which somebody committed with weight; none at one level."""
    if view.rules.by_seats:
        return []
    return [group for group in range(view.rules.groups) if view.group(round_, group).maskable]


def nodes_of(view: RunView, generation: int) -> list[Node]:
    """The nodes of a generation of which somebody opened a root, the sums of groups first."""
    found = {node for node, _ in view.books.generations.nodes if ids.generation_of(node) == generation}
    return sorted(found, reverse=True)


def counted_groups(view: RunView, round_: Round) -> list[int]:
    """Groups whose sum counts, by what was opened so far; none at one level."""
    books = view.books.generations
    return books.counted_groups(round_) if isinstance(books, GroupedGenerations) else []


def groups_until(view: RunView, round_: Round) -> int:
    """Last second in which it can change which sums count."""
    books = view.books.generations
    return books.groups_until(round_) if isinstance(books, GroupedGenerations) else view.hold_until(round_)


def speak_until(view: RunView, node: Node) -> tuple[int, int]:
    """Last seconds to seal and to open at a node, as things stand."""
    books, round_, votes = view.books.commitments, round_of(node), view.votes(node)
    last = books.partial_until(round_) if ids.is_group(node) else books.merge_until(round_)
    return votes.seal_until or last, votes.close_at or last


# --- what is merged


def input_of(view: RunView, node: Node) -> Digest:
    """X of a merge as the contract would build it from what is on chain now."""
    round_, rules = round_of(node), view.rules
    if ids.is_group(node):
        return ids.partial_input(update_roots(view, round_, ids.group_of(node)))
    base = view.base(round_)
    if rules.by_seats:
        mask = sum(1 << seat for seat in view.counted(round_)[0])
        return ids.merge_input(base.parameters, base.momentum, update_roots(view, round_), mask)
    sums = [rules.zero_partial] * rules.groups
    for group in counted_groups(view, round_):
        sums[group] = sum_root(view, round_, group)
    return ids.weighed_input(base.parameters, base.momentum, sums, weights(view, round_))


def over_of(view: RunView, node: Node) -> Digest:
    """What a root is over that is computed from what is on chain now: its seal names it.

    Never asked of a node: it may answer by another history than that of this view, from which the root was computed.
    """
    return view.books.generations.over_of(node, view.now)


def update_roots(view: RunView, round_: Round, group: int = 0) -> list[Digest]:
    """The update of each place of a group; that of zeros where none counts."""
    rules, counted = view.rules, view.counted(round_, group)[0]
    places = range(rules.seats if rules.by_seats else rules.group_size)
    works = (view.work(round_, view.seat_at(group, place)) for place in places)
    return [work.work.update if work and work.seat in counted else rules.zero_update for work in works]


def sum_root(view: RunView, round_: Round, group: int) -> Digest:
    """List root of the sum of a group that leads."""
    node = ids.node_of(round_ + 1, group)
    return view.books.generations.nodes[node, view.votes(node).root or ZERO].parameters


def weights(view: RunView, round_: Round) -> list[int]:
    """How many updates count in each group; 0 where its sum does not."""
    summed = counted_groups(view, round_)
    return [len(view.counted(round_, group)[0]) if group in summed else 0 for group in range(view.rules.groups)]


def is_open(view: RunView, node: Node) -> bool:
    """Whether the node's generation is neither final nor cut."""
    return view.status(ids.generation_of(node)) in (GenerationStatus.OPEN, GenerationStatus.MERGED)
