"""States: lists of tensors and their roots, and the scalars that the contract builds (docs/protocol.md, sections 2, 4).

A state is a tuple of lists, a list a tuple of tensor roots. A training state has three: parameters, optimizer, scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256

from assay.protocol.arithmetic.words import from_ints, to_bytes
from assay.protocol.digests import list_digest, state_digest
from assay.protocol.errors import InvariantError
from assay.protocol.trees import merkle
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Digest, DType, Round, Seat, Step

SlotLists = tuple[tuple[Digest, ...], ...]
"""Tensor roots per list."""

ListBytes = tuple[tuple[bytes, ...], ...]
"""The bytes of every tensor, per list."""

KEY_TAG = b"assay-key-v1"


def list_root(tensor_roots: Sequence[Digest]) -> Digest:
    """The root of a list of tensors."""
    return list_digest(len(tensor_roots), merkle.root(tensor_roots))


def list_roots(lists: Sequence[Sequence[Digest]]) -> tuple[Digest, ...]:
    """The roots of the lists of a state."""
    return tuple(list_root(roots) for roots in lists)


def state_root(lists: Sequence[Sequence[Digest]]) -> Digest:
    """The root of a state given by its tensor roots."""
    return state_digest(list_roots(lists))


def slot_path(tensor_roots: Sequence[Digest], index: int) -> tuple[Digest, ...]:
    """The path of one slot to the tree under its list root."""
    return merkle.path(tensor_roots, index)


def verify_slot(root: Digest, tensor: Digest, count: int, index: int, path: Sequence[Digest]) -> bool:
    """Whether slot `index` of the list of `count` tensors with this list root is `tensor`."""
    tree_root = merkle.root_from_path(tensor, count, index, path)
    return tree_root is not None and list_digest(count, tree_root) == root


class TrainingList(IntEnum):
    """The lists of a training state."""

    PARAMETERS = 0
    OPTIMIZER = 1
    SCALARS = 2


class Scalar(IntEnum):
    """The slots of the scalars list of a training state."""

    STEP = 0
    LR = 1
    KEY = 2
    SEAT = 3
    ROUND = 4
    SHARD_START = 5
    SHARD_LENGTH = 6
    DATA = 7


_WORD = TensorSpec(DType.I32, ())
_PAIR = TensorSpec(DType.I32, (2,))

SCALAR_SPECS: dict[Scalar, TensorSpec] = {
    Scalar.STEP: _PAIR,
    Scalar.LR: TensorSpec(DType.F32, ()),
    Scalar.KEY: _PAIR,
    Scalar.SEAT: _WORD,
    Scalar.ROUND: _WORD,
    Scalar.SHARD_START: _WORD,
    Scalar.SHARD_LENGTH: _WORD,
}
"""Type and dims of every slot except DATA, which is u8 or u16 of the data's length."""


@dataclass(frozen=True, slots=True)
class RoundScalars:
    """What the contract knows of a seat's round: all of s_0's scalars follow from it.

    `steps_per_round` is H; `shards` and `shard_length` divide the data; `lr` is a binary32 pattern.
    """

    run: Digest
    seat: Seat
    round: Round
    steps_per_round: int
    shards: int
    shard_length: int
    lr: int
    data_root: Digest

    @property
    def first_step(self) -> Step:
        """round * H."""
        return Step(self.round * self.steps_per_round)

    @property
    def shard(self) -> int:
        """(seat + round) mod shards: no two seats of a round share one."""
        return (self.seat + self.round) % self.shards

    def values(self) -> dict[Scalar, bytes]:
        """The bytes of every scalar slot except DATA.

        Raises:
            InvariantError: the shard ends beyond 2^31 elements, or the seat or round does not fit an i32.
        """
        start = self.shard * self.shard_length
        if start + self.shard_length >= 1 << 31 or not (0 <= self.seat < 1 << 31 and 0 <= self.round < 1 << 31):
            raise InvariantError("A seat, round or shard does not fit an i32.", code="ScalarOutOfRange")
        step = self.first_step
        ints = {
            Scalar.STEP: (step, step >> 32),
            Scalar.LR: (self.lr,),
            Scalar.KEY: random_key(self.run, self.seat, self.round),
            Scalar.SEAT: (self.seat,),
            Scalar.ROUND: (self.round,),
            Scalar.SHARD_START: (start,),
            Scalar.SHARD_LENGTH: (self.shard_length,),
        }
        return {s: to_bytes(SCALAR_SPECS[s].dtype, from_ints(SCALAR_SPECS[s].dtype, v)) for s, v in ints.items()}

    def roots(self) -> tuple[Digest, ...]:
        """The tensor roots of the scalars list, in slot order."""
        values = self.values()
        return (*(tensor_root(SCALAR_SPECS[s], values[s]) for s in sorted(values)), self.data_root)


def random_key(run: Digest, seat: Seat, round_: Round) -> tuple[int, int]:
    """A seat's Philox key, two unsigned words: the first 8 bytes of H(tag ‖ run ‖ seat u32 ‖ round u64)."""
    digest = sha256(KEY_TAG + run + seat.to_bytes(4, "big") + round_.to_bytes(8, "big")).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:8], "big")


def initial_state(parameters: Digest, optimizer: Digest, scalars: RoundScalars) -> Digest:
    """The state root s_0 of a round, from two list roots and the scalars: what the contract recomputes at commit."""
    return state_digest((parameters, optimizer, list_root(scalars.roots())))
