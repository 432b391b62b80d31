"""Calls, queries and events of contracts/money/Vouchers.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.payments.voucher import PayerDeposit
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


def as_payer_deposit(v: Decoded) -> PayerDeposit:
    """A `PayerDeposit` as a contract gives it."""
    return PayerDeposit(Wei(v[0]), Wei(v[1]), Wei(v[2]), v[3])


@dataclass(frozen=True, slots=True)
class PayerVoucherFields:
    """The struct `PayerVoucher`, as contracts give it."""

    payer: Address
    amount: Wei
    signature: bytes

    @staticmethod
    def of(v: Decoded) -> PayerVoucherFields:
        """Of its fields in order."""
        return PayerVoucherFields(address(v[0]), Wei(v[1]), v[2])


@dataclass(frozen=True, slots=True)
class DepositRefunded(Event):
    """A payer took back what it had asked for, less what was redeemed since."""

    ABI: ClassVar = (
        "DepositRefunded(address indexed payer, address indexed gateway, address indexed token, uint256 amount)"
    )
    payer: Address
    gateway: Address
    token: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> DepositRefunded:
        return cls(address(v[0]), address(v[1]), address(v[2]), Wei(v[3]))


@dataclass(frozen=True, slots=True)
class EIP712DomainChanged(Event):
    """`EIP712DomainChanged` of Vouchers."""

    ABI: ClassVar = "EIP712DomainChanged()"

    @classmethod
    def _of(cls, v: Decoded) -> EIP712DomainChanged:
        return cls()


@dataclass(frozen=True, slots=True)
class GatewayPaid(Event):
    """A batch of vouchers was paid."""

    ABI: ClassVar = "GatewayPaid(address indexed gateway, address indexed token, uint256 paid, uint256 toOwners)"
    gateway: Address
    token: Address
    paid: Wei
    to_owners: Wei

    @classmethod
    def _of(cls, v: Decoded) -> GatewayPaid:
        return cls(address(v[0]), address(v[1]), Wei(v[2]), Wei(v[3]))


@dataclass(frozen=True, slots=True)
class OwnersPaid(Event):
    """What was owed to the owners of the model went to its revenue."""

    ABI: ClassVar = "OwnersPaid(address indexed token, uint256 amount)"
    token: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> OwnersPaid:
        return cls(address(v[0]), Wei(v[1]))


@dataclass(frozen=True, slots=True)
class RefundAsked(Event):
    """A payer asked for a part of its deposit back, in place of whatever it had asked for before; zero cancels."""

    ABI: ClassVar = (
        "RefundAsked(address indexed payer, address indexed gateway, address indexed token, uint256 amount, "
        "uint64 notBefore)"
    )
    payer: Address
    gateway: Address
    token: Address
    amount: Wei
    not_before: int

    @classmethod
    def _of(cls, v: Decoded) -> RefundAsked:
        return cls(address(v[0]), address(v[1]), address(v[2]), Wei(v[3]), v[4])


@dataclass(frozen=True, slots=True)
class VoucherDeposited(Event):
    """A deposit was raised."""

    ABI: ClassVar = (
        "VoucherDeposited(address indexed payer, address indexed gateway, address indexed token, address from, "
        "uint256 amount)"
    )
    payer: Address
    gateway: Address
    token: Address
    from_: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> VoucherDeposited:
        return cls(address(v[0]), address(v[1]), address(v[2]), address(v[3]), Wei(v[4]))


@dataclass(frozen=True, slots=True)
class VoucherRedeemed(Event):
    """A voucher was redeemed."""

    ABI: ClassVar = (
        "VoucherRedeemed(address indexed payer, address indexed gateway, address indexed token, uint256 taken, "
        "uint256 redeemed)"
    )
    payer: Address
    gateway: Address
    token: Address
    taken: int
    redeemed: Wei

    @classmethod
    def _of(cls, v: Decoded) -> VoucherRedeemed:
        return cls(address(v[0]), address(v[1]), address(v[2]), v[3], Wei(v[4]))


class VouchersContract(Contract):
    """`contracts/money/Vouchers.sol` at an address."""

    EVENTS = (
        DepositRefunded,
        EIP712DomainChanged,
        GatewayPaid,
        OwnersPaid,
        RefundAsked,
        VoucherDeposited,
        VoucherRedeemed,
    )

    CALLS = (
        "askRefund(address,address,uint256)",
        "deposit(address,address,address,uint256)",
        "payOwners(address,uint256)",
        "redeem(address,address,(address,uint256,bytes)[])",
        "withdraw(address,address)",
    )

    def max_delay(self) -> Query[int]:
        """`MAX_DELAY`."""
        return self._query("MAX_DELAY()", "(uint256)", lambda v: v[0])

    def max_deposit(self) -> Query[int]:
        """`MAX_DEPOSIT`."""
        return self._query("MAX_DEPOSIT()", "(uint256)", lambda v: v[0])

    def max_ppm(self) -> Query[int]:
        """`MAX_PPM`."""
        return self._query("MAX_PPM()", "(uint256)", lambda v: v[0])

    def min_delay(self) -> Query[int]:
        """`MIN_DELAY`."""
        return self._query("MIN_DELAY()", "(uint256)", lambda v: v[0])

    def signature_gas(self) -> Query[int]:
        """Gas that a contract which is a payer may use to say whether it signed."""
        return self._query("SIGNATURE_GAS()", "(uint256)", lambda v: v[0])

    def voucher_type(self) -> Query[Digest]:
        """`VOUCHER_TYPE`."""
        return self._query("VOUCHER_TYPE()", "(bytes32)", lambda v: Digest(v[0]))

    def ask_refund(self, gateway: Address, token: Address, amount: Wei) -> Call:
        """Asks for a part of the caller's deposit back, in place of whatever was asked for before; zero cancels."""
        return self._call("askRefund(address,address,uint256)", gateway, token, amount)

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def deposit(self, payer: Address, gateway: Address, token: Address, amount: Wei) -> Call:
        """Adds tokens of the caller to a payer's deposit at a gateway."""
        return self._call("deposit(address,address,address,uint256)", payer, gateway, token, amount)

    def deposit_of(self, payer: Address, gateway: Address, token: Address) -> Query[PayerDeposit]:
        """What a payer holds at a gateway."""
        return self._query(
            "depositOf(address,address,address)",
            "((uint128,uint128,uint192,uint64))",
            lambda v: as_payer_deposit(v[0]),
            payer,
            gateway,
            token,
        )

    def digest_of(self, payer: Address, gateway: Address, token: Address, amount: Wei) -> Query[Digest]:
        """What a payer signs: the EIP-712 digest of a voucher."""
        return self._query(
            "digestOf(address,address,address,uint256)",
            "(bytes32)",
            lambda v: Digest(v[0]),
            payer,
            gateway,
            token,
            amount,
        )

    def eip712_domain(self) -> Query[tuple[bytes, str, str, int, Address, Digest, tuple[int, ...]]]:
        """`eip712Domain`."""
        return self._query(
            "eip712Domain()",
            "(bytes1,string,string,uint256,address,bytes32,uint256[])",
            lambda v: (v[0], v[1], v[2], v[3], address(v[4]), Digest(v[5]), tuple(v[6])),
        )

    def is_listed(self, token: Address) -> Query[bool]:
        """`isListed`."""
        return self._query("isListed(address)", "(bool)", lambda v: v[0], token)

    def is_signed(self, payer: Address, digest: Digest, signature: bytes) -> Query[bool]:
        """Whether a signature under a digest is the payer's: of its own key, or as its code says (EIP-1271)."""
        return self._query("isSigned(address,bytes32,bytes)", "(bool)", lambda v: v[0], payer, digest, signature)

    def owed_of(self, token: Address) -> Query[Wei]:
        """Owed to the owners and not paid into the run's revenue yet, in wei."""
        return self._query("owedOf(address)", "(uint256)", lambda v: Wei(v[0]), token)

    def owners_ppm(self) -> Query[int]:
        """The owners' part of what is redeemed, in parts per million."""
        return self._query("ownersPpm()", "(uint256)", lambda v: v[0])

    def pay_owners(self, token: Address, amount: Wei) -> Call:
        """Pays a part of what is owed to the owners into the run's revenue; anyone may call."""
        return self._call("payOwners(address,uint256)", token, amount)

    def redeem(self, gateway: Address, token: Address, vouchers: Sequence[PayerVoucherFields]) -> Call:
        """Redeems vouchers for a gateway; anyone may call."""
        return self._call("redeem(address,address,(address,uint256,bytes)[])", gateway, token, vouchers)

    def refund_delay(self) -> Query[int]:
        """Seconds between asking for a refund and taking it."""
        return self._query("refundDelay()", "(uint256)", lambda v: v[0])

    def revenue(self) -> Query[Address]:
        """`revenue`."""
        return self._query("revenue()", "(address)", lambda v: address(v[0]))

    def withdraw(self, gateway: Address, token: Address) -> Call:
        """Pays the caller what it asked for and what was not redeemed since, after the delay."""
        return self._call("withdraw(address,address)", gateway, token)
