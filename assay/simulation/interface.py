"""What a population needs of a model of rounds: claims, draws, answers, verdicts and a tally of money.

A model knows the rules and nothing of the truth: it learns from `uphold` and `dismiss` who lost a game. Money is
counted in events (locks, tickets, wages), so that one play tells what an owner earns at any prices.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import NewType, Protocol

OwnerNumber = NewType("OwnerNumber", int)
"""A person, who may hold several tenures and tickets."""
TenureNumber = NewType("TenureNumber", int)
TicketNumber = NewType("TicketNumber", int)
ClaimNumber = NewType("ClaimNumber", int)
"""A commitment or an attestation, counted over the whole play."""


class AuditWord(Enum):
    """What an auditor says about a duty. A model records it and does not know whether it is true."""

    REPLAYED = "what a replay ends in"
    INVENTED = "as claimed, with an accumulator that it guessed"
    WRONG = "anything else"


@dataclass(frozen=True, slots=True)
class ReplayDuty:
    """A ticket is drawn to replay a commitment, or what an attestation of the last closed epoch is about."""

    ticket: TicketNumber
    claim: ClaimNumber


@dataclass(slots=True)
class OwnerTally:
    """What one owner got and lost, in events; fractions arise where a bounty is shared."""

    paid: float = 0
    """Commitments settled, W each."""
    wages: float = 0
    """Attestations settled, w each."""
    locks: float = 0
    """Locks lost, S each."""
    stakes: float = 0
    """Tickets lost, B each."""
    drawn_locks: float = 0
    """Shares of convicted locks, as a drawn accuser: beta_d S each."""
    drawn_stakes: float = 0
    """The same of convicted tickets: beta_d B each."""
    third_locks: float = 0
    """Convicted locks, as a third party where nobody drawn accused: beta_f S each."""
    third_stakes: float = 0
    """The same of convicted tickets: beta_f B each."""
    fines: float = 0
    """In wages."""
    fees: float = 0
    """Seat fees lost."""

    def __sub__(self, earlier: OwnerTally) -> OwnerTally:
        """What was added since an earlier tally."""
        return OwnerTally(*(getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)))


class PlayableRounds(Protocol):
    """A model of rounds by epochs of audits, one commitment a tenure and epoch."""

    def take_seat(self, owner: OwnerNumber) -> TenureNumber | None:
        """A tenure for an owner that locks S, or None while all seats are taken."""

    def buy_ticket(self, owner: OwnerNumber) -> TicketNumber:
        """A ticket of an auditor that stakes B."""

    def commit(
        self, tenures: Sequence[TenureNumber], invented: Collection[TenureNumber] = ()
    ) -> Sequence[ClaimNumber | None]:
        """The commitments of these tenures, in their order, some to roots that they invented; the others stay away.

        None where a tenure has not begun.
        """

    def draw(self) -> Sequence[ReplayDuty]:
        """The beacon of the epoch: who has to replay what."""

    def open_secret(self, ticket: TicketNumber) -> None:
        """A ticket shows its secret, and with it all its duties."""

    def attest(self, duty: ReplayDuty, word: AuditWord = AuditWord.REPLAYED) -> ClaimNumber:
        """The answer to a duty, as a claim that can be audited and challenged in turn."""

    def close(self) -> bool:
        """Ends the epoch: fines and misses. False: too few secrets were opened, and the epoch goes on."""

    def uphold(self, claim: ClaimNumber, drawn: Sequence[TicketNumber], third: OwnerNumber | None) -> None:
        """A claim lost its game: to drawn accusers in equal parts, to a third party only if there are none."""

    def dismiss(self, claim: ClaimNumber, accuser: TicketNumber) -> None:
        """An accuser lost its game against a claim."""

    def settle(self) -> None:
        """Pays every claim that nobody can challenge any more; the next epoch begins."""

    def is_seated(self, tenure: TenureNumber) -> bool:
        """Whether a tenure was neither convicted nor evicted."""

    def is_staked(self, ticket: TicketNumber) -> bool:
        """Whether a ticket was not convicted."""

    def tally(self, owner: OwnerNumber) -> OwnerTally:
        """What an owner got and lost so far."""
