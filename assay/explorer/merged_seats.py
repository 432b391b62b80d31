"""Which updates a round's merge is made of, and above 64 seats the sums of groups that it is made of."""

from __future__ import annotations

from assay.explorer.documents import Document, hexed
from assay.explorer.reader import RunReader
from assay.protocol.errors import RejectedError
from assay.protocol.rounds import ids as ids
from assay.protocol.types import Round, Seat
from assay_ledger.rounds import nodes

SeatsCounted = tuple[set[int], bool]
"""Seats whose update counts, and whether that can change no more."""


def held_seats(reader: RunReader, round_: Round) -> SeatsCounted:
    """Seats whose update is held by enough positions."""
    view, found, is_closed = reader.view, set[int](), True
    for group in view.groups():
        known = reader.known.counted.get((round_, group))
        if known is not None:
            found |= {int(seat) for seat in known}
            continue
        try:
            seats, closed = view.counted(round_, group)
            if closed:
                reader.known.counted[round_, group] = seats
        except RejectedError:  # the beacon that draws a group's positions is not known yet
            seats, closed = frozenset(), False
        found |= {int(seat) for seat in seats}
        is_closed = is_closed and closed
    return found, is_closed


def merged_seats(reader: RunReader, round_: Round) -> SeatsCounted:
    """Seats whose update is part of the merge: above 64 seats a group whose sum does not count brings nothing."""
    view, (found, is_closed) = reader.view, held_seats(reader, round_)
    if view.rules.by_seats or not is_closed:
        return found, is_closed
    if not are_sums_known(reader, round_):
        return found, False
    summed = set(nodes.counted_groups(view, round_))
    return {seat for seat in found if view.rules.place(Seat(seat))[0] in summed}, True


def are_sums_known(reader: RunReader, round_: Round) -> bool:
    """Whether it can change no more which sums of groups count."""
    try:
        return reader.view.now > nodes.groups_until(reader.view, round_)
    except RejectedError:  # the round's mask is open
        return False


def sums_document(reader: RunReader, generation: int) -> list[Document]:
    """The sums of groups that a generation is merged from, where somebody committed; none at one level.

    `counts`: whether the sum is part of the generation, null while that can change.
    """
    view, round_ = reader.view, Round(generation - 1)
    if generation == 0 or view.rules.by_seats:
        return []
    is_known, summed = are_sums_known(reader, round_), set(nodes.counted_groups(view, round_))
    found = []
    for group in nodes.groups_of(view, round_):
        node = ids.node_of(generation, group)
        votes = view.votes(node)
        found.append(
            {
                "group": group,
                "seats": [int(view.seat_at(group, place)) for place in sorted(view.group(round_, group).maskable)],
                "root": None if votes.root is None else hexed(votes.root),
                "sealed": sum(seal is not None for seal in votes.seals.values()),
                "opened": len(reader.shelves.openings[node]),
                "counts": group in summed if is_known else None,
            }
        )
    return found
