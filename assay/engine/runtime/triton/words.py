"""Philox words of a draw by one kernel, for eager steps on a GPU: stock torch takes a hundred passes in i64."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from assay.engine.runtime.triton import backend
from assay.engine.runtime.triton.elementwise import block, functions, seed_lines, text_of


@cache
def _kernel() -> Any:
    body = [
        "o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)",
        "live = o < count",
        "number = (tl.zeros([1], tl.int32) + stream).to(tl.uint32, bitcast=True)",
        *seed_lines(),
        "tl.store(out + o, philox_word(o, number, low, high, k0, k1), mask=live)",
    ]
    return backend.kernel_of(text_of("key, step, out, stream, count, BLOCK: tl.constexpr", body), "kernel", functions())


def words(key: Tensor, step: Tensor, stream: int, count: int) -> Tensor:
    """What `exact.philox.words` gives, bit for bit, where key and step lie; nothing waits for their values.

    key, step: integers [2], each taken mod 2^32. Returns i32 [count].
    """
    out = torch.empty(count, dtype=torch.int32, device=key.device)
    given = (t.to(torch.int32).contiguous() for t in (key, step))
    # Numbers given to a kernel are signed.
    signed = (stream & 0xFFFFFFFF) - (1 << 32) * (stream >> 31 & 1)
    if count:
        backend.launch(_kernel(), (-(-count // block()),), *given, out, signed, count, BLOCK=block())
    return out
