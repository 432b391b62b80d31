"""Calls, queries and events of contracts/Settlement.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.types import Address, Round, Seat, Status, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class DutiesSettled(Event):
    """An attester's duties of a round were settled."""

    ABI: ClassVar = (
        "DutiesSettled(uint64 indexed round, address indexed attester, uint32 duties, uint256 wages, uint256 shares)"
    )
    round: Round
    attester: Address
    duties: int
    wages: Wei
    shares: Wei

    @classmethod
    def _of(cls, v: Decoded) -> DutiesSettled:
        return cls(Round(v[0]), address(v[1]), v[2], Wei(v[3]), Wei(v[4]))


@dataclass(frozen=True, slots=True)
class Funded(Event):
    """The sponsor paid into the escrow."""

    ABI: ClassVar = "Funded(uint256 amount)"
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Funded:
        return cls(Wei(v[0]))


@dataclass(frozen=True, slots=True)
class Refunded(Event):
    """The sponsor got back what was left of the escrow."""

    ABI: ClassVar = "Refunded(uint256 amount)"
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Refunded:
        return cls(Wei(v[0]))


@dataclass(frozen=True, slots=True)
class Reserved(Event):
    """Pay and wages of a round that opened were set aside in the escrow."""

    ABI: ClassVar = "Reserved(uint64 indexed round, uint256 amount)"
    round: Round
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Reserved:
        return cls(Round(v[0]), Wei(v[1]))


@dataclass(frozen=True, slots=True)
class RoundSettled(Event):
    """A round is settled; what it did not earn is free in the escrow again."""

    ABI: ClassVar = "RoundSettled(uint64 indexed round, uint256 unearned)"
    round: Round
    unearned: Wei

    @classmethod
    def _of(cls, v: Decoded) -> RoundSettled:
        return cls(Round(v[0]), Wei(v[1]))


@dataclass(frozen=True, slots=True)
class WorkSettled(Event):
    """A commitment was settled: pay and shares for final work, nothing for any other."""

    ABI: ClassVar = (
        "WorkSettled(uint64 indexed round, uint32 indexed seat, address indexed solver, uint8 status, uint256 pay, "
        "uint256 shares)"
    )
    round: Round
    seat: Seat
    solver: Address
    status: Status
    pay: Wei
    shares: Wei

    @classmethod
    def _of(cls, v: Decoded) -> WorkSettled:
        return cls(Round(v[0]), Seat(v[1]), address(v[2]), Status(v[3]), Wei(v[4]), Wei(v[5]))


class SettlementContract(Contract):
    """`contracts/Settlement.sol` at an address."""

    EVENTS = (
        DutiesSettled,
        Funded,
        Refunded,
        Reserved,
        RoundSettled,
        WorkSettled,
    )

    CALLS = (
        "fund(uint256)",
        "onRoundOpened(uint64,uint256)",
        "refund()",
        "settleDuties(uint64,address)",
        "settleRound(uint64)",
        "settleWork(uint64,uint32)",
    )

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def escrow(self) -> Query[Wei]:
        """`escrow`."""
        return self._query("escrow()", "(uint256)", lambda v: Wei(v[0]))

    def fund(self, amount: Wei) -> Call:
        """The sponsor adds to the escrow from its free balance."""
        return self._call("fund(uint256)", amount)

    def is_settled(self, round: Round) -> Query[bool]:
        """`isSettled`."""
        return self._query("isSettled(uint64)", "(bool)", lambda v: v[0], round)

    def live_rounds(self) -> Query[int]:
        """`liveRounds`."""
        return self._query("liveRounds()", "(uint256)", lambda v: v[0])

    def on_round_opened(self, round: Round, seats: int) -> Call:
        """Rounds only: sets aside what a round can cost; reverts if the escrow cannot cover it."""
        return self._call("onRoundOpened(uint64,uint256)", round, seats)

    def refund(self) -> Call:
        """Returns the escrow to the sponsor, once the run is over and every round settled."""
        return self._call("refund()")

    def reserved_of(self, round: Round) -> Query[Wei]:
        """`reservedOf`."""
        return self._query("reservedOf(uint64)", "(uint256)", lambda v: Wei(v[0]), round)

    def reserved_total(self) -> Query[Wei]:
        """`reservedTotal`."""
        return self._query("reservedTotal()", "(uint256)", lambda v: Wei(v[0]))

    def settle_duties(self, round: Round, attester: Address) -> Call:
        """Pays and credits an attester's duties of a round once they are beyond challenge."""
        return self._call("settleDuties(uint64,address)", round, attester)

    def settle_round(self, round: Round) -> Call:
        """Returns a round's unearned reserve to the escrow once everything in it is settled."""
        return self._call("settleRound(uint64)", round)

    def settle_work(self, round: Round, seat: Seat) -> Call:
        """Ends a commitment once its status is known; pays and credits final work."""
        return self._call("settleWork(uint64,uint32)", round, seat)

    def settled_attesters(self, round: Round) -> Query[int]:
        """`settledAttesters`."""
        return self._query("settledAttesters(uint64)", "(uint256)", lambda v: v[0], round)

    def settled_work(self, round: Round) -> Query[int]:
        """`settledWork`."""
        return self._query("settledWork(uint64)", "(uint256)", lambda v: v[0], round)

    def sponsor(self) -> Query[Address]:
        """`sponsor`."""
        return self._query("sponsor()", "(address)", lambda v: address(v[0]))

    def vests_at(self, round: Round) -> Query[int]:
        """When shares credited for a round vest: T7 + max(20 scheduled rounds, window + longest dispute)."""
        return self._query("vestsAt(uint64)", "(uint64)", lambda v: v[0], round)
