"""Payments of an imagined run, told as its contracts would: a reader takes them, and knows who paid what."""

from __future__ import annotations

from itertools import count

from assay.explorer.reader import RunReader
from assay.protocol.digests import keccak
from assay.protocol.payments.share_earnings import WEEK
from assay.protocol.types import Address, Wei
from assay_ledger.bindings import revenue, shares, vouchers
from assay_ledger.chain.client import Head
from assay_ledger.contract import Event, Logged
from tests.harness.rounds.stage import person

PAYERS = [person(0x701 + k) for k in range(3)]
GATEWAYS = [person(0x711 + k) for k in range(2)]
PPM = 100_000


class ToldPayments:
    """Tells a reader one event after another, from where its run has come to; `now` is the chain time in seconds."""

    def __init__(self, reader: RunReader) -> None:
        self.reader = reader
        self.token = reader.run.charter.token
        assert reader.earnings.vouchers is not None
        self.place = reader.earnings.vouchers
        last = reader.events[-1] if len(reader.events) else None
        self.now, self.block = (last.time, last.block) if last else (1_700_000_000, 0)
        self._logs = count(last.log_index + 1 if last else 0)

    def pass_time(self, seconds: int) -> None:
        """Let chain time pass, a block at its end."""
        self.now += seconds
        self.block += 1
        self.reader.take(self.reader.known, [], Head(self.block, self.now))

    def deposit(self, payer: Address, gateway: Address, amount: int, token: Address | None = None) -> None:
        self.tell(vouchers.VoucherDeposited(payer, gateway, token or self.token, payer, Wei(amount)))

    def redeem(self, gateway: Address, taken: dict[Address, int], ppm: int = PPM, token: Address | None = None) -> int:
        """A batch: what it takes of each payer; returns the owners' part."""
        of, total = token or self.token, sum(taken.values())
        part = -(-total * ppm // 10**6)
        accounts = self.reader.earnings.gateways.accounts_of
        for payer, amount in taken.items():
            held = [one.redeemed for one in accounts[payer] if (one.gateway, one.token) == (gateway, of)]
            self.tell(vouchers.VoucherRedeemed(payer, gateway, of, amount, Wei(sum(held) + amount)))
        self.tell(vouchers.GatewayPaid(gateway, of, Wei(total - part), Wei(part)))
        return part

    def send_on(self, amount: int, token: Address | None = None) -> None:
        """The owners' part goes into the revenue."""
        self.pay_in(self.place, amount, token)
        self.tell(vouchers.OwnersPaid(token or self.token, Wei(amount)))

    def pay_in(self, payer: Address, amount: int, token: Address | None = None) -> None:
        """Straight into the revenue."""
        self.tell(revenue.Deposited(token or self.token, payer, Wei(amount), self.now // WEEK + 1), "revenue")

    def ask_refund(self, payer: Address, gateway: Address, amount: int, token: Address | None = None) -> int:
        """Returns until when it may be redeemed."""
        until = self.now + WEEK
        self.tell(vouchers.RefundAsked(payer, gateway, token or self.token, Wei(amount), until))
        return until

    def take_back(self, payer: Address, gateway: Address, amount: int) -> None:
        self.tell(vouchers.DepositRefunded(payer, gateway, self.token, Wei(amount)))

    def mint(self, owner: Address, amount: int) -> None:
        self.tell(shares.Transfer(Address(bytes(20)), owner, Wei(amount)), "shares")

    def tell(self, event: Event, contract: str = "vouchers") -> None:
        """One event, in a block of its own."""
        self.block += 1
        found = Logged(event, self.block, next(self._logs), keccak(self.block.to_bytes(8)))
        self.reader.take(self.reader.known, [(contract, found, self.now)], Head(self.block, self.now))
