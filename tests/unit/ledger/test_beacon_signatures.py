"""The beacon's signatures off chain: published rounds, points and keys, and bytes that must not pass."""

from __future__ import annotations

from typing import Any

import pytest

from assay.protocol.errors import InvariantError
from assay.protocol.run.beacon import EVMNET, LOCAL, SCHEME, TAG, DrandNetwork, randomness, signed_message
from assay.protocol.types import BeaconRound
from assay_ledger.keys import bn254
from assay_ledger.keys.bn254 import CURVE_ORDER, FIELD_MODULUS
from assay_ledger.keys.local_signer import SECRET, local_signature
from tests.harness.beacons import VECTORS, data, g2_outside_group

HALF = pow(2, -1, FIELD_MODULUS)


def network(name: str) -> DrandNetwork:
    """A network by its published chain info."""
    info = VECTORS["networks"][name]
    return DrandNetwork(
        info["beacon_id"],
        data(info["public_key"]),
        info["genesis_time"],
        info["period"],
        data(info["genesis_seed"]),
    )


def with_coordinate(encoded: bytes, k: int, value: int) -> bytes:
    """Bytes of a point, coordinate k replaced."""
    return encoded[: 32 * k] + value.to_bytes(32, "big") + encoded[32 * (k + 1) :]


ROUND = VECTORS["rounds"][0]
SIGNATURE, MESSAGE = data(ROUND["signature"]), signed_message(BeaconRound(ROUND["round"]))


# --- what others published


def test_the_scheme_is_that_of_the_published_networks() -> None:
    assert VECTORS["scheme"] == SCHEME and VECTORS["tag"] == TAG.decode()
    assert {info["scheme"] for info in VECTORS["networks"].values()} == {SCHEME}


def test_evmnet_is_the_network_that_drand_publishes() -> None:
    assert network("evmnet") == EVMNET


@pytest.mark.parametrize("name", VECTORS["networks"])
def test_a_chain_hash_is_recomputed_from_key_times_and_seed(name: str) -> None:
    """So a wrong digit anywhere in what a contract is given would be another chain's."""
    assert network(name).chain_hash == data(VECTORS["networks"][name]["chain_hash"])


@pytest.mark.parametrize("recorded", VECTORS["rounds"], ids=lambda r: f"{r['network']}-{r['round']}")
def test_a_recorded_round_verifies_and_gives_the_published_randomness(recorded: dict[str, Any]) -> None:
    signature = data(recorded["signature"])
    key = network(recorded["network"]).public_key
    assert bn254.verify(key, signature, signed_message(BeaconRound(recorded["round"])))
    if "randomness" in recorded:
        assert randomness(signature) == data(recorded["randomness"])


@pytest.mark.parametrize("signed", VECTORS["signatures"], ids=lambda s: str(s["round"]))
def test_signatures_of_drands_own_tests_verify(signed: dict[str, Any]) -> None:
    message = signed_message(BeaconRound(signed["round"]))
    assert bn254.verify(data(signed["public_key"]), data(signed["signature"]), message)


@pytest.mark.parametrize("hashed", VECTORS["hashes"], ids=lambda h: h["point"][2:10])
def test_messages_hash_to_the_points_that_others_publish(hashed: dict[str, str]) -> None:
    x, y = bn254.hash_to_g1(data(hashed["message"]), hashed["tag"].encode())
    assert x.to_bytes(32, "big") + y.to_bytes(32, "big") == data(hashed["point"])


def test_messages_expand_to_the_bytes_that_kyber_publishes() -> None:
    for expanded in VECTORS["expanded"]:
        uniform = bn254.expand_message(data(expanded["message"]), expanded["tag"].encode())
        assert uniform == data(expanded["uniform"])


def test_field_elements_map_to_the_points_that_kyber_publishes() -> None:
    for mapped in VECTORS["maps"]:
        x, y = bn254.map_to_g1(int(mapped["u"], 16))
        assert x.to_bytes(32, "big") + y.to_bytes(32, "big") == data(mapped["point"])


# --- the map


@pytest.mark.parametrize("u", [0, 1, 2, HALF, FIELD_MODULUS - HALF, FIELD_MODULUS - 1, FIELD_MODULUS - 2])
def test_exceptional_elements_map_to_points_of_the_curve_with_their_parity(u: int) -> None:
    """1/2 and -1/2 have no inverse to take; 0 and the ends are where a reduction would go wrong."""
    x, y = bn254.map_to_g1(u)
    assert (y * y - x**3 - 3) % FIELD_MODULUS == 0 and 0 <= x < FIELD_MODULUS and 0 < y < FIELD_MODULUS
    assert y % 2 == u % 2


def test_the_published_maps_take_each_of_the_three_candidates() -> None:
    elements = [int(mapped["u"], 16) for mapped in VECTORS["maps"]]
    assert {bn254.candidates(u).index(bn254.map_to_g1(u)[0]) for u in elements} == {0, 1, 2}


def test_a_tag_beyond_one_length_byte_is_refused() -> None:
    assert len(bn254.expand_message(b"", bytes(255))) == 96
    with pytest.raises(InvariantError) as refused:
        bn254.expand_message(b"", bytes(256))
    assert refused.value.code == "TagTooLong"


# --- what must not pass


def test_a_signature_verifies_for_its_round_key_and_tag_only() -> None:
    assert bn254.verify(EVMNET.public_key, SIGNATURE, MESSAGE)
    assert not bn254.verify(EVMNET.public_key, SIGNATURE, signed_message(BeaconRound(ROUND["round"] + 1)))
    assert not bn254.verify(LOCAL.public_key, SIGNATURE, MESSAGE)
    assert not bn254.verify(EVMNET.public_key, SIGNATURE, MESSAGE, TAG + b"X")


def test_hostile_bytes_are_false_and_never_an_error() -> None:
    x, y = (int.from_bytes(SIGNATURE[k : k + 32], "big") for k in (0, 32))
    bad = [b"", SIGNATURE[:-1], SIGNATURE + b"\0", bytes(64), b"\xff" * 64]
    bad += [with_coordinate(SIGNATURE, 0, x + FIELD_MODULUS), with_coordinate(SIGNATURE, 1, y + FIELD_MODULUS)]
    bad += [with_coordinate(SIGNATURE, 1, FIELD_MODULUS - y), with_coordinate(SIGNATURE, 1, y ^ 1)]
    for signature in bad:
        assert not bn254.verify(EVMNET.public_key, signature, MESSAGE)


def test_keys_outside_their_group_are_false_and_never_an_error() -> None:
    key = EVMNET.public_key
    first = int.from_bytes(key[:32], "big")
    bad = [b"", key[:-1], key + b"\0", bytes(128), with_coordinate(key, 0, first + FIELD_MODULUS)]
    bad += [with_coordinate(key, 0, first ^ 1), g2_outside_group()]
    assert bn254.is_key(key) and bn254.is_key(LOCAL.public_key)
    for wrong in bad:
        assert not bn254.is_key(wrong)
        assert not bn254.verify(wrong, SIGNATURE, MESSAGE)
    # Infinity signs everything for infinity.
    assert not bn254.verify(bytes(128), bytes(64), MESSAGE)


@pytest.mark.parametrize("secret", [0, -1, CURVE_ORDER, CURVE_ORDER + 1])
def test_a_secret_outside_the_scalars_is_refused(secret: int) -> None:
    for use in (bn254.public_key, lambda s: bn254.sign(s, b"")):
        with pytest.raises(InvariantError):
            use(secret)


# --- the local signer


def test_the_key_of_the_local_network_is_that_of_the_secret_everybody_knows() -> None:
    assert bn254.public_key(SECRET) == LOCAL.public_key == data(VECTORS["local"]["public_key"])
    assert (LOCAL.genesis_time, LOCAL.period) == (VECTORS["local"]["genesis_time"], VECTORS["local"]["period"])


def test_the_local_signer_signs_rounds_as_a_network_does() -> None:
    for signed in VECTORS["local"]["rounds"]:
        number = BeaconRound(signed["round"])
        signature = local_signature(number)
        assert signature == data(signed["signature"]) and randomness(signature) == data(signed["randomness"])
        assert bn254.verify(LOCAL.public_key, signature, signed_message(number))


def test_the_local_signer_signs_no_round_zero() -> None:
    with pytest.raises(InvariantError) as refused:
        local_signature(BeaconRound(0))
    assert refused.value.code == "BeaconRoundZero"
