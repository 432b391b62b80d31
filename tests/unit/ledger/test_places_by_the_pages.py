"""Where contracts are by the pages of the protocol (CH-2 to CH-4, AN-8) and of payments, computed a second time."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from assay.protocol.run.answers import AnswerTerms
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Wei
from assay_ledger.chain.artifacts import load_artifact
from assay_ledger.deployment.answers import answer_deployer_code
from assay_ledger.deployment.places import create2_address, create_address, places_of
from assay_ledger.deployment.vouchers import VoucherTerms, vouchers_place
from tests.harness.rounds.charters import GOVERNED, RUN, WIDE

LEAVES = ("Map", "RowExp", "Max", "Dot", "Sum", "Gather", "ScatterSum", "Rank", "Random")
"""Of families 2 to 10."""


def create2(contract: str, types: list[str] | None = None, *arguments: Any) -> bytes:
    """The place of a creation code with these arguments: section 8, before its rules."""
    code = load_artifact(contract).bytecode + encode(types or [], arguments)
    factory = bytes.fromhex("4e59b44847b379578588920ca78fbf26c0b4956c")
    return keccak(b"\xff" + factory + bytes(32) + keccak(code))[12:]


def code_hash(contract: str) -> bytes:
    """keccak-256 of a creation code without arguments."""
    return keccak(load_artifact(contract).bytecode)


def created(deployer: bytes, index: int) -> bytes:
    """CH-3."""
    return keccak(bytes.fromhex("d694") + deployer + bytes([index + 1]))[12:]


def arbiter() -> bytes:
    """CH-4."""
    return create2("Arbiter", ["address[9]"], [create2(f"{family}Leaf") for family in LEAVES])


@pytest.mark.parametrize("terms", [RUN, GOVERNED, WIDE], ids=["one level", "governed", "two levels"])
def test_the_contracts_of_a_run_are_where_the_page_says(terms: RunCharter) -> None:
    generations = "Generations" if terms.training.seats <= 64 else "GroupedGenerations"
    first = ("Vault", "Tickets", "Tenures", "Commitments", generations, "Duties", "Attestations", "Escrow")
    last = ("Payments", "Bounties", "Game", "Challenges", "ModelShares", "Grants", "Revenue", "RunGovernor")
    codes = [code_hash(name) for name in ("RunCharter", *first, *last)]
    deployer = create2("RunDeployer", ["bytes32", "address", "bytes32[17]"], terms.run, arbiter(), codes)
    found = places_of(terms)
    assert (found.arbiter, found.deployer, found.charter) == (arbiter(), deployer, created(deployer, 0))
    count = 17 if terms.governance.voting_period else 16
    assert list(found.modules.values()) == [created(deployer, k) for k in range(1, count)]


def test_the_contracts_of_gateways_are_where_the_page_says() -> None:
    charter, program = Address(b"\x12" * 20), RUN.step
    terms = AnswerTerms(answer=program, forward=RUN.update.root, window=32, vocabulary=64, bond=Wei(10**18))
    of_terms = keccak(encode(["((bytes32,bytes32,bytes),bytes32,uint32,uint32,uint128)"], [astuple(terms)]))
    codes = [code_hash(name) for name in ("AnswerCharter", "Vault", "Gateways", "Game", "Challenges")]
    types = ["address", "bytes32", "address", "bytes32[5]"]
    deployer = create2("AnswerDeployer", types, charter, of_terms, arbiter(), codes)
    assert create2_address(answer_deployer_code(charter, terms)) == deployer
    assert create_address(Address(deployer), 3) == created(deployer, 2)
    assert create2_address(answer_deployer_code(charter, replace(terms, window=33))) != deployer


def test_a_runs_contract_of_vouchers_is_where_the_page_says() -> None:
    charter, types = Address(b"\x12" * 20), ["address", "uint256", "uint256"]
    assert vouchers_place(charter) == create2("Vouchers", types, charter, 100_000, 7 * 86_400)
    assert vouchers_place(charter, VoucherTerms(1, 3600)) == create2("Vouchers", types, charter, 1, 3600)
