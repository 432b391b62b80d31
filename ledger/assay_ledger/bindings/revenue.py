"""Calls, queries and events of contracts/Revenue.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.types import Address, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class Claimed(Event):
    """The revenue of an owner of shares was paid."""

    ABI: ClassVar = "Claimed(address indexed token, address indexed owner, address indexed to, uint256 amount)"
    token: Address
    owner: Address
    to: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Claimed:
        return cls(address(v[0]), address(v[1]), address(v[2]), Wei(v[3]))


@dataclass(frozen=True, slots=True)
class Deposited(Event):
    """Somebody paid revenue of the model in."""

    ABI: ClassVar = "Deposited(address indexed token, address indexed from, uint256 amount, uint256 week)"
    token: Address
    from_: Address
    amount: Wei
    week: int

    @classmethod
    def _of(cls, v: Decoded) -> Deposited:
        return cls(address(v[0]), address(v[1]), Wei(v[2]), v[3])


@dataclass(frozen=True, slots=True)
class StreamsAnew(Event):
    """Revenue that streamed while there was no share streams again."""

    ABI: ClassVar = "StreamsAnew(address indexed token, uint256 amount, uint256 week)"
    token: Address
    amount: Wei
    week: int

    @classmethod
    def _of(cls, v: Decoded) -> StreamsAnew:
        return cls(address(v[0]), Wei(v[1]), v[2])


class RevenueContract(Contract):
    """`contracts/Revenue.sol` at an address."""

    EVENTS = (
        Claimed,
        Deposited,
        StreamsAnew,
    )

    CALLS = (
        "claim(address)",
        "claimFor(address,address)",
        "deposit(address,uint256)",
        "onTransfer(address,address)",
    )

    def max_total(self) -> Query[int]:
        """Wei of one token that are ever taken in: 2^120."""
        return self._query("MAX_TOTAL()", "(uint256)", lambda v: v[0])

    def min_deposit(self) -> Query[int]:
        """`MIN_DEPOSIT`."""
        return self._query("MIN_DEPOSIT()", "(uint256)", lambda v: v[0])

    def stream(self) -> Query[int]:
        """`STREAM`."""
        return self._query("STREAM()", "(uint256)", lambda v: v[0])

    def week(self) -> Query[int]:
        """`WEEK`."""
        return self._query("WEEK()", "(uint256)", lambda v: v[0])

    def bucket_of(self, token: Address, week: int) -> Query[int]:
        """`bucketOf`."""
        return self._query("bucketOf(address,uint256)", "(uint256)", lambda v: v[0], token, week)

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def claim(self, token: Address) -> Call:
        """Pays what the caller's shares have earned in a token to the caller's payee in the vault."""
        return self._call("claim(address)", token)

    def claim_for(self, token: Address, owner: Address) -> Call:
        """Pays what the shares of an owner have earned in a token to the owner's payee."""
        return self._call("claimFor(address,address)", token, owner)

    def claimable(self, token: Address, owner: Address) -> Query[Wei]:
        """`claimable`."""
        return self._query("claimable(address,address)", "(uint256)", lambda v: Wei(v[0]), token, owner)

    def deposit(self, token: Address, amount: Wei) -> Call:
        """Adds revenue: it joins the next weekly bucket and streams linearly over the four weeks after that bucket
        begins.
        """
        return self._call("deposit(address,uint256)", token, amount)

    def deposited_of(self, token: Address) -> Query[int]:
        """`depositedOf`."""
        return self._query("depositedOf(address)", "(uint256)", lambda v: v[0], token)

    def is_listed(self, token: Address) -> Query[bool]:
        """`isListed`."""
        return self._query("isListed(address)", "(bool)", lambda v: v[0], token)

    def on_transfer(self, from_: Address, to: Address) -> Call:
        """Shares only: settles both sides before balances change."""
        return self._call("onTransfer(address,address)", from_, to)

    def stream_of(self, token: Address) -> Query[tuple[int, int, Wei, int, int]]:
        """`streamOf`."""
        return self._query(
            "streamOf(address)",
            "(uint256,uint256,uint256,uint64,uint64)",
            lambda v: (v[0], v[1], Wei(v[2]), v[3], v[4]),
            token,
        )

    def tokens(self) -> Query[tuple[Address, ...]]:
        """The revenue tokens of the run."""
        return self._query("tokens()", "(address[])", lambda v: tuple(address(x) for x in v[0]))
