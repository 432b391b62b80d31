"""An owner's tickets on the executable model: whatever it misses, it never loses a stake, and gets all of it back."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from assay.planning.outlook import outlook_of_role
from assay.protocol.rounds.ticket_types import MAX_LINKS, TicketId, TicketTerms, ticket_lock
from assay.protocol.types import Address, Digest
from assay_verifier.secret_chains import TicketChains
from assay_verifier.ticket_keeping import (
    HeldTicket,
    ReclaimTicket,
    RegisterTicket,
    ReplaceChain,
    RetireTicket,
    ShowSecret,
    TicketAction,
    TicketPlan,
    TopUpTicket,
    chain_at,
    needs_stake,
    owed_calls,
    secret_of,
    ticket_actions,
)
from tests.harness.rounds.charters import RUN
from tests.harness.rounds.duties import TERMS, TICKETS, DutyStage
from tests.harness.rounds.run_limits import changed

BOND = TICKETS.bond
OWNER = 0


class KeptTickets:
    """One owner's tickets on a stage, driven by its decisions; chains of twelve secrets, changed six before the end."""

    def __init__(self, shifts: int = 1, links: int = 12) -> None:
        self.stage = DutyStage(False, TERMS, TicketTerms(BOND, TICKETS.seasoning, shifts), people=2)
        self.chains = TicketChains(b"seed" * 8, Digest(bytes(32)), links, reserve=6)
        self.anchors: dict[TicketId, list[tuple[int, Digest]]] = {}
        self.numbers: list[int] = []
        self.leaving = False
        self.others: list[TicketId] = []
        """Of somebody who answers every call."""
        self.done: Counter[str] = Counter()

    @property
    def who(self) -> Address:
        return self.stage.people[OWNER]

    @property
    def epochs(self) -> list:  # type: ignore[type-arg]
        return self.stage.duties.epochs

    def calls_at(self, shift: int, time: int) -> int:
        return self.stage.duties.calls_at(shift, time)

    def over_since(self, epoch: int) -> int:
        return self.stage.duties.over_since(epoch)

    def held(self) -> list[HeldTicket]:
        found = []
        for ticket, t in sorted(self.stage.tickets.tickets.items()):
            if t.owner == self.who:
                missing = BOND - self.stage.vault.lock_amount(ticket_lock(ticket)) if t.short_since else 0
                shift, convicted = self.stage.tickets.shift_of(ticket), t.convicted_at != 0
                anchors = tuple(self.anchors[ticket])
                found.append(
                    HeldTicket(
                        *(ticket, shift, t.from_, anchors, t.until, t.shown),
                        *(t.obligations, t.last_epoch, missing, convicted),
                    )
                )
        return found

    def actions(self, wanted: int = 1) -> list[TicketAction]:
        free = self.stage.vault.free_of(self.who)
        plan = TicketPlan(wanted, self.leaving, free, BOND)
        return list(ticket_actions(plan, self.held(), self.chains, self, self.stage.now))

    def act(self, wanted: int = 1) -> None:
        """Everything that is decided, until nothing is."""
        for _ in range(20):
            found = self.actions(wanted)
            if not found:
                return
            self.carry_out(found[0])
        raise AssertionError(f"no end of {found}")

    def carry_out(self, action: TicketAction) -> None:
        self.done[type(action).__name__] += 1
        tickets, now = self.stage.tickets, self.stage.now
        match action:
            case RegisterTicket():
                number = self.next_number()
                ticket = tickets.register(self.who, self.chains.anchor(number), now)
                self.anchors[ticket] = [(tickets.tickets[ticket].from_, self.chains.anchor(number))]
            case ReplaceChain(ticket):
                number = self.next_number()
                tickets.replace_anchor(self.who, ticket, self.chains.anchor(number), now)
                self.anchors[ticket].append((tickets.tickets[ticket].next_from, self.chains.anchor(number)))
            case TopUpTicket(ticket):
                tickets.top_up(self.who, ticket)
            case ShowSecret(ticket, epoch):
                self.stage.duties.show(ticket, epoch, self.secret(ticket, epoch), now)
            case RetireTicket(ticket):
                tickets.retire(self.who, ticket, now)
            case ReclaimTicket(ticket):
                tickets.reclaim(self.who, ticket)

    def next_number(self) -> int:
        number = self.chains.next_number(self.numbers, [a for named in self.anchors.values() for _, a in named])
        self.numbers.append(number)
        return number

    def secret(self, ticket: TicketId, epoch: int) -> Digest:
        held = next(h for h in self.held() if h.id == ticket)
        secret = secret_of(held, self.chains, self, epoch)
        assert secret is not None
        return secret

    def epoch(self, answers: bool = True) -> None:
        """One epoch: the owner's tickets on call open, or not, and it closes."""
        stage = self.stage
        stage.seed(len(self.epochs))
        number = stage.duties.number
        for held in self.held() if answers else []:
            if stage.duties._is_called(held.id, self.epochs[number], stage.now):
                seed = self.epochs[number].seed
                assert seed is not None
                stage.duties.open(self.who, held.id, seed, self.secret(held.id, number), [], stage.now)
        for ticket in self.others:
            if stage.duties._is_called(ticket, self.epochs[number], stage.now):
                stage.open(ticket, [])
        while stage.duties.number == number:
            stage.close()


@pytest.mark.parametrize("seed", range(4))
def test_tickets_of_an_owner_that_misses_calls_outlive_their_chains_and_come_back(seed: int) -> None:
    chance = random.Random(seed)
    kept = KeptTickets(shifts=1 + seed % 2)
    before = kept.stage.vault.free_of(kept.who)
    for _ in range(40):
        kept.act(wanted=2)
        kept.epoch(answers=chance.random() < 0.8)
    assert kept.done["ReplaceChain"] > 2 and kept.done["ShowSecret"] > 2
    kept.leaving = True
    for _ in range(8):
        kept.act()
        kept.epoch()
    assert not kept.held() and kept.done["ReclaimTicket"] == 2
    assert kept.stage.vault.free_of(kept.who) == before
    assert len(set(kept.numbers)) == len(kept.numbers)


@pytest.mark.parametrize("waits", range(0, 3600, 900))
def test_leaving_takes_as_long_as_who_joins_is_told(waits: int) -> None:
    """It answers until it counts no longer, and what it answered last is drawn three epochs more."""
    kept = KeptTickets()
    kept.others.append(kept.stage.register(1))
    length, delay = TERMS.length + 1, 120  # of the stage's epochs
    charter = changed(RUN, "timing", seasoning=TICKETS.seasoning, epoch=length, seed_delay=delay)
    for _ in range(4):
        kept.act()
        kept.epoch()
    kept.stage.pass_time(waits)
    asked, kept.leaving = kept.stage.now, True
    kept.act()
    while kept.held():
        kept.epoch()
        kept.act()
    told = outlook_of_role(charter, tickets=1).leaving_seconds - charter.timing.exit
    assert told - (length + delay) < kept.stage.now - asked <= told


def test_a_run_that_was_stopped_gives_tickets_back_at_once_that_nothing_holds() -> None:
    kept = KeptTickets()
    kept.act(wanted=2)
    kept.epoch(answers=False)
    first, second = kept.held()
    assert [type(a) for a in ticket_actions(TicketPlan(2, True, 0, BOND), [first], kept.chains, kept, 0)] == [
        ShowSecret,
        RetireTicket,
    ]
    stopped = TicketPlan(2, True, 0, BOND, is_stopped=True)
    for held, wanted in (
        (first, [ReclaimTicket(first.id), ReclaimTicket(second.id)]),
        (replace(first, obligations=1), [ReclaimTicket(second.id)]),
        (replace(first, is_convicted=True), [ReclaimTicket(second.id)]),
    ):
        assert list(ticket_actions(stopped, [held, second], kept.chains, kept, 0)) == wanted


def test_a_ticket_is_registered_while_stake_is_free_for_it() -> None:
    kept = KeptTickets()
    for free, wanted in ((BOND, [RegisterTicket(0)]), (BOND - 1, [])):
        plan = TicketPlan(1, False, free, BOND)
        assert list(ticket_actions(plan, [], kept.chains, kept, 0)) == wanted
    assert list(ticket_actions(TicketPlan(1, True, BOND, BOND), [], kept.chains, kept, 0)) == []


def test_a_fine_is_made_up_for_to_the_last_free_wei() -> None:
    kept = KeptTickets()
    kept.act()
    (held,) = kept.held()
    kept.stage.tickets.fine(held.id, 7, kept.stage.people[1], kept.stage.now)
    (short,) = kept.held()
    for free, wanted in ((7, [TopUpTicket(held.id)]), (6, [])):
        assert list(ticket_actions(TicketPlan(1, False, free, BOND), [short], kept.chains, kept, 0)) == wanted
    kept.act()
    assert kept.held()[0].missing == 0


def test_who_leaves_fills_a_stake_up_only_while_calls_would_be_fined_otherwise() -> None:
    kept = KeptTickets()
    kept.act()
    kept.stage.pass_time(TICKETS.seasoning)
    kept.epoch()
    (held,) = kept.held()
    kept.stage.tickets.fine(held.id, BOND // 10 + 1, kept.stage.people[1], kept.stage.now)
    assert not kept.stage.tickets.can_answer(held.id)
    (short,) = kept.held()
    plan, top_up, retire = TicketPlan(1, True, BOND, BOND), TopUpTicket(held.id), RetireTicket(held.id)
    later = kept.stage.now + 1
    for seen, free, wanted in (
        (replace(short, can_answer=False), BOND, [top_up, retire]),
        (replace(short, can_answer=False), BOND // 20, [retire]),
        (replace(short, can_answer=False, until=later), BOND, [top_up]),
        (replace(short, can_answer=False, until=kept.epochs[-1].start), BOND, []),
        (replace(short, can_answer=True), BOND, [retire]),
    ):
        done = ticket_actions(replace(plan, free=free), [seen], kept.chains, kept, 0)
        assert [action for action in done if isinstance(action, TopUpTicket | RetireTicket)] == wanted
        # Bad luck: its actor did not ask what is free, and was fined at each call until its ticket was retired.
        assert needs_stake([seen], 1, kept, is_leaving=True) or top_up not in wanted
    assert not needs_stake([replace(short, can_answer=True)], 1, kept, is_leaving=True)
    assert needs_stake([replace(short, can_answer=True)], 1, kept, is_leaving=False)
    whole = replace(short, missing=0)
    assert [needs_stake([whole], k, kept, is_leaving=False) for k in (1, 2)] == [False, True]


def test_a_secret_beyond_what_one_call_walks_is_shown_in_two() -> None:
    kept = KeptTickets(links=100)
    kept.act()
    kept.stage.pass_time(TICKETS.seasoning)
    kept.epoch()
    for _ in range(MAX_LINKS + 1):
        kept.epoch(answers=False)
    (held,) = kept.held()
    assert len(owed_calls(held, kept, len(kept.epochs) - 1)) == MAX_LINKS + 1
    kept.act()
    assert kept.done["ShowSecret"] == 2 and not owed_calls(kept.held()[0], kept, len(kept.epochs) - 1)


def test_a_strangers_anchor_gives_no_secret() -> None:
    kept = KeptTickets()
    held = HeldTicket(TicketId(1), 0, 0, ((0, Digest(b"x" * 32)),))
    assert chain_at(held, kept.chains, kept, 10) is None
    assert chain_at(HeldTicket(TicketId(1), 0, 20, ((20, kept.chains.anchor(0)),)), kept.chains, kept, 19) is None
