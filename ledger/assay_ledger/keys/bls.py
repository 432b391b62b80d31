"""BLS12-381 keys, signatures and checks, in the encodings that the contracts use.

Public keys lie in G1 (128 bytes), signatures in G2 (256 bytes), both EIP-2537 uncompressed: coordinates of 64
big-endian bytes whose first 16 are zero. Infinity is refused everywhere and every point is checked to lie in its
subgroup, exactly as the contract does with the pairing precompile.

Two implementations of one interface: `ARKWORKS` (a native binding, about 1 ms to sign and 3 ms to verify) and `PY_ECC`
(pure Python, the reference, about 0.2 s and 0.6 s). `default_curve()` takes the native one where it is installed.

Source: EIP-2537 (encodings), RFC 9380 (hash to curve), draft-irtf-cfrg-bls-signature-05 (scheme),
docs/adr/0003-draws.md.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from assay.protocol.run.draws import (
    DRAW_TAG,
    KEY_LENGTH,
    POSSESSION_TAG,
    SIGNATURE_LENGTH,
    Purpose,
    draw_message,
    possession_message,
)
from assay.protocol.types import Address, Digest, Round
from assay_ledger.keys.points import PointEncoding

if TYPE_CHECKING:
    from py_arkworks_bls12381 import G1Point, G2Point

FIELD_MODULUS: Final = int(
    "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab", 16
)
CURVE_ORDER: Final = int("73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001", 16)

POINTS: Final = PointEncoding(FIELD_MODULUS, CURVE_ORDER, width=64)


class Curve(Protocol):
    """What draws need of BLS12-381; points travel as EIP-2537 bytes, secrets as integers in [1, CURVE_ORDER)."""

    @property
    def name(self) -> str:
        """A short name for logs."""
        ...

    def public_key(self, secret: int) -> bytes:
        """The 128-byte key of a secret."""
        ...

    def compressed_public_key(self, secret: int) -> bytes:
        """The 48-byte compressed key of a secret, as EIP-2335 files name it."""
        ...

    def hash_to_g2(self, message: bytes, tag: bytes) -> bytes:
        """The 256-byte point that a message hashes to under a domain tag."""
        ...

    def sign(self, secret: int, message: bytes, tag: bytes) -> bytes:
        """The 256-byte signature of a message under a domain tag."""
        ...

    def verify(self, public_key: bytes, signature: bytes, message: bytes, tag: bytes) -> bool:
        """Does the contract accept this signature? False for every malformed input, never an error."""
        ...


@dataclass(frozen=True, slots=True)
class BlsKey:
    """A drawing key: the secret and its public key. Its text form shows the public key only."""

    secret: int = field(repr=False)
    public_key: bytes

    @staticmethod
    def from_secret(secret: int) -> BlsKey:
        """The key of a secret scalar; InvariantError if it is not in [1, CURVE_ORDER)."""
        return BlsKey(secret, default_curve().public_key(POINTS.check_secret(secret)))

    @staticmethod
    def generate() -> BlsKey:
        """A fresh key, uniform over the scalars, from the operating system's randomness."""
        return BlsKey.from_secret(1 + secrets.randbelow(CURVE_ORDER - 1))

    def sign_draw(
        self, chain_id: int, contract: Address, run: Digest, round_: Round, purpose: Purpose, seed: Digest
    ) -> bytes:
        """y, the ticket of this key for one round and purpose (256 bytes). Secret until the round's reveal."""
        message = draw_message(chain_id, contract, run, round_, purpose, seed)
        return default_curve().sign(self.secret, message, DRAW_TAG)

    def prove_possession(self, chain_id: int, contract: Address, owner: Address) -> bytes:
        """The proof with which `owner` registers this key at `contract` (256 bytes)."""
        message = possession_message(chain_id, contract, owner, self.public_key)
        return default_curve().sign(self.secret, message, POSSESSION_TAG)


def verify_draw(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Would the contract accept this ticket at the reveal?"""
    return default_curve().verify(public_key, signature, message, DRAW_TAG)


def verify_possession(public_key: bytes, proof: bytes, chain_id: int, contract: Address, owner: Address) -> bool:
    """Would the contract accept this proof at registration?"""
    if len(public_key) != KEY_LENGTH:
        return False
    message = possession_message(chain_id, contract, owner, public_key)
    return default_curve().verify(public_key, proof, message, POSSESSION_TAG)


@cache
def default_curve() -> Curve:
    """The native implementation where its package is installed, else the pure Python one."""
    try:
        import py_arkworks_bls12381  # noqa: F401
    except ImportError:
        return PY_ECC
    return ARKWORKS


@dataclass(frozen=True, slots=True)
class ArkworksCurve:
    """The native binding `py_arkworks_bls12381`."""

    name: str = "arkworks"

    def public_key(self, secret: int) -> bytes:
        return _pad(self._key(secret).to_xy_bytes_be())

    def compressed_public_key(self, secret: int) -> bytes:
        return self._key(secret).to_compressed_bytes()

    def hash_to_g2(self, message: bytes, tag: bytes) -> bytes:
        return _pad(self._hash(message, tag).to_xy_bytes_be())

    def sign(self, secret: int, message: bytes, tag: bytes) -> bytes:
        from py_arkworks_bls12381 import Scalar

        return _pad((self._hash(message, tag) * Scalar(POINTS.check_secret(secret))).to_xy_bytes_be())

    def verify(self, public_key: bytes, signature: bytes, message: bytes, tag: bytes) -> bool:
        from py_arkworks_bls12381 import GT, G1Point, G2Point

        if not (POINTS.is_canonical(public_key, KEY_LENGTH) and POINTS.is_canonical(signature, SIGNATURE_LENGTH)):
            return False
        try:  # refuses points off the curve or outside the subgroup
            key = G1Point.from_xy_bytes_be(_strip(public_key))
            point = G2Point.from_xy_bytes_be(_strip(signature))
        except ValueError:
            return False
        return GT.pairing_check([-G1Point(), key], [point, self._hash(message, tag)])

    @staticmethod
    def _key(secret: int) -> G1Point:
        from py_arkworks_bls12381 import G1Point, Scalar

        return G1Point() * Scalar(POINTS.check_secret(secret))

    @staticmethod
    def _hash(message: bytes, tag: bytes) -> G2Point:
        from py_arkworks_bls12381 import G2Point

        return G2Point.hash_to_curve(message, tag)


@dataclass(frozen=True, slots=True)
class PyEccCurve:
    """The pure Python `py_ecc`: slow, readable, the reference."""

    name: str = "py_ecc"

    def public_key(self, secret: int) -> bytes:
        curve = _py_ecc()
        x, y = curve.normalize(curve.multiply(curve.G1, POINTS.check_secret(secret)))
        return POINTS.encode(int(x), int(y))

    def compressed_public_key(self, secret: int) -> bytes:
        from py_ecc.bls.g2_primitives import G1_to_pubkey

        curve = _py_ecc()
        return bytes(G1_to_pubkey(curve.multiply(curve.G1, POINTS.check_secret(secret))))

    def hash_to_g2(self, message: bytes, tag: bytes) -> bytes:
        return self._encode_g2(self._hash(message, tag))

    def sign(self, secret: int, message: bytes, tag: bytes) -> bytes:
        return self._encode_g2(_py_ecc().multiply(self._hash(message, tag), POINTS.check_secret(secret)))

    def verify(self, public_key: bytes, signature: bytes, message: bytes, tag: bytes) -> bool:
        from py_ecc.bls.g2_primitives import subgroup_check

        if not (POINTS.is_canonical(public_key, KEY_LENGTH) and POINTS.is_canonical(signature, SIGNATURE_LENGTH)):
            return False
        curve = _py_ecc()
        x, y = POINTS.coordinates(public_key)
        key = (curve.FQ(x), curve.FQ(y), curve.FQ.one())
        x0, x1, y0, y1 = POINTS.coordinates(signature)
        point = (curve.FQ2((x0, x1)), curve.FQ2((y0, y1)), curve.FQ2.one())
        if not (curve.is_on_curve(key, curve.b) and curve.is_on_curve(point, curve.b2)):
            return False
        if not (subgroup_check(key) and subgroup_check(point)):
            return False
        left = curve.pairing(point, curve.neg(curve.G1))
        right = curve.pairing(self._hash(message, tag), key)
        return bool(left * right == curve.FQ12.one())

    @staticmethod
    def _hash(message: bytes, tag: bytes) -> Any:
        # py_ecc annotates the hash function as a hash object.
        hash_to_g2: Any = import_module("py_ecc.bls.hash_to_curve").hash_to_G2
        return hash_to_g2(message, tag, hashlib.sha256)

    @staticmethod
    def _encode_g2(point: Any) -> bytes:
        x, y = _py_ecc().normalize(point)
        return POINTS.encode(*(int(c) for c in (*x.coeffs, *y.coeffs)))


ARKWORKS: Final[Curve] = ArkworksCurve()
PY_ECC: Final[Curve] = PyEccCurve()


def _py_ecc() -> Any:
    """The curve module; imported late (0.4 s), untyped because it re-exports implicitly."""
    return import_module("py_ecc.optimized_bls12_381")


def _pad(raw: bytes) -> bytes:
    """Coordinates of 48 bytes to coordinates of 64."""
    return b"".join(bytes(16) + raw[i : i + 48] for i in range(0, len(raw), 48))


def _strip(data: bytes) -> bytes:
    return b"".join(data[i + 16 : i + 64] for i in range(0, len(data), 64))
