"""Calls, queries and events of contracts/rounds/Generations.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.rounds.terms import GenerationStatus, UpdateEntry
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.bindings.structs import ClaimViewFields, GenerationStateFields, NodeStateFields, OpenedRootFields
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class Abstained(Event):
    """A position says that it cannot compute the root: it holds not all that goes into it."""

    ABI: ClassVar = "Abstained(uint64 indexed node, uint32 indexed position)"
    node: int
    position: int

    @classmethod
    def _of(cls, v: Decoded) -> Abstained:
        return cls(v[0], v[1])


@dataclass(frozen=True, slots=True)
class ClaimFell(Event):
    """A claim behind a root fell."""

    ABI: ClassVar = "ClaimFell(uint64 indexed node, bytes32 party, uint48 rescueUntil)"
    node: int
    party: Digest
    rescue_until: int

    @classmethod
    def _of(cls, v: Decoded) -> ClaimFell:
        return cls(v[0], Digest(v[1]), v[2])


@dataclass(frozen=True, slots=True)
class Cut(Event):
    """A generation, and every later one that builds on it, is cut."""

    ABI: ClassVar = "Cut(uint64 indexed generation)"
    generation: Round

    @classmethod
    def _of(cls, v: Decoded) -> Cut:
        return cls(Round(v[0]))


@dataclass(frozen=True, slots=True)
class Finalized(Event):
    """A node is final."""

    ABI: ClassVar = "Finalized(uint64 indexed node)"
    node: int

    @classmethod
    def _of(cls, v: Decoded) -> Finalized:
        return cls(v[0])


@dataclass(frozen=True, slots=True)
class MergePrepared(Event):
    """X of a merge was built: roots of its node can be challenged now."""

    ABI: ClassVar = "MergePrepared(uint64 indexed node, bytes32 x)"
    node: int
    x: Digest

    @classmethod
    def _of(cls, v: Decoded) -> MergePrepared:
        return cls(v[0], Digest(v[1]))


@dataclass(frozen=True, slots=True)
class Merged(Event):
    """A root was opened by more than half of the positions: rounds start from it."""

    ABI: ClassVar = "Merged(uint64 indexed generation, bytes32 root)"
    generation: Round
    root: Digest

    @classmethod
    def _of(cls, v: Decoded) -> Merged:
        return cls(Round(v[0]), Digest(v[1]))


@dataclass(frozen=True, slots=True)
class OpeningClosed(Event):
    """What stands behind an opening is free: its generation is final or cut."""

    ABI: ClassVar = "OpeningClosed(uint64 indexed node, bytes32 party)"
    node: int
    party: Digest

    @classmethod
    def _of(cls, v: Decoded) -> OpeningClosed:
        return cls(v[0], Digest(v[1]))


@dataclass(frozen=True, slots=True)
class RootBacked(Event):
    """An account locked S behind a root of which a claim fell."""

    ABI: ClassVar = "RootBacked(uint64 indexed node, bytes32 root, address indexed backer)"
    node: int
    root: Digest
    backer: Address

    @classmethod
    def _of(cls, v: Decoded) -> RootBacked:
        return cls(v[0], Digest(v[1]), address(v[2]))


@dataclass(frozen=True, slots=True)
class RootOpened(Event):
    """A position opened its root: it claims that the merge gives it."""

    ABI: ClassVar = (
        "RootOpened(uint64 indexed generation, uint32 indexed seat, bytes32 root, bytes32 parameters, bytes32 momentum)"
    )
    generation: Round
    seat: Seat
    root: Digest
    parameters: Digest
    momentum: Digest

    @classmethod
    def _of(cls, v: Decoded) -> RootOpened:
        return cls(Round(v[0]), Seat(v[1]), Digest(v[2]), Digest(v[3]), Digest(v[4]))


@dataclass(frozen=True, slots=True)
class RootSealed(Event):
    """A position sealed its root of a generation."""

    ABI: ClassVar = "RootSealed(uint64 indexed generation, uint32 indexed seat, bytes32 seal)"
    generation: Round
    seat: Seat
    seal: Digest

    @classmethod
    def _of(cls, v: Decoded) -> RootSealed:
        return cls(Round(v[0]), Seat(v[1]), Digest(v[2]))


@dataclass(frozen=True, slots=True)
class RoundWaits(Event):
    """A majority found the run unable to open a round: the next one waits."""

    ABI: ClassVar = "RoundWaits(uint64 indexed generation)"
    generation: Round

    @classmethod
    def _of(cls, v: Decoded) -> RoundWaits:
        return cls(Round(v[0]))


class GenerationsContract(Contract):
    """`contracts/rounds/Generations.sol` at an address."""

    EVENTS = (
        Abstained,
        ClaimFell,
        Cut,
        Finalized,
        MergePrepared,
        Merged,
        OpeningClosed,
        RootBacked,
        RootOpened,
        RootSealed,
        RoundWaits,
    )

    CALLS = (
        "abstain(uint64,uint32)",
        "back(uint64,bytes32)",
        "begin()",
        "close(uint64,bytes32)",
        "drop(uint64,bytes32)",
        "fall(uint64)",
        "finalize(uint64,bytes32)",
        "onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)",
        "onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)",
        "open(uint64,uint32,bytes32,bytes32,bytes32)",
        "prepare(uint64,(uint32,uint32,bytes32)[])",
        "restart()",
        "seal(uint64,uint32,bytes32)",
    )

    def abstain(self, round: Round, seat: Seat) -> Call:
        """A position says that it cannot compute the root, while it could seal one."""
        return self._call("abstain(uint64,uint32)", round, seat)

    def back(self, node: int, root: Digest) -> Call:
        """Locks S of the caller behind a root of which a claim fell, while it can be rescued."""
        return self._call("back(uint64,bytes32)", node, root)

    def backer_of(self, root: Digest, who: Address) -> Query[Digest]:
        """The name of a backer's opening."""
        return self._query("backerOf(bytes32,address)", "(bytes32)", lambda v: Digest(v[0]), root, who)

    def begin(self) -> Call:
        """Launcher only: opens round 0 from the genesis."""
        return self._call("begin()")

    def claim_of(self, ref: ClaimRef) -> Query[ClaimViewFields]:
        """Resolves a reference; a claim that does not exist, or that nobody prepared, has challengeableUntil = 0."""
        return self._query(
            "claimOf((uint8,uint64,uint32,uint32,address,bytes32))",
            "((bytes32,address,bytes32,bytes32,bytes32,uint32,uint64,uint64,bytes32,uint256,bool,uint256,address))",
            lambda v: ClaimViewFields.of(v[0]),
            ref,
        )

    def close(self, node: int, party: Digest) -> Call:
        """Frees what stands behind an opening at a node whose generation is final or cut."""
        return self._call("close(uint64,bytes32)", node, party)

    def drop(self, node: int, party: Digest) -> Call:
        """Drops a claim whose opener was convicted elsewhere."""
        return self._call("drop(uint64,bytes32)", node, party)

    def fall(self, node: int) -> Call:
        """Cuts the generation of a node that nobody answers for any more, and what builds on it."""
        return self._call("fall(uint64)", node)

    def final_at(self) -> Query[int]:
        """Chain time at which a generation became final for the last time; 0: none did."""
        return self._query("finalAt()", "(uint48)", lambda v: v[0])

    def finalize(self, node: int, party: Digest) -> Call:
        """Makes a node final by one opening whose window is over, a generation after its parent and its sums."""
        return self._call("finalize(uint64,bytes32)", node, party)

    def generation_of(self, generation: Round) -> Query[GenerationStateFields]:
        """`generationOf`."""
        return self._query(
            "generationOf(uint64)",
            "((uint8,bytes32,bytes32,bytes32,uint32,uint16,uint48))",
            lambda v: GenerationStateFields.of(v[0]),
            generation,
        )

    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> Query[bool]:
        """May `who` open a game without commit-reveal?"""
        return self._query(
            "mayChallengeDirectly((uint8,uint64,uint32,uint32,address,bytes32),address)",
            "(bool)",
            lambda v: v[0],
            ref,
            who,
        )

    def newest(self) -> Query[Round]:
        """The newest generation that has a majority and is not cut."""
        return self._query("newest()", "(uint64)", lambda v: Round(v[0]))

    def node_of(self, node: int, root: Digest) -> Query[NodeStateFields]:
        """`nodeOf`."""
        return self._query(
            "nodeOf(uint64,bytes32)",
            "((uint16,uint16,uint32,uint32,uint48))",
            lambda v: NodeStateFields.of(v[0]),
            node,
            root,
        )

    def on_closed(self, ref: ClaimRef, convicted: bool) -> Call:
        """Game only: a game ended."""
        return self._call("onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)", ref, convicted)

    def on_opened(self, ref: ClaimRef, argument_1: Address) -> Call:
        """Game only: `challenger` opened a game on the claim (delays finality)."""
        return self._call("onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)", ref, argument_1)

    def open(self, round: Round, seat: Seat, parameters: Digest, momentum: Digest, salt: Digest) -> Call:
        """Opens what was sealed, after sealing is over."""
        return self._call("open(uint64,uint32,bytes32,bytes32,bytes32)", round, seat, parameters, momentum, salt)

    def opening_of(self, node: int, party: Digest) -> Query[OpenedRootFields]:
        """`openingOf`."""
        return self._query(
            "openingOf(uint64,bytes32)",
            "((bytes32,uint32,address,uint48,bool,bool,uint32))",
            lambda v: OpenedRootFields.of(v[0]),
            node,
            party,
        )

    def parameters_of(self, generation: Round) -> Query[Digest]:
        """List root of a generation's parameters."""
        return self._query("parametersOf(uint64)", "(bytes32)", lambda v: Digest(v[0]), generation)

    def party_of(self, position: int) -> Query[Digest]:
        """The name of the opening of a seat, above 64 seats of a ticket."""
        return self._query("partyOf(uint32)", "(bytes32)", lambda v: Digest(v[0]), position)

    def prepare(self, round: Round, entries: Sequence[UpdateEntry]) -> Call:
        """Builds X of the round's merge; anybody who wants to challenge a root calls this first."""
        return self._call("prepare(uint64,(uint32,uint32,bytes32)[])", round, entries)

    def restart(self) -> Call:
        """Cuts what the round under way cannot finish, and opens a round from the newest generation that is not cut if
        the run can.
        """
        return self._call("restart()")

    def seal(self, round: Round, seat: Seat, seal: Digest) -> Call:
        """A position binds itself to a root before anybody opens."""
        return self._call("seal(uint64,uint32,bytes32)", round, seat, seal)

    def seal_of(self, at: int, position: int, root: Digest, over: Digest, salt: Digest, who: Address) -> Query[Digest]:
        """The digest that binds a position to a root and to what the root is over."""
        return self._query(
            "sealOf(uint64,uint32,bytes32,bytes32,bytes32,address)",
            "(bytes32)",
            lambda v: Digest(v[0]),
            at,
            position,
            root,
            over,
            salt,
            who,
        )

    def status_of(self, generation: Round) -> Query[GenerationStatus]:
        """`statusOf`."""
        return self._query("statusOf(uint64)", "(uint8)", lambda v: GenerationStatus(v[0]), generation)
