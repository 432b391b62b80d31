"""Executors of gather and random.

Shapes: O the dims of out, several; V the elements of a table's value, flattened.
"""

from __future__ import annotations

import torch
from torch import Tensor

from assay.engine.runtime.exact import philox
from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.values.dtypes import bits, fill_tensor
from assay.engine.runtime.values.views import is_inside, reader
from assay.protocol.program.nodes import Gather, Random
from assay.protocol.program.program import Program
from assay.protocol.types import DType

_NAN = 0x7FC00000


def gather(program: Program, node: Gather) -> Kernel:
    """table[index[o], o]; an index outside [0, size) gives NaN (f32) or 0, an element outside the view its fill."""
    dims, size = node.spec.dims, min(node.size, 1 << 31)  # an index is an i32, and torch compares in 63 bits
    table = node.table
    read_index = reader(node.index.view, dims, program.specs[node.index.node])
    missing = bits(fill_tensor(node.spec.dtype, _NAN if node.spec.dtype is DType.F32 else 0))
    fill = bits(fill_tensor(node.spec.dtype, table.view.fill))
    stride, lo, hi = table.view.strides[0], table.view.lo[0], table.view.hi[0]
    base_O, inside_O = places(table.view.strides[1:], table.view.lo[1:], table.view.hi[1:], dims)
    base_O = base_O + table.view.offset
    bounded = not is_inside(table.view, (size, *dims))

    def run(values: list[Tensor]) -> Tensor:
        at_O = read_index(values[node.index.node]).to(torch.int64)
        known_O = (at_O >= 0) & (at_O < size)
        read_O = known_O & inside_O & (at_O >= lo) & (at_O < hi) if bounded else known_O
        flat_V = bits(values[table.node]).flatten()
        if not flat_V.numel():
            return torch.where(known_O, fill, missing).view(values[table.node].dtype)
        result_O = flat_V[torch.where(read_O, at_O * stride + base_O, 0)]
        if bounded:
            result_O = torch.where(read_O, result_O, fill)
        return torch.where(known_O, result_O, missing).view(values[table.node].dtype)

    return run


def places(
    strides: tuple[int, ...], lo: tuple[int, ...], hi: tuple[int, ...], dims: tuple[int, ...]
) -> tuple[Tensor, Tensor]:
    """The address i64 and the insideness bool that the dims of out contribute, broadcastable over O."""
    rank = len(dims)
    address = torch.zeros((1,) * rank, dtype=torch.int64)
    inside = torch.ones((1,) * rank, dtype=torch.bool)
    for d, n in enumerate(dims):
        i = torch.arange(n).reshape(*(1,) * d, n, *(1,) * (rank - 1 - d))
        if strides[d]:
            address = address + i * strides[d]
        if lo[d] > 0 or hi[d] < n:
            inside = inside & (i >= lo[d]) & (i < hi[d])
    return address, inside


def random(node: Random) -> Kernel:
    """Philox words i32 [O] under key and step, both i32 [2]."""
    dims, count = node.spec.dims, node.spec.numel
    return lambda values: philox.words(values[node.key], values[node.step], node.stream, count).reshape(dims)
