"""A run as actors and commands address it: its charter, read from the chain and checked, and its contracts.

The address of the charter names a run; everything else follows from it. Source: docs/protocol.md; ICharter.sol.
"""

from __future__ import annotations

from functools import cached_property

from assay.protocol.errors import RejectedError
from assay.protocol.run.charter import Charter, Modules
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.audit import AuditContract
from assay_ledger.bindings.charter import CharterContract
from assay_ledger.bindings.game import GameContract
from assay_ledger.bindings.outers import OutersContract
from assay_ledger.bindings.revenue import RevenueContract
from assay_ledger.bindings.rounds import RoundsContract
from assay_ledger.bindings.settlement import SettlementContract
from assay_ledger.bindings.shares import ModelSharesContract
from assay_ledger.bindings.token import TokenContract
from assay_ledger.bindings.vault import VaultContract
from assay_ledger.bindings.vesting import VestingContract
from assay_ledger.chain.client import Chain
from assay_ledger.contract import Contract
from assay_ledger.index.games import Games


class Run:
    """One run. Raises RejectedError (NotARun) when no charter is at the address or it does not hash to its identity."""

    def __init__(self, chain: Chain, address: Address, first_block: int = 0) -> None:
        self.chain = chain
        self.address = address
        self.first_block = first_block
        if not chain.code_at(address):
            raise RejectedError(
                f"There is no contract at 0x{address.hex()} on chain {chain.chain_id}.",
                code="NotARun",
                remedy="Check the run's address and that the RPC URL names the right chain.",
            )
        contract = CharterContract(address)
        self.charter: Charter = chain.ask(contract.terms())
        self.run_id: Digest = chain.ask(contract.run())
        if self.charter.run != self.run_id:
            raise RejectedError(
                f"The terms at 0x{address.hex()} do not hash to the run they name.",
                code="NotARun",
                remedy="This is no charter of Assay, or of another version: do not join it.",
            )
        self.modules: Modules = chain.ask(contract.modules())

    @cached_property
    def vault(self) -> VaultContract:
        """Every token of the run."""
        return VaultContract(self.modules.vault)

    @cached_property
    def rounds(self) -> RoundsContract:
        """Seats, rounds, commitments."""
        return RoundsContract(self.modules.rounds)

    @cached_property
    def outers(self) -> OutersContract:
        """Outer steps."""
        return OutersContract(self.modules.outers)

    @cached_property
    def audit(self) -> AuditContract:
        """Verifiers and whistleblowers."""
        return AuditContract(self.modules.audit)

    @cached_property
    def settlement(self) -> SettlementContract:
        """Escrow, pay, wages."""
        return SettlementContract(self.modules.settlement)

    @cached_property
    def game(self) -> GameContract:
        """Disputes."""
        return GameContract(self.modules.game)

    @cached_property
    def shares(self) -> ModelSharesContract:
        """The ownership shares of the model."""
        return ModelSharesContract(self.modules.shares)

    @cached_property
    def vesting(self) -> VestingContract:
        """Shares credited and not vested."""
        return VestingContract(self.modules.vesting)

    @cached_property
    def revenue(self) -> RevenueContract:
        """What the model earns."""
        return RevenueContract(self.modules.revenue)

    @cached_property
    def token(self) -> TokenContract:
        """The settlement token."""
        return TokenContract(self.charter.token)

    @cached_property
    def games(self) -> Games:
        """The disputes of the run, as players read them."""
        return Games(self.chain, self.game, self.first_block)

    def contracts(self) -> dict[str, Contract]:
        """The contracts of the run by the name of their field in `Modules`."""
        return {
            "vault": self.vault,
            "rounds": self.rounds,
            "outers": self.outers,
            "audit": self.audit,
            "settlement": self.settlement,
            "game": self.game,
            "shares": self.shares,
            "vesting": self.vesting,
            "revenue": self.revenue,
        }
