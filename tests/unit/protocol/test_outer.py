"""X and Y of update and outer claims."""

from __future__ import annotations

import struct
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.digests import state_digest
from assay.protocol.errors import InvariantError
from assay.protocol.run import outer
from assay.protocol.trees.state import list_root
from assay.protocol.trees.tensors import tensor_root
from assay.protocol.types import Digest


def digests(count: int) -> list[Digest]:
    return [Digest(sha256(bytes((i,))).digest()) for i in range(count)]


@given(st.integers(0, 255))
def test_the_mask_is_one_where_a_seat_is_included(mask: int) -> None:
    values = struct.unpack("<8f", outer.mask_bytes(mask))
    assert sum(1 << i for i, v in enumerate(values) if v == 1.0) == mask
    assert set(values) <= {0.0, 1.0}


@given(st.integers(0, 255))
def test_a_seat_that_is_not_included_has_the_zero_update(mask: int) -> None:
    parameters, momentum, zero, *updates = digests(11)
    chosen = [update if mask >> i & 1 else zero for i, update in enumerate(updates)]
    mask_list = list_root([tensor_root(outer.MASK_SPEC, outer.mask_bytes(mask))])
    expected = state_digest([parameters, momentum, *chosen, mask_list])
    assert outer.outer_input(parameters, momentum, updates, zero, mask) == expected


def test_states_of_different_claims_differ() -> None:
    a, b = digests(2)
    assert len({outer.outer_state(a, b), outer.update_state(a), outer.update_state(b), outer.outer_state(b, a)}) == 4
    assert outer.update_input(a, b) == state_digest([a, b])


def test_masks_and_slots_beyond_eight_are_refused() -> None:
    with pytest.raises(InvariantError):
        outer.mask_bytes(256)
    with pytest.raises(InvariantError):
        outer.outer_input(*digests(2), digests(7), digests(1)[0], 1)
