"""Calls, queries and events of contracts/money/Grants.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class GrantFields:
    """The struct `Grant`, as contracts give it."""

    owner: Address
    vests_at: int
    tenure: int
    ticket: TicketId
    amount: Wei
    done: bool

    @staticmethod
    def of(v: Decoded) -> GrantFields:
        """Of its fields in order."""
        return GrantFields(address(v[0]), v[1], v[2], TicketId(v[3]), Wei(v[4]), v[5])


@dataclass(frozen=True, slots=True)
class Cancelled(Event):
    """Credited shares were cancelled: what earned them was convicted before they vested."""

    ABI: ClassVar = "Cancelled(bytes32 indexed id, address indexed owner, uint256 amount)"
    id: Digest
    owner: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Cancelled:
        return cls(Digest(v[0]), address(v[1]), Wei(v[2]))


@dataclass(frozen=True, slots=True)
class Credited(Event):
    """Shares were credited; they are not tokens yet."""

    ABI: ClassVar = "Credited(bytes32 indexed id, address indexed owner, uint256 amount, uint48 vestsAt)"
    id: Digest
    owner: Address
    amount: Wei
    vests_at: int

    @classmethod
    def _of(cls, v: Decoded) -> Credited:
        return cls(Digest(v[0]), address(v[1]), Wei(v[2]), v[3])


@dataclass(frozen=True, slots=True)
class Vested(Event):
    """Credited shares became tokens."""

    ABI: ClassVar = "Vested(bytes32 indexed id, address indexed owner, address indexed to, uint256 amount)"
    id: Digest
    owner: Address
    to: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Vested:
        return cls(Digest(v[0]), address(v[1]), address(v[2]), Wei(v[3]))


class GrantsContract(Contract):
    """`contracts/money/Grants.sol` at an address."""

    EVENTS = (
        Cancelled,
        Credited,
        Vested,
    )

    CALLS = (
        "credit(bytes32,address,uint128,uint32,uint32)",
        "release(bytes32)",
    )

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def credit(self, id: Digest, owner: Address, amount: Wei, tenure: int, ticket: TicketId) -> Call:
        """Payments only, once per name."""
        return self._call("credit(bytes32,address,uint128,uint32,uint32)", id, owner, amount, tenure, ticket)

    def grant_of(self, id: Digest) -> Query[GrantFields]:
        """`grantOf`."""
        return self._query(
            "grantOf(bytes32)", "((address,uint48,uint32,uint32,uint128,bool))", lambda v: GrantFields.of(v[0]), id
        )

    def pending_of(self, owner: Address) -> Query[Wei]:
        """Shares credited to an owner and neither vested nor cancelled."""
        return self._query("pendingOf(address)", "(uint256)", lambda v: Wei(v[0]), owner)

    def release(self, id: Digest) -> Call:
        """Mints a vested grant to its owner's payee, or strikes out one that a conviction cancelled."""
        return self._call("release(bytes32)", id)
