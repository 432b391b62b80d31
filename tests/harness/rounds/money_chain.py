"""A run on contracts that are all real but the beacon and the game's verdicts, beside its model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from functools import cache
from typing import Final

from assay.protocol.rounds.run_ledger import RunLedger
from assay.protocol.run.run_charter import RunCharter, RunModules
from assay.protocol.types import Address, Wei
from assay_ledger.deployment.places import create_address
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.rounds.chain import Neighbours, RoundCalls
from tests.harness.rounds.charters import RUN, changed
from tests.harness.rounds.run_limits import staked
from tests.harness.rounds.samples import ETHER, START
from tests.harness.rounds.stage import text
from tests.harness.rounds.staged import modules_at

SOLVERS: Final = 4

DENSE: Final = staked(
    changed(
        changed(changed(RUN, "training", seats=SOLVERS), "launch", seats=3),
        "economics",
        audit_ppm=1_000_000,
        reaudit_ppm=500_000,
    ),
    merge_pay=Wei(ETHER // 100),
    seat_fee=Wei(ETHER // 2),
)
"""Four seats, whose work every epoch replays once, and half of what was found once more."""

CONTRACTS: Final = {
    "vault": "Vault",
    "tickets": "Tickets",
    "tenures": "Tenures",
    "commitments": "Commitments",
    "generations": "Generations",
    "duties": "Duties",
    "attestations": "Attestations",
    "escrow": "Escrow",
    "payments": "Payments",
    "bounties": "Bounties",
    "game": "VerdictStage",
    "shares": "ModelShares",
    "grants": "Grants",
    "revenue": "Revenue",
}
"""Module to contract, in the order of their creation."""


class MoneyChain:
    """The contracts on a chain of their own, which know each other by one real charter."""

    contracts_of: Mapping[str, str] = CONTRACTS
    revenue_tokens: Sequence[EvmContract] = ()

    def __init__(self, charter: RunCharter) -> None:
        self.evm = Evm(timestamp=START)
        self.token = self.evm.deploy("TestToken")
        self.prepare()
        deployer = Address(bytes.fromhex(self.evm.caller.removeprefix("0x")))
        nonce = self.evm.evm.basic(self.evm.caller).nonce
        names = ["beacon", "charter", *self.contracts_of]
        at = {name: text(create_address(deployer, nonce + k)) for k, name in enumerate(names)}
        self.modules: RunModules = modules_at(**at)
        token, beacon = (Address(bytes.fromhex(place[2:])) for place in (self.token.address, at["beacon"]))
        paid_in = tuple(Address(bytes.fromhex(place.address[2:])) for place in self.revenue_tokens)
        self.charter = replace(charter, token=token, beacon=beacon, revenue_tokens=paid_in)
        peers = astuple(self.modules)
        self.contracts: dict[str, EvmContract] = {"RoundsBench": self.evm.deploy("RoundsBench", peers)}
        self.contracts["RunCharter"] = self.evm.deploy("RunCharter", self.charter.as_tuple(), peers)
        for module, name in self.contracts_of.items():
            self.contracts[name] = self.evm.deploy(name, at["charter"], *self.more_arguments(name))
            assert self.contracts[name].address.lower() == at[module]

    def prepare(self) -> None:
        """Deploy what a run's contracts need beside each other: here nothing."""

    def more_arguments(self, name: str) -> tuple[str, ...]:
        """What a contract is built with beside the charter."""
        return ()


@cache
def _chain(charter: RunCharter) -> MoneyChain:
    return MoneyChain(charter)


class MoneyCalls(RoundCalls):
    """Calls on the model and the contracts of a whole run at once."""

    chain_of = staticmethod(_chain)

    def __init__(self, charter: RunCharter = DENSE) -> None:
        self.chain = self.chain_of(charter)  # type: ignore[assignment]
        self.mark = self.chain.evm.evm.snapshot()
        self.charter = self.chain.charter  # type: ignore[attr-defined]
        self.now = START
        self.neighbours = Neighbours()
        self.run = RunLedger(self.charter, self.chain.modules, self.neighbours)  # type: ignore[arg-type]
        self.run.vault.nobody += (self.chain.modules.vault, self.charter.token)  # type: ignore[attr-defined]
        self.model, self.vault, self.terms = self.run.rounds, self.run.vault, self.run.rounds.terms
        self.gas: dict[str, int] = {}
        self.ended: Counter[tuple[str, str]] = Counter()
        self.tick(0)

    def end(self) -> None:
        """The chain is as it was before."""
        self.chain.evm.evm.revert(self.mark)
