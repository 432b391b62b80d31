"""What tickets are made of, and how chains of secrets are walked (contracts/interfaces/ITickets.sol)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NewType, Protocol

from assay.protocol import abi
from assay.protocol.digests import keccak
from assay.protocol.errors import refuse
from assay.protocol.types import Address, Digest, Wei

TicketId = NewType("TicketId", int)
"""The number of a ticket, from 1."""

MAX_LINKS: Final = 32
"""Links of a chain that one call walks."""

MAX_BOND: Final = (1 << 112) - 1


@dataclass(frozen=True, slots=True)
class TicketTerms:
    """B in wei, the time from a change until it counts in seconds, and the number of shifts."""

    bond: Wei
    seasoning: int
    shifts: int

    def __post_init__(self) -> None:
        if not 0 < self.bond <= MAX_BOND or self.shifts < 1:
            raise refuse("BadTicketTerms")


@dataclass(slots=True)
class Ticket:
    """A stake of one auditor, and how far its chain of secrets is shown. Times are chain times in seconds."""

    owner: Address
    from_: int
    slot: int
    anchor: Digest
    """The last secret shown, or the end of the chain."""
    until: int = 0
    """From when it counts no longer; 0 while it serves."""
    shown: int = 0
    """Calls of its shift up to the last one whose secret it showed; 0: none yet."""
    last_epoch: int = 0
    obligations: int = 0
    """Games, claims and fines owed that are not over."""
    disputes: int = 0
    """Accusations of it and games about it that are not over."""
    short_since: int = 0
    """Since when a fine has left its lock below B; 0: it is whole."""
    convicted_at: int = 0
    next_anchor: Digest | None = None
    next_from: int = 0


@dataclass(frozen=True, slots=True)
class Debt:
    """A fine that was proven while its ticket was disputed, in wei; without `to` the whole stake is forfeit."""

    amount: Wei
    to: Address | None


class Calls(Protocol):
    """Which epochs called which shift (ICalls.sol)."""

    def calls_at(self, shift: int, time: int) -> int:
        """Calls of a shift by epochs that began at a time or before."""

    def newest(self) -> tuple[int, int]:
        """The newest epoch and when it began; all epochs before it are closed."""

    def over_since(self, epoch: int) -> int:
        """Since when nothing that belongs to an epoch can be drawn any more, in seconds of chain time; 0: it can."""


class GateState(Protocol):
    """Whether a run goes on (IRoundGate)."""

    def is_stopped(self) -> bool:
        """It was cancelled or wound down: what no open game holds is free, and nothing is audited any more."""

    def stopped_at(self) -> int:
        """When, in seconds of chain time; 0: it was not."""


@dataclass(slots=True)
class ToldStop:
    """Whether a run goes on, as somebody says."""

    at: int = 0
    """When it was stopped, in seconds of chain time; 0: it was not."""

    def is_stopped(self) -> bool:
        """See GateState."""
        return self.at != 0

    def stopped_at(self) -> int:
        """See GateState."""
        return self.at


def ticket_lock(ticket: TicketId) -> Digest:
    """The name of a ticket's lock in the vault."""
    return keccak(abi.encode(["string", "uint32"], ["assay.ticket", ticket]))


def next_link(secret: Digest) -> Digest:
    """What a secret of a chain hashes to: the secret of the call before it."""
    return keccak(secret)


def chain_of(secret: Digest, links: int) -> list[Digest]:
    """A chain in the order of its use: the anchor to register, then the secret of each call, `secret` last."""
    chain = [secret]
    for _ in range(links):
        chain.append(next_link(chain[-1]))
    return chain[::-1]
