"""What of a tensor is a number: nothing that arrives, or is sent, may be NaN or infinite beyond this."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

INFINITE: Final = float("inf")


def finite(x: Tensor) -> Tensor:
    """x with zero where it is NaN or infinite."""
    return torch.where(x.abs() < INFINITE, x, 0.0)
