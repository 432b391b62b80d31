"""The chain's own randomness as a beacon: what is kept of which block, and chains that have none."""

from __future__ import annotations

import pytest
from eth_hash.auto import keccak

from assay.protocol.run.beacon import prevrandao_randomness
from assay.protocol.types import BeaconRound
from tests.harness.contracts.beacons import NOW, in_block, prevrandao, refused
from tests.harness.contracts.harness import Reverted


def test_prevrandao_keeps_the_mix_of_the_first_block_that_records_a_round() -> None:
    beacon = prevrandao()
    first, second = keccak(b"first"), keccak(b"second")
    in_block(beacon, first)
    assert beacon.call("roundAfter", NOW - 1) == NOW and beacon.call("timeOf", NOW) == NOW
    early = refused(beacon, NOW + 1, b"")
    assert (early.name, early.values) == ("BeaconTooEarly", (NOW + 1, NOW, NOW + 1))
    assert refused(beacon, 0, b"").name == "BeaconRoundZero"
    assert refused(beacon, NOW, b"x").values == (1, 0)
    kept = beacon.call("submit", NOW, b"")
    assert kept == prevrandao_randomness(first, BeaconRound(NOW))
    in_block(beacon, second, NOW + 12)
    assert refused(beacon, NOW, b"").name == "BeaconAlreadySubmitted"
    assert beacon.call("randomnessOf", NOW) == kept
    assert beacon.call("submit", NOW + 12, b"") == prevrandao_randomness(second, BeaconRound(NOW + 12))
    with pytest.raises(Reverted) as waits:
        beacon.call("randomnessOf", NOW + 13)
    assert (waits.value.name, waits.value.values) == ("BeaconNotSubmitted", (NOW + 13, NOW + 13))


@pytest.mark.parametrize("constant", [0, 1, 2_500_000_000_000_000, (1 << 64) - 1])
def test_a_chain_whose_mix_is_a_constant_is_no_beacon(constant: int) -> None:
    beacon = prevrandao()
    in_block(beacon, constant.to_bytes(32, "big"))
    refusal = refused(beacon, NOW, b"")
    assert (refusal.name, refusal.values) == ("PrevrandaoConstant", (constant,))


def test_the_least_mix_that_is_none_of_the_constants_is_taken() -> None:
    beacon, least = prevrandao(), (1 << 64).to_bytes(32, "big")
    in_block(beacon, least)
    assert beacon.call("submit", NOW, b"") == prevrandao_randomness(least, BeaconRound(NOW))
