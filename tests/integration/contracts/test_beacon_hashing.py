"""How the beacon's contracts hash to the curve, against published points and the Python of the actors."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.run.beacon import TAG, signed_message
from assay.protocol.types import BeaconRound
from assay_ledger.keys import bn254
from assay_ledger.keys.bn254 import FIELD_MODULUS
from tests.harness.beacons import VECTORS, data, words
from tests.harness.contracts.harness import Evm, EvmContract, Reverted

NOW = 1_800_000_000
HALF = pow(2, -1, FIELD_MODULUS)
EDGES = [0, 1, 2, 3, HALF, FIELD_MODULUS - HALF, HALF + 1, HALF - 1, FIELD_MODULUS - 2, FIELD_MODULUS - 1]


@pytest.fixture(scope="module")
def harness() -> EvmContract:
    return Evm().deploy("BeaconHarness")


def test_messages_hash_to_the_points_that_others_publish(harness: EvmContract) -> None:
    for hashed in VECTORS["hashes"]:
        point = harness.call("hashToPoint", data(hashed["message"]), hashed["tag"].encode())
        assert list(point) == words(data(hashed["point"]))
    for expanded in VECTORS["expanded"]:
        uniform = harness.call("expandMessage", data(expanded["message"]), expanded["tag"].encode())
        assert b"".join(uniform) == data(expanded["uniform"])


def compare_maps(harness: EvmContract, elements: list[int]) -> None:
    """The contract's map and the reference's, element by element."""
    for start in range(0, len(elements), 100):
        batch = elements[start : start + 100]
        points = harness.call("mapMany", batch)
        assert list(points) == [c for u in batch for c in bn254.map_to_g1(u)]


def test_elements_map_to_the_points_that_kyber_publishes_and_that_actors_compute(harness: EvmContract) -> None:
    published = [int(mapped["u"], 16) for mapped in VECTORS["maps"]]
    points = harness.call("mapMany", published)
    assert list(points) == [c for mapped in VECTORS["maps"] for c in words(data(mapped["point"]))]
    source = random.Random(9380)
    compare_maps(harness, [source.randrange(FIELD_MODULUS) for _ in range(400)])


def test_exceptional_elements_map_as_the_reference_does(harness: EvmContract) -> None:
    compare_maps(harness, EDGES)


@pytest.mark.parametrize(
    "value",
    [0, 1, FIELD_MODULUS - 1, FIELD_MODULUS, FIELD_MODULUS + 1, (1 << 256) - 1, 1 << 256, (1 << 384) - 1],
    ids=["0", "1", "p-1", "p", "p+1", "2^256-1", "2^256", "2^384-1"],
)
def test_48_bytes_are_reduced_without_loss(harness: EvmContract, value: int) -> None:
    multiple = value + ((1 << 384) - 1 - value) // FIELD_MODULUS * FIELD_MODULUS
    for number in (value, multiple):
        assert harness.call("reduce", number >> 256, number % (1 << 256)) == value % FIELD_MODULUS


@given(st.binary(max_size=300), st.binary(max_size=255))
def test_any_message_hashes_under_any_tag_as_the_reference_does(
    harness: EvmContract, message: bytes, tag: bytes
) -> None:
    assert tuple(harness.call("hashToPoint", message, tag)) == bn254.hash_to_g1(message, tag)


def test_messages_of_200_rounds_hash_as_the_reference_does(harness: EvmContract) -> None:
    texts = [
        signed_message(BeaconRound(k)) for k in (*range(1, 100), *(1 << k for k in range(64)), *range(NOW, NOW + 37))
    ]
    points = harness.call("hashMany", texts, TAG)
    assert list(points) == [c for text in texts for c in bn254.hash_to_g1(text)]


def test_points_add_up_where_they_are_equal_or_opposite(harness: EvmContract) -> None:
    """Two elements of a message may map to one point, or to opposite ones: the sum is a double, or infinity."""
    x, y = bn254.map_to_g1(7)
    slope = 3 * x * x * pow(2 * y, -1, FIELD_MODULUS)
    double_x = (slope * slope - 2 * x) % FIELD_MODULUS
    double = (double_x, (slope * (x - double_x) - y) % FIELD_MODULUS)
    assert tuple(harness.call("add", x, y, x, y)) == double
    assert tuple(harness.call("add", x, y, x, FIELD_MODULUS - y)) == (0, 0)


def test_a_tag_beyond_one_length_byte_is_refused(harness: EvmContract) -> None:
    with pytest.raises(Reverted) as refusal:
        harness.call("expandMessage", b"", bytes(256))
    assert (refusal.value.name, refusal.value.values) == ("TagTooLong", (256,))
