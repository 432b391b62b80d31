"""PyTorch's modes while a function is traced, and the same modes on real numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.fx._symbolic_trace as symbolic_trace
from torch import Tensor
from torch._subclasses import fake_tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from assay.engine.compiler.hidden.surroundings import uncompiled
from assay.engine.compiler.written.calls import WrittenOut
from assay.engine.compiler.written.conversions import kept_as_they_are


class _Asked(type):
    def __instancecheck__(cls, asked: object) -> bool:
        return isinstance(asked, Tensor)


class _AnyTensor(metaclass=_Asked):
    """What every tensor is an instance of."""


@contextmanager
def without_onednn() -> Iterator[None]:
    """oneDNN's recurrent layers are one opaque operation each; without it they are products and gates."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


@contextmanager
def like_fx() -> Iterator[None]:
    """What asks whether it is traced is told so, as under `make_fx`."""
    before, symbolic_trace._is_fx_tracing_flag = symbolic_trace._is_fx_tracing_flag, True
    try:
        yield
    finally:
        symbolic_trace._is_fx_tracing_flag = before


@contextmanager
def one_way() -> Iterator[None]:
    """While active, a layer that PyTorch computes in one of several ways is computed in the plainest."""
    with sdpa_kernel(SDPBackend.MATH), without_onednn(), uncompiled(), kept_as_they_are():
        yield


@contextmanager
def as_traced() -> Iterator[None]:
    """While active, a call on real numbers goes the way that it goes while it is traced.

    Libraries ask whether a tensor is a fake one, and then leave out looks that only save work: of real ones they are
    told so too.
    """
    places: tuple[Any, ...] = (torch._subclasses, fake_tensor)
    before = [place.FakeTensor for place in places]
    for place in places:
        place.FakeTensor = _AnyTensor
    try:
        with one_way(), like_fx(), WrittenOut():
            yield
    finally:
        for place, own in zip(places, before, strict=True):
            place.FakeTensor = own
