"""A voucher: what a payer has paid a gateway in all, as an EIP-712 message. Source: docs/adr/0063-vouchers.md."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from assay.protocol.digests import keccak
from assay.protocol.errors import RejectedError
from assay.protocol.types import Address, Digest, Wei

NAME: Final = "Assay vouchers"
VERSION: Final = "1"
DOMAIN_TYPE: Final = keccak(b"EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")
VOUCHER_TYPE: Final = keccak(b"Voucher(address payer,address gateway,address token,uint256 amount)")
AMOUNT_END: Final = 1 << 256
"""An amount is below it: what the contract takes."""

SIGNATURE_SIZE: Final = 65
"""Bytes of the signature of a key: r, s, v."""


@dataclass(frozen=True, slots=True)
class VoucherDomain:
    """Where a voucher counts: at one contract on one chain. Attack: the same voucher on a fork or beside the run."""

    chain_id: int
    contract: Address

    @property
    def separator(self) -> Digest:
        """EIP-712's domain separator."""
        return _separator(self)


@lru_cache(maxsize=16)
def _separator(domain: VoucherDomain) -> Digest:
    """The same for all vouchers that a gateway takes."""
    names = keccak(NAME.encode()) + keccak(VERSION.encode())
    return keccak(DOMAIN_TYPE + names + _word(domain.chain_id) + _padded(domain.contract))


@dataclass(frozen=True, slots=True)
class Voucher:
    """`amount`: wei of `token` that `payer` has paid `gateway` in all. It only grows; the highest one replaces all."""

    payer: Address
    gateway: Address
    token: Address
    amount: Wei

    def digest(self, domain: VoucherDomain) -> Digest:
        """What the payer signs. Raises ValueError for an amount that is no uint256."""
        if not 0 <= self.amount < AMOUNT_END:
            raise ValueError(f"{self.amount} is no amount.")
        parties = _padded(self.payer) + _padded(self.gateway) + _padded(self.token)
        struct = keccak(VOUCHER_TYPE + parties + _word(self.amount))
        return keccak(b"\x19\x01" + domain.separator + struct)


@dataclass(frozen=True, slots=True)
class PayerDeposit:
    """What a payer holds at a gateway, in wei of one token; as the contract has it (IVouchers.sol).

    `asked`: of the balance, what the payer has asked to have back, from chain time `not_before` on.
    """

    balance: Wei = Wei(0)  # noqa: RUF009 - an immutable amount
    asked: Wei = Wei(0)  # noqa: RUF009
    redeemed: Wei = Wei(0)  # noqa: RUF009
    not_before: int = 0

    @property
    def covered(self) -> Wei:
        """Up to which amount a voucher is covered, whatever its payer does within the refund delay."""
        return Wei(self.redeemed + self.balance - self.asked)


def check_terms(voucher: Voucher, spent: Wei, highest: Wei, price: Wei, deposit: PayerDeposit) -> None:
    """Whether a gateway serves an answer of this price for a voucher.

    `highest`: amount of the last voucher that was accepted of this payer in this token; `spent`: what was charged.
    Raises RejectedError (VoucherUsed, VoucherTooLow, VoucherUncovered).
    """
    # Attack: one voucher for two answers.
    if voucher.amount <= highest:
        raise RejectedError(
            f"A voucher of {highest} wei was accepted before; this one has {voucher.amount}.",
            code="VoucherUsed",
            remedy="Sign a higher amount: it is what you have paid this gateway in all.",
            highest=highest,
            spent=spent,
        )
    # Attack: a wei more than before for an answer that costs more.
    if voucher.amount < spent + price:
        raise RejectedError(
            f"{spent} wei are spent and the answer costs up to {price}; the voucher has {voucher.amount}.",
            code="VoucherTooLow",
            remedy="Sign at least what is spent and the price together.",
            highest=highest,
            spent=spent,
            price=price,
        )
    # Attack: more is signed than deposited, or what was asked to have back is spent once more.
    if voucher.amount > deposit.covered:
        raise RejectedError(
            f"The deposit covers {deposit.covered} wei in all; the voucher has {voucher.amount}.",
            code="VoucherUncovered",
            remedy="Deposit more (`assay gateway deposit`), or take back the request for a refund.",
            covered=deposit.covered,
        )


def owners_part(total: Wei, owners_ppm: int) -> Wei:
    """What the owners have of what a batch took: rounded up, in their favour."""
    return Wei(-(-total * owners_ppm // 1_000_000))


def _word(number: int) -> bytes:
    return number.to_bytes(32, "big")


def _padded(address: Address) -> bytes:
    return bytes(12) + address
