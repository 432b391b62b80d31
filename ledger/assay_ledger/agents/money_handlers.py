"""How an actor carries out what is done for a run's money."""

from __future__ import annotations

from collections.abc import Callable

from web3.types import TxReceipt

from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.money_actions import (
    CancelRun,
    CloseBounty,
    CollectFine,
    EnterBounty,
    FinishRun,
    FreeRound,
    LaunchRun,
    SettleFinding,
    SettleOpening,
    SettleSeat,
    TakeBounty,
    VestShares,
    WindDown,
)
from assay_ledger.contract import Call
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView


class MoneyHandlers:
    """A method per action, each one call of a contract, sent by `send`."""

    def __init__(self, run: Callable[[], Run], send: Callable[[Call], TxReceipt]) -> None:
        self._run = run
        self._send = send

    def add_to(self, table: Handlers[RunView]) -> Handlers[RunView]:
        """The table with these methods."""
        table.add(LaunchRun, self.do_launch_run).add(FinishRun, self.do_finish_run).add(WindDown, self.do_wind_down)
        table.add(SettleSeat, self.do_settle_seat).add(SettleFinding, self.do_settle_finding)
        table.add(SettleOpening, self.do_settle_opening).add(FreeRound, self.do_free_round)
        table.add(EnterBounty, self.do_enter_bounty).add(CloseBounty, self.do_close_bounty)
        table.add(CollectFine, self.do_collect_fine).add(CancelRun, self.do_cancel_run)
        return table.add(TakeBounty, self.do_take_bounty).add(VestShares, self.do_vest_shares)

    def do_launch_run(self, action: LaunchRun, view: RunView) -> None:
        """Opens the run."""
        self._send(self._run().escrow.launch())

    def do_finish_run(self, action: FinishRun, view: RunView) -> None:
        """Ends the run: what is left goes back to who funded it."""
        self._send(self._run().escrow.finish())

    def do_cancel_run(self, action: CancelRun, view: RunView) -> None:
        """Gives up a run that never opened: stakes are free, and funders may take theirs back."""
        self._send(self._run().escrow.cancel())

    def do_wind_down(self, action: WindDown, view: RunView) -> None:
        """Ends a run that stands still."""
        self._send(self._run().escrow.wind_down())

    def do_settle_seat(self, action: SettleSeat, view: RunView) -> None:
        """Settles a commitment."""
        self._send(self._run().payments.settle_work(action.round, action.seat, action.epoch))

    def do_settle_finding(self, action: SettleFinding, view: RunView) -> None:
        """Gets a finding paid."""
        self._send(self._run().payments.settle_duty(action.attestation))

    def do_collect_fine(self, action: CollectFine, view: RunView) -> None:
        """Takes a fine that waited."""
        self._send(self._run().tickets.collect(action.ticket, action.number))

    def do_settle_opening(self, action: SettleOpening, view: RunView) -> None:
        """Gets an opening paid."""
        self._send(self._run().payments.settle_opening(action.node, action.party))

    def do_free_round(self, action: FreeRound, view: RunView) -> None:
        """Gives back what a round did not cost."""
        self._send(self._run().payments.settle_round(action.round, action.epoch))

    def do_enter_bounty(self, action: EnterBounty, view: RunView) -> None:
        """Enters for a part of a bounty."""
        self._send(self._run().bounties.enter(action.accusation))

    def do_close_bounty(self, action: CloseBounty, view: RunView) -> None:
        """Fixes the parts of a bounty."""
        self._send(self._run().bounties.close(action.accusation, action.epoch))

    def do_take_bounty(self, action: TakeBounty, view: RunView) -> None:
        """Takes a part of a bounty."""
        self._send(self._run().bounties.take(action.accusation))

    def do_vest_shares(self, action: VestShares, view: RunView) -> None:
        """Turns a credit into shares."""
        self._send(self._run().grants.release(action.grant))
