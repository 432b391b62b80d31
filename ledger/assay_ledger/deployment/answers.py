"""Where the contracts of bonded gateways beside a run are, who deploys them, and whether an address is one of theirs.

Created by a deployer that is created by CREATE2 from this release's code, the run's charter and the terms, so the
address of `Gateways` proves all of it, and anybody may create it. Source: docs/adr/0067-bonded-gateways.md.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from assay.protocol.errors import AssayError, RejectedError
from assay.protocol.run.answers import AnswerTerms
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.answer_charter import AnswerCharterContract
from assay_ledger.bindings.answer_deployer import AnswerDeployerContract
from assay_ledger.bindings.challenges import ChallengesContract
from assay_ledger.bindings.game import GameContract
from assay_ledger.bindings.gateways import GatewaysContract
from assay_ledger.bindings.vault import VaultContract
from assay_ledger.chain.artifacts import load_artifact
from assay_ledger.chain.client import Chain
from assay_ledger.deployment.code import UnknownCode
from assay_ledger.deployment.deploy import DeploymentFailed, create2, deploy_arbiter
from assay_ledger.deployment.places import arbiter_code, create2_address, create_address
from assay_ledger.index.games import Games
from assay_ledger.rounds.run import Run

if TYPE_CHECKING:
    from assay_ledger.chain.transaction_signer import TransactionSigner

ANSWER_CONTRACTS: Final = ("AnswerCharter", "Vault", "Gateways", "Game", "Challenges")
"""In the order of creation."""

_TERMS_TYPE: Final = "((bytes32,bytes32,bytes),bytes32,uint32,uint32,uint128)"


@dataclass(frozen=True)
class AnswerGates:
    """The contracts of bonded gateways beside one run."""

    run: Run
    terms: AnswerTerms
    deployer: Address

    @cached_property
    def charter(self) -> AnswerCharterContract:
        """The charter of gateways, which claims name."""
        return AnswerCharterContract(create_address(self.deployer, 1))

    @cached_property
    def vault(self) -> VaultContract:
        """Bonds, and what accusers stake."""
        return VaultContract(create_address(self.deployer, 2))

    @cached_property
    def gateways(self) -> GatewaysContract:
        """Bonds, pledges, claims; its address names all of them."""
        return GatewaysContract(create_address(self.deployer, 3))

    @cached_property
    def game(self) -> GameContract:
        """The games on statements."""
        return GameContract(create_address(self.deployer, 4))

    @cached_property
    def challenges(self) -> ChallengesContract:
        """Challenges of accusers."""
        return ChallengesContract(create_address(self.deployer, 5))

    @cached_property
    def games(self) -> Games:
        """The games, read from the chain."""
        return Games(self.run.chain, self.game, self.run.first_block)


def terms_digest(terms: AnswerTerms) -> Digest:
    """What a deployer knows its terms by: keccak256(abi.encode(terms))."""
    return Digest(keccak(encode([_TERMS_TYPE], [astuple(terms)])))


def answer_deployer_code(charter: Address, terms: AnswerTerms) -> bytes:
    """Creation code of the deployer with its arguments. Raises ConfigError (ContractsNotCompiled)."""
    codes = [keccak(load_artifact(name).bytecode) for name in ANSWER_CONTRACTS]
    types = ["address", "bytes32", "address", f"bytes32[{len(codes)}]"]
    arbiter = create2_address(arbiter_code())
    return load_artifact("AnswerDeployer").bytecode + encode(types, [charter, terms_digest(terms), arbiter, codes])


def answer_gates(run: Run, terms: AnswerTerms) -> AnswerGates:
    """Where the contracts of these terms are, or will be."""
    return AnswerGates(run, terms, create2_address(answer_deployer_code(run.address, terms)))


def deploy_answers(run: Run, account: TransactionSigner, terms: AnswerTerms) -> AnswerGates:
    """Create the contracts of gateways, or those that are missing.

    Raises RejectedError under the constructors' own names, DeploymentFailed, FactoryMissing.
    """
    chain, code = run.chain, answer_deployer_code(run.address, terms)
    deploy_arbiter(chain, account)
    deployer = AnswerDeployerContract(create2(chain, account, "AnswerDeployer", code))
    for index, name in enumerate(ANSWER_CONTRACTS):
        if chain.ask(deployer.created()) > index:
            continue
        own = load_artifact(name).bytecode
        try:
            chain.send(account, deployer.create(own) if index else deployer.create_charter(own, terms))
        except AssayError as error:
            if chain.ask(deployer.created()) > index:
                continue  # somebody was faster, and it is the same
            raise DeploymentFailed(f"{name} could not be created: {error.message}", reason=error.code) from error
    return answer_gates(run, terms)


def check_answers(run: Run, address: Address) -> AnswerGates:
    """The contracts of gateways whose book is at an address.

    The run's own code is another matter: `assay_ledger.deployment.code.check_code`. Raises RejectedError
    (GatewaysMissing), UnknownCode.
    """
    chain: Chain = run.chain
    if not chain.code_at(address):
        raise RejectedError(
            f"There is no contract of bonded gateways at 0x{address.hex()}.",
            code="GatewaysMissing",
            remedy="Anybody can create it: `assay gateway bond`; or name another with --bonds.",
        )
    # Attack: a contract that answers as this one does, and pays its author what is bonded, or lets no accusation in.
    try:
        charter = AnswerCharterContract(chain.ask(GatewaysContract(address).charter()))
        found = answer_gates(run, chain.ask(charter.answer_terms()))
        is_known = found.gateways.address == address
    except (AssayError, ValueError, OverflowError) as error:
        if isinstance(error, AssayError) and not isinstance(error, RejectedError):
            raise
        is_known = False
    if not is_known:
        raise UnknownCode(
            f"The contract at 0x{address.hex()} was not created from this release's code for this run.",
            remedy="Bond nothing there, and count on no bond there.",
        )
    return found
