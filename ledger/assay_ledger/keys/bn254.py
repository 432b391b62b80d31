"""BLS signatures on BN254 as drand's `bls-bn254-unchained-on-g1` makes them, in integers and `py_ecc`.

Public keys lie in G2 (128 bytes: x.c1, x.c0, y.c1, y.c0), signatures in G1 (64 bytes: x, y), as EIP-196 and EIP-197
encode points. Messages are hashed to G1 by RFC 9380: expand_message_xmd with Keccak-256, two Shallue-van de Woestijne
maps, one addition. `contracts/beacon/` does the same on chain; tests hold the two together.

Source: RFC 9380 (sections 5.3.1, 6.6.1 and F.1), EIP-196, EIP-197, docs/adr/0031-beacon.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from eth_hash.auto import keccak

from assay.protocol.errors import InvariantError
from assay.protocol.run.beacon import KEY_LENGTH, SIGNATURE_LENGTH, TAG
from assay_ledger.keys.points import PointEncoding

FIELD_MODULUS: Final = int("30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47", 16)
CURVE_ORDER: Final = int("30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001", 16)

POINTS: Final = PointEncoding(FIELD_MODULUS, CURVE_ORDER, width=32)

ZERO_PAD: Final = bytes(136)
"""One block of Keccak-256."""

ELEMENT: Final = 48
"""Bytes that are reduced to one field element: 254 bits and 128 more, so that no residue is likelier than another."""

G1Affine = tuple[int, int]
"""Affine coordinates on y^2 = x^3 + 3; (0, 0), which is not on it, stands for infinity, as in EIP-196."""

# Constants of the map for Z = 1 and g(x) = x^3 + 3 (RFC 9380, section 6.6.1).
_C1: Final = 4
"""g(Z)."""
_C2: Final = -pow(2, -1, FIELD_MODULUS) % FIELD_MODULUS
"""-Z / 2."""
_C3: Final = 0x16789AF3A83522EB353C98FC6B36D713D5D8D1CC5DFFFFFFA
"""sqrt(-g(Z) * 3 Z^2), the even root."""
_C4: Final = -16 * pow(3, -1, FIELD_MODULUS) % FIELD_MODULUS
"""-4 g(Z) / (3 Z^2)."""


def sign(secret: int, message: bytes, tag: bytes = TAG) -> bytes:
    """The 64-byte signature of a message. Raises InvariantError if the secret is not in [1, CURVE_ORDER)."""
    curve = _py_ecc()
    signed = curve.multiply(_on_g1(hash_to_g1(message, tag)), POINTS.check_secret(secret))
    return POINTS.encode(*_affine(signed))


def public_key(secret: int) -> bytes:
    """The 128-byte key of a secret. Raises InvariantError if it is not in [1, CURVE_ORDER)."""
    curve = _py_ecc()
    x, y = curve.normalize(curve.multiply(curve.G2, POINTS.check_secret(secret)))
    (x0, x1), (y0, y1) = x.coeffs, y.coeffs
    return POINTS.encode(int(x1), int(x0), int(y1), int(y0))


def verify(key: bytes, signature: bytes, message: bytes, tag: bytes = TAG) -> bool:
    """Does the contract accept this signature? False for every malformed input, never an error."""
    if not (is_key(key) and POINTS.is_canonical(signature, SIGNATURE_LENGTH)):
        return False
    curve = _py_ecc()
    x, y = POINTS.coordinates(signature)
    point, hashed = _on_g1((x, y)), _on_g1(hash_to_g1(message, tag))
    # Every point of this curve is in G1.
    if not curve.is_on_curve(point, curve.b):
        return False
    left = curve.pairing(curve.neg(curve.G2), point, final_exponentiate=False)
    right = curve.pairing(_on_g2(key), hashed, final_exponentiate=False)
    return bool(curve.final_exponentiate(left * right) == curve.FQ12.one())


def is_key(key: bytes) -> bool:
    """Is this a point of G2 other than infinity, in its one encoding? Of the twist's points few are in G2."""
    if not POINTS.is_canonical(key, KEY_LENGTH):
        return False
    curve, point = _py_ecc(), _on_g2(key)
    return bool(curve.is_on_curve(point, curve.b2) and curve.is_inf(curve.multiply(point, CURVE_ORDER)))


def hash_to_g1(message: bytes, tag: bytes = TAG) -> G1Affine:
    """The point that a message hashes to under a domain tag."""
    u0, u1 = hash_to_field(message, tag)
    return _affine(_py_ecc().add(_on_g1(map_to_g1(u0)), _on_g1(map_to_g1(u1))))


def hash_to_field(message: bytes, tag: bytes = TAG) -> tuple[int, int]:
    """The two field elements that a message is mapped by."""
    uniform = expand_message(message, tag)
    u0, u1 = (int.from_bytes(uniform[k : k + ELEMENT], "big") % FIELD_MODULUS for k in (0, ELEMENT))
    return u0, u1


def expand_message(message: bytes, tag: bytes) -> bytes:
    """expand_message_xmd with Keccak-256, 96 bytes. Raises InvariantError for a tag of more than 255 bytes."""
    if len(tag) > 255:
        raise InvariantError(f"A domain tag has at most 255 bytes, not {len(tag)}.", code="TagTooLong")
    suffix = tag + bytes([len(tag)])
    b0 = keccak(ZERO_PAD + message + (2 * ELEMENT).to_bytes(2, "big") + b"\0" + suffix)
    block = keccak(b0 + b"\1" + suffix)
    uniform = block
    for k in (2, 3):
        block = keccak(bytes(a ^ b for a, b in zip(b0, block, strict=True)) + bytes([k]) + suffix)
        uniform += block
    return uniform


def map_to_g1(u: int) -> G1Affine:
    """The Shallue-van de Woestijne map of a field element: the first candidate on the curve, y as odd as u."""
    p = FIELD_MODULUS
    for x in candidates(u):
        square = (x * x * x + 3) % p
        y = pow(square, (p + 1) // 4, p)
        if y * y % p == square:
            return x, y if y % 2 == u % 2 else p - y
    raise InvariantError(f"{u} maps to no point of BN254: this cannot be.", code="NoPoint")


def candidates(u: int) -> tuple[int, int, int]:
    """The three x of which one is always on the curve, in the order of RFC 9380, section F.1.

    u = 1/2 and u = -1/2 have no inverse to take and use 0.
    """
    p = FIELD_MODULUS
    tv1 = u * u * _C1 % p
    tv2, tv1 = (1 + tv1) % p, (1 - tv1) % p
    tv3 = pow(tv1 * tv2, p - 2, p)
    tv4 = u * tv1 * tv3 * _C3 % p
    return (_C2 - tv4) % p, (_C2 + tv4) % p, ((tv2 * tv2 * tv3) ** 2 * _C4 + 1) % p


def _py_ecc() -> Any:
    """The curve module; imported late (0.4 s), untyped because it re-exports implicitly."""
    return import_module("py_ecc.optimized_bn128")


def _on_g1(point: G1Affine) -> Any:
    """A point as py_ecc computes with it."""
    x, y = (_py_ecc().FQ(c) for c in point)
    return x, y, x.one()


def _on_g2(key: bytes) -> Any:
    """A key as py_ecc computes with it."""
    x1, x0, y1, y0 = POINTS.coordinates(key)
    field = _py_ecc().FQ2
    return field((x0, x1)), field((y0, y1)), field.one()


def _affine(point: Any) -> G1Affine:
    """A point of py_ecc's as coordinates; infinity, whose z is 0, as (0, 0)."""
    x, y = _py_ecc().normalize(point)
    return int(x), int(y)
