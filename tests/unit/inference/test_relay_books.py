"""A relay keeps books of its own: what a gateway says, signs and charges is held against them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message

from assay.inference.cover import NotCovered
from assay.inference.gateway.asked import CompletionAsked
from assay.inference.gateway.till import TillTerms, seed_of
from assay.inference.generate import NO_END
from assay.inference.relay.app import make_relay
from assay.inference.relay.paying import AGAIN_S, GatewayFalse, GatewayRefused, PaidAnswers
from assay.inference.relay.upstream import GatewayAway, GatewayModel, GatewayRefusal
from assay.inference.sampling import SamplingTerms
from assay.inference.statement import SignedStatement, StatementRefused, sign, statement_of
from assay.inference.verify import FalseAnswer
from assay.protocol.digests import keccak
from assay.protocol.errors import AssayError, UnavailableError
from assay.protocol.types import Digest, Wei
from assay_ledger.chain.client import address_of
from assay_ledger.vouchers.purse import Purse, PursePlace
from assay_ledger.vouchers.signed import SignedVoucher
from tests.harness.inference.models import small_gpt
from tests.harness.payments.kept_samples import DOMAIN, TOKEN, payer

SIGNER = Account.from_key(b"\x05" * 32)
ME = address_of(SIGNER)
PRICE = 10
PROMPT, ANSWER = (5, 6), (7, 8, 9)
ASKED = CompletionAsked(model="assay", prompt=list(PROMPT), max_tokens=3, seed=7)
ANOTHER = ASKED.model_copy(update={"user": "another"})


class PlayedGateway:
    """A gateway in memory whose answer is changed before it is signed, or after."""

    def __init__(self) -> None:
        self.answer, self.prompt, self.most, self.signer = ANSWER, PROMPT, 3, SIGNER
        self.charged: int | None = None
        self.seed: int | None = 7
        self.end, self.changed = NO_END, dict[str, Any]()
        self.after: Callable[[dict[str, Any]], dict[str, Any]] = lambda event: event
        self.refusals: list[GatewayRefusal] = []
        self.vouchers: list[int] = []
        self.breaks_off, self.spent, self.closed = False, 0, 0

    def ask(self, body: bytes, voucher: str) -> Any:
        signed = SignedVoucher.of_text(voucher)
        self.vouchers.append(signed.voucher.amount)
        self.drawn = seed_of(signed, keccak(body)) if self.seed is None else self.seed
        return self.refusals.pop(0) if self.refusals else closing(self)

    def close(self) -> None:
        """The connection of an answer ends."""
        self.closed += 1

    def events(self, _response: object) -> Iterator[dict[str, Any]]:
        if self.breaks_off:
            raise GatewayAway("The gateway's answer broke off.")
        said = statement_of(
            small_gpt(), self.prompt, SamplingTerms(self.drawn, 1_000_000, 0), self.most, self.answer, self.end
        )
        said = replace(said, **self.changed)
        cost = PRICE * (len(self.prompt) + len(self.answer)) if self.charged is None else self.charged
        self.spent += cost
        yield self.after(
            {
                "choices": [{"text": small_gpt().tokenizer.decode(list(self.answer))}],
                "statement": sign(said, self.signer).encode().decode(),
                "payment": {"charged": str(cost), "spent": str(self.spent)},
            }
        )


@pytest.fixture
def played() -> PlayedGateway:
    return PlayedGateway()


@pytest.fixture
def purse(tmp_path: Path) -> Iterator[Purse]:
    made = Purse(tmp_path, payer(0), PursePlace(DOMAIN, ME, TOKEN), Wei(0), Wei(10_000))
    yield made
    made.close()


def answers(played: PlayedGateway, purse: Purse, **more: Any) -> PaidAnswers:
    till = TillTerms(DOMAIN, ME, TOKEN, Wei(PRICE))
    served = GatewayModel("assay", ME, small_gpt().root, 100, 48, till, {})
    return PaidAnswers(played, served, purse, ME, **more)  # type: ignore[arg-type]


def test_a_true_answer_costs_what_its_tokens_do(played: PlayedGateway, purse: Purse) -> None:
    asker = answers(played, purse)
    for _ in range(2):
        assert len(list(asker.ask(ASKED))) == 1
    assert purse.spent == 2 * PRICE * 5 and played.vouchers == [50, 100]


def another_statement(event: dict[str, Any]) -> dict[str, Any]:
    return event | {"statement": event["statement"].replace("7", "8")}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda p: setattr(p, "charged", 60), GatewayFalse),
        (lambda p: setattr(p, "signer", Account.from_key(b"\x06" * 32)), GatewayFalse),
        (lambda p: setattr(p, "prompt", (5, 5)), GatewayFalse),
        (lambda p: setattr(p, "most", 4), GatewayFalse),
        (lambda p: setattr(p, "answer", (7, 8, 9, 9)), GatewayFalse),
        (lambda p: setattr(p, "answer", ()), GatewayFalse),
        (lambda p: setattr(p, "answer", (7, 8)), GatewayFalse),
        (
            lambda p: setattr(p, "after", lambda e: e | {"statement": e["statement"].replace("7", "8")}),
            StatementRefused,
        ),
        (lambda p: setattr(p, "after", lambda e: e | {"payment": {}}), GatewayFalse),
    ],
    ids=["charge", "signer", "prompt", "most", "long", "nothing", "short", "bytes", "no-charge"],
)
def test_a_gateway_that_says_what_is_false_is_paid_no_more(
    played: PlayedGateway, purse: Purse, change: Callable[[PlayedGateway], None], found: type[AssayError]
) -> None:
    asker = answers(played, purse)
    change(played)
    with pytest.raises(found):
        list(asker.ask(ASKED))
    with pytest.raises(found):
        list(asker.ask(ASKED))
    assert played.vouchers == [50], "nothing was signed after it"


@pytest.mark.parametrize(("answer", "is_whole"), [((7, 8), True), ((7, 8, 9), False), ((7, 9), False)])
def test_an_answer_ends_with_the_token_that_was_asked_for_and_nowhere_else(
    played: PlayedGateway, purse: Purse, answer: tuple[int, ...], is_whole: bool
) -> None:
    asked = ASKED.model_copy(update={"end": 8})
    played.answer, played.end = answer, 8
    with nullcontext() if is_whole else pytest.raises(GatewayFalse, match="its end"):
        assert len(list(answers(played, purse).ask(asked))) == 1


@pytest.mark.parametrize("what", ["program", "tokenizer"])
def test_an_answer_of_another_program_is_the_last_that_is_paid(played: PlayedGateway, purse: Purse, what: str) -> None:
    """Nobody who has the run's program can draw it again."""
    asker = answers(played, purse, model=small_gpt(), verify_ppm=1_000_000)
    played.changed = {what: Digest(b"\1" * 32)}
    for _ in range(2):
        with pytest.raises(GatewayFalse, match=what):
            list(asker.ask(ASKED))
    assert played.vouchers == [50]


def test_an_answer_that_was_asked_for_without_a_seed_has_the_one_of_its_voucher(
    played: PlayedGateway, purse: Purse
) -> None:
    """Attack: a gateway that draws again and again, and gives the answer that is paid best."""
    asker, free = answers(played, purse), ASKED.model_copy(update={"seed": None})
    played.seed = None
    assert len(list(asker.ask(free))) == 1
    played.seed = 8
    with pytest.raises(GatewayFalse, match="seed"):
        list(asker.ask(free))


def test_with_a_model_at_hand_text_and_answer_are_drawn_again(played: PlayedGateway, purse: Purse) -> None:
    with pytest.raises(FalseAnswer):
        list(answers(played, purse, model=small_gpt(), verify_ppm=1_000_000).ask(ASKED))
    played.after = lambda event: event | {"choices": [{"text": "another"}]}
    with pytest.raises(GatewayFalse, match="text"):
        list(answers(played, purse, model=small_gpt()).ask(ASKED))


def test_an_answer_that_breaks_off_counts_as_spent_until_the_gateway_says_less(
    played: PlayedGateway, purse: Purse
) -> None:
    asker = answers(played, purse)
    played.breaks_off = True
    with pytest.raises(GatewayAway):
        list(asker.ask(ASKED))
    assert purse.spent == 50
    played.breaks_off = False
    list(asker.ask(ANOTHER))
    assert played.vouchers == [50, 100] and purse.spent == 50


def broken_off(played: PlayedGateway, asker: PaidAnswers, asked: CompletionAsked = ASKED) -> None:
    played.breaks_off = True
    with pytest.raises(GatewayAway):
        list(asker.ask(asked))
    played.breaks_off = False


def test_the_same_request_is_asked_again_by_the_voucher_whose_answer_broke_off(
    played: PlayedGateway, purse: Purse
) -> None:
    """Also by a client whose library asks again by itself, and for an answer without a seed."""
    asker, played.seed = answers(played, purse), None
    free = ASKED.model_copy(update={"seed": None})
    broken_off(played, asker, free)
    broken_off(played, asker, free)
    assert len(list(asker.ask(free))) == 1
    assert played.vouchers == [50, 50, 50] and purse.spent == 50 and asker.answers == 1
    list(asker.ask(free))
    assert played.vouchers[3:] == [100], "an answer that came whole is asked for anew"


def test_another_request_or_a_late_one_or_a_used_voucher_is_paid_anew(played: PlayedGateway, purse: Purse) -> None:
    now = [0.0]
    asker = answers(played, purse, clock=lambda: now[0])
    broken_off(played, asker)
    list(asker.ask(ANOTHER))
    list(asker.ask(ASKED))
    assert played.vouchers == [50, 100, 101], "a gateway goes on for the newest voucher alone"
    broken_off(played, asker)
    played.refusals = [GatewayRefusal(402, {"error": {"code": "VoucherUsed"}}, None)]
    list(asker.ask(ASKED))
    assert played.vouchers[3:] == [150, 150, 200]
    broken_off(played, asker)
    now[0] += AGAIN_S + 1
    list(asker.ask(ASKED))
    assert len(set(played.vouchers[-2:])) == 2


def test_while_a_gateway_has_not_seen_that_nobody_waits_nothing_more_is_signed(
    played: PlayedGateway, purse: Purse
) -> None:
    asker = answers(played, purse)
    broken_off(played, asker)
    played.refusals = [GatewayRefusal(409, {"error": {"code": "AnswerUnderWay"}}, None)]
    with pytest.raises(GatewayRefused):
        asker.ask(ASKED)
    list(asker.ask(ASKED))
    assert played.vouchers == [50, 50, 50]


def test_an_answer_that_goes_on_is_held_to_what_was_asked_and_a_lie_is_the_last(
    played: PlayedGateway, purse: Purse
) -> None:
    """Attack: a gateway that lets an answer break off, and charges for it twice when it is asked for again."""
    asker = answers(played, purse)
    broken_off(played, asker)
    played.charged = 100
    for _ in range(2):
        with pytest.raises(GatewayFalse):
            list(asker.ask(ASKED))
    assert played.vouchers == [50, 50]


async def hangs_up(
    app: ASGIApp, *, stream: bool = True, once: Callable[[], object], then: Callable[[], object] = lambda: None
) -> None:
    """Asks, and hangs up once something is so; then something happens, when the relay knows of it."""
    body = ASKED.model_dump_json(exclude_unset=True).removesuffix("}") + f',"stream":{str(stream).lower()}}}'
    said = [{"type": "http.request", "body": body.encode(), "more_body": False}]

    async def receive() -> Message:
        if said:
            return said.pop(0)
        while not once():
            await asyncio.sleep(0.001)
        asyncio.get_running_loop().call_soon(then)
        return {"type": "http.disconnect"}

    async def send(_message: Message) -> None:
        return

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
    }
    scope |= {"path": "/v1/completions", "raw_path": b"/v1/completions", "query_string": b"", "headers": headers}
    await app(scope, receive, send)


def test_who_hangs_up_before_an_answer_begins_leaves_nothing_open(played: PlayedGateway, purse: Purse) -> None:
    asker = answers(played, purse)
    asyncio.run(hangs_up(make_relay(asker, 5.0), once=lambda: played.vouchers))
    assert played.vouchers == [50] and played.closed == 1
    assert purse.spent == 50, "nobody knows what was charged"
    list(asker.ask(ANOTHER))
    assert played.vouchers == [50, 100] and purse.spent == 50, "the gateway has charged for the second alone"
    list(asker.ask(ASKED))
    assert played.vouchers == [50, 100, 101]


class SlowGateway(PlayedGateway):
    """One that takes its time for each token of a long answer."""

    given = 0

    def events(self, response: object) -> Iterator[dict[str, Any]]:
        while self.given < 10_000:
            self.given += 1
            time.sleep(0.01)
            yield {"choices": [{"text": "a"}]}
        yield from super().events(response)


def test_who_hangs_up_on_a_whole_answer_has_no_more_of_it_drawn(purse: Purse) -> None:
    """Attack by chance: a client that gives up after some seconds, and asks again, pays for each answer to its end."""
    slow = SlowGateway()
    asyncio.run(hangs_up(make_relay(answers(slow, purse), 5.0), stream=False, once=lambda: slow.vouchers))
    assert slow.closed == 1 and slow.given < 1_000
    assert purse.spent == 50, "nobody knows what was charged"


@pytest.mark.parametrize(("status", "told"), [(413, 413), (502, 503), (302, 503)])
def test_a_refusal_without_a_reason_is_said_with_its_status(
    played: PlayedGateway, purse: Purse, status: int, told: int
) -> None:
    """A proxy before the gateway refuses in words of its own: a client that hears 503 asks again, in vain."""
    played.refusals = [GatewayRefusal(status, {}, None)]
    with TestClient(make_relay(answers(played, purse), 5.0), base_url="http://127.0.0.1") as client:
        answer = client.post("/v1/completions", json=ASKED.model_dump(exclude_unset=True))
    assert answer.status_code == told and f"HTTP {status}" in answer.json()["error"]["message"]
    assert purse.spent == 0


def test_a_gateway_that_says_more_was_spent_is_believed_once_and_only_by_a_new_purse(
    played: PlayedGateway, purse: Purse
) -> None:
    def refusal(spent: int) -> GatewayRefusal:
        payment = {"spent": str(spent), "highest": str(spent), "amount": str(spent + 50)}
        return GatewayRefusal(402, {"error": {"code": "VoucherTooLow", "payment": payment}}, None)

    asker = answers(played, purse)
    played.refusals, played.spent = [refusal(400)], 400
    list(asker.ask(ASKED))
    assert played.vouchers == [50, 450]
    played.refusals = [refusal(4000)]
    with TestClient(make_relay(asker, 5.0), base_url="http://127.0.0.1") as client:
        answer = client.post("/v1/completions", json=ASKED.model_dump(exclude_unset=True))
    # A status that clients do not ask again after, and which file is to be moved if it is an old copy.
    assert answer.status_code == 402 and answer.json()["error"]["code"] == "PurseBehind"
    assert str(purse._path) in answer.json()["error"]["message"]
    assert played.vouchers[2:] == [500] and asker.false is None


class PlayedCover:
    """What a chain says of a bond."""

    until = 0

    def __init__(self) -> None:
        self.error: AssayError | None = None
        self.why = ""

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def why_not(self, signed: SignedStatement) -> str:
        assert signed.signer == ME
        return self.why


@pytest.mark.parametrize(
    "error", [NotCovered("It was convicted."), UnavailableError("No node answers.", code="RpcError")]
)
def test_nothing_is_signed_for_a_gateway_whose_bond_does_not_answer(
    played: PlayedGateway, purse: Purse, error: AssayError
) -> None:
    cover = PlayedCover()
    asker = answers(played, purse, cover=cover)
    assert len(list(asker.ask(ASKED))) == 1
    cover.error = error
    with pytest.raises(type(error)):
        asker.ask(ASKED)
    assert played.vouchers == [50]
    cover.error = None
    assert len(list(asker.ask(ASKED))) == 1


def test_an_answer_that_no_bond_answers_for_is_the_last_that_is_paid(played: PlayedGateway, purse: Purse) -> None:
    cover = PlayedCover()
    asker = answers(played, purse, cover=cover)
    cover.why = "The statement names another forward program."
    for _ in range(2):
        with pytest.raises(GatewayFalse, match="another forward program"):
            list(asker.ask(ASKED))
    assert played.vouchers == [50]
