"""Gateways, accusers and strangers who do anything with bonds and statements, on model and contracts at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from assay.inference.claims import honest_trace, said_of
from assay.inference.lies import claimed_trace, false_statement
from assay.inference.sampling import SamplingTerms
from assay.inference.statement import SignedStatement
from assay.protocol.digests import ZERO
from assay.protocol.errors import RejectedError
from assay.protocol.game.errors import GameError
from assay.protocol.run.answers import REFUTED, answer_claim
from assay.protocol.types import Digest
from tests.harness.game_books import MoneyError
from tests.harness.games import address
from tests.harness.payments.answer_stage import KEYS, AnswerStage, account, signed_by
from tests.harness.rounds.samples import ETHER

gateways = st.integers(0, 2)
accusers = st.integers(0, 1)
seconds = st.sampled_from([1, 600, 4 * 3600, 20 * 3600, 3 * 86_400])
READERS = [address(f"reader {k}") for k in range(2)]
HELD_EACH = 30 * ETHER


class GatewayMachine(RuleBasedStateMachine):
    """Model and contracts agree on every call, every token has a place, and an honest gateway keeps its bond."""

    accepted: dict[str, int]

    @initialize()
    def begin(self) -> None:
        self.stage = AnswerStage()
        for who in READERS:
            self.stage.fund(who, HELD_EACH)
        true = self.stage.statement(SamplingTerms(seed=3, temperature=900_000), most=4)
        # The first gateway is honest: it signs nothing false.
        self.statements = [true, false_statement(true, 1, self.stage.model.vocabulary)]
        self.committed: dict[tuple[int, Digest], int] = {}
        self.shown: dict[Digest, SignedStatement] = {}

    def teardown(self) -> None:
        if hasattr(self, "stage"):
            self.stage.end()

    def attempt(self, call: Callable[..., Any], *args: Any) -> Any:
        """A call that may be refused; both sides have agreed on it."""
        try:
            found = call(*args)
        except (RejectedError, GameError, MoneyError):
            return None
        counts = type(self).accepted
        counts[call.__name__] = counts.get(call.__name__, 0) + 1
        return found

    def signed(self, gateway: int, lies: bool) -> SignedStatement:
        return signed_by(KEYS[gateway], self.statements[lies and gateway != 0])

    @rule(gateway=gateways)
    def bond(self, gateway: int) -> None:
        self.attempt(self.stage.bond, KEYS[gateway])

    @rule(gateway=gateways)
    def unbond(self, gateway: int) -> None:
        self.attempt(self.stage.unbond, KEYS[gateway])

    @rule(gateway=gateways, ahead=seconds, other=st.booleans())
    def pledge(self, gateway: int, ahead: int, other: bool) -> None:
        self.attempt(self.stage.pledge, KEYS[gateway], self.stage.now + ahead, ZERO if other else None)

    @rule(gateway=gateways, lies=st.booleans(), place=st.integers(0, 4), odd=st.sampled_from([0, 0, 0, 1, 2]))
    def accuse(self, gateway: int, lies: bool, place: int, odd: int) -> None:
        signed = self.signed(gateway, lies)
        if odd:
            other = signed.signature[:-1] if odd == 1 else self.signed((gateway + 1) % 3, lies).signature
            signed = replace(signed, signature=other)
        claim = self.attempt(self.stage.accuse, signed, place)
        if claim is not None:
            self.shown[claim] = signed

    @rule(gateway=gateways, lies=st.booleans(), place=st.integers(0, 4))
    def bond_and_be_accused(self, gateway: int, lies: bool, place: int) -> None:
        """In one: chance alone would hardly ever find a pledge that lasts."""
        self.bond(gateway)
        self.pledge(gateway, 3 * 86_400, False)
        self.accuse(gateway, lies, place, 0)

    @rule(who=accusers, gateway=gateways, lies=st.booleans(), place=st.integers(0, 3))
    def commit(self, who: int, gateway: int, lies: bool, place: int) -> None:
        claim = answer_claim(self.signed(gateway, lies).statement.digest, account(KEYS[gateway]), place)
        if (who, claim) not in self.committed:
            self.attempt(self.stage.commit, claim, READERS[who], REFUTED)
            self.committed[who, claim] = place

    @rule(who=accusers, number=st.integers(0, 7), plays=st.booleans())
    def reveal_and_play(self, who: int, number: int, plays: bool) -> None:
        mine = sorted(claim for by, claim in self.committed if by == who)
        if not mine:
            return
        claim = mine[number % len(mine)]
        game = self.attempt(self.stage.reveal, claim, READERS[who], REFUTED)
        place = self.committed.pop((who, claim), 0) if game is not None else 0
        if not game:
            return
        stage, said = self.stage, said_of(self.shown[claim].statement)
        truth = honest_trace(stage.answers, stage.model, said, place)
        defends = claimed_trace(stage.answers, stage.model, said, place) if plays else None
        honest = stage.books.claims[claim].gateway == account(KEYS[0])
        # An honest gateway is never silent.
        stage.play(game, truth if honest else defends, truth)

    @rule(ahead=seconds)
    def pass_time(self, ahead: int) -> None:
        self.stage.pass_time(ahead)

    @invariant()
    def all_is_equal_and_conserved(self) -> None:
        if not hasattr(self, "stage"):
            return
        self.stage.compare()
        total = self.stage.vault.total()
        assert total == 200 * ETHER * len(KEYS) + HELD_EACH * len(READERS)
        assert not self.stage.books.bond_of(account(KEYS[0])).is_convicted
