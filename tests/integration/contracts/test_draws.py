"""The draw contracts on a real node with EIP-2537, against the Python that actors run and the reference curve."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from eth_abi import decode, encode
from eth_hash.auto import keccak

from assay.protocol.run.draws import DRAW_TAG, PPM, Purpose, draw_message, is_drawn, threshold, ticket
from assay.protocol.types import Address, Digest, Round, Wei
from assay_ledger.chain.node import Anvil
from assay_ledger.keys.bls import ARKWORKS, CURVE_ORDER, PY_ECC, BlsKey, Curve
from tests.harness.contracts.harness import artifact

CHAIN_ID = 31337
TAG = DRAW_TAG
SEED = Digest(b"\x08" * 32)
RUN = Digest(b"\x07" * 32)


class Harness:
    """The deployed DrawsHarness, called by function signature."""

    def __init__(self, node: Anvil) -> None:
        self._node = node
        self.sender = self.rpc("eth_accounts")[0]
        receipt = self.transact(None, "0x" + artifact("DrawsHarness").bytecode.hex())
        self.address = Address(bytes.fromhex(receipt["contractAddress"][2:]))

    def rpc(self, method: str, *params: object) -> Any:
        return self._node.rpc(method, *params)

    def transact(self, to: str | None, data: str) -> Any:
        call = {"from": self.sender, "data": data, "gas": hex(5_000_000)} | ({"to": to} if to else {})
        sent = self.rpc("eth_sendTransaction", call)
        for _ in range(1000):  # mined at once, but in another thread of the node
            if receipt := self.rpc("eth_getTransactionReceipt", sent):
                return receipt
        raise AssertionError("not mined")

    def data(self, signature: str, *arguments: object) -> str:
        kinds = signature[signature.index("(") + 1 : -1].split(",")
        return "0x" + (keccak(signature.encode())[:4] + encode(kinds, arguments)).hex()

    def call(self, signature: str, result: str, *arguments: object) -> Any:
        data = self.data(signature, *arguments)
        call = {"from": self.sender, "to": "0x" + self.address.hex(), "data": data, "gas": hex(30_000_000)}
        return decode([result], bytes.fromhex(self.rpc("eth_call", call, "latest")[2:]))[0]

    def gas_used(self, signature: str, *arguments: object) -> int:
        """Gas of a transaction that makes this call, its calldata included."""
        receipt = self.transact("0x" + self.address.hex(), self.data(signature, *arguments))
        assert receipt["status"] == "0x1"
        return int(receipt["gasUsed"], 16)


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with Anvil() as node:
        yield Harness(node)


def messages(count: int) -> list[bytes]:
    """Real draw messages of many rounds, then lengths around SHA-256's block borders."""
    source = random.Random(0)
    lengths = [0, 1, 54, 55, 56, 63, 64, 65, 119, 120, 1000]
    odd = [source.randbytes(length) for length in lengths]
    purposes = list(Purpose)
    return odd + [
        draw_message(CHAIN_ID, Address(bytes(20)), RUN, Round(i), purposes[i % 3], Digest(source.randbytes(32)))
        for i in range(count - len(odd))
    ]


def compare_hashes(harness: Harness, curve: Curve, texts: list[bytes]) -> None:
    for start in range(0, len(texts), 50):
        batch = texts[start : start + 50]
        points = harness.call("hashManyToG2(bytes[],bytes)", "bytes", batch, TAG)
        want = [curve.hash_to_g2(text, TAG) for text in batch]
        assert [points[256 * i : 256 * (i + 1)] for i in range(len(batch))] == want


def test_the_contract_hashes_200_messages_to_the_points_that_actors_sign(harness: Harness) -> None:
    compare_hashes(harness, ARKWORKS, messages(200))


def test_the_contract_hashes_40_messages_as_the_reference_does(harness: Harness) -> None:
    compare_hashes(harness, PY_ECC, messages(40))


@pytest.mark.long
def test_the_contract_hashes_200_messages_as_the_reference_does(harness: Harness) -> None:
    compare_hashes(harness, PY_ECC, messages(200))


def test_a_ticket_signed_by_an_actor_passes_the_contracts_pairing(harness: Harness) -> None:
    for number, purpose in enumerate(Purpose):
        key = BlsKey.from_secret(pow(5, 1000 + number, CURVE_ORDER))
        built = harness.call("message(bytes32,uint64,uint8,bytes32)", "bytes", RUN, 7, int(purpose), SEED)
        assert built == draw_message(CHAIN_ID, harness.address, RUN, Round(7), purpose, SEED)
        y = key.sign_draw(CHAIN_ID, harness.address, RUN, Round(7), purpose, SEED)
        assert harness.call("verify(bytes,bytes,bytes)", "bool", key.public_key, y, built)
        assert not harness.call("verify(bytes,bytes,bytes)", "bool", key.public_key, y, built[:-1] + b"\0")


def test_a_possession_proof_registers_its_owner_only(harness: Harness) -> None:
    key = BlsKey.generate()
    owner = Address(bytes.fromhex(harness.sender[2:]))
    proof = key.prove_possession(CHAIN_ID, harness.address, owner)
    signature = "verifyPossession(bytes,bytes,address)"
    assert harness.call(signature, "bool", key.public_key, proof, "0x" + owner.hex())
    assert not harness.call(signature, "bool", key.public_key, proof, "0x" + harness.address.hex())
    assert not harness.call(signature, "bool", BlsKey.generate().public_key, proof, "0x" + owner.hex())


def test_a_verification_fits_its_gas_bound_as_a_transaction(harness: Harness, record_property: Any) -> None:
    key = BlsKey.from_secret(3)
    message = draw_message(CHAIN_ID, harness.address, RUN, Round(0), Purpose.AUDIT, SEED)
    y = key.sign_draw(CHAIN_ID, harness.address, RUN, Round(0), Purpose.AUDIT, SEED)
    gas = harness.gas_used("verify(bytes,bytes,bytes)", key.public_key, y, message)
    record_property("gas_verify", gas)
    print(f"gas of one verification, transaction included: {gas}")
    assert 180_000 < gas < 280_000


def test_a_bad_signature_costs_its_sender_a_bounded_amount(harness: Harness) -> None:
    key = BlsKey.from_secret(3)
    message = draw_message(CHAIN_ID, harness.address, RUN, Round(0), Purpose.AUDIT, SEED)
    assert harness.gas_used("verify(bytes,bytes,bytes)", key.public_key, b"\1" * 256, message) < 400_000


def test_contract_and_python_draw_the_same_duties(harness: Harness) -> None:
    source = random.Random(1)
    drawn = 0
    for _ in range(60):
        y, claim, duty = source.randbytes(256), Digest(source.randbytes(32)), source.randrange(1 << 16)
        total = source.randrange(1, 1 << 100)
        stake, ppm = source.randrange(total + 1), source.randrange(2 * PPM)
        want = is_drawn(y, claim, duty, ppm, Wei(stake), Wei(total))
        drawn += want
        signature = "isDrawn(bytes,bytes32,uint256,uint32,uint256,uint256)"
        assert harness.call(signature, "bool", y, claim, duty, ppm, stake, total) == want
        assert harness.call("threshold(uint32,uint256,uint256)", "uint256", ppm, stake, total) == threshold(
            ppm, Wei(stake), Wei(total)
        )
        low = int.from_bytes(harness.call("ticket(bytes,bytes32,uint256)", "bytes32", y, claim, duty)[16:], "big")
        assert low == ticket(y, claim, duty)
    assert 10 < drawn < 50


def test_thresholds_agree_at_the_edges(harness: Harness) -> None:
    most = (1 << 128) - 1
    for ppm, stake, total in [
        (0, 1, 1),
        (1, 0, 0),
        (PPM, 0, 5),
        (PPM, most, most),
        (PPM - 1, most, most),
        (1, 1, most),
        ((1 << 32) - 1, most, most),
        (300_000, 1, 3),
        (2 * PPM, 1, 2),
        (2 * PPM, 1, 3),
    ]:
        got = harness.call("threshold(uint32,uint256,uint256)", "uint256", ppm, stake, total)
        assert got == threshold(ppm, Wei(stake), Wei(total))
