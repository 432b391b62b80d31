"""Roots of states wherever they lie: on a GPU where they are, so that digests move and tensors do not; else here."""

from __future__ import annotations

from assay.engine.runtime.triton import backend, sha256
from assay.engine.runtime.values import state_io
from assay.engine.runtime.values.state_io import Lists
from assay.protocol.trees import state
from assay.protocol.trees.state import SlotLists
from assay.protocol.types import Digest


def slot_roots(lists: Lists) -> SlotLists:
    """The tensor root of every slot, of its bytes as they are."""
    there = [t for part in lists for t in part if t.device.type != "cpu"]
    if not there or backend.absence() or sha256.failure():
        return state_io.slot_roots(lists)
    found = iter(sha256.tensor_roots(there))
    return tuple(tuple(state_io.root_of(t) if t.device.type == "cpu" else next(found) for t in part) for part in lists)


def state_root(lists: Lists) -> Digest:
    """The root of the state, of its bytes as they are."""
    return state.state_root(slot_roots(lists))
