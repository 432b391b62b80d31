"""One answer that is paid for: its voucher, its events, and whether its statement is what was asked and charged."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final

from assay.inference.gateway.asked import CompletionAsked
from assay.inference.gateway.till import seed_of
from assay.inference.generate import NO_END
from assay.inference.relay.upstream import GatewayModel, GatewayOdd, GatewayRefusal, Upstream, sent
from assay.inference.sampling import UNIT
from assay.inference.statement import SignedStatement, StatementRefused, read_statement
from assay.inference.verify import FalseAnswer, replay
from assay.protocol.digests import keccak
from assay.protocol.errors import AssayError, FraudError, UnavailableError
from assay.protocol.types import Address, Wei
from assay_ledger.timed_session import TimedAnswer
from assay_ledger.vouchers.purse import Purse
from assay_ledger.vouchers.signed import SignedVoucher

if TYPE_CHECKING:
    from assay.inference.cover import CoverWatch
    from assay.inference.model import LanguageModel

TRIES: Final = 3
"""Vouchers that one request may take until the gateway accepts one."""

AGAIN_S: Final = 600.0
"""For so long the same request, asked again after its answer broke off, is asked for by the voucher that it had."""

SLACK: Final = 16
"""Tokens that a tokenizer may add to a text, beyond one for each of its bytes."""


class GatewayFalse(FraudError):
    """The gateway answered, or charged, what is not true; nothing more is signed for it."""

    remedy = "Pay another gateway. What it signed is in the log, and proves who said it."


class GatewayRefused(UnavailableError):
    """The gateway answers with an error of its own, which is passed on. Details: refusal."""


class PaidAnswers:
    """Asks and pays one gateway; safe for threads.

    by: who must have signed the answers. model: where some are drawn again, verify_ppm millionths of them. cover: where
    only what a bond answers for is paid.
    """

    def __init__(
        self,
        upstream: Upstream,
        gateway: GatewayModel,
        purse: Purse,
        by: Address,
        model: LanguageModel | None = None,
        verify_ppm: int = 0,
        cover: CoverWatch | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._upstream, self._purse, self._by, self._cover = upstream, purse, by, cover
        self.gateway = gateway
        self._model, self._verify_ppm = model, verify_ppm
        # Vouchers must arrive in the order of their amounts: one is sent when the one before is accepted.
        self._turn = threading.Lock()
        self._clock = clock
        self._broken: tuple[bytes, SignedVoucher, float] | None = None
        """The last request whose answer broke off, its voucher, and when: gateways go on for the newest one alone."""
        self.false: AssayError | None = None
        """What the gateway was found to do; once it is set, nothing is signed."""
        self._is_over = False
        self.answers = self.verified = self.tokens = 0
        self._counting = threading.Lock()

    def ask(self, asked: CompletionAsked, has_left: Callable[[], bool] = lambda: False) -> Generator[dict[str, Any]]:
        """Pays, and gives the answer's events; the last one has its statement, which was checked.

        The first is asked for before this returns. Whoever does not read them to their end closes them. has_left:
        whether nobody waits any more, which is asked before anything is signed: others' vouchers go first.

        Raises GatewayFalse, GatewayRefused, GatewayAway, GatewayOdd, PurseEmpty, PurseNotKept, NotCovered; the
        events do, too.
        """
        if self._cover is not None:
            self._cover.check()
        body = sent(asked.model_dump(exclude_unset=True) | {"model": self.gateway.name, "stream": True})
        with self._turn:
            # Attack by chance: a client that gives up while a gateway is slow, and asks again, pays for all of it.
            if has_left():
                raise UnavailableError("Nobody waits for the answer.", code="AskerLeft", remedy="Ask again.")
            signed, response = self._asked_again(asked, body) or self._accepted(asked, body)
        seed = seed_of(signed, keccak(body)) if asked.seed is None else asked.seed
        events = self._events(asked, body, seed, signed, response)
        # Begun: from here on its voucher is settled, also where who asked hangs up and nobody reads anything of it.
        next(events)
        return events

    def end(self) -> None:
        """Whoever waits for more of an answer is told that the relay ends, and the gateway draws no more of it."""
        self._is_over = True

    def _asked_again(self, asked: CompletionAsked, body: bytes) -> tuple[SignedVoucher, TimedAnswer] | None:
        """The rest of an answer that broke off; None where the gateway takes that voucher no more, or none broke off.

        Attack by chance: a client that gives up after some seconds, and asks again, pays anew for what it has paid.
        """
        broken = self._broken
        if broken is None or broken[0] != body or self._clock() - broken[2] > AGAIN_S:
            return None
        self._check_going()
        signed = broken[1]
        if not self._purse.reopen(signed):
            return None
        try:
            found = self._upstream.ask(body, signed.to_text())
        except BaseException:
            self._purse.lose(signed)
            raise
        if not isinstance(found, GatewayRefusal):
            return signed, found
        self._purse.lose(signed)
        if found.status == 402:
            self._broken = None
            return None
        # It has not seen yet that nobody waits, or has no room. Nothing more was charged.
        raise GatewayRefused("The gateway refused.", code=found.code or "GatewayRefused", refusal=found)

    def _check_going(self) -> None:
        if self.false is not None:
            raise self.false
        if self._is_over:
            raise _ends()

    def _broke_off(self, body: bytes, signed: SignedVoucher) -> None:
        self._purse.lose(signed)
        self._broken = (body, signed, self._clock())

    def _accepted(self, asked: CompletionAsked, body: bytes) -> tuple[SignedVoucher, TimedAnswer]:
        cost, code = self._most(asked), ""
        for _ in range(TRIES):
            self._check_going()
            signed = self._purse.sign(cost)
            try:
                found = self._upstream.ask(body, signed.to_text())
            except BaseException:
                self._broke_off(body, signed)
                raise
            if not isinstance(found, GatewayRefusal):
                return signed, found
            # Refused: nothing was charged, and were it not so, the next one's books would show it.
            payment, code = found.payment, found.code
            self._purse.settle(signed, Wei(0), None if payment is None else payment[0])
            if payment is None or code not in ("VoucherUsed", "VoucherTooLow"):
                break
            # A new purse takes over what was signed before it was there. Attack: a gateway that says so ever again.
            if not self._purse.begin(payment[0], payment[1]):
                break
        why = "" if code else f" with HTTP {found.status}, and says no reason that a gateway has"
        raise GatewayRefused(f"The gateway refused{why}.", code=code or "GatewayRefused", refusal=found)

    def _most(self, asked: CompletionAsked) -> Wei:
        """What an answer may cost at most. A text has no more tokens than bytes, and a few."""
        prompt = asked.prompt
        if isinstance(prompt, str):
            if self._model is not None:
                tokens = len(self._model.encode(prompt))
            else:
                tokens = min(len(prompt.encode()) + SLACK, self.gateway.prompt)
        else:
            tokens = len(prompt)
        return self.gateway.till.cost(tokens, asked.max_tokens)

    def _events(
        self, asked: CompletionAsked, body: bytes, seed: int, signed: SignedVoucher, response: TimedAnswer
    ) -> Generator[dict[str, Any]]:
        """Nothing first, which begins it, then the events."""
        is_settled, text = False, ""
        try:
            with response:
                yield {}
                for event in self._upstream.events(response):
                    if not isinstance(event, dict):
                        raise GatewayOdd("The gateway's answer is no event.")
                    if "error" in event:
                        raise GatewayRefused("The gateway's answer ended.", refusal=GatewayRefusal(503, event, None))
                    text += str(_choice(event).get("text", ""))
                    if "statement" not in event:
                        if self._is_over:
                            raise _ends()
                        yield event
                        continue
                    tokens, cost, spent = self._checked(asked, seed, event, text)
                    self._purse.settle(signed, cost, spent)
                    is_settled = True
                    with self._counting:
                        self.answers += 1
                        self.tokens += tokens
                    yield event
                    return
            raise GatewayOdd("The gateway's answer has no statement.")
        except (GatewayFalse, FalseAnswer, StatementRefused) as error:
            self.false = error
            raise
        finally:
            if not is_settled:
                self._broke_off(body, signed)

    def _checked(self, asked: CompletionAsked, seed: int, event: dict[str, Any], text: str) -> tuple[int, Wei, Wei]:
        """An answer's tokens and what it cost, by its statement, and what the gateway says is spent.

        Raises StatementRefused, GatewayFalse, FalseAnswer.
        """
        found = read_statement(str(event["statement"]).encode())
        self._check_statement(asked, seed, found, text)
        said = found.statement
        cost = self.gateway.till.cost(len(said.prompt), len(said.answer))
        try:
            charged, spent = int(event["payment"]["charged"]), int(event["payment"]["spent"])
        except (KeyError, TypeError, ValueError):
            raise GatewayFalse("The gateway does not say what it charged.") from None
        # Attack: an answer that costs more than its tokens do, or more than was signed for.
        if charged != cost or cost > self._most(asked):
            raise GatewayFalse(f"The gateway charged {charged} wei; the answer's tokens cost {cost}.")
        return len(said.answer), cost, Wei(spent)

    def _check_statement(self, asked: CompletionAsked, seed: int, found: SignedStatement, text: str) -> None:
        said = found.statement
        if found.signer != self._by:
            raise GatewayFalse(f"The answer is signed by 0x{found.signer.hex()}, not by 0x{self._by.hex()}.")
        end = NO_END if asked.end is None else asked.end
        pairs = {
            "the model": (said.model, self.gateway.model),
            "the most tokens": (said.most, asked.max_tokens),
            "the end": (said.end, end),
            "the temperature": (said.terms.temperature, round(asked.temperature * UNIT)),
            "top-k": (said.terms.top_k, asked.top_k),
            "the seed": (said.terms.seed, seed),
        }
        if not isinstance(asked.prompt, str):
            pairs["the prompt"] = (said.prompt, tuple(asked.prompt))
        elif self._model is not None:
            pairs["the prompt"] = (said.prompt, tuple(self._model.encode(asked.prompt)))
        if self._model is not None:
            # Attack: an answer by a cheaper program, which nobody who has this one draws again.
            pairs["the program"] = (said.program, self._model.program.root)
            pairs["the tokenizer"] = (said.tokenizer, self._model.tokenizer_digest)
            pairs["the text"] = (self._model.tokenizer.decode(list(said.answer)), text)
        for what, (own, other) in pairs.items():
            if own != other:
                raise GatewayFalse(f"The signed answer has {what} of another request.")
        count = len(said.answer)
        ends = count == said.most or said.answer[-1:] == (end,)
        # Attack: a prompt that is paid for, and no answer, or the beginning of one.
        if count > said.most or not ends or end in said.answer[:-1]:
            raise GatewayFalse("The signed answer stops before its end, or goes on behind it.")
        # Attack: a pledge for its readers to see, and answers that name another program.
        if self._cover is not None and (why := self._cover.why_not(found)):
            raise GatewayFalse(f"No bond answers for what the gateway signed. {why}")
        if self._model is not None and secrets.randbelow(1_000_000) < self._verify_ppm:
            replay(self._model, said)
            self.verified += 1


def _ends() -> UnavailableError:
    remedy = "Ask again once it runs; what was drawn until now is paid for."
    return UnavailableError("The relay ends.", code="RelayEnds", remedy=remedy)


def _choice(event: dict[str, Any]) -> dict[str, Any]:
    try:
        (choice,) = event["choices"]
        if not isinstance(choice, dict):
            raise TypeError
    except (KeyError, TypeError, ValueError):
        raise GatewayOdd("The gateway's answer is no event.") from None
    return choice
