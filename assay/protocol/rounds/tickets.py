"""The stakes of auditors, who is on call, and who sits in a committee (contracts/audit/Tickets.sol).

A ticket locks exactly B, so counts stand for stakes. The tickets that count at a chain time stand in slots 0 to n - 1,
each once; position j of a node is the ticket in slot K(seed, node, j) mod n. Every change counts from `seasoning`
seconds later, which covers the second seed after it.
"""

from __future__ import annotations

from collections import Counter

from assay.protocol import abi
from assay.protocol.digests import keccak
from assay.protocol.errors import refuse
from assay.protocol.rounds.terms import NO_ONE_HERE
from assay.protocol.rounds.ticket_types import (
    MAX_LINKS,
    Calls,
    Debt,
    GateState,
    Ticket,
    TicketId,
    TicketTerms,
    ToldStop,
    next_link,
    ticket_lock,
)
from assay.protocol.rounds.timeline import Timeline
from assay.protocol.rounds.vault import Vault
from assay.protocol.types import Address, Digest, Wei


class Tickets:
    """The books of all tickets; `now` is chain time in seconds."""

    def __init__(self, vault: Vault, calls: Calls, terms: TicketTerms) -> None:
        self.state: GateState = ToldStop()
        """Set by whoever has an escrow."""
        self.vault = vault
        self.calls = calls
        self.terms = terms
        self.tickets: dict[TicketId, Ticket] = {}
        self.left: dict[TicketId, Address] = {}
        """Who took stakes back."""
        self.debts: dict[tuple[TicketId, int], Debt] = {}
        """Fines that wait for verdicts, by ticket and number."""
        self._debts: Counter[TicketId] = Counter()
        self._last = 0
        self._slots: dict[int, Timeline] = {}
        self._counts = Timeline()
        self._on_call: dict[int, Timeline] = {}

    # --- owners

    def register(self, who: Address, anchor: Digest, now: int) -> TicketId:
        """Lock B behind a new ticket. Raises AnchorZero, InsufficientFree."""
        _check_anchor(anchor)
        ticket = TicketId(self._last + 1)
        self.vault.lock(ticket_lock(ticket), who, self.terms.bond)
        self._last = ticket
        counts_from, count = now + self.terms.seasoning, self._counts.latest()
        self.tickets[ticket] = Ticket(who, counts_from, count, anchor)
        self._slots.setdefault(count, Timeline()).push(counts_from, ticket)
        self._counts.push(counts_from, count + 1)
        called = self._on_call.setdefault(self.shift_of(ticket), Timeline())
        called.push(counts_from, called.latest() + 1)
        return ticket

    def retire(self, who: Address, ticket: TicketId, now: int) -> None:
        """Announce leave. Raises TicketNotFound, NotTheTicketsOwner, TicketRetires."""
        held = self._owned(who, ticket)
        if held.until:
            raise refuse("TicketRetires", ticket=ticket, until=held.until)
        self._retire(ticket, held, now)

    def reclaim(self, who: Address, ticket: TicketId) -> int:
        """Free what is left of the stake; the amount.

        Raises TicketNotFound, NotTheTicketsOwner, TicketConvicted, TicketServes, SecretsOwed, TicketObliged.
        """
        held = self._owned(who, ticket)
        if held.convicted_at:
            raise refuse("TicketConvicted", ticket=ticket)
        # Attack: a beacon that ends, or epochs that nobody closes, keep every stake for ever.
        if self.state.is_stopped():
            if held.obligations:
                raise refuse("TicketObliged", ticket=ticket, obligations=held.obligations, last_epoch=held.last_epoch)
        else:
            self._check_done(ticket, held)
        left = self.vault.lock_amount(ticket_lock(ticket))
        del self.tickets[ticket]
        # Its last findings may be paid, and its parts of pots taken, after it has left.
        self.left[ticket] = who
        if left:
            self.vault.release(ticket_lock(ticket))
        return left

    def _check_done(self, ticket: TicketId, held: Ticket) -> None:
        """Can nothing that the ticket did be disputed any more?"""
        _, start = self.calls.newest()
        if not held.until or start < held.until:
            raise refuse("TicketServes", ticket=ticket, until=held.until)
        # Attack: hide a missed duty, and leave before the secret of the call is ever shown.
        if owed := self._calls_before(ticket, held.until) - self._shown(ticket, held):
            raise refuse("SecretsOwed", ticket=ticket, owed=owed)
        # Attack: bribe who re-audits a false attestation to miss it, and be gone before the miss is drawn again.
        if held.obligations or not self.calls.over_since(held.last_epoch + 1):
            raise refuse("TicketObliged", ticket=ticket, obligations=held.obligations, last_epoch=held.last_epoch)

    def replace_anchor(self, who: Address, ticket: TicketId, anchor: Digest, now: int) -> None:
        """Name the chain that follows. Raises TicketNotFound, NotTheTicketsOwner, AnchorZero, AnchorPending."""
        held = self._owned(who, ticket)
        _check_anchor(anchor)
        if held.next_anchor is not None:
            raise refuse("AnchorPending", ticket=ticket, from_=held.next_from)
        # Attack: a chain that is chosen after its seed is known chooses its duties.
        held.next_anchor, held.next_from = anchor, now + self.terms.seasoning

    def top_up(self, who: Address, ticket: TicketId) -> int:
        """Lock what fines have taken; the amount.

        Raises TicketNotFound, NotTheTicketsOwner, TicketConvicted, TicketWhole, InsufficientFree.
        """
        held = self._owned(who, ticket)
        if held.convicted_at:
            raise refuse("TicketConvicted", ticket=ticket)
        if not held.short_since:
            raise refuse("TicketWhole", ticket=ticket)
        missing = self.terms.bond - self.vault.lock_amount(ticket_lock(ticket))
        self.vault.lock(ticket_lock(ticket), who, Wei(missing))
        held.short_since = 0
        return missing

    def remove_short(self, ticket: TicketId, now: int) -> None:
        """Retire a ticket that fines left short for too long.

        Raises TicketNotFound, TicketRetires, TicketWhole, TopUpDue.
        """
        held = self._known(ticket)
        if held.until:
            raise refuse("TicketRetires", ticket=ticket, until=held.until)
        if not held.short_since:
            raise refuse("TicketWhole", ticket=ticket)
        if now < (not_before := held.short_since + self.terms.seasoning + 1):
            raise refuse("TopUpDue", ticket=ticket, not_before=not_before)
        self._retire(ticket, held, now)

    def collect(self, ticket: TicketId, number: int, now: int) -> int:
        """Take a fine that waited for verdicts; the amount. Raises TicketNotFound, TicketDisputed, NothingOwed."""
        held = self._known(ticket)
        if held.disputes:
            raise refuse("TicketDisputed", ticket=ticket, disputes=held.disputes)
        debt = self.debts.pop((ticket, number), None)
        if debt is None:
            raise refuse("NothingOwed", ticket=ticket, number=number)
        held.obligations -= 1
        if debt.to is not None:
            return self._take(ticket, held, debt.amount, debt.to, now)
        self._forfeit(ticket, now)
        return 0

    # --- peers

    def check_secret(self, ticket: TicketId, call: int, time: int, secret: Digest) -> int:
        """How many links of the ticket's chain a secret is away from the last one shown.

        Raises TicketNotFound, SecretsOwed, CallShown, ChainTooLong, WrongSecret.
        """
        held = self._known(ticket)
        shown, anchor = self._shown(ticket, held), held.anchor
        if held.next_anchor is not None and time >= held.next_from:
            # Attack: replace the chain so that the secret of a skipped call is never shown.
            if owed := self._calls_before(ticket, held.next_from) - shown:
                raise refuse("SecretsOwed", ticket=ticket, owed=owed)
            anchor = held.next_anchor
        if call <= shown:
            raise refuse("CallShown", ticket=ticket, call=call, shown=shown)
        if (links := call - shown) > MAX_LINKS:
            raise refuse("ChainTooLong", ticket=ticket, links=links, most=MAX_LINKS)
        hashed = secret
        for _ in range(links):
            hashed = next_link(hashed)
        # Attack: a secret that suits the seed.
        if hashed != anchor:
            raise refuse("WrongSecret", ticket=ticket, hashed=hashed, anchor=anchor)
        return links

    def advance(self, ticket: TicketId, epoch: int, call: int, time: int, secret: Digest) -> int:
        """Show the secret of a call of an epoch that began at `time`; how many calls before it were not answered.

        Raises what `check_secret` raises.
        """
        links = self.check_secret(ticket, call, time, secret)
        held = self._known(ticket)
        if held.next_anchor is not None and time >= held.next_from:
            held.next_anchor, held.next_from = None, 0
        held.anchor, held.shown, held.last_epoch = secret, call, max(held.last_epoch, epoch)
        return links - 1

    def fine(self, ticket: TicketId, amount: int, to: Address, now: int) -> int:
        """Take a fine, half of it (down) for who proved it; the amount taken. Raises TicketNotFound.

        Attack: an accused ticket that fines itself, or is silent until its stake burns, before the verdict takes it.
        What is proven of a disputed ticket is owed, and taken when its last dispute is over.
        """
        held = self._known(ticket)
        if held.disputes:
            self._owe(ticket, held, Debt(Wei(min(amount, self.terms.bond)), to))
            return 0
        return self._take(ticket, held, amount, to, now)

    def forfeit(self, ticket: TicketId, now: int) -> bool:
        """Convict and burn the whole lock; whether it was the first conviction. Raises TicketNotFound."""
        held = self._known(ticket)
        if held.disputes and not held.convicted_at:
            self._owe(ticket, held, Debt(self.terms.bond, None))
            return False
        return self._forfeit(ticket, now)

    def convict(self, ticket: TicketId, now: int) -> bool:
        """Convict; the game takes the lock. Whether it was the first conviction. Raises TicketNotFound."""
        held = self._known(ticket)
        if held.convicted_at:
            return False
        held.convicted_at = now
        if not held.until:
            self._retire(ticket, held, now)
        return True

    def oblige(self, ticket: TicketId) -> None:
        """One more game or claim hangs on the ticket. Raises TicketNotFound."""
        self._known(ticket).obligations += 1

    def acquit(self, ticket: TicketId) -> None:
        """One game or claim fewer hangs on the ticket. Raises TicketNotFound."""
        self._known(ticket).obligations -= 1

    def dispute(self, ticket: TicketId) -> None:
        """The ticket is accused, or a game about it begins. Raises TicketNotFound."""
        self.oblige(ticket)
        self._known(ticket).disputes += 1

    def undispute(self, ticket: TicketId, convicted: bool, now: int) -> bool:
        """An accusation of the ticket, or a game about it, is over; whether it was the first conviction.

        Raises TicketNotFound.
        """
        self.acquit(ticket)
        self._known(ticket).disputes -= 1
        return convicted and self.convict(ticket, now)

    # --- views

    def payee_of(self, ticket: TicketId) -> Address | None:
        """Who is paid what a ticket earned: its owner, who took its stake back, nobody once it was convicted."""
        held = self.tickets.get(ticket)
        if held is None:
            return self.left.get(ticket)
        return None if held.convicted_at else held.owner

    def count_at(self, time: int, now: int) -> int:
        """Tickets that count at a time. Raises TimeNotSettled."""
        self._check_settled(time, now)
        return self._counts.at(time)

    def ticket_at(self, slot: int, time: int, now: int) -> TicketId:
        """The ticket in a slot at a time. Raises TimeNotSettled, SlotEmpty."""
        if slot >= (count := self.count_at(time, now)):
            raise refuse("SlotEmpty", slot=slot, count=count)
        return TicketId(self._slots[slot].at(time))

    def position_of(self, seed: Digest, node: Digest, j: int, time: int, now: int) -> TicketId:
        """The ticket at position j of a node's committee, drawn with replacement. Raises TimeNotSettled, NoTickets."""
        if not (count := self.count_at(time, now)):
            raise refuse("NoTickets", time=time)
        slot = int.from_bytes(keccak(abi.encode(["bytes32", "bytes32", "uint256"], [seed, node, j])), "big") % count
        return TicketId(self._slots[slot].at(time))

    def holder_of_position(self, seed: Digest, node: Digest, j: int, time: int, now: int) -> Address:
        """Who owns the ticket at position j of a node; nobody where it cannot answer for what it says.

        Raises TimeNotSettled, NoTickets.
        """
        ticket = self.position_of(seed, node, j, time, now)
        return self.tickets[ticket].owner if self.can_answer(ticket) else NO_ONE_HERE

    def on_call_at(self, shift: int, time: int, now: int) -> int:
        """Tickets of a shift that count at a time. Raises TimeNotSettled."""
        self._check_settled(time, now)
        return self._on_call.get(shift, Timeline()).at(time)

    def is_serving(self, ticket: TicketId, time: int, now: int) -> bool:
        """Whether a ticket counts at a time. Raises TimeNotSettled."""
        self._check_settled(time, now)
        held = self.tickets.get(ticket)
        return held is not None and held.from_ <= time and (not held.until or time < held.until)

    def owner_of(self, ticket: TicketId) -> Address:
        """Raises TicketNotFound."""
        return self._known(ticket).owner

    def is_convicted(self, ticket: TicketId) -> bool:
        """Whether its lock is gone; not that of a ticket that is not there."""
        held = self.tickets.get(ticket)
        return held is not None and held.convicted_at != 0

    def can_answer(self, ticket: TicketId) -> bool:
        """Whether its stake is neither lost nor below nine tenths of B.

        Attack: let fines drain a stake, half of them into one's own pocket, and lie for what is left.
        """
        held = self.tickets.get(ticket)
        if held is None or held.convicted_at:
            return False
        return not held.short_since or 10 * self._left(ticket) >= 9 * self.terms.bond

    def shift_of(self, ticket: TicketId) -> int:
        """The shift that a ticket is called with."""
        return ticket % self.terms.shifts

    # --- inside

    def _left(self, ticket: TicketId) -> int:
        return self.vault.lock_amount(ticket_lock(ticket))

    def _owe(self, ticket: TicketId, held: Ticket, debt: Debt) -> None:
        self.debts[ticket, self._debts[ticket]] = debt
        self._debts[ticket] += 1
        held.obligations += 1

    def _take(self, ticket: TicketId, held: Ticket, amount: int, to: Address, now: int) -> int:
        taken = min(amount, self.vault.lock_amount(ticket_lock(ticket)))
        if taken:
            held.short_since = held.short_since or now
            self.vault.seize(ticket_lock(ticket), to, Wei(taken // 2))
            self.vault.burn(ticket_lock(ticket), Wei(taken - taken // 2))
        return taken

    def _forfeit(self, ticket: TicketId, now: int) -> bool:
        if not self.convict(ticket, now):
            return False
        if left := self.vault.lock_amount(ticket_lock(ticket)):
            self.vault.burn(ticket_lock(ticket), left)
        return True

    def _retire(self, ticket: TicketId, held: Ticket, now: int) -> None:
        held.until = now + self.terms.seasoning
        last = self._counts.latest() - 1
        if held.slot != last:
            moved = TicketId(self._slots[last].latest())
            self._slots[held.slot].push(held.until, moved)
            self.tickets[moved].slot = held.slot
        self._counts.push(held.until, last)
        called = self._on_call[self.shift_of(ticket)]
        called.push(held.until, called.latest() - 1)

    def _calls_before(self, ticket: TicketId, time: int) -> int:
        return self.calls.calls_at(self.shift_of(ticket), time - 1)

    def _shown(self, ticket: TicketId, held: Ticket) -> int:
        # Calls of epochs that began before it counted are not its own.
        return held.shown or self._calls_before(ticket, held.from_)

    def _owned(self, who: Address, ticket: TicketId) -> Ticket:
        held = self._known(ticket)
        if held.owner != who:
            raise refuse("NotTheTicketsOwner", ticket=ticket, owner=held.owner, caller=who)
        return held

    def _known(self, ticket: TicketId) -> Ticket:
        held = self.tickets.get(ticket)
        if held is None:
            raise refuse("TicketNotFound", ticket=ticket)
        return held

    def _check_settled(self, time: int, now: int) -> None:
        # Attack: count on tickets that can still come or go.
        if time >= (before := now + self.terms.seasoning):
            raise refuse("TimeNotSettled", time=time, before=before)


def _check_anchor(anchor: Digest) -> None:
    if not any(anchor):
        raise refuse("AnchorZero")
