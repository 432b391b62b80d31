"""The beacon's contracts against the Python of the actors: published rounds, hostile bytes, gas."""

from __future__ import annotations

import random

import pytest
from eth_hash.auto import keccak

from assay.protocol.run.beacon import EVMNET, LOCAL, NETWORKS, DrandNetwork, randomness
from assay.protocol.types import BeaconRound
from assay_ledger.keys import bn254
from assay_ledger.keys.bn254 import FIELD_MODULUS
from assay_ledger.keys.local_signer import local_signature
from tests.harness.beacons import VECTORS, attempts, data, g2_outside_group, words
from tests.harness.contracts import snapshots
from tests.harness.contracts.beacons import NOW, deployed, prevrandao, refused
from tests.harness.contracts.harness import Evm, EvmContract, Reverted, transaction_gas


@pytest.fixture(scope="module")
def chain() -> Evm:
    return Evm(timestamp=NOW)


@pytest.fixture(scope="module")
def harness(chain: Evm) -> EvmContract:
    return chain.deploy("BeaconHarness")


@pytest.fixture(scope="module")
def local(chain: Evm) -> EvmContract:
    """The local signer's beacon; each test takes rounds of its own."""
    return deployed(chain, LOCAL)


# --- recorded rounds


@pytest.mark.parametrize("name", VECTORS["networks"])
def test_recorded_rounds_of_a_published_network_are_accepted(chain: Evm, name: str) -> None:
    info = VECTORS["networks"][name]
    beacon = chain.deploy("DrandSeed", words(data(info["public_key"])), info["genesis_time"], info["period"])
    recorded = [r for r in VECTORS["rounds"] if r["network"] == name]
    assert recorded
    for entry in recorded:
        kept = beacon.call("submit", entry["round"], data(entry["signature"]))
        assert kept == beacon.call("randomnessOf", entry["round"]) == randomness(data(entry["signature"]))
        if "randomness" in entry:
            assert kept == data(entry["randomness"])


def test_signatures_of_drands_own_tests_are_accepted_under_their_keys(chain: Evm) -> None:
    for signed in VECTORS["signatures"]:
        beacon = chain.deploy("DrandSeed", words(data(signed["public_key"])), 1, 1)
        signature = data(signed["signature"])
        assert beacon.call("submit", signed["round"], signature) == randomness(signature)


def test_the_contract_is_keptthe_key_and_times_that_drand_publishes(chain: Evm) -> None:
    beacon = deployed(chain, EVMNET)
    assert list(beacon.call("publicKey")) == words(EVMNET.public_key)
    assert (beacon.call("genesis"), beacon.call("period")) == (EVMNET.genesis_time, EVMNET.period)


def test_the_local_signer_plays_a_network(local: EvmContract) -> None:
    for entry in VECTORS["local"]["rounds"]:
        assert local.call("submit", entry["round"], data(entry["signature"])) == data(entry["randomness"])


# --- which round


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.beacon_id)
def test_a_deadline_names_the_same_round_here_and_on_chain(chain: Evm, network: DrandNetwork) -> None:
    beacon, genesis, period = deployed(chain, network), network.genesis_time, network.period
    source = random.Random(31)
    times = [0, max(genesis - 1, 0), genesis, genesis + 1, genesis + period - 1, genesis + period, NOW, 1 << 62]
    times += [source.randrange(1 << 40) for _ in range(50)]
    for time in times:
        named = beacon.call("roundAfter", time)
        assert named == network.round_after(time)
        assert beacon.call("timeOf", named) == network.time_of(BeaconRound(named)) > time


def test_there_is_no_round_zero(local: EvmContract) -> None:
    assert refused(local, 0, local_signature(BeaconRound(1))).name == "BeaconRoundZero"
    for function in ("timeOf", "randomnessOf"):
        with pytest.raises(Reverted) as refusal:
            local.call(function, 0)
        assert refusal.value.name == "BeaconRoundZero"


def test_a_round_is_refused_before_its_time_and_taken_from_it_on(chain: Evm) -> None:
    """Whoever knows signatures early must not fix them before everybody is committed."""
    beacon = deployed(chain, LOCAL)
    signature = local_signature(BeaconRound(NOW + 1))
    early = refused(beacon, NOW + 1, signature)
    assert (early.name, early.values) == ("BeaconTooEarly", (NOW + 1, NOW, NOW + 1))
    assert beacon.call("submit", NOW, local_signature(BeaconRound(NOW)))


def test_the_last_round_of_all_has_a_time_that_does_not_come(local: EvmContract) -> None:
    last = (1 << 64) - 1
    assert local.call("timeOf", last) == LOCAL.time_of(BeaconRound(last))
    assert refused(local, last, bytes(64)).name == "BeaconTooEarly"


def test_what_nobody_submitted_is_waited_for(local: EvmContract) -> None:
    with pytest.raises(Reverted) as refusal:
        local.call("randomnessOf", 12_345)
    assert (refusal.value.name, refusal.value.values) == ("BeaconNotSubmitted", (12_345, 12_345))
    # Late by years, by somebody else, it is what it would have been.
    assert local.call("submit", 12_345, local_signature(BeaconRound(12_345)), caller="0x" + "22" * 20)
    assert local.call("randomnessOf", 12_345) == randomness(local_signature(BeaconRound(12_345)))


def test_a_round_is_kept_once_whoever_submits_it_again(local: EvmContract) -> None:
    signature = local_signature(BeaconRound(77))
    kept = local.call("submit", 77, signature)
    for proof in (signature, local_signature(BeaconRound(78)), b"", bytes(64)):
        again = refused(local, 77, proof)
        assert (again.name, again.values) == ("BeaconAlreadySubmitted", (77,))
    assert local.call("randomnessOf", 77) == kept


# --- bytes that must not pass


def test_a_signature_of_another_round_or_network_is_refused(local: EvmContract) -> None:
    other = refused(local, 500, local_signature(BeaconRound(501)))
    assert (other.name, other.values) == ("WrongSignature", (500,))
    evmnet = VECTORS["rounds"][0]
    assert refused(local, evmnet["round"], data(evmnet["signature"])).name == "WrongSignature"


def test_second_encodings_infinity_and_points_off_the_curve_are_refused_by_name(local: EvmContract) -> None:
    """The same point written otherwise would hash to other randomness, for the submitter to choose from."""
    signature = local_signature(BeaconRound(600))
    x, y = words(signature)
    p = FIELD_MODULUS
    cases = {
        (x + p, y): ("CoordinateTooLarge", (x + p, y)),
        (x, y + p): ("CoordinateTooLarge", (x, y + p)),
        (p, 0): ("CoordinateTooLarge", (p, 0)),
        (0, p): ("CoordinateTooLarge", (0, p)),
        (2**256 - 1, 2**256 - 1): ("CoordinateTooLarge", (2**256 - 1, 2**256 - 1)),
        (0, 0): ("PointAtInfinity", ()),
        (x, y ^ 1): ("NotOnCurve", (x, y ^ 1)),
        (0, y): ("NotOnCurve", (0, y)),
        (x, 0): ("NotOnCurve", (x, 0)),
        # The opposite point is on the curve and signs the opposite hash.
        (x, p - y): ("WrongSignature", (600,)),
    }
    for (first, second), (name, values) in cases.items():
        refusal = refused(local, 600, first.to_bytes(32, "big") + second.to_bytes(32, "big"))
        assert (refusal.name, refusal.values) == (name, values)
    for proof in (b"", signature[:-1], signature + b"\0", b"\0" + signature, signature * 2):
        refusal = refused(local, 600, proof)
        assert (refusal.name, refusal.values) == ("ProofLength", (len(proof), 64))
    assert local.call("submit", 600, signature) == randomness(signature)


def test_random_points_of_the_curve_are_no_signature(local: EvmContract) -> None:
    for k in range(50):
        x, y = bn254.map_to_g1(keccak_int(k))
        refusal = refused(local, 700, x.to_bytes(32, "big") + y.to_bytes(32, "big"))
        assert refusal.name == "WrongSignature"


def keccak_int(k: int) -> int:
    return int.from_bytes(keccak(k.to_bytes(8, "big")), "big") % FIELD_MODULUS


def test_too_little_gas_is_never_a_verdict(local: EvmContract) -> None:
    """A true signature is accepted, or refused for want of gas: never called wrong, never half recorded."""
    signature = local_signature(BeaconRound(800))
    refusals = set()
    for gas in range(25_000, 450_000, 2_500):
        try:
            assert local.call("submit", 800, signature, gas=gas) == randomness(signature)
            break
        except Reverted as refusal:
            refusals.add(refusal.name)
            assert not local.call("isKnown", 800)
    # Without a name: the gas ran out between two checks.
    assert refusals == {"GasTooLow", ""} and local.call("isKnown", 800)


@pytest.mark.parametrize("network", NETWORKS, ids=lambda n: n.beacon_id)
def test_a_key_that_is_no_key_makes_no_beacon(chain: Evm, harness: EvmContract, network: DrandNetwork) -> None:
    key = words(network.public_key)
    assert harness.call("isKey", key)
    bad = [[0, 0, 0, 0], words(g2_outside_group())]
    bad += [[*key[:k], key[k] + FIELD_MODULUS, *key[k + 1 :]] for k in range(4) if key[k] + FIELD_MODULUS < 1 << 256]
    bad += [[*key[:k], key[k] ^ 1, *key[k + 1 :]] for k in range(4)]
    # Coordinates in the other order of the field's two parts, as other libraries have them.
    bad += [[key[1], key[0], key[3], key[2]]]
    for wrong in bad:
        assert not harness.call("isKey", wrong)
        with pytest.raises(RuntimeError):
            chain.deploy("DrandSeed", wrong, network.genesis_time, network.period)


def test_a_network_without_a_period_makes_no_beacon(chain: Evm) -> None:
    with pytest.raises(RuntimeError):
        chain.deploy("DrandSeed", words(LOCAL.public_key), 1, 0)


# --- what it costs


def test_the_table_of_gas_holds(chain: Evm) -> None:
    """The map tries one to three candidates for each of two elements, so a round costs what its number's hash says."""
    evmnet, local = deployed(chain, EVMNET), deployed(chain, LOCAL)
    rounds = range(1, 400)
    cheapest, dearest = min(rounds, key=attempts), max(rounds, key=attempts)
    assert (attempts(cheapest), attempts(dearest)) == (2, 6)
    table = {}
    for name, beacon, number, proof in (
        ("evmnet, round 6,390,578", evmnet, 6_390_578, data(VECTORS["rounds"][0]["signature"])),
        ("drand, cheapest hash", local, cheapest, local_signature(BeaconRound(cheapest))),
        ("drand, dearest hash", local, dearest, local_signature(BeaconRound(dearest))),
        ("prevrandao", prevrandao(), NOW, b""),
    ):
        beacon.call("submit", number, proof)
        table[name] = {"execution": beacon.gas, "transaction": paid(beacon, number, proof)}
    snapshots.check("beacon", table)


def paid(beacon: EvmContract, number: int, proof: bytes) -> int:
    """Gas of the transaction that was just made."""
    return transaction_gas(beacon.calldata("submit", number, proof), beacon.gas)
