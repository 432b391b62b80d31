"""Calls, queries and events of contracts/run/RunGovernor.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.rounds.decisions import ProposalState
from assay.protocol.types import Address, Digest, Round, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class EIP712DomainChanged(Event):
    """`EIP712DomainChanged` of RunGovernor."""

    ABI: ClassVar = "EIP712DomainChanged()"

    @classmethod
    def _of(cls, v: Decoded) -> EIP712DomainChanged:
        return cls()


@dataclass(frozen=True, slots=True)
class GatewayListed(Event):
    """The contract of vouchers takes new deposits for a gateway no longer, or again."""

    ABI: ClassVar = "GatewayListed(address indexed gateway, bool isDelisted)"
    gateway: Address
    is_delisted: bool

    @classmethod
    def _of(cls, v: Decoded) -> GatewayListed:
        return cls(address(v[0]), v[1])


@dataclass(frozen=True, slots=True)
class GuardianDismissed(Event):
    """The guardian was dismissed for good."""

    ABI: ClassVar = "GuardianDismissed()"

    @classmethod
    def _of(cls, v: Decoded) -> GuardianDismissed:
        return cls()


@dataclass(frozen=True, slots=True)
class Matured(Event):
    """The charter's number of rounds is final: votes count once enough shares have vested."""

    ABI: ClassVar = "Matured(uint64 generation)"
    generation: Round

    @classmethod
    def _of(cls, v: Decoded) -> Matured:
        return cls(Round(v[0]))


@dataclass(frozen=True, slots=True)
class PriceChanged(Event):
    """Rounds that open from now on pay another part of the charter's price of a unit."""

    ABI: ClassVar = "PriceChanged(uint32 ppm)"
    ppm: int

    @classmethod
    def _of(cls, v: Decoded) -> PriceChanged:
        return cls(v[0])


@dataclass(frozen=True, slots=True)
class ProposalCanceled(Event):
    """`ProposalCanceled` of RunGovernor."""

    ABI: ClassVar = "ProposalCanceled(uint256 proposalId)"
    proposal_id: int

    @classmethod
    def _of(cls, v: Decoded) -> ProposalCanceled:
        return cls(v[0])


@dataclass(frozen=True, slots=True)
class ProposalCreated(Event):
    """`ProposalCreated` of RunGovernor."""

    ABI: ClassVar = (
        "ProposalCreated(uint256 proposalId, address proposer, address[] targets, uint256[] values, "
        "string[] signatures, bytes[] calldatas, uint256 voteStart, uint256 voteEnd, string description)"
    )
    proposal_id: int
    proposer: Address
    targets: tuple[Address, ...]
    values: tuple[int, ...]
    signatures: tuple[str, ...]
    calldatas: tuple[bytes, ...]
    vote_start: int
    vote_end: int
    description: str

    @classmethod
    def _of(cls, v: Decoded) -> ProposalCreated:
        return cls(
            v[0],
            address(v[1]),
            tuple(address(x) for x in v[2]),
            tuple(v[3]),
            tuple(v[4]),
            tuple(v[5]),
            v[6],
            v[7],
            v[8],
        )


@dataclass(frozen=True, slots=True)
class ProposalExecuted(Event):
    """`ProposalExecuted` of RunGovernor."""

    ABI: ClassVar = "ProposalExecuted(uint256 proposalId)"
    proposal_id: int

    @classmethod
    def _of(cls, v: Decoded) -> ProposalExecuted:
        return cls(v[0])


@dataclass(frozen=True, slots=True)
class ProposalQueued(Event):
    """`ProposalQueued` of RunGovernor."""

    ABI: ClassVar = "ProposalQueued(uint256 proposalId, uint256 etaSeconds)"
    proposal_id: int
    eta_seconds: int

    @classmethod
    def _of(cls, v: Decoded) -> ProposalQueued:
        return cls(v[0], v[1])


@dataclass(frozen=True, slots=True)
class RoundsPaused(Event):
    """No new round opens for a while."""

    ABI: ClassVar = "RoundsPaused(uint48 until, bool byGuardian)"
    until: int
    by_guardian: bool

    @classmethod
    def _of(cls, v: Decoded) -> RoundsPaused:
        return cls(v[0], v[1])


@dataclass(frozen=True, slots=True)
class RoundsResumed(Event):
    """A vote ended a pause before its time."""

    ABI: ClassVar = "RoundsResumed()"

    @classmethod
    def _of(cls, v: Decoded) -> RoundsResumed:
        return cls()


@dataclass(frozen=True, slots=True)
class SuccessorNamed(Event):
    """The owners of an ended run named the run that follows it."""

    ABI: ClassVar = "SuccessorNamed(address indexed charter)"
    charter: Address

    @classmethod
    def _of(cls, v: Decoded) -> SuccessorNamed:
        return cls(address(v[0]))


@dataclass(frozen=True, slots=True)
class SunsetDecided(Event):
    """No new round opens ever again, and no new deposit of a user is taken: the run ends as if it had expired."""

    ABI: ClassVar = "SunsetDecided()"

    @classmethod
    def _of(cls, v: Decoded) -> SunsetDecided:
        return cls()


@dataclass(frozen=True, slots=True)
class VoteCast(Event):
    """`VoteCast` of RunGovernor."""

    ABI: ClassVar = "VoteCast(address indexed voter, uint256 proposalId, uint8 support, uint256 weight, string reason)"
    voter: Address
    proposal_id: int
    support: int
    weight: int
    reason: str

    @classmethod
    def _of(cls, v: Decoded) -> VoteCast:
        return cls(address(v[0]), v[1], v[2], v[3], v[4])


@dataclass(frozen=True, slots=True)
class VoteCastWithParams(Event):
    """`VoteCastWithParams` of RunGovernor."""

    ABI: ClassVar = (
        "VoteCastWithParams(address indexed voter, uint256 proposalId, uint8 support, uint256 weight, "
        "string reason, bytes params)"
    )
    voter: Address
    proposal_id: int
    support: int
    weight: int
    reason: str
    params: bytes

    @classmethod
    def _of(cls, v: Decoded) -> VoteCastWithParams:
        return cls(address(v[0]), v[1], v[2], v[3], v[4], v[5])


class RunGovernorContract(Contract):
    """`contracts/run/RunGovernor.sol` at an address."""

    EVENTS = (
        EIP712DomainChanged,
        GatewayListed,
        GuardianDismissed,
        Matured,
        PriceChanged,
        ProposalCanceled,
        ProposalCreated,
        ProposalExecuted,
        ProposalQueued,
        RoundsPaused,
        RoundsResumed,
        SuccessorNamed,
        SunsetDecided,
        VoteCast,
        VoteCastWithParams,
    )

    CALLS = (
        "cancel(address[],uint256[],bytes[],bytes32)",
        "castVote(uint256,uint8)",
        "execute(address[],uint256[],bytes[],bytes32)",
        "guardianPause()",
        "mature(uint64)",
        "propose(address[],uint256[],bytes[],string)",
        "queue(address[],uint256[],bytes[],bytes32)",
    )

    def grace(self) -> Query[int]:
        """Seconds for which a decision can be queued, and once its time lock is over, executed."""
        return self._query("GRACE()", "(uint256)", lambda v: v[0])

    def cancel(
        self, targets: Sequence[Address], values: Sequence[int], calldatas: Sequence[bytes], description_hash: Digest
    ) -> Call:
        """`cancel`."""
        return self._call("cancel(address[],uint256[],bytes[],bytes32)", targets, values, calldatas, description_hash)

    def cast_vote(self, proposal_id: int, support: int) -> Call:
        """`castVote`."""
        return self._call("castVote(uint256,uint8)", proposal_id, support)

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def execute(
        self, targets: Sequence[Address], values: Sequence[int], calldatas: Sequence[bytes], description_hash: Digest
    ) -> Call:
        """`execute`."""
        return self._call("execute(address[],uint256[],bytes[],bytes32)", targets, values, calldatas, description_hash)

    def get_votes(self, account: Address, timepoint: int) -> Query[Wei]:
        """module:reputation."""
        return self._query("getVotes(address,uint256)", "(uint256)", lambda v: Wei(v[0]), account, timepoint)

    def guardian(self) -> Query[Address]:
        """Who may pause without a vote; zero: nobody."""
        return self._query("guardian()", "(address)", lambda v: address(v[0]))

    def guardian_pause(self) -> Call:
        """The guardian only: pauses new rounds for the charter's length."""
        return self._call("guardianPause()")

    def guardian_pauses_left(self) -> Query[int]:
        """`guardianPausesLeft`."""
        return self._query("guardianPausesLeft()", "(uint32)", lambda v: v[0])

    def has_voted(self, proposal_id: int, account: Address) -> Query[bool]:
        """module:voting."""
        return self._query("hasVoted(uint256,address)", "(bool)", lambda v: v[0], proposal_id, account)

    def is_delisted(self, gateway: Address) -> Query[bool]:
        """`isDelisted`."""
        return self._query("isDelisted(address)", "(bool)", lambda v: v[0], gateway)

    def is_mature(self) -> Query[bool]:
        """`isMature`."""
        return self._query("isMature()", "(bool)", lambda v: v[0])

    def is_paused(self) -> Query[bool]:
        """Does no new round open at this moment, by a pause?"""
        return self._query("isPaused()", "(bool)", lambda v: v[0])

    def is_sunset(self) -> Query[bool]:
        """Was the sunset decided?"""
        return self._query("isSunset()", "(bool)", lambda v: v[0])

    def least_vested(self) -> Query[int]:
        """Shares that must have vested before anybody proposes, in wei of shares."""
        return self._query("leastVested()", "(uint256)", lambda v: v[0])

    def mature(self, generation: Round) -> Call:
        """Shows that the charter's number of rounds is final."""
        return self._call("mature(uint64)", generation)

    def paused_until(self) -> Query[int]:
        """First second of chain time after the newest pause; 0: there was none."""
        return self._query("pausedUntil()", "(uint48)", lambda v: v[0])

    def price_ppm(self) -> Query[int]:
        """Part of the charter's price of a unit that a round that opens now pays, in parts per million."""
        return self._query("pricePpm()", "(uint32)", lambda v: v[0])

    def proposal_deadline(self, proposal_id: int) -> Query[int]:
        """module:core."""
        return self._query("proposalDeadline(uint256)", "(uint256)", lambda v: v[0], proposal_id)

    def proposal_eta(self, proposal_id: int) -> Query[int]:
        """module:core."""
        return self._query("proposalEta(uint256)", "(uint256)", lambda v: v[0], proposal_id)

    def proposal_proposer(self, proposal_id: int) -> Query[Address]:
        """module:core."""
        return self._query("proposalProposer(uint256)", "(address)", lambda v: address(v[0]), proposal_id)

    def proposal_snapshot(self, proposal_id: int) -> Query[int]:
        """module:core."""
        return self._query("proposalSnapshot(uint256)", "(uint256)", lambda v: v[0], proposal_id)

    def proposal_threshold(self) -> Query[int]:
        """module:core."""
        return self._query("proposalThreshold()", "(uint256)", lambda v: v[0])

    def proposal_votes(self, proposal_id: int) -> Query[tuple[int, int, int]]:
        """`proposalVotes`."""
        return self._query(
            "proposalVotes(uint256)", "(uint256,uint256,uint256)", lambda v: (v[0], v[1], v[2]), proposal_id
        )

    def propose(
        self, targets: Sequence[Address], values: Sequence[int], calldatas: Sequence[bytes], description: str
    ) -> Call:
        """`propose`."""
        return self._call("propose(address[],uint256[],bytes[],string)", targets, values, calldatas, description)

    def queue(
        self, targets: Sequence[Address], values: Sequence[int], calldatas: Sequence[bytes], description_hash: Digest
    ) -> Call:
        """`queue`."""
        return self._call("queue(address[],uint256[],bytes[],bytes32)", targets, values, calldatas, description_hash)

    def quorum(self, timepoint: int) -> Query[int]:
        """Shares that must vote for or abstain, in wei of shares: of those vested at a time, at least of the least
        that governs.
        """
        return self._query("quorum(uint256)", "(uint256)", lambda v: v[0], timepoint)

    def rest(self) -> Query[int]:
        """Seconds between pauses, in which a round can open."""
        return self._query("rest()", "(uint256)", lambda v: v[0])

    def state(self, proposal_id: int) -> Query[ProposalState]:
        """module:core."""
        return self._query("state(uint256)", "(uint8)", lambda v: ProposalState(v[0]), proposal_id)

    def timelock(self) -> Query[int]:
        """Seconds from a decision's queue to its first execution."""
        return self._query("timelock()", "(uint256)", lambda v: v[0])

    def voted_until(self) -> Query[int]:
        """The same of the newest pause by a vote."""
        return self._query("votedUntil()", "(uint48)", lambda v: v[0])

    def voting_delay(self) -> Query[int]:
        """module:user-config."""
        return self._query("votingDelay()", "(uint256)", lambda v: v[0])

    def voting_period(self) -> Query[int]:
        """module:user-config."""
        return self._query("votingPeriod()", "(uint256)", lambda v: v[0])
