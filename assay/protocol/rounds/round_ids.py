"""How locks, claims and digests of rounds are named: equal to the contracts of contracts/rounds/."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eth_abi.abi import encode

from assay.protocol.arithmetic import f32
from assay.protocol.arithmetic.words import to_bytes
from assay.protocol.digests import keccak, state_digest
from assay.protocol.rounds.round_terms import SeatWork
from assay.protocol.trees.state import list_root
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Address, Digest, DType, Round, Seat

WORK_TYPE = "(uint32,bytes32,bytes32[3],bytes32)"


def _id(types: list[str], *values: Any) -> Digest:
    return keccak(encode(types, list(values)))


def tenure_lock(tenure: int) -> Digest:
    """The lock S of a tenure."""
    return _id(["string", "uint32"], "assay.tenure", tenure)


def fee_lock(tenure: int) -> Digest:
    """The seat fee of a tenure."""
    return _id(["string", "uint32"], "assay.tenure.fee", tenure)


def back_lock(generation: int, party: Digest) -> Digest:
    """The lock of a backer of a generation's root."""
    return _id(["string", "uint64", "bytes32"], "assay.back", generation, party)


def group_node(round_: Round, group: int) -> Digest:
    """What the committee of a group is drawn for."""
    return _id(["string", "uint64", "uint32"], "assay.group", round_, group)


def seat_party(seat: Seat) -> Digest:
    """The opening of a seat."""
    return _id(["string", "uint32"], "assay.position", seat)


def backer_party(root: Digest, who: Address) -> Digest:
    """The opening of a backer."""
    return _id(["string", "bytes32", "address"], "assay.backer", root, who)


def seal_digest(round_: Round, seat: Seat, root: Digest, salt: Digest, who: Address) -> Digest:
    """What binds a position to a root before anybody opens."""
    return _id(["uint64", "uint32", "bytes32", "bytes32", "address"], round_, seat, root, salt, who)


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


def merge_input(parameters: Digest, momentum: Digest, updates: Sequence[Digest], mask: int) -> Digest:
    """X of a merge: parameters, momentum, the update of each seat, and the mask f32[seats] of 0 and 1."""
    seats = len(updates)
    bits = [f32.ONE if mask >> k & 1 else 0 for k in range(seats)]
    mask_root = list_root([tensor_root(TensorSpec(DType.F32, (seats,)), to_bytes(DType.F32, bits))])
    return state_digest((parameters, momentum, *updates, mask_root))
