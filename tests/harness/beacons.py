"""Published facts of beacons (tests/vectors/beacon.json), and points of BN254 that tests need beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assay.protocol.run.beacon import signed_message
from assay.protocol.types import BeaconRound
from assay_ledger.keys.bn254 import FIELD_MODULUS, candidates, hash_to_field, map_to_g1

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[1] / "vectors" / "beacon.json").read_text())


def data(text: str) -> bytes:
    """Bytes of a hexadecimal text."""
    return bytes.fromhex(text.removeprefix("0x"))


def words(data: bytes) -> list[int]:
    """Words of 32 bytes, as contracts take a key."""
    return [int.from_bytes(data[i : i + 32], "big") for i in range(0, len(data), 32)]


def attempts(number: int) -> int:
    """Square roots that the contract takes to hash this round's message: two to six."""
    elements = hash_to_field(signed_message(BeaconRound(number)))
    return sum(1 + candidates(u).index(map_to_g1(u)[0]) for u in elements)


def g2_outside_group() -> bytes:
    """A point of the twist that is not in G2, as EIP-197 encodes it: the one with the smallest real x."""
    from py_ecc.optimized_bn128 import FQ2, b2

    for c in range(1, 1000):
        x = FQ2((c, 0))
        square = x * x * x + b2
        y = _root(int(square.coeffs[0]), int(square.coeffs[1]))
        if y is not None:
            return b"".join(v.to_bytes(32, "big") for v in (0, c, y[1], y[0]))
    raise AssertionError("no point")


def _root(a: int, b: int) -> tuple[int, int] | None:
    """A square root of a + b i, if it has one: |z| = sqrt(a^2 + b^2), then re^2 = (a + |z|) / 2."""
    p = FIELD_MODULUS
    norm = _prime_root((a * a + b * b) % p)
    for sign in (1, -1) if norm is not None else ():
        real = _prime_root((a + sign * norm) * pow(2, -1, p) % p)
        if real:
            return real, b * pow(2 * real, -1, p) % p
    return None


def _prime_root(square: int) -> int | None:
    root = pow(square, (FIELD_MODULUS + 1) // 4, FIELD_MODULUS)
    return root if root * root % FIELD_MODULUS == square else None
