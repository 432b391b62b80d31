"""The counter-based random generator Philox4x32-10 (Salmon et al., SC 2011; rules AR-12 and AR-13).

All words are unsigned 32-bit integers. `contracts/libraries/Philox.sol` computes the same.
"""

from __future__ import annotations

_M0, _M1 = 0xD2511F53, 0xCD9E8D57
_W0, _W1 = 0x9E3779B9, 0xBB67AE85
_MASK = 0xFFFFFFFF

ROUNDS = 10
COUNTER_LIMIT = 1 << 34
"""A `random` node has at most this many elements: four per value of the 32-bit counter word."""


def philox4x32(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """The four output words for a counter of four words under a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        p0, p1 = c0 * _M0, c2 * _M1
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _MASK, (p0 >> 32) ^ c3 ^ k1, p0 & _MASK
        k0, k1 = (k0 + _W0) & _MASK, (k1 + _W1) & _MASK
    return c0, c1, c2, c3


def random_word(element: int, stream: int, step: tuple[int, int], key: tuple[int, int]) -> int:
    """The word of element i of `random`, unsigned: word i mod 4 at counter (i div 4 mod 2^32, stream, step).

    step, key: pairs of 32-bit words; signed ones are taken mod 2^32.
    """
    counter = (element >> 2 & _MASK, stream & _MASK, step[0] & _MASK, step[1] & _MASK)
    return philox4x32(counter, (key[0] & _MASK, key[1] & _MASK))[element & 3]
