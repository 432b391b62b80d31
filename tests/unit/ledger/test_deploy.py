"""A run's contracts are created at the addresses they were told, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount

from assay.protocol.errors import RejectedError
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.bindings.run_deployer import RunDeployerContract
from assay_ledger.chain.artifacts import load_artifact
from assay_ledger.chain.client import Chain, address_of
from assay_ledger.chain.node import Anvil
from assay_ledger.deployment.code import code_of
from assay_ledger.deployment.deploy import (
    DeploymentFailed,
    WiringWrong,
    deploy_run,
    deploy_seed,
    deploy_token,
    verify_round_wiring,
)
from assay_ledger.deployment.places import GOVERNOR, LEAVES, ROUND_CONTRACTS, create_address, places_of
from assay_ledger.rounds.run import Run
from tests.harness.contracts.arena import arena_charter
from tests.harness.contracts.fresh import fresh_artifacts
from tests.harness.games import config
from tests.harness.programs import counting
from tests.harness.rounds.charters import GOVERNED
from tests.harness.rounds.samples import START

NAMES = [
    *("RunDeployer", "RunCharter", "TestToken", "PrevrandaoSeed", "DrandSeed", "Arbiter"),
    *ROUND_CONTRACTS.values(),
    *GOVERNOR.values(),
    *LEAVES.values(),
]


def real_charter(**changes: object) -> RunCharter:
    """Terms in which games of programs that exist can be played."""
    counted = counting().program
    return replace(arena_charter(counted, counted, config(), 64), **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Anvil]:
    with fresh_artifacts(tmp_path_factory.mktemp("artifacts"), NAMES), Anvil(genesis_time=START) as running:
        yield running


@pytest.fixture(scope="module")
def chain(node: Anvil) -> Chain:
    return Chain(node.url)


@pytest.fixture(scope="module")
def sponsor(node: Anvil) -> LocalAccount:
    return Account.from_key(node.dev_keys[0])


@pytest.fixture(scope="module")
def terms(chain: Chain, sponsor: LocalAccount) -> RunCharter:
    token, beacon = deploy_token(chain, sponsor), deploy_seed(chain, sponsor)
    return real_charter(token=token, beacon=beacon, sponsor=address_of(sponsor), revenue_tokens=(token,))


@pytest.fixture(scope="module")
def run(chain: Chain, sponsor: LocalAccount, terms: RunCharter) -> Run:
    return deploy_run(chain, sponsor, terms)


def test_create_addresses_are_those_of_ethereum() -> None:
    # Vectors of the Ethereum yellow paper's scheme, as go-ethereum tests them.
    sender = Address(bytes.fromhex("970e8128ab834e8eac17ab8e3812f010678cf791"))
    assert create_address(sender, 0).hex() == "333c3310824b7c685133f2bedb2ca4b8b4df633d"
    assert create_address(sender, 1).hex() == "8bda78331c916a08481428e4b07c96d3e916d165"
    assert create_address(sender, 2).hex() == "c9ddedf451bc62ce88bf9292afb13df35b670699"


def test_a_run_stands_where_its_terms_say_and_reads_them_back(chain: Chain, terms: RunCharter, run: Run) -> None:
    places = places_of(terms)
    assert (run.charter, run.run_id, run.address) == (terms, terms.run, places.charter)
    assert {name: getattr(run.modules, name) for name in ROUND_CONTRACTS} == places.modules
    assert verify_round_wiring(Run(chain, run.address)).modules == run.modules


def test_a_governed_run_has_its_governor_where_its_terms_say(
    chain: Chain, sponsor: LocalAccount, terms: RunCharter
) -> None:
    economics = replace(terms.economics, shares_per_unit=Wei(1))
    slow = replace(GOVERNED.governance, timelock=30 * 86_400)
    governed = replace(terms, economics=economics, governance=slow)
    run, places = deploy_run(chain, sponsor, governed), places_of(governed)
    assert run.charter == governed and run.modules.governor == places.modules["governor"]
    assert chain.ask(run.governor.charter()) == run.address
    assert chain.ask(run.governor.guardian()) == GOVERNED.governance.guardian
    assert code_of(run).status() == "release"
    assert "governor" in [part.name for part in code_of(run).contracts]


def test_nobody_governs_a_run_whose_charter_names_no_governance(chain: Chain, sponsor: LocalAccount, run: Run) -> None:
    assert run.modules.governor == bytes(20)
    assert "governor" not in [part.name for part in code_of(run).contracts]
    deployer = RunDeployerContract(places_of(run.charter).deployer)
    with pytest.raises(RejectedError) as refused:
        chain.send(sponsor, deployer.create(load_artifact("RunGovernor").bytecode))
    assert refused.value.code == "NotNext"


def test_two_runs_share_an_arbiter(chain: Chain, sponsor: LocalAccount, terms: RunCharter, run: Run) -> None:
    other = deploy_run(chain, sponsor, replace(terms, name=Digest(b"\7" * 32)))
    assert run.address != other.address and run.run_id != other.run_id
    arbiters = {chain.ask(made.game.arbiter()) for made in (run, other)}
    assert arbiters == {places_of(terms).arbiter}


def test_a_contract_that_is_not_there_is_noticed(chain: Chain, run: Run) -> None:
    asked = Run(chain, run.address)
    asked.modules = replace(run.modules, duties=Address(bytes(19) + b"\1"))
    with pytest.raises(WiringWrong, match="duties"):
        verify_round_wiring(asked)


def test_a_game_that_could_outlast_the_windows_is_refused_by_name(
    chain: Chain, sponsor: LocalAccount, terms: RunCharter
) -> None:
    short = replace(terms, timing=replace(terms.timing, longest_dispute=7200))
    with pytest.raises(DeploymentFailed) as failed:
        deploy_run(chain, sponsor, short)
    assert failed.value.details["reason"] == "DisputeTooLong"
