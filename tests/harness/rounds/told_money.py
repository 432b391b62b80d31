"""People of a whole run whose contracts' events are folded as an index folds them: what anybody sees of it."""

from __future__ import annotations

from typing import Any

from assay.amounts import TEST_MONEY
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address
from assay_ledger.bindings import bounties, escrow, governor, grants, payments
from assay_ledger.chain.client import Head
from assay_ledger.rounds.facts import BeaconTimes, RunFacts
from assay_ledger.rounds.fold import fold
from assay_ledger.rounds.records import RunState
from assay_ledger.rounds.view import RunView
from tests.harness.rounds.chain import PERIOD
from tests.harness.rounds.money_chain import DENSE
from tests.harness.rounds.money_world import MoneyWorld
from tests.harness.rounds.told_world import KINDS, TRANSACTION, events_of

MONEY = {
    "Escrow": escrow.EscrowContract.EVENTS,
    "Payments": payments.PaymentsContract.EVENTS,
    "Bounties": bounties.BountiesContract.EVENTS,
    "Grants": grants.GrantsContract.EVENTS,
    "RunGovernor": governor.RunGovernorContract.EVENTS,
}
FOLLOWED = {**KINDS, **MONEY}


class ToldMoneyWorld(MoneyWorld):
    """The same people; `told` is what an index has read."""

    def __init__(self, charter: RunCharter = DENSE) -> None:
        super().__init__(charter)
        at = Address(bytes.fromhex(self.chain.contracts["RunCharter"].address[2:]))
        self.told = RunState.of(RunFacts.of(1, at, self.charter, BeaconTimes(PERIOD, PERIOD), TEST_MONEY))

    def refusal(self, contract: str, function: str, *args: Any, who: Address | None = None) -> str:
        """See RoundCalls; what went through is read from its events."""
        said = super().refusal(contract, function, *args, who=who)
        if not said:
            self._read()
        return said

    def call(self, contract: str, function: str, *args: Any, who: Address | None = None) -> Any:
        """See RoundCalls."""
        answer = super().call(contract, function, *args, who=who)
        if function == "submit":
            self.told.books.randomness.learn(args[0], args[1], self.now)
        return answer

    def end_verdict(self, ref: tuple[Any, ...], convicted: bool, to_pot: bool, who: Address) -> None:
        """See MoneyWorld; what the verdict moved is read from its events."""
        super().end_verdict(ref, convicted, to_pot, who)
        self._read()

    def _read(self) -> None:
        for event in events_of(self.chain.evm, self.chain.contracts, FOLLOWED):
            fold(self.told, event, self.now, TRANSACTION)

    def view(self, who: Address) -> RunView:
        """The run as somebody sees it."""
        self.told.head = Head(1, self.now)
        self.told.books.now = self.now
        return RunView(self.charter, self.told.books.facts, who, self.told)
