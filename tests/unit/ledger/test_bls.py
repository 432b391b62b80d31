"""BLS keys, signatures and proofs: two implementations of one rule, and bytes that must not pass."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.errors import InvariantError
from assay.protocol.run.draws import DRAW_TAG, POSSESSION_TAG, Purpose, draw_message
from assay.protocol.types import Address, Digest, Round
from assay_ledger.keys.bls import (
    ARKWORKS,
    CURVE_ORDER,
    FIELD_MODULUS,
    PY_ECC,
    BlsKey,
    Curve,
    default_curve,
    verify_draw,
    verify_possession,
)

VECTORS = Path(__file__).parents[2] / "vectors" / "draws.json"
SECRET = int.from_bytes(b"a secret that only tests may use", "big") % CURVE_ORDER
CONTRACT = Address(bytes(range(20)))
OWNER = Address(b"\x0b" * 20)
RUN, SEED = Digest(b"\x07" * 32), Digest(b"\x08" * 32)
MESSAGE = draw_message(31337, CONTRACT, RUN, Round(5), Purpose.AUDIT, SEED)
RFC_TAG = b"QUUX-V01-CS02-with-BLS12381G2_XMD:SHA-256_SSWU_RO_"
BOTH = pytest.mark.parametrize("curve", [ARKWORKS, PY_ECC], ids=lambda curve: curve.name)


def compute_vectors(curve: Curve) -> dict[str, str]:
    """What tests/vectors/draws.json holds; contracts/test/Draws.t.sol reads it."""
    signature = curve.sign(SECRET, MESSAGE, DRAW_TAG)
    x0 = int.from_bytes(signature[:64], "big")
    points = {
        "public_key": curve.public_key(SECRET),
        "signature": signature,
        "message": MESSAGE,
        "same_message_as_possession": curve.sign(SECRET, MESSAGE, POSSESSION_TAG),
        "signature_not_canonical": (x0 + FIELD_MODULUS).to_bytes(64, "big") + signature[64:],
        "key_outside_subgroup": g1_outside_subgroup(),
        "signature_outside_subgroup": g2_outside_subgroup(),
        "rfc9380_empty_message": curve.hash_to_g2(b"", RFC_TAG),
    }
    return {name: "0x" + data.hex() for name, data in points.items()} | {"rfc9380_tag": RFC_TAG.decode()}


def g1_outside_subgroup() -> bytes:
    """The point of smallest x on y^2 = x^3 + 4: on the curve, not in the subgroup."""
    for x in range(1, 100):
        square = (x**3 + 4) % FIELD_MODULUS
        y = pow(square, (FIELD_MODULUS + 1) // 4, FIELD_MODULUS)
        if y * y % FIELD_MODULUS == square:
            return x.to_bytes(64, "big") + y.to_bytes(64, "big")
    raise AssertionError("no point")


def g2_outside_subgroup() -> bytes:
    """A point with small x on the twist, not in the subgroup."""
    from py_ecc.bls.point_compression import modular_squareroot_in_FQ2
    from py_ecc.optimized_bls12_381 import FQ2, b2

    for c in range(1, 100):
        x = FQ2((c, 0))
        y: Any = modular_squareroot_in_FQ2(x * x * x + b2)
        if y is not None:
            return b"".join(int(v).to_bytes(64, "big") for v in (*x.coeffs, *y.coeffs))
    raise AssertionError("no point")


def test_vectors_of_the_contract_tests_equal_what_both_implementations_compute() -> None:
    published = json.loads(VECTORS.read_text())
    assert published == compute_vectors(ARKWORKS)
    assert published == compute_vectors(PY_ECC)


def test_the_suite_gives_the_point_that_rfc_9380_prints() -> None:
    # RFC 9380, appendix J.10.1, message "".
    coordinates = (
        "0141ebfbdca40eb85b87142e130ab689c673cf60f1a3e98d69335266f30d9b8d4ac44c1038e9dcdd5393faf5c41fb78a",
        "05cb8437535e20ecffaef7752baddf98034139c38452458baeefab379ba13dff5bf5dd71b72418717047f5b0f37da03d",
        "0503921d7f6a12805e72940b963c0cf3471c7b2a524950ca195d11062ee75ec076daf2d4bc358c4b190c0c98064fdd92",
        "12424ac32561493f3fe3c260708a12b7c620e7be00099a974e259ddc7d1f6395c3c811cdd19f1e8dbf3e9ecfdcbab8d6",
    )
    want = b"".join(bytes(16) + bytes.fromhex(c) for c in coordinates)
    assert ARKWORKS.hash_to_g2(b"", RFC_TAG) == PY_ECC.hash_to_g2(b"", RFC_TAG) == want


def test_both_implementations_agree_on_keys_points_and_signatures() -> None:
    for i in range(8):
        secret, message = pow(5, 100 + i, CURVE_ORDER), bytes([i]) * (37 * i)
        assert ARKWORKS.public_key(secret) == PY_ECC.public_key(secret)
        assert ARKWORKS.compressed_public_key(secret) == PY_ECC.compressed_public_key(secret)
        assert ARKWORKS.sign(secret, message, DRAW_TAG) == PY_ECC.sign(secret, message, DRAW_TAG)


@BOTH
def test_a_signature_verifies_under_its_key_message_and_tag_only(curve: Curve) -> None:
    key, y = curve.public_key(SECRET), curve.sign(SECRET, MESSAGE, DRAW_TAG)
    assert curve.verify(key, y, MESSAGE, DRAW_TAG)
    assert not curve.verify(key, y, MESSAGE, POSSESSION_TAG)
    assert not curve.verify(key, y, MESSAGE[:-1], DRAW_TAG)
    assert not curve.verify(curve.public_key(SECRET + 1), y, MESSAGE, DRAW_TAG)


@BOTH
def test_hostile_bytes_are_false_and_never_an_error(curve: Curve) -> None:
    vectors = {k: bytes.fromhex(v[2:]) for k, v in json.loads(VECTORS.read_text()).items() if v.startswith("0x")}
    key, y = vectors["public_key"], vectors["signature"]
    bad_keys = [b"", key[:-1], key + b"\0", bytes(128), b"\xff" * 128, b"\1" * 128, vectors["key_outside_subgroup"]]
    bad_keys.append(key[:127] + bytes([key[127] ^ 1]))
    for bad in bad_keys:
        assert not curve.verify(bad, y, MESSAGE, DRAW_TAG)
    bad_signatures = [b"", y[:-1], y + b"\0", bytes(256), b"\xff" * 256, y[:255] + bytes([y[255] ^ 1])]
    bad_signatures += [vectors["signature_outside_subgroup"], vectors["signature_not_canonical"]]
    for bad in bad_signatures:
        assert not curve.verify(key, bad, MESSAGE, DRAW_TAG)
    assert not curve.verify(bytes(128), bytes(256), MESSAGE, DRAW_TAG)


def test_a_possession_proof_is_bound_to_its_owner_contract_and_chain() -> None:
    key = BlsKey.from_secret(SECRET)
    proof = key.prove_possession(31337, CONTRACT, OWNER)
    assert verify_possession(key.public_key, proof, 31337, CONTRACT, OWNER)
    assert not verify_possession(key.public_key, proof, 31337, CONTRACT, CONTRACT)
    assert not verify_possession(key.public_key, proof, 31337, OWNER, OWNER)
    assert not verify_possession(key.public_key, proof, 1, CONTRACT, OWNER)
    assert not verify_possession(key.public_key[1:], proof, 31337, CONTRACT, OWNER)


def test_a_key_draws_with_the_message_of_its_round() -> None:
    key = BlsKey.from_secret(SECRET)
    y = key.sign_draw(31337, CONTRACT, RUN, Round(5), Purpose.AUDIT, SEED)
    assert verify_draw(key.public_key, y, MESSAGE)
    assert y == key.sign_draw(31337, CONTRACT, RUN, Round(5), Purpose.AUDIT, SEED)
    assert y != key.sign_draw(31337, CONTRACT, RUN, Round(5), Purpose.WHISTLE, SEED)


def test_without_the_native_package_the_reference_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_curve() is ARKWORKS
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "py_arkworks_bls12381", None)
        default_curve.cache_clear()
        key = BlsKey.from_secret(SECRET)
        y = key.sign_draw(31337, CONTRACT, RUN, Round(5), Purpose.AUDIT, SEED)
        assert default_curve() is PY_ECC
    default_curve.cache_clear()
    assert default_curve() is ARKWORKS
    assert verify_draw(key.public_key, y, MESSAGE)


def test_a_generated_key_is_fresh_and_its_text_does_not_show_the_secret() -> None:
    a, b = BlsKey.generate(), BlsKey.generate()
    assert a.secret != b.secret
    assert str(a.secret) not in repr(a)
    assert a.public_key == default_curve().public_key(a.secret)


@pytest.mark.parametrize("secret", [0, -1, CURVE_ORDER, CURVE_ORDER + 1])
def test_a_secret_outside_the_scalars_is_refused_without_being_repeated(secret: int) -> None:
    for curve in (ARKWORKS, PY_ECC):
        with pytest.raises(InvariantError) as refused:
            curve.public_key(secret)
        assert str(secret) not in str(refused.value) or secret in (0, -1)
    with pytest.raises(InvariantError):
        BlsKey.from_secret(secret)
