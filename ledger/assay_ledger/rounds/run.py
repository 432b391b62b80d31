"""A run as actors and commands address it: its charter, read from the chain, and its contracts.

The address of the charter names a run; everything else follows from it. Source: docs/protocol.md; IRunCharter.sol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType

from assay.amounts import UNKNOWN_MONEY, Currency
from assay.protocol.errors import RejectedError
from assay.protocol.run.run_charter import RunCharter, RunModules
from assay.protocol.types import Address, Digest
from assay_ledger.bindings.attestations import AttestationsContract
from assay_ledger.bindings.beacon import DrandSeedContract
from assay_ledger.bindings.bounties import BountiesContract
from assay_ledger.bindings.challenges import ChallengesContract
from assay_ledger.bindings.commitments import CommitmentsContract
from assay_ledger.bindings.duties import DutiesContract
from assay_ledger.bindings.escrow import EscrowContract
from assay_ledger.bindings.game import GameContract
from assay_ledger.bindings.generations import GenerationsContract
from assay_ledger.bindings.governor import RunGovernorContract
from assay_ledger.bindings.grants import GrantsContract
from assay_ledger.bindings.grouped_generations import GroupedGenerationsContract
from assay_ledger.bindings.payments import PaymentsContract
from assay_ledger.bindings.revenue import RevenueContract
from assay_ledger.bindings.run_charter import RunCharterContract
from assay_ledger.bindings.shares import ModelSharesContract
from assay_ledger.bindings.tenures import TenuresContract
from assay_ledger.bindings.tickets import TicketsContract
from assay_ledger.bindings.token import TokenContract
from assay_ledger.bindings.vault import VaultContract
from assay_ledger.chain.client import Chain
from assay_ledger.contract import Contract
from assay_ledger.index.games import Games
from assay_ledger.rounds.currencies import read_currency
from assay_ledger.rounds.facts import PREVRANDAO_TIMES, BeaconTimes, RunFacts


class Run:
    """One run. Raises RejectedError (NotARun) when no charter is at the address or it does not hash to its identity.

    `first_block`: none of its events lies in an earlier one. `begins` finds it once somebody searches, where it is not
    known.
    """

    begins: Callable[[Run], int] | None = None

    revenue_currencies: Mapping[Address, Currency] = MappingProxyType({})
    """Of the revenue tokens that are not the run's own."""

    def __init__(
        self, chain: Chain, address: Address, first_block: int = 0, begins: Callable[[Run], int] | None = None
    ) -> None:
        self.chain = chain
        self.address = address
        self.begins = begins
        if begins is None:
            self.first_block = first_block
        if not chain.code_at(address):
            raise RejectedError(
                f"There is no contract at 0x{address.hex()} on chain {chain.chain_id}.",
                code="NotARun",
                remedy="Check the run's address and that the RPC URL names the right chain.",
            )
        contract = RunCharterContract(address)
        try:
            self.charter: RunCharter = chain.ask(contract.run_terms())
            self.run_id: Digest = chain.ask(contract.run())
        except RejectedError:
            raise RejectedError(
                f"The contract at 0x{address.hex()} on chain {chain.chain_id} is no charter of a run.",
                code="NotARun",
                remedy="Name the address that `assay run post` printed as `run`; `assay run list` lists them.",
            ) from None
        if self.charter.run != self.run_id:
            raise RejectedError(
                f"The terms at 0x{address.hex()} do not hash to the run they name.",
                code="NotARun",
                remedy="This is no charter of Assay, or of another version: do not join it.",
            )
        self.modules: RunModules = chain.ask(contract.round_modules())
        times, currency = beacon_times(chain, self.charter.beacon), read_currency(chain, self.charter.token)
        self.facts = RunFacts.of(chain.chain_id, address, self.charter, times, currency)
        others = set(self.charter.revenue_tokens) - {self.charter.token}
        self.revenue_currencies = {token: read_currency(chain, token) for token in sorted(others)}

    @cached_property
    def first_block(self) -> int:
        """No event of the run lies in an earlier block."""
        return 0 if self.begins is None else self.begins(self)

    @property
    def kept_from(self) -> int:
        """The block by which kept events are named: what may be found or not found must not have them read anew."""
        return self.first_block if self.begins is None else 0

    @property
    def currency(self) -> Currency:
        """How amounts of its token are written; read once, so that what is shown is what is typed."""
        return self.facts.currency

    def currency_of(self, token: Address) -> Currency:
        """How amounts of the run's token, or of a revenue token, are written; of no other one anything is known."""
        return self.currency if token == self.charter.token else self.revenue_currencies.get(token, UNKNOWN_MONEY)

    @cached_property
    def vault(self) -> VaultContract:
        """Every token of the run."""
        return VaultContract(self.modules.vault)

    @cached_property
    def token(self) -> TokenContract:
        """The settlement token."""
        return TokenContract(self.charter.token)

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
    def grouped(self) -> GroupedGenerationsContract:
        """The same, as positions speak to it above 64 seats."""
        return GroupedGenerationsContract(self.modules.generations)

    @cached_property
    def duties(self) -> DutiesContract:
        """Epochs, answers, misses."""
        return DutiesContract(self.modules.duties)

    @cached_property
    def attestations(self) -> AttestationsContract:
        """Findings and accusations."""
        return AttestationsContract(self.modules.attestations)

    @cached_property
    def escrow(self) -> EscrowContract:
        """What the run pays from, and its phase."""
        return EscrowContract(self.modules.escrow)

    @cached_property
    def payments(self) -> PaymentsContract:
        """Pay for work, findings and merges."""
        return PaymentsContract(self.modules.payments)

    @cached_property
    def bounties(self) -> BountiesContract:
        """What convictions give the accusers that were right."""
        return BountiesContract(self.modules.bounties)

    @cached_property
    def grants(self) -> GrantsContract:
        """Shares that vest."""
        return GrantsContract(self.modules.grants)

    @cached_property
    def shares(self) -> ModelSharesContract:
        """The ownership shares of the model."""
        return ModelSharesContract(self.modules.shares)

    @cached_property
    def revenue(self) -> RevenueContract:
        """What the model earns."""
        return RevenueContract(self.modules.revenue)

    @cached_property
    def governor(self) -> RunGovernorContract:
        """What the owners of shares decide; only a run whose charter names governance has one."""
        return RunGovernorContract(self.modules.governor)

    @cached_property
    def game(self) -> GameContract:
        """Disputes."""
        return GameContract(self.modules.game)

    @cached_property
    def challenges(self) -> ChallengesContract:
        """What third parties committed to."""
        return ChallengesContract(self.modules.challenges)

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
        governor = {"governor": self.governor} if self.charter.governance.is_named else {}
        return {
            **governor,
            "tickets": self.tickets,
            "tenures": self.tenures,
            "commitments": self.commitments,
            "generations": self.generations if self.charter.by_seats else self.grouped,
            "duties": self.duties,
            "attestations": self.attestations,
            "escrow": self.escrow,
            "payments": self.payments,
            "bounties": self.bounties,
            "grants": self.grants,
            "game": self.game,
            "beacon": self.beacon,
        }

    def all_contracts(self) -> dict[str, Contract]:
        """The same, and those whose events say where its money went: what whoever watches a run follows."""
        money = {"vault": self.vault, "shares": self.shares, "revenue": self.revenue}
        return {**self.contracts(), "challenges": self.challenges, **money}


def beacon_times(chain: Chain, address: Address) -> BeaconTimes:
    """When the rounds of the beacon at an address are due. Raises RejectedError (StrangeBeacon) for an unknown kind."""
    beacon, now = DrandSeedContract(address), chain.head().timestamp
    try:
        times = BeaconTimes(chain.ask(beacon.genesis()), chain.ask(beacon.period()))
    except RejectedError:
        times = PREVRANDAO_TIMES
    if chain.ask(beacon.round_after(now)) != times.round_after(now):
        raise RejectedError(
            f"The beacon at 0x{address.hex()} counts its rounds in another way than this release knows.",
            code="StrangeBeacon",
            remedy="Take no part in a run whose randomness you cannot follow.",
        )
    return times
