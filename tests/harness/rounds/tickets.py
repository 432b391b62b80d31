"""Tickets on the stage, their chains of secrets, and strangers who do anything with them."""

from __future__ import annotations

from typing import Any

from eth_abi import encode
from eth_hash.auto import keccak
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from assay.protocol.digests import ZERO
from assay.protocol.errors import RejectedError
from assay.protocol.rounds.ticket_types import TicketId, TicketTerms, chain_of
from assay.protocol.rounds.tickets import Tickets
from assay.protocol.types import Digest, Wei
from tests.harness.rounds.stage import ETHER, START, ModelAndContracts, StagedCalls, text

TERMS = TicketTerms(bond=Wei(100 * ETHER), seasoning=7200, shifts=3)
LINKS = 120


def chain(label: object) -> list[Digest]:
    """A chain of secrets in the order of its use; its anchor first."""
    return chain_of(Digest(keccak(repr(label).encode())), LINKS)


class TicketStage(ModelAndContracts):
    """Tickets with staged calls; the one who calls for the peers is CallsStage.sol."""

    def __init__(self, people: int = 4, contracts: bool = False, terms: TicketTerms = TERMS, **more: Any) -> None:
        super().__init__(people, contracts=contracts, **more)
        self.calls = StagedCalls()
        self.tickets = Tickets(self.vault, self.calls, terms)
        self.chains: dict[int, list[Digest]] = {}
        self.epoch = 0
        self.starts: dict[int, list[int]] = {}  # of the epochs that called a shift
        if not contracts:
            return
        self.deploy(
            {"calls": "CallsStage", "tickets": "Tickets"},
            {"tickets": "tickets", **dict.fromkeys(("duties", "attestations", "generations", "escrow"), "calls")},
            tickets=terms,
        )

    def owner(self, model: Any, function: str, *args: Any, who: int) -> Any:
        """A call of an owner."""
        return self.both(model, "tickets", function, *args, caller=self.people[who])

    def peer(self, model: Any, function: str, *args: Any) -> Any:
        """A call of the contract that plays the peers."""
        data = self.contracts["tickets"].calldata(function, *args) if self.contracts else b""
        place = self.contracts["tickets"].address if self.contracts else ""
        return self.both(model, "calls", "act", place, data, caller=self.people[0])

    def register(self, who: int, anchor: Digest | None = None, secrets: list[Digest] | None = None) -> TicketId:
        """Register a ticket whose chain the stage keeps."""
        secrets = chain(self.tickets._last + 1) if secrets is None else secrets
        anchor = secrets[0] if anchor is None else anchor
        ticket = self.owner(
            lambda: self.tickets.register(self.people[who], anchor, self.now), "register", anchor, who=who
        )
        self.chains[ticket] = secrets
        return TicketId(ticket)

    def retire(self, who: int, ticket: int) -> None:
        self.owner(lambda: self.tickets.retire(self.people[who], TicketId(ticket), self.now), "retire", ticket, who=who)

    def reclaim(self, who: int, ticket: int) -> int:
        return int(
            self.owner(lambda: self.tickets.reclaim(self.people[who], TicketId(ticket)), "reclaim", ticket, who=who)
        )

    def replace(self, who: int, ticket: int, anchor: Digest) -> None:
        self.owner(
            lambda: self.tickets.replace_anchor(self.people[who], TicketId(ticket), anchor, self.now),
            "replaceAnchor",
            ticket,
            anchor,
            who=who,
        )

    def top_up(self, who: int, ticket: int) -> None:
        self.owner(lambda: self.tickets.top_up(self.people[who], TicketId(ticket)), "topUp", ticket, who=who)

    def remove_short(self, who: int, ticket: int) -> None:
        self.owner(lambda: self.tickets.remove_short(TicketId(ticket), self.now), "removeShort", ticket, who=who)

    def begin(self, shift: int, length: int = 3600) -> None:
        """An epoch begins after `length` seconds and calls a shift."""
        self.pass_time(length)
        self.epoch += 1
        epoch, start = self.epoch, self.now
        self.starts.setdefault(shift, []).append(start)
        self.both(
            lambda: self.calls.begin(epoch, start, shift),
            "calls",
            "begin",
            epoch,
            start,
            shift,
            caller=self.people[0],
        )

    def show(self, ticket: int, secret: Digest, call: int | None = None, time: int | None = None) -> int:
        """Show the secret of the newest epoch's call, or of another."""
        shift = self.tickets.shift_of(TicketId(ticket))
        call = self.calls.calls_at(shift, self.now) if call is None else call
        time = self.calls.start if time is None else time
        epoch = self.epoch
        return int(
            self.peer(
                lambda: self.tickets.advance(TicketId(ticket), epoch, call, time, secret),
                "advance",
                ticket,
                epoch,
                call,
                time,
                secret,
            )
        )

    def start_of(self, ticket: TicketId, call: int) -> int | None:
        """When the epoch of a call began, where it called the ticket: Duties asks for no other secret."""
        starts = self.starts.get(self.tickets.shift_of(ticket), [])
        if not 0 < call <= len(starts) or not self.tickets.is_serving(ticket, starts[call - 1], self.now):
            return None
        return starts[call - 1]

    def secret(self, ticket: int, call: int) -> Digest:
        """The secret of a call by the ticket's first chain: link 1 belongs to the first call that it owes."""
        first = self.calls.calls_at(
            self.tickets.shift_of(TicketId(ticket)), self.tickets.tickets[TicketId(ticket)].from_ - 1
        )
        return self.chains[ticket][max(call - first, 0)]

    def fine(self, ticket: int, amount: int, to: int = 0) -> int:
        who = self.people[to]
        return int(
            self.peer(
                lambda: self.tickets.fine(TicketId(ticket), amount, who, self.now), "fine", ticket, amount, text(who)
            )
        )

    def forfeit(self, ticket: int) -> bool:
        return bool(self.peer(lambda: self.tickets.forfeit(TicketId(ticket), self.now), "forfeit", ticket))

    def oblige(self, ticket: int) -> None:
        self.peer(lambda: self.tickets.oblige(TicketId(ticket)), "oblige", ticket)

    def acquit(self, ticket: int) -> None:
        self.peer(lambda: self.tickets.acquit(TicketId(ticket)), "acquit", ticket)

    def dispute(self, ticket: int) -> None:
        self.peer(lambda: self.tickets.dispute(TicketId(ticket)), "dispute", ticket)

    def undispute(self, ticket: int) -> None:
        self.peer(lambda: self.tickets.undispute(TicketId(ticket), False, self.now), "undispute", ticket, False)

    def collect(self, ticket: int, number: int, who: int = 3) -> None:
        self.owner(lambda: self.tickets.collect(TicketId(ticket), number, self.now), "collect", ticket, number, who=who)

    def compare(self) -> None:
        """Everything that the contract shows equals the model."""
        if not self.contracts:
            return
        tickets, vault = self.contracts["tickets"], self.contracts["vault"]
        for number in range(1, self.tickets._last + 1):
            for k in range(self.tickets._debts[TicketId(number)] + 1):
                debt = self.tickets.debts.get((TicketId(number), k))
                wanted = (text(debt.to or bytes(20)), debt.amount) if debt else (text(bytes(20)), 0)
                assert tickets.call("debtOf", number, k) == wanted
            assert tickets.call("payeeOf", number) == text(self.tickets.payee_of(TicketId(number)) or bytes(20))
            held = self.tickets.tickets.get(TicketId(number))
            shown = tickets.call("ticketOf", number)
            if held is None:
                assert shown[0] == text(bytes(20))
                continue
            following = held.next_anchor or ZERO
            assert shown == (
                text(held.owner),
                held.from_,
                held.until,
                held.slot,
                held.shown,
                held.last_epoch,
                held.obligations,
                held.disputes,
                held.short_since,
                held.convicted_at,
                held.anchor,
                following,
                held.next_from,
            )
            lock = keccak(encode(["string", "uint32"], ["assay.ticket", number]))
            assert tickets.call("lockOf", number) == lock
            assert vault.call("lockOf", lock)[1] == self.vault.lock_amount(Digest(lock))
        assert vault.call("totals") == self.vault.totals()
        for who in self.people:
            assert vault.call("free", text(who)) == self.vault.free_of(who)

    def members(self, time: int) -> list[int]:
        """The tickets of all slots at a settled time, by the model; equal to the contract's."""
        count = self.tickets.count_at(time, self.now)
        found = [self.tickets.ticket_at(slot, time, self.now) for slot in range(count)]
        if self.contracts:
            tickets = self.contracts["tickets"]
            assert tickets.call("countAt", time) == count
            assert [tickets.call("ticketAt", slot, time) for slot in range(count)] == found
        return [int(ticket) for ticket in found]


people = st.integers(0, 3)
choice = st.integers(0, 40)


class TicketMachine(RuleBasedStateMachine):
    """Strangers register, leave, hide and show secrets and are fined; who counted at a time never changes."""

    contracts = False
    accepted: dict[str, int]

    @initialize()
    def begin(self) -> None:
        self.stage = TicketStage(contracts=self.contracts)
        self.remembered: dict[int, list[int]] = {}
        self.lives: dict[int, tuple[int, int]] = {}

    def attempt(self, call: Any, *args: Any) -> Any:
        """A call that may be refused; both sides have agreed on it."""
        try:
            answer = call(*args)
        except RejectedError:
            return None
        finally:
            for number, held in self.stage.tickets.tickets.items():
                self.lives[number] = (held.from_, held.until)
        counts = type(self).accepted
        counts[call.__name__] = counts.get(call.__name__, 0) + 1
        return answer

    def any_ticket(self, which: int) -> int:
        return which % (self.stage.tickets._last + 1) + 1

    def owner_of(self, ticket: int, who: int, honest: bool) -> int:
        """Mostly the owner, since a stranger is refused at once."""
        held = self.stage.tickets.tickets.get(TicketId(ticket))
        return self.stage.people.index(held.owner) if held and honest else who

    @rule(who=people, zero=st.integers(0, 9))
    def register(self, who: int, zero: int) -> None:
        self.attempt(self.stage.register, who, ZERO if zero == 0 else None)

    @rule(which=choice, who=people, honest=st.booleans())
    def retire(self, which: int, who: int, honest: bool) -> None:
        ticket = self.any_ticket(which)
        self.attempt(self.stage.retire, self.owner_of(ticket, who, honest), ticket)

    @rule(which=choice, who=people, honest=st.booleans())
    def reclaim(self, which: int, who: int, honest: bool) -> None:
        ticket = self.any_ticket(which)
        self.attempt(self.stage.reclaim, self.owner_of(ticket, who, honest), ticket)

    @rule(which=choice, label=st.integers(1000, 1005))
    def replace(self, which: int, label: int) -> None:
        ticket = self.any_ticket(which)
        self.attempt(self.stage.replace, self.owner_of(ticket, 0, True), ticket, chain(label)[0])

    @rule(which=choice)
    def top_up(self, which: int) -> None:
        ticket = self.any_ticket(which)
        self.attempt(self.stage.top_up, self.owner_of(ticket, 0, True), ticket)

    @rule(which=choice, who=people)
    def remove_short(self, which: int, who: int) -> None:
        self.attempt(self.stage.remove_short, who, self.any_ticket(which))

    @rule(shift=st.integers(0, 2), length=st.integers(1, 5000))
    def begin_epoch(self, shift: int, length: int) -> None:
        self.stage.begin(shift, length)

    @rule(seconds=st.integers(1, 9000))
    def let_time_pass(self, seconds: int) -> None:
        self.stage.pass_time(seconds)

    @rule(which=choice, off=st.sampled_from([0, 0, 0, 1]), back=st.integers(0, 2))
    def show(self, which: int, off: int, back: int) -> None:
        ticket = TicketId(self.any_ticket(which))
        if ticket not in self.stage.tickets.tickets:
            return
        call = self.stage.calls.calls_at(self.stage.tickets.shift_of(ticket), self.stage.now) - back
        start = self.stage.start_of(ticket, call)
        if start is not None:
            self.attempt(self.stage.show, ticket, self.stage.secret(ticket, call + off), call, start)

    @rule(which=choice, amount=st.sampled_from([1, ETHER, 33 * ETHER, 200 * ETHER]), to=people)
    def fine(self, which: int, amount: int, to: int) -> None:
        self.attempt(self.stage.fine, self.any_ticket(which), amount, to)

    @rule(which=choice, sure=st.booleans())
    def forfeit(self, which: int, sure: bool) -> None:
        if sure:
            self.attempt(self.stage.forfeit, self.any_ticket(which))

    @rule(which=choice, shows=st.booleans())
    def leave_in_order(self, which: int, shows: bool) -> None:
        """Retire, let epochs pass, show what is owed, and take the stake back."""
        ticket = TicketId(self.any_ticket(which))
        owner = self.owner_of(ticket, 0, True)
        self.attempt(self.stage.retire, owner, ticket)
        for _ in range(3):
            self.stage.begin((ticket + 1) % TERMS.shifts)
        held = self.stage.tickets.tickets.get(ticket)
        if held is not None and shows and held.until:
            owed = self.stage.calls.calls_at(self.stage.tickets.shift_of(ticket), held.until - 1)
            start = self.stage.start_of(ticket, owed)
            if start is not None:
                self.attempt(self.stage.show, ticket, self.stage.secret(ticket, owed), owed, start)
            for _ in range(3):
                self.stage.begin((ticket + 1) % TERMS.shifts)
        self.attempt(self.stage.reclaim, owner, ticket)

    @rule(which=choice)
    def oblige(self, which: int) -> None:
        self.attempt(self.stage.oblige, self.any_ticket(which))

    @rule(which=choice)
    def acquit(self, which: int) -> None:
        ticket = TicketId(self.any_ticket(which))
        held = self.stage.tickets.tickets.get(ticket)
        owed = sum(of == ticket for of, _ in self.stage.tickets.debts)
        if held and held.obligations > held.disputes + owed:
            self.attempt(self.stage.acquit, ticket)

    @rule(which=choice, who=people)
    def neglect(self, which: int, who: int) -> None:
        """Fined, short for too long, removed."""
        self.attempt(self.stage.fine, self.any_ticket(which), ETHER, who)
        self.stage.pass_time(TERMS.seasoning + 1)
        self.attempt(self.stage.remove_short, who, self.any_ticket(which))

    @rule(which=choice)
    def dispute(self, which: int) -> None:
        self.attempt(self.stage.dispute, self.any_ticket(which))

    @rule(which=choice)
    def undispute(self, which: int) -> None:
        held = self.stage.tickets.tickets.get(TicketId(self.any_ticket(which)))
        if held and held.disputes:
            self.attempt(self.stage.undispute, self.any_ticket(which))

    @rule(which=choice, number=st.integers(0, 3))
    def collect(self, which: int, number: int) -> None:
        owed = sorted(self.stage.tickets.debts)
        ticket, number = owed[which % len(owed)] if owed and number else (self.any_ticket(which), number)
        self.attempt(self.stage.collect, ticket, number)

    @rule(which=choice, to=people)
    def owe_and_pay(self, which: int, to: int) -> None:
        """Fined while a game is open, so that it is owed until the game is over."""
        ticket = self.any_ticket(which)
        self.attempt(self.stage.dispute, ticket)
        self.attempt(self.stage.fine, ticket, ETHER, to)
        self.undispute(which)
        for of, number in sorted(self.stage.tickets.debts)[-1:]:
            self.attempt(self.stage.collect, of, number)

    @invariant()
    def the_books_agree_and_nothing_is_lost(self) -> None:
        if hasattr(self, "stage"):
            self.stage.compare()
            assert self.stage.vault.is_conserved()

    @invariant()
    def no_ticket_showed_more_than_it_was_called_for(self) -> None:
        """Else what it owes would be below zero, and its stake locked."""
        for ticket, held in self.stage.tickets.tickets.items() if hasattr(self, "stage") else ():
            last = held.until - 1 if held.until else self.stage.now
            assert held.shown <= self.stage.calls.calls_at(self.stage.tickets.shift_of(ticket), last)

    @invariant()
    def every_ticket_that_counts_stands_in_one_slot_and_none_other(self) -> None:
        if not hasattr(self, "stage"):
            return
        last = self.stage.now + TERMS.seasoning - 1
        members = self.stage.members(last)
        alive = {t for t, (since, until) in self.lives.items() if since <= last and (not until or last < until)}
        assert len(members) == len(set(members))
        assert set(members) == alive
        for shift in range(TERMS.shifts):
            wanted = sum(ticket % TERMS.shifts == shift for ticket in alive)
            assert self.stage.tickets.on_call_at(shift, last, self.stage.now) == wanted
        for time in [*self.remembered, START]:
            if time in self.remembered:
                count = self.stage.tickets.count_at(time, self.stage.now)
                slots = [int(self.stage.tickets.ticket_at(s, time, self.stage.now)) for s in range(count)]
                assert slots == self.remembered[time]
        self.remembered[last] = members
        if len(self.remembered) > 8:
            self.remembered.pop(next(iter(self.remembered)))
