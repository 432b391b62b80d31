"""A run as actors and commands address it: its charter, read from the chain and checked, and its contracts.

The address of the charter names a run; everything else follows from it. Source: docs/protocol.md; ICharter.sol.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cached_property
from typing import Any

from web3.contract import Contract

from assay.protocol.errors import RejectedError
from assay.protocol.run.charter import Charter, Modules
from assay.protocol.trees.state import RoundScalars
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.chain.client import Chain
from assay_ledger.index.games import Games


class Run:
    """One run. Raises RejectedError (NotARun) when no charter is at the address or it does not hash to its identity."""

    def __init__(self, chain: Chain, address: Address, first_block: int = 0) -> None:
        self.chain = chain
        self.address = address
        self.first_block = first_block
        if not chain.read(lambda: chain.w3.eth.get_code(chain.contract("Charter", address).address)):
            raise RejectedError(
                f"There is no contract at 0x{address.hex()} on chain {chain.chain_id}.",
                code="NotARun",
                remedy="Check the run's address and that the RPC URL names the right chain.",
            )
        contract = chain.contract("Charter", address)
        self.charter = Charter.from_tuple(_tuple(chain.call(contract.functions.terms())))
        self.run_id = Digest(bytes(chain.call(contract.functions.run())))
        if self.charter.run != self.run_id:
            raise RejectedError(
                f"The terms at 0x{address.hex()} do not hash to the run they name.",
                code="NotARun",
                remedy="This is no charter of Assay, or of another version: do not join it.",
            )
        raw = _tuple(chain.call(contract.functions.modules()))
        self.modules = Modules(*(Address(bytes.fromhex(str(a)[2:])) for a in raw))

    @cached_property
    def vault(self) -> Contract:
        """Every token of the run."""
        return self.chain.contract("Vault", self.modules.vault)

    @cached_property
    def rounds(self) -> Contract:
        """Seats, rounds, commitments."""
        return self.chain.contract("Rounds", self.modules.rounds)

    @cached_property
    def outers(self) -> Contract:
        """Outer steps."""
        return self.chain.contract("Outers", self.modules.outers)

    @cached_property
    def audit(self) -> Contract:
        """Verifiers and whistleblowers."""
        return self.chain.contract("Audit", self.modules.audit)

    @cached_property
    def settlement(self) -> Contract:
        """Escrow, pay, wages."""
        return self.chain.contract("Settlement", self.modules.settlement)

    @cached_property
    def game(self) -> Contract:
        """Disputes."""
        return self.chain.contract("Game", self.modules.game)

    @cached_property
    def shares(self) -> Contract:
        """The ownership shares of the model."""
        return self.chain.contract("ModelShares", self.modules.shares)

    @cached_property
    def vesting(self) -> Contract:
        """Shares credited and not vested."""
        return self.chain.contract("Vesting", self.modules.vesting)

    @cached_property
    def revenue(self) -> Contract:
        """What the model earns."""
        return self.chain.contract("Revenue", self.modules.revenue)

    @cached_property
    def token(self) -> Contract:
        """The settlement token."""
        return self.chain.contract("TestToken", self.charter.token)

    @cached_property
    def games(self) -> Games:
        """The disputes of the run, as players read them."""
        return Games(self.chain, self.game, self.first_block)

    def contracts(self) -> dict[str, Contract]:
        """The contracts of the run by the name of their field in `Modules`."""
        return {f.name: getattr(self, f.name) for f in fields(Modules)}

    def scalars(self, round_: Round, seat: Seat) -> RoundScalars:
        """What the third list of a seat's s_0 follows from."""
        training = self.charter.training
        return RoundScalars(
            run=self.run_id,
            seat=seat,
            round=round_,
            steps_per_round=training.steps_per_round,
            shards=training.shards,
            shard_length=training.shard_length,
            lr=training.learning_rate,
            data_root=training.data,
        )


def _tuple(value: Any) -> Any:
    """Structs as nested tuples, however web3 was told to return them."""
    if isinstance(value, dict):
        return tuple(_tuple(v) for v in value.values())
    if isinstance(value, list | tuple):
        return tuple(_tuple(v) for v in value)
    return value
