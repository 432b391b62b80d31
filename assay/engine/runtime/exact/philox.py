"""Philox4x32-10 on whole tensors; agrees with `protocol.arithmetic.philox` word by word."""

from __future__ import annotations

import torch
from torch import Tensor

_M0, _M1 = 0xD2511F53, 0xCD9E8D57
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_MASK = 0xFFFFFFFF


def words(key: Tensor, step: Tensor, stream: int, count: int) -> Tensor:
    """Words 0..count-1 of a stream: element i is word i mod 4 at counter (i div 4, stream, step[0], step[1]).

    key, step: integers [2], each taken mod 2^32. Returns i32 [count], where the key is.
    """
    k0, k1 = (int(k) & _MASK for k in key.tolist())
    s0, s1 = (int(s) & _MASK for s in step.tolist())
    c0 = torch.arange((count + 3) // 4, dtype=torch.int64, device=key.device) & _MASK
    c1 = torch.full_like(c0, stream & _MASK)
    c2 = torch.full_like(c0, s0)
    c3 = torch.full_like(c0, s1)
    for _ in range(10):
        # Products wrap mod 2^64 as int64; both halves are read after masking, so the sign does not matter.
        p0, p1 = c0 * _M0, c2 * _M1
        c0, c1, c2, c3 = (
            ((p1 >> 32) & _MASK) ^ c1 ^ k0,
            p1 & _MASK,
            ((p0 >> 32) & _MASK) ^ c3 ^ k1,
            p0 & _MASK,
        )
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    return torch.stack((c0, c1, c2, c3), 1).flatten()[:count].to(torch.int32)
