"""Calls, queries and events of contracts/rounds/Tenures.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.rounds.terms import Tenure
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


def as_tenure(v: Decoded) -> Tenure:
    """A `Tenure` as a contract gives it."""
    return Tenure(address(v[0]), Seat(v[1]), v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11])


@dataclass(frozen=True, slots=True)
class Evicted(Event):
    """A seat was taken from a holder that stayed away: half of the fee burned."""

    ABI: ClassVar = "Evicted(uint32 indexed tenure, address indexed by)"
    tenure: int
    by: Address

    @classmethod
    def _of(cls, v: Decoded) -> Evicted:
        return cls(v[0], address(v[1]))


@dataclass(frozen=True, slots=True)
class TenureBegan(Event):
    """An account took a seat, from the next T0 on."""

    ABI: ClassVar = "TenureBegan(uint32 indexed tenure, address indexed holder, uint32 seat, uint64 from)"
    tenure: int
    holder: Address
    seat: Seat
    from_: int

    @classmethod
    def _of(cls, v: Decoded) -> TenureBegan:
        return cls(v[0], address(v[1]), Seat(v[2]), v[3])


@dataclass(frozen=True, slots=True)
class TenureEnded(Event):
    """A tenure ends."""

    ABI: ClassVar = "TenureEnded(uint32 indexed tenure, uint64 until, bool convicted)"
    tenure: int
    until: int
    convicted: bool

    @classmethod
    def _of(cls, v: Decoded) -> TenureEnded:
        return cls(v[0], v[1], v[2])


@dataclass(frozen=True, slots=True)
class TenureReleased(Event):
    """What was left of a tenure's lock is free."""

    ABI: ClassVar = "TenureReleased(uint32 indexed tenure, bool feeLost)"
    tenure: int
    fee_lost: bool

    @classmethod
    def _of(cls, v: Decoded) -> TenureReleased:
        return cls(v[0], v[1])


class TenuresContract(Contract):
    """`contracts/rounds/Tenures.sol` at an address."""

    EVENTS = (
        Evicted,
        TenureBegan,
        TenureEnded,
        TenureReleased,
    )

    CALLS = (
        "accuse(uint32)",
        "acquit(uint32)",
        "charge(uint32,uint64,address)",
        "evict(uint32,uint64)",
        "join()",
        "leave(uint32)",
        "oblige(uint32)",
        "onGameClosed(uint32,bool)",
        "onGameOpened(uint32)",
        "release(uint32)",
        "resume(uint32)",
        "suspend(uint32)",
        "unaccuse(uint32)",
    )

    def accuse(self, tenure: int) -> Call:
        """Attestations only: an accusation is recorded."""
        return self._call("accuse(uint32)", tenure)

    def acquit(self, tenure: int) -> Call:
        """Commitments and Generations only: one thing fewer hangs on the tenure."""
        return self._call("acquit(uint32)", tenure)

    def can_answer(self, tenure: int) -> Query[bool]:
        """Does a lock stand behind what it says: it was neither lost nor taken back?"""
        return self._query("canAnswer(uint32)", "(bool)", lambda v: v[0], tenure)

    def charge(self, tenure: int, round: Round, who: Address) -> Call:
        """Commitments only: the holder commits to a round."""
        return self._call("charge(uint32,uint64,address)", tenure, round, who)

    def evict(self, tenure: int, round: Round) -> Call:
        """Ends the tenure of a holder that stayed away."""
        return self._call("evict(uint32,uint64)", tenure, round)

    def holder_of(self, tenure: int) -> Query[Address]:
        """`holderOf`."""
        return self._query("holderOf(uint32)", "(address)", lambda v: address(v[0]), tenure)

    def is_convicted(self, tenure: int) -> Query[bool]:
        """`isConvicted`."""
        return self._query("isConvicted(uint32)", "(bool)", lambda v: v[0], tenure)

    def join(self) -> Call:
        """Takes a free seat from the next T0 on, if the run carries one more; locks S and the fee."""
        return self._call("join()")

    def leave(self, tenure: int) -> Call:
        """Ends the caller's tenure with the round under way; to stay away in that round costs the fee."""
        return self._call("leave(uint32)", tenure)

    def lock_of(self, tenure: int) -> Query[Digest]:
        """The name of a tenure's lock S in the vault."""
        return self._query("lockOf(uint32)", "(bytes32)", lambda v: Digest(v[0]), tenure)

    def oblige(self, tenure: int) -> Call:
        """Generations only: one more opening hangs on the tenure."""
        return self._call("oblige(uint32)", tenure)

    def on_game_closed(self, tenure: int, convicted: bool) -> Call:
        """Commitments and Generations only: a game ended."""
        return self._call("onGameClosed(uint32,bool)", tenure, convicted)

    def on_game_opened(self, tenure: int) -> Call:
        """Commitments and Generations only: a game was opened on a claim of the tenure."""
        return self._call("onGameOpened(uint32)", tenure)

    def release(self, tenure: int) -> Call:
        """Gives back the lock of a tenure that is over, once nothing hangs on it; of one that held its seat and never
        committed not before `longestDispute` is over since the last second to commit to its last round.
        """
        return self._call("release(uint32)", tenure)

    def resume(self, tenure: int) -> Call:
        """Attestations only: such a game ended."""
        return self._call("resume(uint32)", tenure)

    def seat_fee(self) -> Query[Wei]:
        """`seatFee`."""
        return self._query("seatFee()", "(uint256)", lambda v: Wei(v[0]))

    def seat_lock(self) -> Query[Wei]:
        """S, in wei."""
        return self._query("seatLock()", "(uint256)", lambda v: Wei(v[0]))

    def seated_at(self, round: Round) -> Query[int]:
        """Seats held in a round; of the next round, as things stand."""
        return self._query("seatedAt(uint64)", "(uint256)", lambda v: v[0], round)

    def seats(self) -> Query[int]:
        """`seats`."""
        return self._query("seats()", "(uint256)", lambda v: v[0])

    def suspend(self, tenure: int) -> Call:
        """Attestations only: the game of an accusation is open; the tenure's next commitments have no weight."""
        return self._call("suspend(uint32)", tenure)

    def tenure_of(self, tenure: int) -> Query[Tenure]:
        """`tenureOf`."""
        return self._query(
            "tenureOf(uint32)",
            "((address,uint16,uint32,uint32,bool,bool,uint32,uint32,uint32,uint32,uint48,uint32))",
            lambda v: as_tenure(v[0]),
            tenure,
        )

    def tenures(self) -> Query[int]:
        """How many tenures there were; the latest has this number."""
        return self._query("tenures()", "(uint32)", lambda v: v[0])

    def tenures_of(self, holder: Address) -> Query[int]:
        """Tenures that an account has and that last."""
        return self._query("tenuresOf(address)", "(uint256)", lambda v: v[0], holder)

    def unaccuse(self, tenure: int) -> Call:
        """Attestations only: an accusation was judged, or lapsed."""
        return self._call("unaccuse(uint32)", tenure)
