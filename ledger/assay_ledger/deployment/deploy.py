"""Deploys the contracts of a run, each at the address that proves what it was created from
(`assay_ledger.deployment.places`).

Leaves, arbiter, seed source and beacons are created by CREATE2 once per chain and shared by all runs. A run's own
contracts are created by its deployer, one a transaction; they are the same whoever sends them, or sent some of them
before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from assay.protocol.errors import AssayError, ConfigError
from assay.protocol.run.beacon import DrandNetwork
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address
from assay_ledger.bindings.run_deployer import RunDeployerContract
from assay_ledger.chain.artifacts import load_artifact
from assay_ledger.chain.client import Chain
from assay_ledger.contract import Call
from assay_ledger.deployment.places import (
    FACTORY,
    LEAVES,
    NOBODY,
    SALT,
    arbiter_code,
    beacon_code,
    contracts_of,
    create2_address,
    create_address,
    leaf_code,
    run_deployer_code,
    seed_code,
)
from assay_ledger.rounds.run import Run

if TYPE_CHECKING:
    from assay_ledger.chain.transaction_signer import TransactionSigner


class DeploymentFailed(ConfigError):
    """A contract of the run could not be created."""

    remedy = "Fix what the reason names and deploy again: with the same terms what exists is found."


class WiringWrong(ConfigError):
    """A contract at the run's address is missing or belongs to another run."""

    remedy = "Check the address of the run (its charter) and the RPC URL."


class FactoryMissing(ConfigError):
    """The chain lacks the contract by which others are created at addresses that follow from their code."""

    remedy = "Have the deterministic deployment proxy (Arachnid) put on this chain; anybody can."


def deploy_token(chain: Chain, account: TransactionSigner) -> Address:
    """A test token that everybody mints."""
    return chain.deploy(account, "TestToken")[0]


def deploy_seed(chain: Chain, account: TransactionSigner) -> Address:
    """The seed source over the chain's own randomness; found, or created once per chain."""
    return create2(chain, account, "PrevrandaoSeed", seed_code())


def deploy_beacon(chain: Chain, account: TransactionSigner, network: DrandNetwork) -> Address:
    """The beacon of a drand network; found, or created once per chain."""
    return create2(chain, account, "DrandSeed", beacon_code(network))


def deploy_arbiter(chain: Chain, account: TransactionSigner) -> Address:
    """The leaves and the contract that asks them; stateless, found or created once per chain."""
    for family, name in LEAVES.items():
        create2(chain, account, name, leaf_code(family))
    return create2(chain, account, "Arbiter", arbiter_code())


def deploy_run(
    chain: Chain,
    account: TransactionSigner,
    charter: RunCharter,
    *,
    contracts: Mapping[str, str] | None = None,
    arbiter: Address | None = None,
) -> Run:
    """Create every contract of a run, or those that are missing, and see that they are there.

    `charter` names token, beacon and sponsor. `contracts` and `arbiter` are others than this release's, for tests: a
    run of them is elsewhere, and no client takes part in it.

    Raises RejectedError under the constructors' own names, DeploymentFailed, WiringWrong, FactoryMissing.
    """
    contracts = contracts_of(charter) if contracts is None else contracts
    for name in ("RunCharter", *contracts.values()):
        load_artifact(name)  # its absence is an error of its own, not of the deployment
    first_block = chain.head().number
    code = run_deployer_code(charter.run, _arbiter(chain, account, contracts, arbiter), contracts)
    deployer = RunDeployerContract(create2(chain, account, "RunDeployer", code))
    names = ("RunCharter", *contracts.values())
    _create_all(chain, account, deployer, names, lambda c: deployer.create_charter(c, charter))
    return verify_round_wiring(Run(chain, create_address(deployer.address, 1), first_block))


def _arbiter(
    chain: Chain, account: TransactionSigner, contracts: Mapping[str, str], arbiter: Address | None
) -> Address:
    if arbiter is not None:
        return arbiter
    # A game other than ours asks none.
    return deploy_arbiter(chain, account) if contracts["game"] == "Game" else NOBODY


def _create_all(
    chain: Chain,
    account: TransactionSigner,
    deployer: RunDeployerContract,
    names: Sequence[str],
    charter: Callable[[bytes], Call],
) -> None:
    """Has the deployer create what it has not created yet, one a transaction."""
    for index, name in enumerate(names):
        if _created(deployer, chain) > index:
            continue
        code = load_artifact(name).bytecode
        try:
            chain.send(account, deployer.create(code) if index else charter(code))
        except AssayError as error:
            if _created(deployer, chain) > index:
                continue  # somebody was faster, and it is the same
            raise DeploymentFailed(f"{name} could not be created: {error.message}", reason=error.code) from error


def _created(deployer: RunDeployerContract, chain: Chain) -> int:
    return chain.ask(deployer.created())


def verify_round_wiring(run: Run) -> Run:
    """The run itself, once every contract of it is found to exist. Raises WiringWrong.

    Its modules know the charter alone, so that code and place say all of their wiring: `assay_ledger.deployment.code`.
    """
    for name in contracts_of(run.charter):
        address: Address = getattr(run.modules, name)
        if not run.chain.code_at(address):
            raise WiringWrong(f"There is no {name} contract at 0x{address.hex()}.")
    return run


def create2(chain: Chain, account: TransactionSigner, name: str, code: bytes) -> Address:
    """The contract that this creation code makes, created unless it exists. Raises DeploymentFailed, FactoryMissing."""
    address = create2_address(code)
    if chain.code_at(address):
        return address
    if not chain.code_at(FACTORY):
        raise FactoryMissing(f"There is no contract at 0x{FACTORY.hex()} on chain {chain.chain_id}.")
    try:
        chain.send_data(account, FACTORY, SALT + code)
    except AssayError as error:
        if not chain.code_at(address):  # else somebody was faster, and it is the same
            raise DeploymentFailed(f"{name} could not be created: {error.message}", reason=error.code) from error
    return address
