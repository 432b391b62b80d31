"""A run of the second round as actors and commands address it: its contracts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from assay.protocol.types import Address
from assay_ledger.bindings.attestations import AttestationsContract
from assay_ledger.bindings.beacon import DrandSeedContract
from assay_ledger.bindings.commitments import CommitmentsContract
from assay_ledger.bindings.duties import DutiesContract
from assay_ledger.bindings.game import GameContract
from assay_ledger.bindings.generations import GenerationsContract
from assay_ledger.bindings.tenures import TenuresContract
from assay_ledger.bindings.tickets import TicketsContract
from assay_ledger.bindings.vault import VaultContract
from assay_ledger.chain.client import Chain
from assay_ledger.contract import Contract
from assay_ledger.index.games import Games
from assay_ledger.rounds.facts import RoundFacts


@dataclass(frozen=True, slots=True)
class RoundAddresses:
    """Where the contracts of a run are."""

    vault: Address
    tickets: Address
    tenures: Address
    commitments: Address
    generations: Address
    duties: Address
    attestations: Address
    game: Address
    beacon: Address


class RoundRun:
    """One run. `first_block`: none of its events lies in an earlier one."""

    def __init__(self, chain: Chain, facts: RoundFacts, modules: RoundAddresses, first_block: int = 0) -> None:
        self.chain = chain
        self.facts = facts
        self.modules = modules
        self.first_block = first_block

    @cached_property
    def vault(self) -> VaultContract:
        """Every token of the run."""
        return VaultContract(self.modules.vault)

    @cached_property
    def tickets(self) -> TicketsContract:
        """Stakes of auditors."""
        return TicketsContract(self.modules.tickets)

    @cached_property
    def tenures(self) -> TenuresContract:
        """Seats and their holders."""
        return TenuresContract(self.modules.tenures)

    @cached_property
    def commitments(self) -> CommitmentsContract:
        """Rounds, commitments, who holds which update."""
        return CommitmentsContract(self.modules.commitments)

    @cached_property
    def generations(self) -> GenerationsContract:
        """Merges."""
        return GenerationsContract(self.modules.generations)

    @cached_property
    def duties(self) -> DutiesContract:
        """Epochs, answers, misses."""
        return DutiesContract(self.modules.duties)

    @cached_property
    def attestations(self) -> AttestationsContract:
        """Findings and accusations."""
        return AttestationsContract(self.modules.attestations)

    @cached_property
    def game(self) -> GameContract:
        """Disputes."""
        return GameContract(self.modules.game)

    @cached_property
    def beacon(self) -> DrandSeedContract:
        """Public randomness; where the chain itself is the beacon, key and period are not there to ask."""
        return DrandSeedContract(self.modules.beacon)

    @cached_property
    def games(self) -> Games:
        """The disputes of the run, as players read them."""
        return Games(self.chain, self.game, self.first_block)

    def contracts(self) -> dict[str, Contract]:
        """The contracts whose events tell the state of the run, by name."""
        return {
            "tickets": self.tickets,
            "tenures": self.tenures,
            "commitments": self.commitments,
            "generations": self.generations,
            "duties": self.duties,
            "attestations": self.attestations,
            "game": self.game,
            "beacon": self.beacon,
        }
