"""Beacons on an EVM in this process."""

from __future__ import annotations

import pytest
from eth_hash.auto import keccak
from pyrevm import BlockEnv

from assay.protocol.run.beacon import DrandNetwork
from tests.harness.beacons import words
from tests.harness.contracts.harness import Evm, EvmContract, Reverted

NOW = 1_800_000_000


def deployed(chain: Evm, network: DrandNetwork) -> EvmContract:
    """The beacon of a network."""
    return chain.deploy("DrandSeed", words(network.public_key), network.genesis_time, network.period)


def prevrandao() -> EvmContract:
    """The chain's own beacon, on a chain of its own, in a block with some mix."""
    beacon = Evm(timestamp=NOW).deploy("PrevrandaoSeed")
    in_block(beacon, keccak(b"mix"))
    return beacon


def in_block(beacon: EvmContract, mix: bytes, timestamp: int = NOW) -> None:
    """The next calls are in a block with this mix."""
    beacon.chain.evm.set_block_env(BlockEnv(number=1, timestamp=timestamp, gas_limit=30_000_000, prevrandao=mix))


def refused(beacon: EvmContract, beacon_round: int, proof: bytes) -> Reverted:
    """How the beacon refuses a submission, after which it knows nothing more than before."""
    before = beacon.call("isKnown", beacon_round)
    with pytest.raises(Reverted) as refusal:
        beacon.call("submit", beacon_round, proof)
    assert beacon.call("isKnown", beacon_round) == before
    return refusal.value
