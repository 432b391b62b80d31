"""Beacons of this release on a chain: their addresses, what they are made of, and what a client is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount

from assay.protocol.errors import AssayError, RejectedError
from assay.protocol.run.beacon import EVMNET, LOCAL, NETWORKS, DrandNetwork, randomness
from assay.protocol.types import BeaconRound
from assay_ledger.bindings.beacon import BeaconSubmitted, DrandSeedContract
from assay_ledger.chain.client import Chain
from assay_ledger.chain.contract_names import MET
from assay_ledger.chain.node import Anvil
from assay_ledger.deployment.deploy import deploy_beacon, deploy_seed
from assay_ledger.deployment.places import beacons
from assay_ledger.keys.local_signer import local_signature
from tests.harness.beacons import VECTORS, data, words
from tests.harness.contracts.fresh import fresh_artifacts
from tests.harness.rounds.samples import START

ROUND = VECTORS["rounds"][0]
NUMBER, SIGNATURE = BeaconRound(ROUND["round"]), data(ROUND["signature"])


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Anvil]:
    with fresh_artifacts(tmp_path_factory.mktemp("artifacts"), MET), Anvil(genesis_time=START) as running:
        yield running


@pytest.fixture(scope="module")
def chain(node: Anvil) -> Chain:
    return Chain(node.url)


@pytest.fixture(scope="module")
def keeper(node: Anvil) -> LocalAccount:
    return Account.from_key(node.dev_keys[0])


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.beacon_id)
def test_a_beacon_lies_where_its_code_key_and_times_say(
    chain: Chain, keeper: LocalAccount, network: DrandNetwork
) -> None:
    address = deploy_beacon(chain, keeper, network)
    assert address == beacons()[network.beacon_id]
    assert deploy_beacon(chain, keeper, network) == address, "found, not made anew"
    beacon = DrandSeedContract(address)
    assert list(chain.ask(beacon.public_key())) == words(network.public_key)
    assert (chain.ask(beacon.genesis()), chain.ask(beacon.period())) == (network.genesis_time, network.period)
    assert chain.ask(beacon.round_after(START)) == network.round_after(START)


def test_no_two_beacons_share_an_address(chain: Chain, keeper: LocalAccount) -> None:
    """So nobody passes the signer whose key everybody knows off as a network."""
    assert set(beacons()) == {"evmnet", "assay-local-signer", "prevrandao"}
    assert len(set(beacons().values())) == 3
    assert beacons()["prevrandao"] == deploy_seed(chain, keeper)


def test_anybody_submits_a_recorded_round_and_everybody_reads_it(chain: Chain, keeper: LocalAccount) -> None:
    beacon = DrandSeedContract(deploy_beacon(chain, keeper, EVMNET))
    assert not chain.ask(beacon.is_known(NUMBER))
    receipt = chain.send(keeper, beacon.submit(NUMBER, SIGNATURE))
    (log,) = receipt["logs"]
    assert BeaconSubmitted.decode(log) == BeaconSubmitted(NUMBER, randomness(SIGNATURE))
    assert chain.ask(beacon.randomness_of(NUMBER)) == data(ROUND["randomness"])


def test_who_comes_second_in_a_block_pays_for_a_refused_call_alone(chain: Chain, keeper: LocalAccount) -> None:
    beacon = DrandSeedContract(deploy_beacon(chain, keeper, LOCAL))
    number = BeaconRound(START - 7)
    submit = beacon.submit(number, local_signature(number))
    first = chain.send(keeper, submit)
    with pytest.raises(RejectedError) as refused:
        chain.send(keeper, submit, gas=int(first["gasUsed"]) + 50_000)  # as it was simulated before the first landed
    assert refused.value.code == "BeaconAlreadySubmitted"
    assert chain.w3.eth.get_block("latest")["gasUsed"] < 30_000 < int(first["gasUsed"]) // 5


def test_a_local_node_has_mixes_that_prevrandao_takes(chain: Chain, keeper: LocalAccount) -> None:
    beacon = DrandSeedContract(deploy_seed(chain, keeper))  # it answers the same calls
    rounds = [BeaconRound(START - k) for k in range(3)]
    for number in rounds:
        chain.send(keeper, beacon.submit(number, b""))
    assert len({chain.ask(beacon.randomness_of(number)) for number in rounds}) == 3


def test_a_refusal_says_what_happened_and_what_to_do(chain: Chain, keeper: LocalAccount) -> None:
    beacon = DrandSeedContract(deploy_beacon(chain, keeper, LOCAL))
    late = BeaconRound(START - 5)
    with pytest.raises(AssayError) as waits:
        chain.ask(beacon.randomness_of(late))
    assert waits.value.code == "BeaconNotSubmitted" and "Submit the round yourself" in waits.value.remedy
    with pytest.raises(RejectedError) as wrong:
        chain.send(keeper, beacon.submit(late, local_signature(BeaconRound(late - 1))))
    assert wrong.value.code == "WrongSignature" and "another relay" in wrong.value.remedy
    chain.send(keeper, beacon.submit(late, local_signature(late)))
    with pytest.raises(RejectedError) as again:
        chain.send(keeper, beacon.submit(late, local_signature(late)))
    assert again.value.code == "BeaconAlreadySubmitted" and again.value.details["beaconRound"] == late
