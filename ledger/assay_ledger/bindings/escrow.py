"""Calls, queries and events of contracts/money/Escrow.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.types import Address, Round, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class Freed(Event):
    """What a round did not earn is free again."""

    ABI: ClassVar = "Freed(uint64 indexed round, uint256 unearned)"
    round: Round
    unearned: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Freed:
        return cls(Round(v[0]), Wei(v[1]))


@dataclass(frozen=True, slots=True)
class Funded(Event):
    """Somebody funded the run."""

    ABI: ClassVar = "Funded(address indexed funder, uint256 amount)"
    funder: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Funded:
        return cls(address(v[0]), Wei(v[1]))


@dataclass(frozen=True, slots=True)
class PhaseChanged(Event):
    """The run came to its next point."""

    ABI: ClassVar = "PhaseChanged(uint8 phase, address indexed by)"
    phase: RunPhase
    by: Address

    @classmethod
    def _of(cls, v: Decoded) -> PhaseChanged:
        return cls(RunPhase(v[0]), address(v[1]))


@dataclass(frozen=True, slots=True)
class Refunded(Event):
    """A funder got what was left of its newest payment."""

    ABI: ClassVar = "Refunded(address indexed funder, uint256 funded, uint256 amount)"
    funder: Address
    funded: int
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Refunded:
        return cls(address(v[0]), v[1], Wei(v[2]))


@dataclass(frozen=True, slots=True)
class Reserved(Event):
    """Everything that a round can cost was set aside."""

    ABI: ClassVar = "Reserved(uint64 indexed round, uint256 amount, uint256 wages)"
    round: Round
    amount: Wei
    wages: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Reserved:
        return cls(Round(v[0]), Wei(v[1]), Wei(v[2]))


class EscrowContract(Contract):
    """`contracts/money/Escrow.sol` at an address."""

    EVENTS = (
        Freed,
        Funded,
        PhaseChanged,
        Refunded,
        Reserved,
    )

    CALLS = (
        "cancel()",
        "finish()",
        "free(uint64)",
        "fund(uint256)",
        "launch()",
        "pay(uint64,address,uint256,bool)",
        "refund(address)",
        "reserve(uint64,uint256)",
        "windDown()",
    )

    def balance(self) -> Query[Wei]:
        """`balance`."""
        return self._query("balance()", "(uint256)", lambda v: Wei(v[0]))

    def cancel(self) -> Call:
        """Before the launch, by the sponsor, after the run's expiry by anybody: stakes are free, and funders get
        everything back.
        """
        return self._call("cancel()")

    def carries(self, seated: int) -> Query[bool]:
        """Could a round of so many seats be audited, in an epoch without another, and paid beside what is reserved?"""
        return self._query("carries(uint256)", "(bool)", lambda v: v[0], seated)

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def cost_of(self, seated: int) -> Query[int]:
        """What a round of so many seats sets aside if it opens now, in wei."""
        return self._query("costOf(uint256)", "(uint256)", lambda v: v[0], seated)

    def finish(self) -> Call:
        """Ends a run that opens no more rounds and has settled all."""
        return self._call("finish()")

    def free(self, round: Round) -> Call:
        """Payments only: a round is settled."""
        return self._call("free(uint64)", round)

    def fund(self, amount: Wei) -> Call:
        """Adds to the escrow from the caller's free balance, before the run is over."""
        return self._call("fund(uint256)", amount)

    def funded_of(self, funder: Address) -> Query[int]:
        """`fundedOf`."""
        return self._query("fundedOf(address)", "(uint256)", lambda v: v[0], funder)

    def is_stopped(self) -> Query[bool]:
        """The run was cancelled or wound down: what no open game holds is free, and nothing is paid any more."""
        return self._query("isStopped()", "(bool)", lambda v: v[0])

    def launch(self) -> Call:
        """Opens round 0: by the sponsor, or by anybody once the charter's time has come and enough is staked."""
        return self._call("launch()")

    def live_rounds(self) -> Query[int]:
        """`liveRounds`."""
        return self._query("liveRounds()", "(uint64)", lambda v: v[0])

    def most_unsettled(self) -> Query[int]:
        """U, as many rounds of pay as B outweighs: a round opens once what so many before it earned is due."""
        return self._query("mostUnsettled()", "(uint256)", lambda v: v[0])

    def pay(self, round: Round, to: Address, amount: Wei, is_wage: bool) -> Call:
        """Payments only: pays from what a round has reserved for wages, or for work and openings, beyond it from what
        no round has reserved.
        """
        return self._call("pay(uint64,address,uint256,bool)", round, to, amount, is_wage)

    def phase(self) -> Query[RunPhase]:
        """`phase`."""
        return self._query("phase()", "(uint8)", lambda v: RunPhase(v[0]))

    def refund(self, funder: Address) -> Call:
        """Pays a funder what was left when the run ended of its newest payment that has not been called back."""
        return self._call("refund(address)", funder)

    def reserve(self, round: Round, seated: int) -> Call:
        """Generations only: sets aside what a round can cost; false if the run cannot pay or audit it."""
        return self._call("reserve(uint64,uint256)", round, seated)

    def reserved_of(self, round: Round) -> Query[Wei]:
        """`reservedOf`."""
        return self._query("reservedOf(uint64)", "(uint256)", lambda v: Wei(v[0]), round)

    def reserved_total(self) -> Query[Wei]:
        """`reservedTotal`."""
        return self._query("reservedTotal()", "(uint256)", lambda v: Wei(v[0]))

    def sponsor(self) -> Query[Address]:
        """`sponsor`."""
        return self._query("sponsor()", "(address)", lambda v: address(v[0]))

    def stopped_at(self) -> Query[int]:
        """When that was, as a chain time in seconds; 0: it was not."""
        return self._query("stoppedAt()", "(uint48)", lambda v: v[0])

    def wind_down(self) -> Call:
        """Ends a run that has had no final generation, or closed no epoch, for longer than the charter's stall."""
        return self._call("windDown()")

    def work_pay_of(self, round: Round, amount: Wei) -> Query[int]:
        """What a round pays for work that is worth an amount at the charter's price, in wei, rounded down."""
        return self._query("workPayOf(uint64,uint256)", "(uint256)", lambda v: v[0], round, amount)
