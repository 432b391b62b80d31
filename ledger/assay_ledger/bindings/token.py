"""Calls, queries and events of contracts/TestToken.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.types import Address, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class Approval(Event):
    """`Approval` of TestToken."""

    ABI: ClassVar = "Approval(address indexed owner, address indexed spender, uint256 value)"
    owner: Address
    spender: Address
    value: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Approval:
        return cls(address(v[0]), address(v[1]), Wei(v[2]))


@dataclass(frozen=True, slots=True)
class Transfer(Event):
    """`Transfer` of TestToken."""

    ABI: ClassVar = "Transfer(address indexed from, address indexed to, uint256 value)"
    from_: Address
    to: Address
    value: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Transfer:
        return cls(address(v[0]), address(v[1]), Wei(v[2]))


class TokenContract(Contract):
    """`contracts/TestToken.sol` at an address."""

    EVENTS = (
        Approval,
        Transfer,
    )

    CALLS = (
        "approve(address,uint256)",
        "mint(address,uint256)",
        "transfer(address,uint256)",
        "transferFrom(address,address,uint256)",
    )

    def max_mint(self) -> Query[int]:
        """`MAX_MINT`."""
        return self._query("MAX_MINT()", "(uint256)", lambda v: v[0])

    def allowance(self, owner: Address, spender: Address) -> Query[Wei]:
        """`allowance`."""
        return self._query("allowance(address,address)", "(uint256)", lambda v: Wei(v[0]), owner, spender)

    def approve(self, spender: Address, value: Wei) -> Call:
        """`approve`."""
        return self._call("approve(address,uint256)", spender, value)

    def balance_of(self, account: Address) -> Query[Wei]:
        """`balanceOf`."""
        return self._query("balanceOf(address)", "(uint256)", lambda v: Wei(v[0]), account)

    def decimals(self) -> Query[int]:
        """`decimals`."""
        return self._query("decimals()", "(uint8)", lambda v: v[0])

    def mint(self, to: Address, amount: Wei) -> Call:
        """Makes tokens for anybody, at most MAX_MINT wei at a time."""
        return self._call("mint(address,uint256)", to, amount)

    def name(self) -> Query[str]:
        """`name`."""
        return self._query("name()", "(string)", lambda v: v[0])

    def symbol(self) -> Query[str]:
        """`symbol`."""
        return self._query("symbol()", "(string)", lambda v: v[0])

    def total_supply(self) -> Query[Wei]:
        """`totalSupply`."""
        return self._query("totalSupply()", "(uint256)", lambda v: Wei(v[0]))

    def transfer(self, to: Address, value: Wei) -> Call:
        """`transfer`."""
        return self._call("transfer(address,uint256)", to, value)

    def transfer_from(self, from_: Address, to: Address, value: Wei) -> Call:
        """`transferFrom`."""
        return self._call("transferFrom(address,address,uint256)", from_, to, value)
