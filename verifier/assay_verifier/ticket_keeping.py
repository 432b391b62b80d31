"""What an owner does about its tickets: register, show what is owed, top up, change chains, retire, reclaim. Pure.

Source: docs/adr/0033-second-round.md, trailing path 2; assay/protocol/rounds/tickets.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from assay.protocol.rounds.duty_types import Epoch
from assay.protocol.rounds.ticket_types import MAX_LINKS, TicketId
from assay.protocol.types import Digest
from assay_ledger.agents.round_actions import RoundAction, TakesOn, WithoutClock
from assay_verifier.secret_chains import ChainInUse, TicketChains


@dataclass(frozen=True, slots=True)
class HeldTicket:
    """A ticket as its owner sees it. Times are chain times in seconds, `missing` wei that fines took from its lock."""

    id: TicketId
    shift: int
    from_: int
    anchors: tuple[tuple[int, Digest], ...]
    """Anchors that it named, each with the time from which it counts, oldest first."""
    until: int = 0
    shown: int = 0
    obligations: int = 0
    last_epoch: int = 0
    missing: int = 0
    is_convicted: bool = False
    can_answer: bool = True
    """Whether its stake is neither lost nor below nine tenths of B: else no call that it answers goes through."""

    def serves(self, time: int) -> bool:
        """Whether it counts at a time."""
        return self.from_ <= time and (not self.until or time < self.until)


class TicketRecords(Protocol):
    """What has happened in a run's epochs. The newest epoch is the last one; all before it are closed."""

    @property
    def epochs(self) -> Sequence[Epoch]: ...

    def calls_at(self, shift: int, time: int) -> int:
        """Calls of a shift by epochs that began at a time or before."""
        ...

    def over_since(self, epoch: int) -> int:
        """Since when nothing that belongs to an epoch can be drawn any more; 0: it can."""
        ...


@dataclass(frozen=True, slots=True)
class TicketPlan:
    """How many tickets an owner wants, whether it leaves, and its stake that nothing locks, in wei."""

    wanted: int
    is_leaving: bool
    free: int
    bond: int
    is_stopped: bool = False
    """Whether the run was cancelled or wound down: nobody is called any more, and what nothing holds is free."""


@dataclass(frozen=True, slots=True)
class RegisterTicket(TakesOn):
    """Lock B behind one more ticket, with a chain that no ticket used before."""

    count: int
    """Tickets that this owner has registered, so that the action is another one once it is done."""


@dataclass(frozen=True, slots=True)
class TopUpTicket(WithoutClock):
    """Lock what fines have taken."""

    ticket: TicketId


@dataclass(frozen=True, slots=True)
class ReplaceChain(WithoutClock):
    """Name the chain that follows."""

    ticket: TicketId


@dataclass(frozen=True, slots=True)
class ShowSecret(RoundAction):
    """Show the secret of a call that was not answered, and of those before it."""

    ticket: TicketId
    epoch: int


@dataclass(frozen=True, slots=True)
class RetireTicket(WithoutClock):
    """Announce leave."""

    ticket: TicketId


@dataclass(frozen=True, slots=True)
class ReclaimTicket(WithoutClock):
    """Take the stake back."""

    ticket: TicketId


TicketAction = RegisterTicket | TopUpTicket | ReplaceChain | ShowSecret | RetireTicket | ReclaimTicket


def chain_at(held: HeldTicket, chains: TicketChains, records: TicketRecords, time: int) -> ChainInUse | None:
    """The chain whose secrets are of epochs that begin at a time; None where its anchor is none of this owner's."""
    known = [(since, anchor) for since, anchor in held.anchors if since <= time]
    if not known:
        return None
    since, anchor = known[-1]
    number = chains.number_of(anchor)
    return None if number is None else ChainInUse(number, records.calls_at(held.shift, since - 1))


def secret_of(held: HeldTicket, chains: TicketChains, records: TicketRecords, epoch: int) -> Digest | None:
    """The secret of a ticket's call in an epoch; None where the seed does not give it."""
    called = records.epochs[epoch]
    used = chain_at(held, chains, records, called.start)
    return None if used is None else chains.secret(used, called.call)


def ticket_actions(
    plan: TicketPlan, tickets: Sequence[HeldTicket], chains: TicketChains, records: TicketRecords, now: int
) -> Iterator[TicketAction]:
    """Actions, most urgent first: what is owed, then what is short, then what is to come or go."""
    if plan.is_stopped:
        free_tickets = (h for h in tickets if not (h.is_convicted or h.obligations))
        yield from (ReclaimTicket(held.id) for held in free_tickets)
        return
    yield from secrets_owed(tickets, records)
    free = plan.free
    for held in tickets:
        is_used = not plan.is_leaving or _is_called_in_vain(held, records)
        if held.missing and not held.is_convicted and held.missing <= free and is_used:
            free -= held.missing
            yield TopUpTicket(held.id)
    for held in tickets:
        if not held.is_convicted and not held.until and not plan.is_leaving and _runs_low(held, chains, records, now):
            yield ReplaceChain(held.id)
    if plan.is_leaving:
        yield from (RetireTicket(held.id) for held in tickets if not held.until)
    elif sum(not held.until for held in tickets) < plan.wanted and plan.bond <= free:
        yield RegisterTicket(len(tickets))
    yield from (ReclaimTicket(held.id) for held in tickets if _is_reclaimable(held, records))


def needs_stake(tickets: Sequence[HeldTicket], wanted: int, records: TicketRecords, *, is_leaving: bool) -> bool:
    """Whether what `ticket_actions` does depends on the owner's free stake: a ticket lacks some, or is to come."""
    if is_leaving:
        return any(held.missing and _is_called_in_vain(held, records) for held in tickets)
    return sum(not held.until for held in tickets) < wanted or any(held.missing for held in tickets)


def _is_called_in_vain(held: HeldTicket, records: TicketRecords) -> bool:
    """Whether a ticket may still be called and its stake is too short for any answer: each call would be fined.

    Who leaves gets back what fines have left without filling it up; so nothing else is worth a top-up to it.
    """
    return not held.can_answer and (not held.until or records.epochs[-1].start < held.until)


def owed_calls(held: HeldTicket, records: TicketRecords, before: int) -> list[int]:
    """Epochs before one that called a ticket and of which its secret is not shown."""
    first = records.calls_at(held.shift, held.from_ - 1)
    return [
        number
        for number, epoch in enumerate(records.epochs[:before])
        if epoch.on_call and epoch.shift == held.shift and held.serves(epoch.start)
        if epoch.call > max(held.shown, first)
    ]


def secrets_owed(tickets: Sequence[HeldTicket], records: TicketRecords) -> Iterator[ShowSecret]:
    """Show what was not opened in time: whoever has not when a later epoch with fines closes too loses everything."""
    for held in tickets:
        if not held.is_convicted:
            yield from _owed(held, records)


def _owed(held: HeldTicket, records: TicketRecords) -> Iterator[ShowSecret]:
    missed = owed_calls(held, records, len(records.epochs) - 1)
    if not missed:
        return
    shown = held.shown or records.calls_at(held.shift, held.from_ - 1)
    # One call walks a chain so far and no further, and over no change of chains.
    change = min([since for since, _ in held.anchors[1:] if since > records.epochs[missed[0]].start], default=None)
    epochs = [n for n in missed if change is None or records.epochs[n].start < change]
    yield ShowSecret(held.id, max(n for n in epochs if records.epochs[n].call - shown <= MAX_LINKS))


def _runs_low(held: HeldTicket, chains: TicketChains, records: TicketRecords, now: int) -> bool:
    """Whether the newest chain that a ticket named should be replaced, once it counts."""
    since = held.anchors[-1][0]
    used = chain_at(held, chains, records, since)
    return used is not None and since <= now and chains.runs_low(used, records.calls_at(held.shift, now))


def _is_reclaimable(held: HeldTicket, records: TicketRecords) -> bool:
    if held.is_convicted or not held.until or records.epochs[-1].start < held.until or held.obligations:
        return False
    return not owed_calls(held, records, len(records.epochs)) and bool(records.over_since(held.last_epoch + 1))
