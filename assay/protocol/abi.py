"""ABI words: what Solidity's abi.encode makes of values of fixed size, 32 bytes each.

Raises InvariantError (WordOutOfRange) for a value that does not fit its type: on chain there would be no such value.
"""

from __future__ import annotations

from assay.protocol.errors import InvariantError
from assay.protocol.types import Address, Digest


def uint(value: int, bits: int = 256) -> bytes:
    """The word of a uint of this width."""
    if not 0 <= value < 1 << bits:
        raise InvariantError(f"{value} does not fit uint{bits}.", code="WordOutOfRange")
    return int(value).to_bytes(32, "big")


def address(value: Address) -> bytes:
    """The word of an address."""
    return bytes(12) + _exactly(20, value)


def bytes32(value: Digest) -> bytes:
    """The word of a bytes32."""
    return _exactly(32, value)


def text(value: bytes) -> bytes:
    """The word of a string literal of at most 32 bytes that is used as a bytes32."""
    if len(value) > 32:
        raise InvariantError(f"{value!r} does not fit bytes32.", code="WordOutOfRange")
    return value.ljust(32, b"\0")


def _exactly(size: int, value: bytes) -> bytes:
    if len(value) != size:
        raise InvariantError(f"{len(value)} bytes where {size} are needed.", code="WordOutOfRange")
    return bytes(value)
