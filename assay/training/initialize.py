"""Starting values that are the same on every machine: Philox integers, scaled by one exact and one rounded product.

`torch.randn` is not used: its bits differ between instruction sets.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from assay.engine.runtime.exact.philox import words


def uniform(shape: tuple[int, ...], bound: float, seed: int, stream: int) -> Tensor:
    """f32 values uniform in [-bound, bound), a pure function of its arguments; seed < 2^64, stream < 2^32."""
    key = torch.tensor([seed & 0xFFFFFFFF, seed >> 32], dtype=torch.int64)
    bits = words(key, torch.zeros(2, dtype=torch.int64), stream, math.prod(shape))
    # The top 24 bits, signed, are exact in f32; so is the power of two.
    return ((bits >> 8).to(torch.float32) * 2.0**-23).mul(torch.tensor(bound)).reshape(shape)


def initialize(module: nn.Module, seed: int) -> list[Tensor]:
    """Starting values of all parameters in `named_parameters` order; the module itself is left as it is.

    Matrices: uniform with standard deviation 1 / sqrt(fan in), embeddings and positions 0.02. A weight of rank 1 (layer
    norm) is 1, a bias 0.
    """
    embeddings = {
        f"{name}.weight" if name else "weight"
        for name, part in module.named_modules()
        if isinstance(part, nn.Embedding)
    }
    values: list[Tensor] = []
    for stream, (name, parameter) in enumerate(module.named_parameters()):
        shape = tuple(parameter.shape)
        if len(shape) < 2:
            fill = 1.0 if name.rsplit(".", 1)[-1] == "weight" else 0.0
            values.append(torch.full(shape, fill, dtype=torch.float32))
            continue
        is_table = name in embeddings or name.rsplit(".", 1)[-1] != "weight"
        deviation = 0.02 if is_table else 1.0 / math.sqrt(math.prod(shape[1:]))
        values.append(uniform(shape, math.sqrt(3.0) * deviation, seed, stream))
    return values
