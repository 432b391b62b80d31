"""What the dispatch modes of a trace have in common: each sees every operation, and thousands go through them."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE: Final = torch.ops.prim.device.default
"""PyTorch asks a fake tensor for its device by an operation, more often than it computes anything."""


class QuickMode(TorchDispatchMode):
    """A mode that is called as it is: PyTorch keeps its compiler from what a mode does, which nothing compiles here."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


def device_of(t: Tensor) -> Any:
    """The device of a tensor, a fake one's own, without asking the modes below."""
    return t.fake_device if isinstance(t, FakeTensor) else t.device
