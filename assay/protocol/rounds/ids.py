"""How locks, claims and digests of rounds are named: equal to the contracts of contracts/rounds/."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from assay.protocol import abi
from assay.protocol.arithmetic import f32
from assay.protocol.arithmetic.words import to_bytes
from assay.protocol.digests import ZERO, keccak, state_digest
from assay.protocol.rounds.terms import SeatWork, UpdateEntry
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.trees.state import list_root
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Address, Digest, DType, Round, Seat

Node: TypeAlias = int
"""A merge that somebody claims: a generation's number, or that with a group's number plus one above it."""

NODE_BITS: Final = 32
"""Bits of a node that hold its generation."""

WORK_TYPE = "(uint32,bytes32,bytes32[3],bytes32)"


@lru_cache(maxsize=1 << 12)
def party_of(position: int) -> Digest:
    """The opening of a position: of a seat, above 64 seats of a ticket."""
    return _id(["string", "uint32"], "assay.position", position)


def _id(types: list[str], *values: Any) -> Digest:
    return keccak(abi.encode(types, list(values)))


def tenure_lock(tenure: int) -> Digest:
    """The lock S of a tenure."""
    return _id(["string", "uint32"], "assay.tenure", tenure)


def fee_lock(tenure: int) -> Digest:
    """The seat fee of a tenure."""
    return _id(["string", "uint32"], "assay.tenure.fee", tenure)


def back_lock(node: Node, party: Digest) -> Digest:
    """The lock of a backer of a node's root."""
    return _id(["string", "uint64", "bytes32"], "assay.back", node, party)


def group_committee(round_: Round, group: int) -> Digest:
    """What the committee of a group is drawn for."""
    return _id(["string", "uint64", "uint32"], "assay.group", round_, group)


def generation_committee(round_: Round) -> Digest:
    """What the committee of a generation is drawn for, above 64 seats."""
    return _id(["string", "uint64"], "assay.generation", round_)


def node_of(generation: int, group: int) -> Node:
    """The node of a group's partial sum."""
    return group + 1 << NODE_BITS | generation


def generation_of(node: Node) -> int:
    """The generation that a node belongs to."""
    return node & (1 << NODE_BITS) - 1


def is_group(node: Node) -> bool:
    """Whether the node is the partial sum of a group."""
    return node >> NODE_BITS != 0


def group_of(node: Node) -> int:
    """The group of a partial sum."""
    return (node >> NODE_BITS) - 1


def root_of(node: Node, first: Digest, second: Digest) -> Digest:
    """The state that a node's lists make: a generation has parameters and momentum, a partial sum one list."""
    return state_digest((first,)) if is_group(node) else state_digest((first, second))


def seat_party(seat: Seat) -> Digest:
    """The opening of a seat."""
    return party_of(seat)


def ticket_party(ticket: TicketId) -> Digest:
    """The opening of a ticket, above 64 seats."""
    return party_of(ticket)


def backer_party(root: Digest, who: Address) -> Digest:
    """The opening of a backer."""
    return _id(["string", "bytes32", "address"], "assay.backer", root, who)


def seal_digest(
    round_: Round | Node, position: Seat | TicketId, root: Digest, over: Digest, salt: Digest, who: Address
) -> Digest:
    """What binds a seat in a round, above 64 seats a ticket at a node, to a root, and to what that is `over`."""
    types = ["uint64", "uint32", "bytes32", "bytes32", "bytes32", "address"]
    return _id(types, round_, position, root, over, salt, who)


def over_updates(base: Digest, counted: int, acc: Digest) -> Digest:
    """What a merge of updates is over (SealOver.sol): which count, of all that were committed with weight."""
    return _id(["string", "bytes32", "uint64", "bytes32"], "assay.over", base, counted, acc)


def over_sums(base: Digest, sums: Iterable[tuple[int, Digest, int]]) -> Digest:
    """What a merge of sums is over: group, leading root and weight of each that counts, by group."""
    over = base
    for group, root, weight in sums:
        over = _id(["bytes32", "uint64", "bytes32", "uint256"], over, group + 1, root, weight)
    return over


def work_digest(round_: Round, seat: Seat, tenure: int, work: SeatWork) -> Digest:
    """The digest of a commitment."""
    fields = (work.units, work.marks, list(work.ends), work.update)
    return _id(["uint64", "uint32", "uint32", WORK_TYPE], round_, seat, tenure, fields)


def marks_digest(marks: Sequence[Digest]) -> Digest:
    """The digest of the state roots after each unit of a commitment, the last of which is the end's."""
    return keccak(b"".join(marks))


def accumulate(acc: Digest, seat: Seat, update: Digest, units: int) -> Digest:
    """A group's accumulator after one more commitment with weight."""
    return _id(["bytes32", "uint32", "bytes32", "uint32"], acc, seat, update, units)


def accumulate_entries(entries: Sequence[UpdateEntry]) -> Digest:
    """A group's accumulator over the updates given, in their order."""
    acc = ZERO
    for entry in entries:
        acc = accumulate(acc, entry.seat, entry.update, entry.units)
    return acc


def partial_input(updates: Sequence[Digest]) -> Digest:
    """X of a partial sum: the update of each seat of the group."""
    return state_digest(tuple(updates))


def merge_input(parameters: Digest, momentum: Digest, updates: Sequence[Digest], mask: int) -> Digest:
    """X of a merge: parameters, momentum, the update of each seat, and the mask f32[seats] of 0 and 1."""
    return weighed_input(parameters, momentum, updates, [mask >> k & 1 for k in range(len(updates))])


def weighed_input(parameters: Digest, momentum: Digest, lists: Sequence[Digest], weights: Sequence[int]) -> Digest:
    """X of a merge of partial sums: parameters, momentum, the sum of each group, and the weights f32[groups]."""
    words = [f32.from_int(weight) for weight in weights]
    spec = TensorSpec(DType.F32, (len(weights),))
    return state_digest((parameters, momentum, *lists, list_root([tensor_root(spec, to_bytes(DType.F32, words))])))
