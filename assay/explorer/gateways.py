"""Payments by voucher: what payers have at gateways, what gateways redeemed, and whose money the owners' part is.

Folded from the events of the run's contract of vouchers. Amounts are the smallest unit of their token, times seconds of
chain time. Two sums are kept of what the contract holds, each from its own events: what came in and went out, and what
it owes to payers and owners.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from assay.explorer.shelves import Shelf
from assay.protocol.errors import InvariantError
from assay.protocol.payments.share_earnings import allot
from assay.protocol.types import Address
from assay_ledger.bindings import vouchers
from assay_ledger.contract import Event

PaidBy = tuple[Address, Address | None]
"""Who paid, and at which gateway; None: straight into the run's revenue."""


@dataclass(slots=True)
class PayerAccount:
    """What one payer has at one gateway in one token. `asked`: of the balance it wants so much back, from a time on."""

    payer: Address
    gateway: Address
    token: Address
    balance: int = 0
    asked: int = 0
    not_before: int = 0
    deposited: int = 0
    redeemed: int = 0
    refunded: int = 0


@dataclass(slots=True)
class GatewayTill:
    """What came to one gateway in one token. `redeemed` is what its payers' deposits paid: `kept` and `to_owners`."""

    gateway: Address
    token: Address
    deposited: int = 0
    redeemed: int = 0
    kept: int = 0
    to_owners: int = 0
    refunded: int = 0
    redemptions: int = 0
    last_redeemed: int | None = None
    accounts: list[PayerAccount] = field(default_factory=list)

    @property
    def balance(self) -> int:
        """What its payers have left there."""
        return sum(account.balance for account in self.accounts)

    @property
    def asked(self) -> list[PayerAccount]:
        """Payers that want some of it back, the first to have it first."""
        return sorted((one for one in self.accounts if one.asked), key=lambda one: (one.not_before, one.payer))


@dataclass(slots=True)
class VouchersBalance:
    """What the contract of vouchers holds of one token, by what came and went; `owed`: the owners' part of it."""

    deposited: int = 0
    refunded: int = 0
    kept: int = 0
    sent_on: int = 0
    owed: int = 0

    @property
    def holds(self) -> int:
        """What is there, but for tokens that somebody sent there past its deposits."""
        return self.deposited - self.refunded - self.kept - self.sent_on


class PaidGateways:
    """Books of the contract of vouchers. `on_event` is told its events in order."""

    def __init__(self) -> None:
        self.tills: list[GatewayTill] = []
        """One for each gateway and token, in the order in which they came."""
        self.accounts: list[PayerAccount] = []
        """One for each payer, gateway and token, in the order in which they came."""
        self.balances: dict[Address, VouchersBalance] = {}
        """By token."""
        self.events = 0
        """How many there were."""
        self.tills_of: Shelf[Address, GatewayTill] = Shelf()
        """By gateway, one for each token that was paid there."""
        self.accounts_of: Shelf[Address, PayerAccount] = Shelf()
        """By payer."""
        self._tills: dict[tuple[Address, Address], GatewayTill] = {}
        self._accounts: dict[tuple[Address, Address, Address], PayerAccount] = {}
        self._taking: list[vouchers.VoucherRedeemed] = []
        """Vouchers of a redemption whose sum comes next."""
        self._owed: dict[Address, deque[tuple[PaidBy, int]]] = {}
        """The owners' part that is not sent on, by whose payments it is, the oldest first."""

    def owes(self, token: Address) -> int:
        """What the contract owes: all balances of payers, and what is the owners'."""
        balances = sum(account.balance for account in self.accounts if account.token == token)
        return balances + sum(amount for _, amount in self._owed.get(token, ()))

    def on_event(self, event: Event, time: int) -> None:
        """Books one event. Raises InvariantError (EventOutOfOrder)."""
        self.events += 1
        match event:
            case vouchers.VoucherDeposited():
                account, till = self._account(event), self._till(event.gateway, event.token)
                account.balance += event.amount
                account.deposited += event.amount
                till.deposited += event.amount
                self._balance(event.token).deposited += event.amount
            case vouchers.RefundAsked():
                # Attack: nothing is asked back, at an address and in a token of a stranger's choice, to be listed.
                asking = self._accounts.get((event.payer, event.gateway, event.token))
                if asking is not None:
                    asking.asked, asking.not_before = event.amount, event.not_before
            case vouchers.DepositRefunded():
                account = self._account(event)
                account.asked = 0
                account.balance -= event.amount
                account.refunded += event.amount
                self._till(event.gateway, event.token).refunded += event.amount
                self._balance(event.token).refunded += event.amount
            case vouchers.VoucherRedeemed():
                account = self._account(event)
                account.balance -= event.taken
                account.redeemed += event.taken
                # A redemption takes of what was asked back too, and takes what was not asked for first.
                account.asked = min(account.asked, account.balance)
                self._taking.append(event)
            case vouchers.GatewayPaid():
                self._redeemed(event, time)
            case vouchers.OwnersPaid():
                self._balance(event.token).sent_on += event.amount

    def send_on(self, token: Address, amount: int) -> list[tuple[PaidBy, int]]:
        """Whose payments an amount is of that is sent on to the run's revenue: what was redeemed first goes first.

        Raises InvariantError (EventOutOfOrder).
        """
        queue, left, found = self._owed.get(token, deque()), amount, list[tuple[PaidBy, int]]()
        while left and queue:
            whose, there = queue.popleft()
            found.append((whose, min(there, left)))
            if there > left:
                queue.appendleft((whose, there - left))
            left -= found[-1][1]
        if left:
            raise InvariantError(
                f"{amount} of the owners' part were sent on, {left} more than was redeemed for them.",
                code="EventOutOfOrder",
            )
        self._balance(token).owed -= amount
        return found

    # --- inside

    def _redeemed(self, event: vouchers.GatewayPaid, time: int) -> None:
        taken, self._taking = self._taking, []
        total = event.paid + event.to_owners
        strangers = any((each.gateway, each.token) != (event.gateway, event.token) for each in taken)
        if strangers or sum(each.taken for each in taken) != total:
            raise InvariantError(
                f"A gateway redeemed {total}, and its payers' vouchers sum to another amount.", code="EventOutOfOrder"
            )
        till, balance = self._till(event.gateway, event.token), self._balance(event.token)
        till.redeemed += total
        till.kept += event.paid
        till.to_owners += event.to_owners
        till.redemptions += 1
        till.last_redeemed = time
        balance.kept += event.paid
        balance.owed += event.to_owners
        queue = self._owed.setdefault(event.token, deque())
        for each, part in zip(taken, allot([int(each.taken) for each in taken], int(event.to_owners)), strict=True):
            whose: PaidBy = (each.payer, event.gateway)
            if part and queue and queue[-1][0] == whose:
                queue[-1] = whose, queue[-1][1] + part
            elif part:
                queue.append((whose, part))

    def _till(self, gateway: Address, token: Address) -> GatewayTill:
        found = self._tills.get((gateway, token))
        if found is None:
            found = self._tills[gateway, token] = GatewayTill(gateway, token)
            self.tills.append(found)
            self.tills_of.put(gateway, found)
        return found

    def _account(
        self, event: vouchers.VoucherDeposited | vouchers.DepositRefunded | vouchers.VoucherRedeemed
    ) -> PayerAccount:
        place = event.payer, event.gateway, event.token
        found = self._accounts.get(place)
        if found is None:
            found = self._accounts[place] = PayerAccount(*place)
            self.accounts.append(found)
            self.accounts_of.put(event.payer, found)
            self._till(event.gateway, event.token).accounts.append(found)
        return found

    def _balance(self, token: Address) -> VouchersBalance:
        return self.balances.setdefault(token, VouchersBalance())
