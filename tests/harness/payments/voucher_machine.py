"""Payers, a wallet, gateways and strangers who do anything with vouchers, on the model and the contract at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from assay.protocol.errors import RejectedError
from tests.harness.payments.voucher_stage import DELAY, GATEWAYS, MIN_PAYMENT, Fault, Mood, VoucherStage

payers = st.integers(0, 3)
gateways = st.integers(0, len(GATEWAYS) - 1)
tokens = st.sampled_from([0, 0, 0, 1])
amounts = st.sampled_from([0, 1, 2, 999_999, 1_000_000, 5_000_001, 40_000_000])
faults = st.sampled_from([Fault.NONE] * 8 + list(Fault))
claims = st.lists(st.tuples(payers, st.integers(-2, 50), faults), max_size=5)


class VoucherMachine(RuleBasedStateMachine):
    """Nothing is lost, no amount is taken twice, and no payer loses more than the highest voucher that it signed."""

    accepted: dict[str, int]

    @initialize()
    def begin(self) -> None:
        self.stage = VoucherStage()
        self.highest: dict[tuple[int, int, int], int] = {}

    def teardown(self) -> None:
        self.stage.end()

    def attempt(self, call: Callable[..., Any], *args: Any) -> None:
        """A call that may be refused; both sides have agreed on it."""
        try:
            call(*args)
        except RejectedError:
            return
        counts = type(self).accepted
        counts[call.__name__] = counts.get(call.__name__, 0) + 1

    @rule(giver=payers, payer=payers, gateway=gateways, amount=amounts, token=tokens)
    def deposit(self, giver: int, payer: int, gateway: int, amount: int, token: int) -> None:
        self.attempt(self.stage.deposit, giver, payer, gateway, amount, token)

    @rule(payer=payers, gateway=gateways, token=tokens, part=st.integers(0, 5), more=st.sampled_from([0, 0, 1]))
    def ask_refund(self, payer: int, gateway: int, token: int, part: int, more: int) -> None:
        balance = self.stage.shown(payer, gateway, token).balance
        self.attempt(self.stage.ask_refund, payer, gateway, balance * part // 4 + more, token)

    @rule(payer=payers, gateway=gateways, token=tokens, seconds=st.sampled_from([0, 7199, 7200]))
    def withdraw(self, payer: int, gateway: int, token: int, seconds: int) -> None:
        self.stage.pass_time(seconds)
        self.attempt(self.stage.withdraw, payer, gateway, token)

    @rule(gateway=gateways, token=tokens, wanted=claims, by=payers)
    def redeem(self, gateway: int, token: int, wanted: list[tuple[int, int, Fault]], by: int) -> None:
        batch = []
        for payer, share, fault in wanted:
            held = self.stage.shown(payer, gateway, token)
            # From a little below what is used up to somewhat more than the deposit covers.
            amount = max(held.redeemed + (share if share < 3 else held.balance * share // 40), 0)
            batch.append((payer, amount, fault))
            if self.stage.is_good(payer, fault):
                place = payer, gateway, token
                self.highest[place] = max(self.highest.get(place, 0), amount)
        self.attempt(self.stage.redeem, gateway, batch, token, by)

    @rule(token=tokens, more=st.integers(-1, 1))
    def pay_owners(self, token: int, more: int) -> None:
        owed = self.stage.books.owed.get(self.stage.tokens[token], 0)
        if owed + more >= MIN_PAYMENT:
            self.attempt(self.stage.pay_owners, owed + more, token)

    @rule(payer=st.integers(0, 2), gateway=gateways)
    def earn(self, payer: int, gateway: int) -> None:
        """A deposit, all of it redeemed, and the owners' part sent on."""
        self.attempt(self.stage.deposit, payer, payer, gateway, 40_000_000, 0)
        held = self.stage.shown(payer, gateway)
        amount = held.redeemed + held.balance
        place = payer, gateway, 0
        self.highest[place] = max(self.highest.get(place, 0), amount)
        self.attempt(self.stage.redeem, gateway, [(payer, amount, Fault.NONE)])
        self.pay_owners(0, 0)

    @rule(payer=payers, gateway=gateways)
    def leave(self, payer: int, gateway: int) -> None:
        """All that is left is asked for, waited for and withdrawn."""
        self.attempt(self.stage.ask_refund, payer, gateway, self.stage.shown(payer, gateway).balance)
        self.stage.pass_time(DELAY)
        self.attempt(self.stage.withdraw, payer, gateway)

    @rule(mood=st.sampled_from(Mood))
    def turn(self, mood: Mood) -> None:
        self.stage.behave(mood)

    @rule(seconds=st.integers(1, 9000))
    def let_time_pass(self, seconds: int) -> None:
        self.stage.pass_time(seconds)

    @invariant()
    def books_are_equal_and_nothing_is_lost(self) -> None:
        if hasattr(self, "stage"):
            self.stage.compare()

    @invariant()
    def nothing_is_taken_that_was_not_signed(self) -> None:
        for (payer, gateway, token), highest in getattr(self, "highest", {}).items():
            # Attack: the same voucher again. The books are equal, and theirs never pass what was signed.
            assert self.stage.shown(payer, gateway, token).redeemed <= highest
