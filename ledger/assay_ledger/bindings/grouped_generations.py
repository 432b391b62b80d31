"""Calls, queries and events of contracts/rounds/GroupedGenerations.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.rounds.terms import GenerationStatus, UpdateEntry
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address, Digest, Round
from assay_ledger.bindings.generations import (
    Abstained,
    ClaimFell,
    Cut,
    Finalized,
    Merged,
    MergePrepared,
    OpeningClosed,
    RootBacked,
    RoundWaits,
)
from assay_ledger.bindings.structs import ClaimViewFields, GenerationStateFields, NodeStateFields, OpenedRootFields
from assay_ledger.contract import Call, Contract, Decoded, Event, Query


@dataclass(frozen=True, slots=True)
class GroupsStateFields:
    """The struct `GroupsState`, as contracts give it."""

    counted: int
    closing: int
    full: int
    finals: int
    latest: int

    @staticmethod
    def of(v: Decoded) -> GroupsStateFields:
        """Of its fields in order."""
        return GroupsStateFields(v[0], v[1], v[2], v[3], v[4])


@dataclass(frozen=True, slots=True)
class NodeOpened(Event):
    """A ticket opened its root: it claims that the merge gives it."""

    ABI: ClassVar = (
        "NodeOpened(uint64 indexed node, uint32 indexed ticket, bytes32 root, bytes32 first, bytes32 second)"
    )
    node: int
    ticket: TicketId
    root: Digest
    first: Digest
    second: Digest

    @classmethod
    def _of(cls, v: Decoded) -> NodeOpened:
        return cls(v[0], TicketId(v[1]), Digest(v[2]), Digest(v[3]), Digest(v[4]))


@dataclass(frozen=True, slots=True)
class NodeSealed(Event):
    """A ticket sealed its root at a node, or said that it cannot compute one."""

    ABI: ClassVar = "NodeSealed(uint64 indexed node, uint32 indexed ticket, uint64 positions, bytes32 seal)"
    node: int
    ticket: TicketId
    positions: int
    seal: Digest

    @classmethod
    def _of(cls, v: Decoded) -> NodeSealed:
        return cls(v[0], TicketId(v[1]), v[2], Digest(v[3]))


class GroupedGenerationsContract(Contract):
    """`contracts/rounds/GroupedGenerations.sol` at an address."""

    EVENTS = (
        Abstained,
        ClaimFell,
        Cut,
        Finalized,
        MergePrepared,
        Merged,
        NodeOpened,
        NodeSealed,
        OpeningClosed,
        RootBacked,
        RoundWaits,
    )

    CALLS = (
        "back(uint64,bytes32)",
        "begin()",
        "close(uint64,bytes32)",
        "drop(uint64,bytes32)",
        "fall(uint64)",
        "finalize(uint64,bytes32)",
        "onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)",
        "onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)",
        "open(uint64,uint32,bytes32,bytes32,bytes32)",
        "prepareMerge(uint64)",
        "preparePartial(uint64,uint32,(uint32,uint32,bytes32)[])",
        "restart()",
        "seal(uint64,uint32,uint64,bytes32)",
    )

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

    def groups_of(self, round: Round) -> Query[GroupsStateFields]:
        """The partial sums of a round."""
        return self._query(
            "groupsOf(uint64)", "((uint64,uint16,uint16,uint16,uint48))", lambda v: GroupsStateFields.of(v[0]), round
        )

    def groups_until(self, round: Round) -> Query[int]:
        """Last second in which it can change which groups of the round count."""
        return self._query("groupsUntil(uint64)", "(uint48)", lambda v: v[0], round)

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

    def open(self, node: int, ticket: TicketId, first: Digest, second: Digest, salt: Digest) -> Call:
        """Opens what was sealed, after sealing is over."""
        return self._call("open(uint64,uint32,bytes32,bytes32,bytes32)", node, ticket, first, second, salt)

    def open_until(self, node: int) -> Query[int]:
        """Last second to open at a node."""
        return self._query("openUntil(uint64)", "(uint48)", lambda v: v[0], node)

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

    def prepare_merge(self, round: Round) -> Call:
        """Builds X of the generation; anybody who wants to challenge a root of it calls this first."""
        return self._call("prepareMerge(uint64)", round)

    def prepare_partial(self, round: Round, group: int, entries: Sequence[UpdateEntry]) -> Call:
        """Builds X of a group's partial sum; anybody who wants to challenge one calls this first."""
        return self._call("preparePartial(uint64,uint32,(uint32,uint32,bytes32)[])", round, group, entries)

    def restart(self) -> Call:
        """Cuts what the round under way cannot finish, and opens a round from the newest generation that is not cut if
        the run can.
        """
        return self._call("restart()")

    def seal(self, node: int, ticket: TicketId, positions: int, seal: Digest) -> Call:
        """Binds the positions of a ticket to a root before anybody opens, or says that it cannot compute one: a voice
        against every root, for which nobody waits.
        """
        return self._call("seal(uint64,uint32,uint64,bytes32)", node, ticket, positions, seal)

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
