"""Signed transactions as evidence: what they say and who signed, read from their bytes alone.

A flat reader of RLP: items are cut and never descended into, so a hostile nesting costs nothing.
Source: Ethereum yellow paper, appendices B and F; EIP-155, EIP-2718, EIP-2930, EIP-1559, EIP-7702.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from eth_keys.datatypes import Signature
from eth_keys.exceptions import BadSignature
from eth_utils.exceptions import ValidationError

from assay.bundle.errors import BundleMalformed
from assay.protocol.digests import keccak
from assay.protocol.types import Address, Digest

MAX_RAW: Final = 128 * 1024 + 4096
"""Bytes of one transaction: the calldata that pools accept, and what surrounds it."""

_LAYOUTS: Final = {1: (0, 4, 6), 2: (0, 5, 7), 4: (0, 5, 7)}
"""Per transaction type: where chain id, `to` and data stand."""


@dataclass(frozen=True, slots=True)
class SignedCall:
    """What a transaction says: `sender` signed a call of `to` with this calldata."""

    hash: Digest
    sender: Address
    to: Address
    data: bytes
    chain_id: int | None
    """None for one that was signed for any chain."""


def read_signed(raw: bytes) -> SignedCall:
    """The call in a signed transaction and the account that signed it. Raises BundleMalformed."""
    if not raw or len(raw) > MAX_RAW:
        raise BundleMalformed(f"A transaction of {len(raw)} bytes.")
    kind = raw[0]
    if kind < 0x80:
        if kind not in _LAYOUTS:
            raise BundleMalformed(f"Transactions of type {kind} are unknown.")
        items = _items(raw[1:])
        chain_at, to_at, data_at = _LAYOUTS[kind]
        _expect(len(items) >= data_at + 4)
        chain_id: int | None = _number(items[chain_at])
        parity, unsigned = _number(items[-3]), raw[:1] + _list(items[:-3])
    else:
        items = _items(raw)
        _expect(len(items) == 9)
        to_at, data_at = 3, 5
        v = _number(items[6])
        chain_id = (v - 35) // 2 if v >= 35 else None
        parity = (v - 35) % 2 if v >= 35 else v - 27
        tail = [] if chain_id is None else [_integer(chain_id), b"\x80", b"\x80"]
        unsigned = _list([*items[:6], *tail])
    to = _bytes(items[to_at])
    _expect(len(to) == 20)
    sender = _recover(keccak(unsigned), parity, _number(items[-2]), _number(items[-1]))
    return SignedCall(keccak(raw), sender, Address(to), _bytes(items[data_at]), chain_id)


@dataclass(frozen=True, slots=True)
class FeeMarketCall:
    """The fields of a transaction of type 2 (EIP-1559), as a node describes it."""

    chain_id: int
    nonce: int
    tip: int
    max_fee: int
    gas: int
    to: bytes
    value: int
    data: bytes
    access_list: tuple[tuple[bytes, tuple[bytes, ...]], ...]
    parity: int
    r: int
    s: int

    def encode(self) -> bytes:
        """The signed bytes."""
        accesses = [_list([_string(a), _list([_string(k) for k in keys])]) for a, keys in self.access_list]
        numbers = (self.chain_id, self.nonce, self.tip, self.max_fee, self.gas)
        items = [*map(_integer, numbers), _string(self.to), _integer(self.value), _string(self.data)]
        return b"\x02" + _list([*items, _list(accesses), *map(_integer, (self.parity, self.r, self.s))])


def _recover(digest: Digest, parity: int, r: int, s: int) -> Address:
    try:
        key = Signature(vrs=(parity, r, s)).recover_public_key_from_msg_hash(digest)
    except (BadSignature, ValidationError, ValueError) as error:
        raise BundleMalformed("The signature of a transaction is none.") from error
    return Address(key.to_canonical_address())


def _items(data: bytes) -> list[bytes]:
    """The items of the one RLP list that these bytes are, each with its own header."""
    start, end = _span(data, 0)
    _expect(data[0] >= 0xC0 and end == len(data))
    items = []
    while start < end:
        _, stop = _span(data, start)
        _expect(stop <= end)
        items.append(data[start:stop])
        start = stop
        _expect(len(items) <= 16)
    return items


def _span(data: bytes, at: int) -> tuple[int, int]:
    """Where the payload of the item at `at` begins and ends."""
    _expect(at < len(data))
    first = data[at]
    if first < 0x80:
        return at, at + 1
    base = 0x80 if first < 0xC0 else 0xC0
    short = first - base
    if short <= 55:
        begin, size = at + 1, short
    else:
        width = short - 55
        begin = at + 1 + width
        size = int.from_bytes(data[at + 1 : begin], "big")
    _expect(begin + size <= len(data))
    return begin, begin + size


def _bytes(item: bytes) -> bytes:
    """The payload of a string."""
    _expect(item[0] < 0xC0)
    begin, end = _span(item, 0)
    return item[begin:end]


def _number(item: bytes) -> int:
    """The payload of a string as an unsigned integer of at most 32 bytes."""
    payload = _bytes(item)
    _expect(len(payload) <= 32)
    return int.from_bytes(payload, "big")


def _integer(value: int) -> bytes:
    """An unsigned integer as an item."""
    return _string(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _string(payload: bytes) -> bytes:
    """Bytes as an item."""
    return payload if len(payload) == 1 and payload[0] < 0x80 else _head(0x80, len(payload)) + payload


def _list(items: list[bytes]) -> bytes:
    """A list of items."""
    payload = b"".join(items)
    return _head(0xC0, len(payload)) + payload


def _head(base: int, size: int) -> bytes:
    """The header of a string (0x80) or list (0xC0) of so many bytes."""
    if size <= 55:
        return bytes((base + size,))
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((base + 55 + len(length),)) + length


def _expect(holds: bool) -> None:
    if not holds:
        raise BundleMalformed("A transaction is cut short or not encoded as one.")
