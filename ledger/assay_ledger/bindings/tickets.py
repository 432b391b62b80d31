"""Calls, queries and events of contracts/audit/Tickets.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class DebtFields:
    """The struct `Debt`, as contracts give it."""

    to: Address
    amount: Wei

    @staticmethod
    def of(v: Decoded) -> DebtFields:
        """Of its fields in order."""
        return DebtFields(address(v[0]), Wei(v[1]))


@dataclass(frozen=True, slots=True)
class TicketFields:
    """The struct `Ticket`, as contracts give it."""

    owner: Address
    from_: int
    until: int
    slot: int
    shown: int
    last_epoch: int
    obligations: int
    disputes: int
    short_since: int
    convicted_at: int
    anchor: Digest
    next_anchor: Digest
    next_from: int

    @staticmethod
    def of(v: Decoded) -> TicketFields:
        """Of its fields in order."""
        return TicketFields(
            address(v[0]), v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], Digest(v[10]), Digest(v[11]), v[12]
        )


@dataclass(frozen=True, slots=True)
class AnchorReplaced(Event):
    """Another chain of secrets follows."""

    ABI: ClassVar = "AnchorReplaced(uint32 indexed ticket, bytes32 anchor, uint48 from)"
    ticket: TicketId
    anchor: Digest
    from_: int

    @classmethod
    def _of(cls, v: Decoded) -> AnchorReplaced:
        return cls(TicketId(v[0]), Digest(v[1]), v[2])


@dataclass(frozen=True, slots=True)
class FineCollected(Event):
    """A fine that was owed is taken, as far as something is left."""

    ABI: ClassVar = "FineCollected(uint32 indexed ticket, uint256 number)"
    ticket: TicketId
    number: int

    @classmethod
    def _of(cls, v: Decoded) -> FineCollected:
        return cls(TicketId(v[0]), v[1])


@dataclass(frozen=True, slots=True)
class FineOwed(Event):
    """A fine was proven while its ticket was disputed: it is owed until the last dispute is over."""

    ABI: ClassVar = "FineOwed(uint32 indexed ticket, uint256 number, uint256 amount, address indexed to)"
    ticket: TicketId
    number: int
    amount: Wei
    to: Address

    @classmethod
    def _of(cls, v: Decoded) -> FineOwed:
        return cls(TicketId(v[0]), v[1], Wei(v[2]), address(v[3]))


@dataclass(frozen=True, slots=True)
class SecretShown(Event):
    """A secret was shown."""

    ABI: ClassVar = "SecretShown(uint32 indexed ticket, uint24 indexed epoch, uint32 skipped, bytes32 secret)"
    ticket: TicketId
    epoch: int
    skipped: int
    secret: Digest

    @classmethod
    def _of(cls, v: Decoded) -> SecretShown:
        return cls(TicketId(v[0]), v[1], v[2], Digest(v[3]))


@dataclass(frozen=True, slots=True)
class TicketConvictedNow(Event):
    """A ticket is convicted and takes no part any more."""

    ABI: ClassVar = "TicketConvictedNow(uint32 indexed ticket)"
    ticket: TicketId

    @classmethod
    def _of(cls, v: Decoded) -> TicketConvictedNow:
        return cls(TicketId(v[0]))


@dataclass(frozen=True, slots=True)
class TicketFined(Event):
    """A fine was taken: half of it to who proved it, the rest burned."""

    ABI: ClassVar = "TicketFined(uint32 indexed ticket, uint256 amount, address indexed to)"
    ticket: TicketId
    amount: Wei
    to: Address

    @classmethod
    def _of(cls, v: Decoded) -> TicketFined:
        return cls(TicketId(v[0]), Wei(v[1]), address(v[2]))


@dataclass(frozen=True, slots=True)
class TicketReclaimed(Event):
    """A stake is free again."""

    ABI: ClassVar = "TicketReclaimed(uint32 indexed ticket, uint256 amount)"
    ticket: TicketId
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> TicketReclaimed:
        return cls(TicketId(v[0]), Wei(v[1]))


@dataclass(frozen=True, slots=True)
class TicketRegistered(Event):
    """A ticket is registered."""

    ABI: ClassVar = "TicketRegistered(uint32 indexed ticket, address indexed owner, uint48 from, bytes32 anchor)"
    ticket: TicketId
    owner: Address
    from_: int
    anchor: Digest

    @classmethod
    def _of(cls, v: Decoded) -> TicketRegistered:
        return cls(TicketId(v[0]), address(v[1]), v[2], Digest(v[3]))


@dataclass(frozen=True, slots=True)
class TicketRetired(Event):
    """A ticket retires."""

    ABI: ClassVar = "TicketRetired(uint32 indexed ticket, uint48 until)"
    ticket: TicketId
    until: int

    @classmethod
    def _of(cls, v: Decoded) -> TicketRetired:
        return cls(TicketId(v[0]), v[1])


@dataclass(frozen=True, slots=True)
class TicketToppedUp(Event):
    """A lock holds B again."""

    ABI: ClassVar = "TicketToppedUp(uint32 indexed ticket, uint256 amount)"
    ticket: TicketId
    amount: Wei

    @classmethod
    def _of(cls, v: Decoded) -> TicketToppedUp:
        return cls(TicketId(v[0]), Wei(v[1]))


class TicketsContract(Contract):
    """`contracts/audit/Tickets.sol` at an address."""

    EVENTS = (
        AnchorReplaced,
        FineCollected,
        FineOwed,
        SecretShown,
        TicketConvictedNow,
        TicketFined,
        TicketReclaimed,
        TicketRegistered,
        TicketRetired,
        TicketToppedUp,
    )

    CALLS = (
        "acquit(uint32)",
        "advance(uint32,uint24,uint32,uint48,bytes32)",
        "collect(uint32,uint256)",
        "dispute(uint32)",
        "fine(uint32,uint256,address)",
        "forfeit(uint32)",
        "oblige(uint32)",
        "reclaim(uint32)",
        "register(bytes32)",
        "removeShort(uint32)",
        "replaceAnchor(uint32,bytes32)",
        "retire(uint32)",
        "topUp(uint32)",
        "undispute(uint32,bool)",
    )

    def max_links(self) -> Query[int]:
        """Links of a chain that one call walks."""
        return self._query("MAX_LINKS()", "(uint256)", lambda v: v[0])

    def acquit(self, ticket: TicketId) -> Call:
        """Peers only: one game or claim fewer hangs on the ticket."""
        return self._call("acquit(uint32)", ticket)

    def advance(self, ticket: TicketId, epoch: int, call: int, time: int, secret: Digest) -> Call:
        """Duties only: the secret of a call, which must lead to the chain's last one shown."""
        return self._call("advance(uint32,uint24,uint32,uint48,bytes32)", ticket, epoch, call, time, secret)

    def bond(self) -> Query[Wei]:
        """B, in wei."""
        return self._query("bond()", "(uint128)", lambda v: Wei(v[0]))

    def can_answer(self, ticket: TicketId) -> Query[bool]:
        """Whether the ticket can answer for what it says: its stake is neither lost nor below nine tenths of B."""
        return self._query("canAnswer(uint32)", "(bool)", lambda v: v[0], ticket)

    def collect(self, ticket: TicketId, number: int) -> Call:
        """Takes a fine that was proven while the ticket was disputed, once it is so no longer; half goes to who proved
        it.
        """
        return self._call("collect(uint32,uint256)", ticket, number)

    def count_at(self, time: int) -> Query[int]:
        """Tickets that count at a time."""
        return self._query("countAt(uint48)", "(uint256)", lambda v: v[0], time)

    def debt_of(self, ticket: TicketId, number: int) -> Query[DebtFields]:
        """A fine that waits for verdicts; empty where there is none of this number."""
        return self._query(
            "debtOf(uint32,uint256)", "((address,uint128))", lambda v: DebtFields.of(v[0]), ticket, number
        )

    def dispute(self, ticket: TicketId) -> Call:
        """Peers only: the ticket is accused, or a game about it begins."""
        return self._call("dispute(uint32)", ticket)

    def fine(self, ticket: TicketId, amount: Wei, to: Address) -> Call:
        """Duties and attestations only: takes a fine, at most what the lock holds; half goes to `to` and the rest
        burns.
        """
        return self._call("fine(uint32,uint256,address)", ticket, amount, to)

    def forfeit(self, ticket: TicketId) -> Call:
        """Duties only: convicts and burns the whole lock; of a disputed ticket that is owed."""
        return self._call("forfeit(uint32)", ticket)

    def is_convicted(self, ticket: TicketId) -> Query[bool]:
        """Is its lock gone?"""
        return self._query("isConvicted(uint32)", "(bool)", lambda v: v[0], ticket)

    def is_serving(self, ticket: TicketId, time: int) -> Query[bool]:
        """Does the ticket count at a time?"""
        return self._query("isServing(uint32,uint48)", "(bool)", lambda v: v[0], ticket, time)

    def lock_of(self, ticket: TicketId) -> Query[Digest]:
        """The name of a ticket's lock in the vault."""
        return self._query("lockOf(uint32)", "(bytes32)", lambda v: Digest(v[0]), ticket)

    def oblige(self, ticket: TicketId) -> Call:
        """Peers only: one more game or claim hangs on the ticket."""
        return self._call("oblige(uint32)", ticket)

    def on_call_at(self, shift: int, time: int) -> Query[int]:
        """Tickets of a shift that count at a time."""
        return self._query("onCallAt(uint32,uint48)", "(uint256)", lambda v: v[0], shift, time)

    def owner_of(self, ticket: TicketId) -> Query[Address]:
        """The owner; reverts for a ticket that is not there."""
        return self._query("ownerOf(uint32)", "(address)", lambda v: address(v[0]), ticket)

    def payee_of(self, ticket: TicketId) -> Query[Address]:
        """Who is paid what a ticket earned: its owner, or who took its stake back; address zero for one that was
        convicted, or never was.
        """
        return self._query("payeeOf(uint32)", "(address)", lambda v: address(v[0]), ticket)

    def position_of(self, seed: Digest, node: Digest, j: int, time: int) -> Query[TicketId]:
        """The ticket at position j of a node: drawn with replacement, so that a share of the tickets has binomially
        many positions.
        """
        return self._query(
            "positionOf(bytes32,bytes32,uint256,uint48)", "(uint32)", lambda v: TicketId(v[0]), seed, node, j, time
        )

    def reclaim(self, ticket: TicketId) -> Call:
        """Frees what is left of the stake of a retired ticket on which nothing hangs."""
        return self._call("reclaim(uint32)", ticket)

    def register(self, anchor: Digest) -> Call:
        """Locks B behind a new ticket, which counts from `seasoning` on."""
        return self._call("register(bytes32)", anchor)

    def remove_short(self, ticket: TicketId) -> Call:
        """Retires a ticket whose lock has been below B for longer than `seasoning`."""
        return self._call("removeShort(uint32)", ticket)

    def replace_anchor(self, ticket: TicketId, anchor: Digest) -> Call:
        """Names the chain that answers calls of epochs that begin `seasoning` from now or later."""
        return self._call("replaceAnchor(uint32,bytes32)", ticket, anchor)

    def retire(self, ticket: TicketId) -> Call:
        """Announces leave: the ticket counts no longer from `seasoning` on."""
        return self._call("retire(uint32)", ticket)

    def seasoning(self) -> Query[int]:
        """From a change until it counts, in seconds: covers the second seed after it."""
        return self._query("seasoning()", "(uint48)", lambda v: v[0])

    def shifts(self) -> Query[int]:
        """Among how many shifts the calls go round."""
        return self._query("shifts()", "(uint32)", lambda v: v[0])

    def ticket_at(self, slot: int, time: int) -> Query[TicketId]:
        """The ticket in a slot at a time; slots 0 to countAt(time) - 1 hold each ticket that counts once."""
        return self._query("ticketAt(uint256,uint48)", "(uint32)", lambda v: TicketId(v[0]), slot, time)

    def ticket_of(self, ticket: TicketId) -> Query[TicketFields]:
        """Everything about a ticket; empty if it is not there."""
        return self._query(
            "ticketOf(uint32)",
            "((address,uint48,uint48,uint32,uint32,uint24,uint32,uint32,uint48,uint48,bytes32,bytes32,uint48))",
            lambda v: TicketFields.of(v[0]),
            ticket,
        )

    def top_up(self, ticket: TicketId) -> Call:
        """Locks what fines have taken."""
        return self._call("topUp(uint32)", ticket)

    def undispute(self, ticket: TicketId, convicted: bool) -> Call:
        """Peers only: an accusation of the ticket, or a game about it, is over, and may have convicted it."""
        return self._call("undispute(uint32,bool)", ticket, convicted)
