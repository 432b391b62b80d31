"""The books of Vouchers.sol: deposits per payer, gateway and token, redemptions, refunds, and what is the owners'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from assay.protocol.errors import refuse
from assay.protocol.payments.voucher import PayerDeposit, owners_part
from assay.protocol.types import Address, Wei

MAX_PPM: Final = 1_000_000
MIN_DELAY: Final = 3600
MAX_DELAY: Final = 90 * 86_400
MAX_DEPOSIT: Final = (1 << 128) - 1

NOTHING: Final = PayerDeposit()

DepositPlace = tuple[Address, Address, Address]
"""Payer, gateway, token."""


@dataclass(frozen=True, slots=True)
class SignedAmount:
    """A voucher of a batch; `is_signed`: by its payer, for this gateway and token."""

    payer: Address
    amount: int
    is_signed: bool


class DecidedFees(Protocol):
    """What the contract asks of the run's governor."""

    is_sunset: bool
    delisted: set[Address]
    """Gateways for which no deposit is taken."""


@dataclass
class VoucherBooks:
    """The contract's books. Methods raise before they change anything; `now` is chain time in seconds."""

    address: Address
    tokens: frozenset[Address]
    owners_ppm: int
    refund_delay: int
    deposits: dict[DepositPlace, PayerDeposit] = field(default_factory=dict)
    owed: dict[Address, int] = field(default_factory=dict)
    """To the owners, by token."""
    governor: DecidedFees | None = None
    """Of a run whose charter names governance."""

    def __post_init__(self) -> None:
        """Raises PartTooLarge, DelayOutOfBounds."""
        if self.owners_ppm > MAX_PPM:
            raise refuse("PartTooLarge", ppm=self.owners_ppm, maximum=MAX_PPM)
        if not MIN_DELAY <= self.refund_delay <= MAX_DELAY:
            raise refuse("DelayOutOfBounds", delay=self.refund_delay, minimum=MIN_DELAY, maximum=MAX_DELAY)

    def deposit_of(self, payer: Address, gateway: Address, token: Address) -> PayerDeposit:
        """What a payer holds at a gateway."""
        return self.deposits.get((payer, gateway, token), NOTHING)

    def deposit(self, payer: Address, gateway: Address, token: Address, amount: int) -> None:
        """Raises TokenNotListed, AmountZero, AccountUnusable, FeesEnded, GatewayDelisted, DepositTooLarge."""
        if token not in self.tokens:
            raise refuse("TokenNotListed", token=token)
        if amount == 0:
            raise refuse("AmountZero")
        for account in (payer, gateway):
            if account in (bytes(20), self.address):
                raise refuse("AccountUnusable", account=account)
        if self.governor is not None:
            if self.governor.is_sunset:
                raise refuse("FeesEnded")
            if gateway in self.governor.delisted:
                raise refuse("GatewayDelisted", gateway=gateway)
        held = self.deposit_of(payer, gateway, token)
        if amount > (room := MAX_DEPOSIT - held.balance):
            raise refuse("DepositTooLarge", amount=amount, room=room)
        self.deposits[payer, gateway, token] = replace(held, balance=Wei(held.balance + amount))

    def ask_refund(self, payer: Address, gateway: Address, token: Address, amount: int, now: int) -> None:
        """Raises RefundTooLarge."""
        held = self.deposit_of(payer, gateway, token)
        if amount > held.balance:
            raise refuse("RefundTooLarge", balance=held.balance, wanted=amount)
        asked = replace(held, asked=Wei(amount), not_before=now + self.refund_delay)
        self.deposits[payer, gateway, token] = asked

    def withdraw(self, payer: Address, gateway: Address, token: Address, now: int) -> int:
        """Raises NothingAsked, RefundTooEarly."""
        held = self.deposit_of(payer, gateway, token)
        if held.asked == 0:
            raise refuse("NothingAsked", payer=payer)
        if now < held.not_before:
            raise refuse("RefundTooEarly", now=now, not_before=held.not_before)
        self.deposits[payer, gateway, token] = replace(held, balance=Wei(held.balance - held.asked), asked=Wei(0))
        return held.asked

    def redeem(self, gateway: Address, token: Address, batch: Sequence[SignedAmount]) -> int:
        """What the batch takes in all, of which the gateway gets what is not the owners'. Raises NothingToRedeem."""
        taken: dict[DepositPlace, PayerDeposit] = {}
        total = 0
        for voucher in batch:
            place = (voucher.payer, gateway, token)
            held = taken.get(place, self.deposit_of(*place))
            took = min(voucher.amount - held.redeemed, held.balance)
            if took <= 0 or not voucher.is_signed:
                continue
            left = Wei(held.balance - took)
            redeemed = Wei(held.redeemed + took)
            taken[place] = replace(held, balance=left, asked=min(held.asked, left), redeemed=redeemed)
            total += took
        if total == 0:
            raise refuse("NothingToRedeem", gateway=gateway, token=token)
        self.deposits |= taken
        self.owed[token] = self.owed.get(token, 0) + owners_part(Wei(total), self.owners_ppm)
        return total

    def pay_owners(self, token: Address, amount: int) -> None:
        """Raises OwedTooLittle; the run's revenue may refuse the amount too."""
        if amount > (owed := self.owed.get(token, 0)):
            raise refuse("OwedTooLittle", token=token, owed=owed, wanted=amount)
        self.owed[token] = owed - amount

    def held(self, token: Address) -> int:
        """Tokens that the contract holds: all balances, and what is the owners'."""
        balances = sum(held.balance for (_, _, of), held in self.deposits.items() if of == token)
        return balances + self.owed.get(token, 0)
