"""Calls, queries and events of contracts/money/Payments.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.rounds.terms import WorkStatus
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class FindingPaid(Event):
    """A finding was settled."""

    ABI: ClassVar = "FindingPaid(bytes32 indexed attestation, uint32 indexed ticket, uint256 pay, uint256 shares)"
    attestation: Digest
    ticket: TicketId
    pay: Wei
    shares: Wei

    @classmethod
    def _of(cls, v: Decoded) -> FindingPaid:
        return cls(Digest(v[0]), TicketId(v[1]), Wei(v[2]), Wei(v[3]))


@dataclass(frozen=True, slots=True)
class OpeningPaid(Event):
    """An opening of a final root was settled."""

    ABI: ClassVar = "OpeningPaid(uint64 indexed node, bytes32 indexed party, uint256 pay)"
    node: int
    party: Digest
    pay: Wei

    @classmethod
    def _of(cls, v: Decoded) -> OpeningPaid:
        return cls(v[0], Digest(v[1]), Wei(v[2]))


@dataclass(frozen=True, slots=True)
class WorkPaid(Event):
    """A commitment was settled: pay and shares for final work, nothing for any other."""

    ABI: ClassVar = (
        "WorkPaid(uint64 indexed round, uint32 indexed seat, uint32 indexed tenure, uint8 status, uint256 pay, "
        "uint256 shares)"
    )
    round: Round
    seat: Seat
    tenure: int
    status: WorkStatus
    pay: Wei
    shares: Wei

    @classmethod
    def _of(cls, v: Decoded) -> WorkPaid:
        return cls(Round(v[0]), Seat(v[1]), v[2], WorkStatus(v[3]), Wei(v[4]), Wei(v[5]))


class PaymentsContract(Contract):
    """`contracts/money/Payments.sol` at an address."""

    EVENTS = (
        FindingPaid,
        OpeningPaid,
        WorkPaid,
    )

    CALLS = (
        "settleDuty(bytes32)",
        "settleOpening(uint64,bytes32)",
        "settleRound(uint64,uint24)",
        "settleWork(uint64,uint32,uint24)",
    )

    def epochs_to_claim(self) -> Query[int]:
        """Epochs after a round's own that must be over before its reserve is free: findings of it are made in its own
        and the three that follow, the next one re-audits the last of them, and whoever earned wages has one more to
        settle.
        """
        return self._query("EPOCHS_TO_CLAIM()", "(uint24)", lambda v: v[0])

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def findings_settled(self) -> Query[int]:
        """How many findings were settled, paid or not."""
        return self._query("findingsSettled()", "(uint256)", lambda v: v[0])

    def is_round_settled(self, round: Round) -> Query[bool]:
        """`isRoundSettled`."""
        return self._query("isRoundSettled(uint64)", "(bool)", lambda v: v[0], round)

    def openings_settled(self, node: int) -> Query[int]:
        """`openingsSettled`."""
        return self._query("openingsSettled(uint64)", "(uint256)", lambda v: v[0], node)

    def settle_duty(self, id: Digest) -> Call:
        """Pays and credits a finding that stands."""
        return self._call("settleDuty(bytes32)", id)

    def settle_opening(self, node: int, party: Digest) -> Call:
        """Pays an opening of a final root that is closed."""
        return self._call("settleOpening(uint64,bytes32)", node, party)

    def settle_round(self, round: Round, epoch: int) -> Call:
        """Frees what a round did not earn, once all of it is settled."""
        return self._call("settleRound(uint64,uint24)", round, epoch)

    def settle_work(self, round: Round, seat: Seat, epoch: int) -> Call:
        """Ends a commitment; pays and credits final work."""
        return self._call("settleWork(uint64,uint32,uint24)", round, seat, epoch)

    def work_settled(self, round: Round) -> Query[int]:
        """`workSettled`."""
        return self._query("workSettled(uint64)", "(uint256)", lambda v: v[0], round)
