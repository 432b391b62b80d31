"""Calls, queries and events of contracts/money/Bounties.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.types import Address, Digest, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class PotFields:
    """The struct `Pot`, as contracts give it."""

    epoch: int
    entered: int
    taken: int
    closed: bool

    @staticmethod
    def of(v: Decoded) -> PotFields:
        """Of its fields in order."""
        return PotFields(v[0], v[1], v[2], v[3])


@dataclass(frozen=True, slots=True)
class Closed(Event):
    """No accusation enters any more; where none has, the pot burned."""

    ABI: ClassVar = "Closed(bytes32 indexed lockId, uint32 entered)"
    lock_id: Digest
    entered: int

    @classmethod
    def _of(cls, v: Decoded) -> Closed:
        return cls(Digest(v[0]), v[1])


@dataclass(frozen=True, slots=True)
class Entered(Event):
    """An accusation entered."""

    ABI: ClassVar = "Entered(bytes32 indexed lockId, bytes32 indexed accusation, uint24 epoch)"
    lock_id: Digest
    accusation: Digest
    epoch: int

    @classmethod
    def _of(cls, v: Decoded) -> Entered:
        return cls(Digest(v[0]), Digest(v[1]), v[2])


@dataclass(frozen=True, slots=True)
class PartPaid(Event):
    """A part was paid; it burned where the accuser was convicted in the meantime."""

    ABI: ClassVar = "PartPaid(bytes32 indexed accusation, address indexed to, uint256 amount)"
    accusation: Digest
    to: Address
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> PartPaid:
        return cls(Digest(v[0]), address(v[1]), Wei(v[2]))


@dataclass(frozen=True, slots=True)
class PotFilled(Event):
    """A conviction paid in."""

    ABI: ClassVar = "PotFilled(bytes32 indexed lockId, uint256 amount)"
    lock_id: Digest
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> PotFilled:
        return cls(Digest(v[0]), Wei(v[1]))


class BountiesContract(Contract):
    """`contracts/money/Bounties.sol` at an address."""

    EVENTS = (
        Closed,
        Entered,
        PartPaid,
        PotFilled,
    )

    CALLS = (
        "close(bytes32,uint24)",
        "enter(bytes32)",
        "onBounty(bytes32,uint256)",
        "take(bytes32)",
    )

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def close(self, id: Digest, epoch: int) -> Call:
        """Closes a pot."""
        return self._call("close(bytes32,uint24)", id, epoch)

    def enter(self, id: Digest) -> Call:
        """Enters an accusation that was right."""
        return self._call("enter(bytes32)", id)

    def has_entered(self, accusation: Digest) -> Query[bool]:
        """`hasEntered`."""
        return self._query("hasEntered(bytes32)", "(bool)", lambda v: v[0], accusation)

    def on_bounty(self, lock_id: Digest, amount: Wei) -> Call:
        """Game only: a conviction's bounty, which is in this contract's free balance."""
        return self._call("onBounty(bytes32,uint256)", lock_id, amount)

    def pot_of(self, lock_id: Digest) -> Query[tuple[PotFields, Wei]]:
        """`potOf`."""
        return self._query(
            "potOf(bytes32)",
            "((uint24,uint32,uint32,bool),uint256)",
            lambda v: (PotFields.of(v[0]), Wei(v[1])),
            lock_id,
        )

    def take(self, id: Digest) -> Call:
        """Pays the part of an accusation that entered."""
        return self._call("take(bytes32)", id)
