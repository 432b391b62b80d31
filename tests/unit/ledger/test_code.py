"""No actor stakes into code that was not checked: impostors of every contract of a run are refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from eth_utils.crypto import keccak

from assay.protocol.errors import RejectedError
from assay.protocol.run.beacon import LOCAL
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.run_deployer import RunDeployerContract
from assay_ledger.bindings.token import TokenContract
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.chain.node import Anvil
from assay_ledger.contract import Call
from assay_ledger.deployment.code import TEST_TOKEN, UnknownCode, check_code, code_of
from assay_ledger.deployment.deploy import (
    deploy_arbiter,
    deploy_beacon,
    deploy_run,
    deploy_seed,
    deploy_token,
    verify_round_wiring,
)
from assay_ledger.deployment.places import (
    FACTORY,
    GOVERNOR,
    LEAVES,
    ROUND_CONTRACTS,
    create2_address,
    places_of,
    run_deployer_code,
)
from assay_ledger.rounds.run import Run
from tests.harness.contracts import harness
from tests.harness.contracts.fresh import fresh_artifacts
from tests.harness.rounds.samples import ETHER, START, mark
from tests.harness.rounds.staged import modules_at
from tests.unit.ledger.test_deploy import real_charter

SHARED = ["TestToken", "PrevrandaoSeed", "DrandSeed", "Arbiter"]
NAMES = [
    "RunDeployer",
    "RunCharter",
    "Vouchers",
    *SHARED,
    *ROUND_CONTRACTS.values(),
    *GOVERNOR.values(),
    *LEAVES.values(),
]
IMPOSTORS = ["EvilVault", "PresetVault", "ReentrantToken"]
EVERYTHING = ["charter", *ROUND_CONTRACTS, "arbiter", *(f"{family} leaf" for family in LEAVES), "beacon"]


@dataclass(frozen=True)
class CodeStage:
    """A chain, somebody who deploys on it, somebody who would stake, and terms for a run."""

    chain: Chain
    sponsor: LocalAccount
    staker: LocalAccount
    terms: RunCharter
    keystore: Path

    def named(self, name: str) -> RunCharter:
        """The same terms for a run of its own."""
        return replace(self.terms, name=mark(name))


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeStage]:
    folder = tmp_path_factory.mktemp("artifacts")
    with fresh_artifacts(folder, [*NAMES, *IMPOSTORS]), Anvil(genesis_time=START, accounts=3) as node:
        chain = Chain(node.url)
        sponsor, staker = (Account.from_key(node.dev_keys[k]) for k in (0, 1))
        token, beacon = deploy_token(chain, sponsor), deploy_seed(chain, sponsor)
        deploy_arbiter(chain, sponsor)
        terms = real_charter(token=token, beacon=beacon, sponsor=address_of(sponsor), revenue_tokens=(token,))
        chain.send(staker, TokenContract(token).mint(staker.address, 1000 * ETHER))
        (folder / "password").write_text("secret\n")
        keystore = folder / "key.json"
        keystore.write_text(json.dumps(Account.encrypt(staker.key, "secret", iterations=1 << 14)))
        yield CodeStage(chain, sponsor, staker, terms, keystore)


@pytest.fixture(scope="module")
def honest(stage: CodeStage) -> Run:
    """A run of this release."""
    return deploy_run(stage.chain, stage.sponsor, stage.named("honest"))


def unknown(run: Run) -> list[str]:
    """What a client refuses of a run, by name."""
    with pytest.raises(UnknownCode) as refused:
        check_code(Run(run.chain, run.address))
    assert refused.value.code == "UnknownCode" and str(refused.value.details["digest"]) in refused.value.remedy
    names = [c.name for c in code_of(run).unknown]
    assert all(name in refused.value.message for name in names)
    return names


# --- what is this release's


def test_every_contract_of_a_run_of_this_release_is_known(honest: Run) -> None:
    code = check_code(honest)
    assert [c.name for c in code.contracts] == EVERYTHING
    assert code.unknown == () and code.status() == "release" and code.token_words == TEST_TOKEN
    assert all(c.code == keccak(honest.chain.code_at(c.address)) for c in code.contracts)


def test_who_created_the_contracts_makes_no_difference(stage: CodeStage) -> None:
    """A stranger who sends all or some of the transactions first makes the run that was meant or none."""
    terms = stage.named("begun by somebody else")
    places = places_of(terms)
    stage.chain.send_data(stage.staker, FACTORY, bytes(32) + run_deployer_code(terms.run, places.arbiter))
    deployer = RunDeployerContract(places.deployer)
    charter, vault = (harness.artifact(name).bytecode for name in ("RunCharter", "Vault"))
    stage.chain.send(stage.staker, deployer.create_charter(charter, terms))
    stage.chain.send(stage.staker, deployer.create(vault))
    run = deploy_run(stage.chain, stage.sponsor, terms)
    assert run.address == places.charter and run.charter == terms
    assert check_code(run).status() == "release"


class Overtaken(Chain):
    """A chain on which somebody sends every step of a deployment first."""

    def send(self, account: LocalAccount, call: Call, **how: Any) -> Any:
        super().send(self.rival, call)
        return super().send(account, call, **how)

    rival: LocalAccount


def test_who_is_overtaken_at_every_step_has_deployed_his_run_all_the_same(stage: CodeStage) -> None:
    """One copied transaction made a deployment fail, and its sponsor begin another run."""
    chain = Overtaken(stage.chain.url)
    chain.rival = stage.staker
    terms = stage.named("overtaken")
    run = deploy_run(chain, stage.sponsor, terms)
    assert check_code(run).status() == "release" and run.charter == terms


def test_a_run_that_is_not_wholly_created_is_not_known(stage: CodeStage) -> None:
    terms = stage.named("half")
    places = places_of(terms)
    stage.chain.send_data(stage.sponsor, FACTORY, bytes(32) + run_deployer_code(terms.run, places.arbiter))
    deployer = RunDeployerContract(places.deployer)
    stage.chain.send(stage.sponsor, deployer.create_charter(harness.artifact("RunCharter").bytecode, terms))
    assert unknown(Run(stage.chain, places.charter)) == list(ROUND_CONTRACTS)


def test_a_deployer_creates_its_own_runs_contracts_in_their_order_and_nothing_else(
    stage: CodeStage, honest: Run
) -> None:
    terms, others = stage.named("in order"), stage.named("others")
    places = places_of(terms)
    stage.chain.send_data(stage.sponsor, FACTORY, bytes(32) + run_deployer_code(terms.run, places.arbiter))
    create = RunDeployerContract(places.deployer)
    charter, vault = (harness.artifact(name).bytecode for name in ("RunCharter", "Vault"))

    def refused(call: Call) -> str:
        with pytest.raises(RejectedError) as error:
            stage.chain.send(stage.staker, call)
        return error.value.code

    assert refused(create.create(vault)) == "NotNext"
    assert refused(create.create_charter(vault, terms)) == "WrongCode"
    assert refused(create.create_charter(charter, others)) == "WrongTerms"
    stage.chain.send(stage.staker, create.create_charter(charter, terms.as_tuple()))
    assert refused(create.create_charter(charter, terms.as_tuple())) == "NotNext"
    assert refused(create.create(harness.artifact("EvilVault").bytecode)) == "WrongCode"
    assert refused(create.create(vault + b"\0")) == "WrongCode"
    stage.chain.send(stage.staker, create.create(vault))
    assert refused(create.create(vault)) == "WrongCode"
    full = RunDeployerContract(places_of(honest.charter).deployer)
    assert refused(full.create(harness.artifact("Revenue").bytecode)) == "NotNext"
    reported = [stage.chain.ask(full.address_of(k)) for k in range(1 + len(ROUND_CONTRACTS))]
    assert reported == [honest.address, *(getattr(honest.modules, name) for name in ROUND_CONTRACTS)]


# --- impostors


def test_a_vault_with_a_back_door_is_refused_though_it_is_wired(stage: CodeStage) -> None:
    """Played on the first version: 3,000 staked tokens swept by the sponsor."""
    contracts = {**ROUND_CONTRACTS, "vault": "EvilVault"}
    run = deploy_run(stage.chain, stage.sponsor, stage.named("evil vault"), contracts=contracts)
    assert verify_round_wiring(run) is run
    assert {"charter", "vault"} <= set(unknown(run))


def test_a_true_vault_over_storage_of_its_authors_is_refused(stage: CodeStage) -> None:
    """A hash of what lies at an address says nothing of what a constructor wrote beside it."""
    preset, true = (harness.artifact(name).deployed for name in ("PresetVault", "Vault"))
    assert preset == true
    contracts = {**ROUND_CONTRACTS, "vault": "PresetVault"}
    run = deploy_run(stage.chain, stage.sponsor, stage.named("preset vault"), contracts=contracts)
    assert run.chain.ask(run.vault.free(stage.sponsor.address)) == 10**24
    assert {"charter", "vault"} <= set(unknown(run))


def test_an_arbiter_with_another_leaf_is_refused(stage: CodeStage) -> None:
    leaves = list(places_of(stage.terms).leaves.values())
    swapped = stage.chain.deploy(stage.sponsor, "Arbiter", [leaves[1], leaves[0], *leaves[2:]])[0]
    run = deploy_run(stage.chain, stage.sponsor, stage.named("swapped leaves"), arbiter=swapped)
    assert {"arbiter", "game", "map leaf", "rowexp leaf"} <= set(unknown(run))
    assert "dot leaf" not in unknown(run)


def test_a_charter_beside_the_real_one_is_refused(stage: CodeStage, honest: Run) -> None:
    """It names the true modules, all but one: what takes the money."""
    evil = stage.chain.deploy(stage.sponsor, "EvilVault", honest.address)[0]
    modules = astuple(replace(honest.modules, vault=evil))
    beside = stage.chain.deploy(stage.sponsor, "RunCharter", honest.charter.as_tuple(), modules)[0]
    run = Run(stage.chain, beside)
    assert run.run_id == honest.run_id
    assert unknown(run) == ["charter", "vault"]


def test_a_run_of_modules_that_are_no_contracts_is_refused(stage: CodeStage) -> None:
    nobody = astuple(modules_at())
    address = stage.chain.deploy(stage.sponsor, "RunCharter", stage.named("empty").as_tuple(), nobody)[0]
    assert unknown(Run(stage.chain, address)) == [name for name in EVERYTHING if name != "beacon"]


def test_a_foreign_beacon_is_refused_and_a_foreign_token_is_said(stage: CodeStage) -> None:
    """A beacon that somebody knows tells who will look; a token is its issuer's word, which the user holds already."""
    beacon = deploy_beacon(stage.chain, stage.sponsor, replace(LOCAL, period=LOCAL.period + 1))
    token = stage.chain.deploy(stage.sponsor, "ReentrantToken")[0]
    run = deploy_run(stage.chain, stage.sponsor, replace(stage.named("foreign"), beacon=beacon, token=token))
    assert unknown(run) == ["beacon"]
    assert code_of(run).token_words != TEST_TOKEN


def test_what_the_user_allows_is_exactly_what_was_found(stage: CodeStage, honest: Run) -> None:
    contracts = {**ROUND_CONTRACTS, "vault": "EvilVault"}
    named = (stage.named(f"allowed {k}") for k in range(2))
    runs = [deploy_run(stage.chain, stage.sponsor, terms, contracts=contracts) for terms in named]
    first, second = (code_of(run) for run in runs)
    assert check_code(runs[0], {first.digest}).status({first.digest}) == "allowed"
    for wrong in (second.digest, code_of(honest).digest, Digest(bytes(32))):
        with pytest.raises(UnknownCode):
            check_code(runs[0], {wrong})
    for k, found in enumerate(first.contracts):
        for changed in (replace(found, code=Digest(bytes(32))), replace(found, address=Address(bytes(20)))):
            contents = (*first.contracts[:k], changed, *first.contracts[k + 1 :])
            assert replace(first, contracts=contents).digest != first.digest


# --- the code itself


@pytest.mark.parametrize("name", NAMES)
def test_no_code_of_a_run_can_be_exchanged_or_destroyed(name: str) -> None:
    """No DELEGATECALL to code named elsewhere, no SELFDESTRUCT; what is at an address is there for good."""
    found = set(_opcodes(harness.artifact(name).deployed))
    assert not found & {0xF2, 0xF4, 0xF5, 0xFF}
    assert (0xF0 in found) == (name == "RunDeployer")


def _opcodes(code: bytes) -> Iterator[int]:
    """Opcodes without what they push, up to the constants: behind the INVALID after which nothing can be jumped to."""
    position = 0
    while position < len(code):
        opcode = code[position]
        if opcode == 0xFE and 0x5B not in code[position:]:
            return
        yield opcode
        position += 1 + (opcode - 0x5F if 0x60 <= opcode <= 0x7F else 0)


def test_create2_addresses_are_those_of_ethereum() -> None:
    # Examples 0 and 3 of EIP-1014.
    assert create2_address(b"\0", Address(bytes(20))).hex() == "4d1a2e2bb4f88f0250f26ffff098b0b30b26bf38"
    creator = Address(bytes.fromhex("deadbeef00000000000000000000000000000000"))
    salt = bytes.fromhex("000000000000000000000000feed000000000000000000000000000000000000")
    assert create2_address(b"\0", creator, salt).hex() == "d04116cdd17bebe565eb2422f2497e06cc1c9833"
