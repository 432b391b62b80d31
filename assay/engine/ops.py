"""Operations that PyTorch lacks and a captured step may call: Philox words, high products, total gathers, bits.

Each is a custom operator with an ordinary eager meaning; `capture` lowers it to one node.
"""

from __future__ import annotations

import torch
from torch import Tensor

from assay.engine.runtime.exact import philox
from assay.engine.runtime.triton import backend, words

_MASK = 0xFFFFFFFF


@torch.library.custom_op("assay::random_words", mutates_args=())
def random_words(key: Tensor, step: Tensor, stream: int, count: int) -> Tensor:
    """`count` random words, i32 [count], of a stream under key i32 [2] at step i32 [2] (low, high)."""
    return philox.words(key, step, stream, count)


@random_words.register_kernel("cuda")
def _(key: Tensor, step: Tensor, stream: int, count: int) -> Tensor:
    if backend.absence() or backend.is_interpreted():
        return philox.words(key, step, stream, count)
    return words.words(key, step, stream, count)


@random_words.register_fake
def _(key: Tensor, step: Tensor, stream: int, count: int) -> Tensor:
    return key.new_empty(count, dtype=torch.int32)


@torch.library.custom_op("assay::mulhi_u32", mutates_args=())
def mulhi_u32(a: Tensor, b: Tensor) -> Tensor:
    """The high 32 bits of the product of two i32 tensors read as unsigned: an index in [0, b) from a random word a."""
    product = (a.to(torch.int64) & _MASK) * (b.to(torch.int64) & _MASK)
    return (product >> 32).to(torch.int32)


@mulhi_u32.register_fake
def _(a: Tensor, b: Tensor) -> Tensor:
    return torch.empty(torch.broadcast_shapes(a.shape, b.shape), dtype=torch.int32, device=a.device)


@torch.library.custom_op("assay::take", mutates_args=())
def take(table: Tensor, index: Tensor) -> Tensor:
    """table[index] along the first dimension; an index outside [0, N) gives NaN (f32) or 0, never an error.

    table: [N, ...] of any element type. index: i32 [...]. Returns index.shape + table.shape[1:], of the table's type.
    """
    inside = (index >= 0) & (index < table.shape[0])
    bits = table.view(torch.int16) if table.dtype is torch.uint16 else table
    rows = bits[torch.where(inside, index, 0).long()]
    missing = torch.tensor(float("nan") if table.dtype.is_floating_point else 0, dtype=bits.dtype, device=bits.device)
    result = torch.where(inside.reshape(inside.shape + (1,) * (table.ndim - 1)), rows, missing)
    return result.view(table.dtype)


@take.register_fake
def _(table: Tensor, index: Tensor) -> Tensor:
    return table.new_empty(index.shape + table.shape[1:])


@torch.library.custom_op("assay::rank", mutates_args=())
def rank(x: Tensor) -> Tensor:
    """Per element how many of the last dimension are ahead of it, i32: larger, or equal and earlier.

    x: f32 [..., N], N >= 1. NaN is above +inf, the zeros are equal. `rank(x) < k` marks the k largest.
    """
    order = torch.argsort(_order_key(x), dim=-1, descending=True, stable=True)
    return torch.argsort(order, dim=-1).to(torch.int32)


def _order_key(x: Tensor) -> Tensor:
    """f32 values as i32 that order alike."""
    bits = torch.where(x.isnan(), float("nan"), x).view(torch.int32)
    return torch.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


@rank.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(x.shape, dtype=torch.int32)


@torch.library.custom_op("assay::floats_of", mutates_args=())
def floats_of(bits: Tensor, dtype: torch.dtype) -> Tensor:
    """The bfloat16 or float16 numbers that lie in the bits of a u16 tensor, in its shape."""
    return bits.view(dtype).clone()


@floats_of.register_fake
def _(bits: Tensor, dtype: torch.dtype) -> Tensor:
    return bits.new_empty(bits.shape, dtype=dtype)


@torch.library.custom_op("assay::bits_of", mutates_args=())
def bits_of(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The bits, u16 in its shape, of the bfloat16 or float16 numbers nearest to x."""
    near = torch.where(x.isnan(), float("nan"), x.to(dtype))
    return near.view(torch.uint16)


@bits_of.register_fake
def _(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.new_empty(x.shape, dtype=torch.uint16)


RANK = torch.ops.assay.rank.default
RANDOM_WORDS = torch.ops.assay.random_words.default
MULHI_U32 = torch.ops.assay.mulhi_u32.default
TAKE = torch.ops.assay.take.default
FLOATS_OF = torch.ops.assay.floats_of.default
BITS_OF = torch.ops.assay.bits_of.default
