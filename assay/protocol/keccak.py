"""keccak-256, the contracts' hash: by the fastest library that is installed, else in plain Python, bit for bit.

Source: Bertoni, Daemen, Peeters and Van Assche, "The Keccak reference", 3.0; the padding is Keccak's own (a bit 1, not
SHA-3's 011). A machine that only computes, such as a bare one with a GPU, needs no library of Ethereum's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

RATE: Final = 136
"""Bytes of a block: 1,600 bits of state less twice 256."""

ROUNDS: Final = 24
_MASK: Final = (1 << 64) - 1


def _constants() -> Iterator[int]:
    """What each round adds to lane 0: bits of a shift register over x^8 + x^6 + x^5 + x^4 + 1."""
    register = 1
    for _ in range(ROUNDS):
        constant = 0
        for j in range(7):
            constant |= (register & 1) << (1 << j) - 1
            register = register << 1 ^ (register >> 7) * 0x171
        yield constant


def _moves() -> Iterator[tuple[int, int, int]]:
    """Where each lane x + 5 y goes, and by how many bits it turns on the way (rho and pi in one)."""
    yield 0, 0, 0
    x, y = 1, 0
    for t in range(1, 25):
        to_x, to_y = y, (2 * x + 3 * y) % 5
        yield x + 5 * y, to_x + 5 * to_y, t * (t + 1) // 2 % 64
        x, y = to_x, to_y


_CONSTANTS: Final = tuple(_constants())
_MOVES: Final = tuple(_moves())


def plain_keccak256(data: bytes) -> bytes:
    """The digest, 32 bytes, by Python's integers alone: about a millisecond a block."""
    padded = bytearray(data)
    padded += bytes(RATE - len(data) % RATE)
    padded[len(data)] ^= 0x01
    padded[-1] ^= 0x80
    lanes = [0] * 25
    for start in range(0, len(padded), RATE):
        for k in range(RATE // 8):
            at = start + 8 * k
            lanes[k] ^= int.from_bytes(padded[at : at + 8], "little")
        lanes = _permuted(lanes)
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])


def _permuted(lanes: list[int]) -> list[int]:
    for constant in _CONSTANTS:
        columns = [lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20] for x in range(5)]
        mixed = [columns[x - 1] ^ _turned(columns[(x + 1) % 5], 1) for x in range(5)]
        moved = [0] * 25
        for source, target, bits in _MOVES:
            moved[target] = _turned(lanes[source] ^ mixed[source % 5], bits)
        rows = [moved[y : y + 5] for y in range(0, 25, 5)]
        lanes = [row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5]) for row in rows for x in range(5)]
        lanes[0] ^= constant
    return lanes


def _turned(lane: int, bits: int) -> int:
    return (lane << bits | lane >> 64 - bits) & _MASK


def fastest() -> Callable[[bytes], bytes]:
    """keccak-256 by pysha3, a call of which takes a seventh of one of eth_hash, by eth_hash, or in Python."""
    with suppress(ImportError):
        from sha3 import keccak_256

        return lambda data: bytes(keccak_256(data).digest())
    with suppress(ImportError):
        from eth_hash.auto import keccak

        return keccak
    return plain_keccak256


keccak256: Final = fastest()
"""The digest of some bytes, by what is fastest here."""
