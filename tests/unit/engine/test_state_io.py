"""Tensors become bytes and roots as the protocol says, and come back with every bit."""

from __future__ import annotations

import pytest
import torch

from assay.engine.runtime.values import state_io
from assay.protocol.errors import UserError
from assay.protocol.trees import state
from assay.protocol.trees.tensors import TensorSizeError, TensorSpec, tensor_root
from assay.protocol.types import DType

LISTS = (
    [torch.randn(3, 5), torch.tensor(2.5)],
    [],
    [torch.tensor([-1, 7], dtype=torch.int32), torch.arange(2000).to(torch.uint8), torch.tensor([True, False])],
)


def test_roots_are_those_of_the_bytes():
    data = state_io.to_lists_of_bytes(LISTS)
    specs = [[state_io.spec_of(t) for t in part] for part in LISTS]
    roots = tuple(
        tuple(tensor_root(s, d) for s, d in zip(ss, dd, strict=True)) for ss, dd in zip(specs, data, strict=True)
    )
    assert state_io.slot_roots(LISTS) == roots
    assert state_io.list_roots(LISTS) == state.list_roots(roots)
    assert state_io.state_root(LISTS) == state.state_root(roots)


def test_tensors_come_back():
    specs = [[state_io.spec_of(t) for t in part] for part in LISTS]
    back = state_io.from_lists_of_bytes(specs, state_io.to_lists_of_bytes(LISTS))
    assert all(torch.equal(a, b) for p, q in zip(back, LISTS, strict=True) for a, b in zip(p, q, strict=True))


def test_bytes_are_row_major_whatever_the_strides():
    x = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    assert state_io.to_lists_of_bytes([[x.t()]]) == state_io.to_lists_of_bytes([[x.t().contiguous()]])
    assert state_io.root_of(x.t()) != state_io.root_of(x)


def test_another_length_is_refused_before_anything_is_read():
    with pytest.raises(TensorSizeError):
        state_io.tensor_from_bytes(TensorSpec(DType.F32, (3,)), bytes(8))


def test_types_that_no_state_holds_are_refused():
    with pytest.raises(UserError, match="float64"):
        state_io.spec_of(torch.zeros(1, dtype=torch.float64))
