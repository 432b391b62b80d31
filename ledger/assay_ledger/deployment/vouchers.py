"""Where a run's contract of vouchers is, who deploys it, and whether a contract at an address is one of it.

It stands beside the run's own contracts: created by CREATE2 from this release's code with the charter's address and
its terms, so its address proves all of it, and anybody may create it. Source: docs/adr/0063-vouchers.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from eth_abi.abi import encode

from assay.protocol.errors import AssayError, ConfigError, RejectedError
from assay.protocol.types import Address
from assay_ledger.bindings.vouchers import VouchersContract
from assay_ledger.chain.artifacts import load_artifact
from assay_ledger.chain.client import Chain
from assay_ledger.contract import Contract
from assay_ledger.deployment.code import UnknownCode
from assay_ledger.deployment.deploy import create2
from assay_ledger.deployment.places import create2_address
from assay_ledger.rounds.run import Run

if TYPE_CHECKING:
    from assay_ledger.chain.transaction_signer import TransactionSigner


@dataclass(frozen=True, slots=True)
class VoucherTerms:
    """The owners' part of what is redeemed, in parts per million, and the delay of a refund, in seconds."""

    owners_ppm: int = 100_000
    refund_delay: int = 7 * 86_400


TERMS: Final = VoucherTerms()
"""What a contract of vouchers has unless somebody asks for other terms: its address follows from the run alone."""


def vouchers_code(charter: Address, terms: VoucherTerms = TERMS) -> bytes:
    """Creation code with its arguments. Raises ConfigError (ContractsNotCompiled)."""
    arguments = encode(["address", "uint256", "uint256"], [charter, terms.owners_ppm, terms.refund_delay])
    return load_artifact("Vouchers").bytecode + arguments


def vouchers_place(charter: Address, terms: VoucherTerms = TERMS) -> Address:
    """Where the contract of these terms is, or will be."""
    return create2_address(vouchers_code(charter, terms))


VOUCHERS_NAME: Final = "vouchers"
"""What the contract is called among those that a watcher of the run follows."""


def followed_contracts(run: Run) -> dict[str, Contract]:
    """The run's contracts and its usual contract of vouchers, for whoever shows who paid whom.

    It may not exist yet: then it has no events, and none that another contract can make for it. Where this release is
    not compiled nobody can say where it is, and it is left out.
    """
    try:
        at = vouchers_place(run.address)
    except ConfigError:
        return run.all_contracts()
    return {**run.all_contracts(), VOUCHERS_NAME: VouchersContract(at)}


def deploy_vouchers(
    chain: Chain, account: TransactionSigner, charter: Address, terms: VoucherTerms = TERMS
) -> VouchersContract:
    """Create a run's contract of vouchers, or find it. Raises DeploymentFailed, FactoryMissing."""
    return VouchersContract(create2(chain, account, "Vouchers", vouchers_code(charter, terms)))


def check_vouchers(run: Run, address: Address | None = None) -> tuple[VouchersContract, VoucherTerms]:
    """The run's contract of vouchers at an address, the usual one if none is named, with its terms.

    The run's own code is another matter: `assay_ledger.deployment.code.check_code`. Raises RejectedError
    (VouchersMissing), UnknownCode.
    """
    at = vouchers_place(run.address) if address is None else address
    if not run.chain.code_at(at):
        raise RejectedError(
            f"There is no contract of vouchers at 0x{at.hex()}.",
            code="VouchersMissing",
            remedy="Anybody can create it: `assay gateway deploy`; or name another with --contract.",
        )
    contract = VouchersContract(at)
    # Attack: a contract that answers as this one does, and pays its author what is deposited.
    try:
        terms = VoucherTerms(run.chain.ask(contract.owners_ppm()), run.chain.ask(contract.refund_delay()))
        is_known = vouchers_place(run.address, terms) == at
    except (AssayError, ValueError, OverflowError) as error:
        if isinstance(error, AssayError) and not isinstance(error, RejectedError):
            raise
        is_known = False
    if not is_known:
        raise UnknownCode(
            f"The contract at 0x{at.hex()} was not created from this release's code for this run.",
            remedy="Deposit nothing there: its author may take it.",
        )
    return contract, terms
