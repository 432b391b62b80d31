"""Roots of states and values where they lie: on a GPU, so that digests move and tensors do not, or here."""

from __future__ import annotations

from torch import Tensor

from assay.engine.runtime.triton import backend, sha256
from assay.engine.runtime.values import state_io
from assay.engine.runtime.values.dtypes import canonical
from assay.engine.runtime.values.state_io import Lists
from assay.protocol.trees import state
from assay.protocol.trees.state import SlotLists
from assay.protocol.types import Digest


def is_hashed_there(t: Tensor) -> bool:
    """Whether a tensor is hashed where it lies: on a GPU whose kernels agree with hashlib."""
    return t.device.type != "cpu" and not backend.absence() and not sha256.failure()


def stored_root(t: Tensor) -> Digest:
    """The tensor root of a computed value, which memory may hold with other NaNs than a store writes."""
    return sha256.tensor_roots([canonical(t)])[0] if is_hashed_there(t) else state_io.stored_root(t)


def slot_roots(lists: Lists) -> SlotLists:
    """The tensor root of every slot, of its bytes as they are."""
    there = [[is_hashed_there(t) for t in part] for part in lists]
    flags = [(t, flag) for part, own in zip(lists, there, strict=True) for t, flag in zip(part, own, strict=True)]
    found = iter(sha256.tensor_roots([t for t, flag in flags if flag]))
    return tuple(
        tuple(next(found) if flag else state_io.root_of(t) for t, flag in zip(part, own, strict=True))
        for part, own in zip(lists, there, strict=True)
    )


def state_root(lists: Lists) -> Digest:
    """The root of the state, of its bytes as they are."""
    return state.state_root(slot_roots(lists))
