"""Deploys the contracts of a run.

The contracts take the charter's address alone and hold each other's addresses for ever, so all addresses are computed
before the first is created (CREATE: deployer and nonce), written into the charter, and verified after the last.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from eth_utils.crypto import keccak
from web3.exceptions import BadFunctionCallOutput

from assay.ledger.artifacts import load_artifact
from assay.ledger.chain import Chain, address_of
from assay.ledger.run import Run
from assay.protocol.charter import Charter, Modules, modules_tuple
from assay.protocol.economics import check_charter
from assay.protocol.errors import AssayError, ConfigError
from assay.protocol.types import Address

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

MODULE_CONTRACTS: Final = {
    "vault": "Vault",
    "rounds": "Rounds",
    "outers": "Outers",
    "audit": "Audit",
    "settlement": "Settlement",
    "game": "Game",
    "shares": "ModelShares",
    "vesting": "Vesting",
    "revenue": "Revenue",
}
"""Field of `Modules` to contract, in the order of creation after the charter."""

LEAVES: Final = {
    "map": "MapLeaf",
    "rowexp": "RowExpLeaf",
    "max": "MaxLeaf",
    "dot": "DotLeaf",
    "sum": "SumLeaf",
    "gather": "GatherLeaf",
    "scatter_sum": "ScatterSumLeaf",
    "rank": "RankLeaf",
    "random": "RandomLeaf",
}
"""Family to the contract that computes one of its elements, from family 2 on in the order of their codes."""


class DeploymentFailed(ConfigError):
    """A contract of the run could not be created; nothing that was created before it is of use to anybody."""

    remedy = "Mend what the reason names and deploy again; addresses are computed anew."


class WiringWrong(ConfigError):
    """A contract at the run's address is missing or belongs to another run."""

    remedy = "Check the address of the run (its charter) and the RPC URL."


def create_address(deployer: Address, nonce: int) -> Address:
    """Where the contract that `deployer` creates in its transaction number `nonce` will be (CREATE)."""
    number = nonce.to_bytes((nonce.bit_length() + 7) // 8, "big")
    encoded = number if len(number) == 1 and nonce < 0x80 else bytes([0x80 + len(number)]) + number
    payload = b"\x94" + deployer + encoded  # RLP of (address, nonce)
    return Address(keccak(bytes([0xC0 + len(payload)]) + payload)[12:])


def deploy_token(chain: Chain, account: LocalAccount) -> Address:
    """A test token that everybody mints."""
    return chain.deploy(account, "TestToken")[0]


def deploy_seed(chain: Chain, account: LocalAccount) -> Address:
    """The seed source over the chain's own randomness."""
    return chain.deploy(account, "PrevrandaoSeed")[0]


def deploy_arbiter(chain: Chain, account: LocalAccount) -> Address:
    """The leaves and the contract that asks them; stateless, shared by any number of runs."""
    leaves = [chain.deploy(account, name)[0] for name in LEAVES.values()]
    return chain.deploy(account, "Arbiter", leaves)[0]


def deploy_run(
    chain: Chain, account: LocalAccount, charter: Charter, arbiter: Address | None = None, *, game: str = "Game"
) -> Run:
    """Create every contract of a run and verify how they are wired.

    `charter` names token, seed source and sponsor; `arbiter` may be one that serves other runs (None: a new one). The
    account must send nothing else meanwhile. `game` is another contract than the dispute game, for tests, constructed
    from the charter's address alone.

    Raises RejectedError under the constructors' own names (checked here first, so a bad charter costs no gas),
    DeploymentFailed, WiringWrong.
    """
    check_charter(charter, chain.head().timestamp)
    if arbiter is None and game == "Game":
        arbiter = deploy_arbiter(chain, account)
    first_block = chain.head().number
    sender = address_of(account)
    nonce = int(chain.read(lambda: chain.w3.eth.get_transaction_count(account.address)))
    expected = {name: create_address(sender, nonce + 1 + k) for k, name in enumerate(MODULE_CONTRACTS)}
    modules = Modules(**expected)
    address = _create(
        chain, account, "Charter", create_address(sender, nonce), charter.as_tuple(), modules_tuple(modules)
    )
    for name, contract in MODULE_CONTRACTS.items():
        arguments = (address, arbiter) if name == "game" and arbiter is not None else (address,)
        _create(chain, account, game if name == "game" else contract, expected[name], *arguments)
    return verify_wiring(Run(chain, address, first_block))


def verify_wiring(run: Run) -> Run:
    """The run itself, once every contract of it is found to exist and to name this charter.

    Raises WiringWrong.
    """
    for field in fields(Modules):
        address: Address = getattr(run.modules, field.name)
        contract = run.chain.contract("Vault", address)  # every module has charter()
        try:
            named = run.chain.call(contract.functions.charter())
        except (AssayError, BadFunctionCallOutput) as error:
            raise WiringWrong(f"The {field.name} contract at 0x{address.hex()} does not answer.") from error
        if bytes.fromhex(named[2:]) != run.address:
            raise WiringWrong(f"The {field.name} contract belongs to another run.", found=named)
    return run


def _create(chain: Chain, account: LocalAccount, name: str, wanted: Address, *arguments: Any) -> Address:
    load_artifact(name)  # its absence is an error of its own, not of the deployment
    try:
        address, _ = chain.deploy(account, name, *arguments)
    except AssayError as error:
        raise DeploymentFailed(f"{name} could not be created: {error.message}", reason=error.code) from error
    if address != wanted:
        raise DeploymentFailed(f"{name} was created at another address: the account sent something else meanwhile.")
    return address
