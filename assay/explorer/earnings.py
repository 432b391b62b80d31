"""What shares earned, in each revenue token, and of whose payments: folded from the events of a run."""

from __future__ import annotations

from assay.explorer.gateways import PaidBy, PaidGateways
from assay.protocol.payments.share_earnings import RevenueStream
from assay.protocol.types import Address
from assay_ledger.bindings import revenue, shares
from assay_ledger.contract import Event
from assay_ledger.deployment.vouchers import VOUCHERS_NAME, followed_contracts
from assay_ledger.rounds.run import Run


class ShareEarnings:
    """Books of every revenue token. `on_event` is told every event in order."""

    def __init__(self, run: Run, vouchers: Address | None) -> None:
        """`vouchers`: the contract whose deposits into the run's revenue are of many payers."""
        self.streams: dict[Address, RevenueStream[PaidBy]] = {
            token: RevenueStream() for token in run.charter.revenue_tokens
        }
        """By token, in the charter's order."""
        self.gateways = PaidGateways()
        self.vouchers = vouchers

    def on_event(self, contract: str, event: Event, time: int) -> None:
        """Books one event of a block at this chain time, in seconds. Raises InvariantError (EventOutOfOrder)."""
        match event:
            case revenue.Deposited():
                parts: list[tuple[PaidBy, int]] = [((event.from_, None), int(event.amount))]
                if event.from_ == self.vouchers:
                    parts = self.gateways.send_on(event.token, event.amount)
                self.streams[event.token].on_deposit(parts, event.week)
            case revenue.StreamsAnew():
                self.streams[event.token].on_stream_anew(event.amount, event.week, time)
            # Minting comes from the zero address.
            case shares.Transfer(from_=source, value=value) if not any(source):
                for stream in self.streams.values():
                    stream.on_mint(value, time)
            case _ if contract == VOUCHERS_NAME:
                self.gateways.on_event(event, time)


def vouchers_of(run: Run) -> Address | None:
    """The run's usual contract of vouchers; None where this release is not compiled."""
    found = followed_contracts(run).get(VOUCHERS_NAME)
    return None if found is None else found.address
