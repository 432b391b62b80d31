"""The application: `/v1/completions`, `/v1/models` and `/health`."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from assay.datasets.streamed_text import StreamedText
from assay.inference.gateway.asked import CompletionAsked
from assay.inference.gateway.batcher import GatewayBusy, TextBatch, TextWish
from assay.inference.gateway.limits import BESIDE_S, AskerLimits, Limited, defect_document, error_document, until_left
from assay.inference.gateway.till import HEADER, Charge, PaymentRequired, Till
from assay.inference.generate import NO_END
from assay.inference.model import MAX_TOKENS, LanguageModel, PromptTooLong
from assay.inference.sampling import GREEDY, SamplingTerms
from assay.inference.statement import NO_RUN, SignedStatement, sign, statement_of
from assay.protocol.errors import AssayError, DeadlineError, UnavailableError, UserError
from assay.protocol.types import Address

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount
    from starlette.types import ASGIApp, Receive, Scope, Send

log = logging.getLogger("assay.gateway")

_SHORT: Final = 2_048
"""Tokens of a statement that is hashed and signed within a millisecond or two."""

_WINDOWS: Final = 4
"""Of a model's context, the tokens of a prompt at most."""

STATUS: Final = {
    "ModelUnknown": 404,
    "AnswerLate": 504,
    "LogitsNotFinite": 500,
    "PayerBusy": 429,
    "AnswerUnderWay": 409,
}


@dataclass(frozen=True)
class GatewayTerms:
    """What a gateway serves and how. name: of the model; tokens: of an answer at most; seconds: that one may take.

    till: where answers are paid for; None where they cost nothing.
    """

    model: LanguageModel
    account: LocalAccount
    name: str
    tokens: int = 1024
    seconds: float = 60.0
    chain_id: int = 0
    run: Address = NO_RUN
    limits: AskerLimits = field(default_factory=AskerLimits)
    till: Till | None = None

    @property
    def prompt(self) -> int:
        """Tokens of a prompt at most: beyond a few windows nothing of it has a say in the answer."""
        return min(MAX_TOKENS, _WINDOWS * self.model.context)


class ModelUnknown(UserError):
    """Another model is asked for than the gateway has."""

    remedy = "GET /v1/models says which there is."


class TokensAbove(UserError):
    """More tokens are asked for than the gateway gives."""

    remedy = "Ask for fewer, and go on from the answer."


def make_app(terms: GatewayTerms, batch: TextBatch) -> ASGIApp:
    """The application, behind its limits; what every statement names is found before anybody asks."""
    statement_of(terms.model, (), GREEDY, 0, ())
    app = FastAPI(
        title="Assay gateway",
        version="1",
        summary="Text from a trained model; every answer carries a signed statement that anybody can replay",
        docs_url=None,
        redoc_url=None,
    )
    desk = _Desk(terms, batch)
    answers: dict[int | str, dict[str, Any]] = {
        status: {"description": "Refused: the error's code says why"} for status in (400, 404, 408, 413, 429, 503, 504)
    }
    answers[200] = {
        "description": "The answer, whole or with `stream` as events; its last part has the signed statement",
        "content": {"text/event-stream": {}},
    }
    if terms.till is not None:
        answers[402] = {"description": "Not paid for: `error.payment` says which voucher would"}
        answers[409] = {"description": "The request of this voucher is being answered"}
    app.post("/v1/completions", response_model=None, responses=answers)(desk.complete)
    app.get("/v1/models")(desk.models)
    app.get("/health")(desk.health)
    app.exception_handler(RequestValidationError)(on_bad_request)
    app.exception_handler(AssayError)(_on_error)
    app.exception_handler(HTTPException)(on_http_error)
    app.exception_handler(Exception)(on_defect)
    described = app.openapi
    app.openapi = lambda: _bounded(described(), terms)  # type: ignore[method-assign]
    return Limited(app, terms.limits, terms.seconds + BESIDE_S)


def _bounded(document: dict[str, Any], terms: GatewayTerms) -> dict[str, Any]:
    """The interface's description with this gateway's own bounds, so that what it allows is answered."""
    asked = document["components"]["schemas"][CompletionAsked.__name__]["properties"]
    text, tokens = asked["prompt"]["anyOf"]
    asked["model"]["enum"] = [terms.name]
    asked["max_tokens"]["maximum"] = terms.tokens
    tokens["maxItems"] = text["maxLength"] = terms.prompt
    tokens["items"]["maximum"] = terms.model.vocabulary - 1
    del tokens["items"]["exclusiveMaximum"]
    # FastAPI writes bounds as doubles, in which 2^64 reads as more than it is.
    asked["seed"]["anyOf"][0] = {"type": "integer", "minimum": 0, "maximum": (1 << 64) - 1}
    return document


class _Desk:
    """What the routes do."""

    def __init__(self, terms: GatewayTerms, batch: TextBatch) -> None:
        self._terms, self._batch = terms, batch
        self._begun = int(time.time())

    async def models(self) -> dict[str, Any]:
        """The one model that there is."""
        model = self._terms.model
        own = {
            "id": self._terms.name,
            "object": "model",
            "created": self._begun,
            "owned_by": "assay",
            "parameters": "0x" + model.root.hex(),
            "program": "0x" + model.program.root.hex(),
            "tokenizer": "0x" + model.tokenizer_digest.hex(),
            "context": model.context,
            "signer": self._terms.account.address.lower(),
            "tokens": self._terms.tokens,
            "prompt": self._terms.prompt,
        }
        if self._terms.till is not None:
            own["payment"] = self._terms.till.terms.document()
        return {"object": "list", "data": [own]}

    async def health(self) -> JSONResponse:
        """Whether anybody is answered."""
        is_alive = self._batch.is_alive
        return JSONResponse({"alive": is_alive, "tokens": self._batch.tokens}, 200 if is_alive else 503)

    async def complete(self, asked: CompletionAsked, request: Request) -> Response:
        """A completion, whole or as server-sent events; the statement comes with its end."""
        terms = self._terms
        # Whoever sends a voucher that counts nowhere hears so before its prompt is read.
        found = None
        if terms.till is not None:
            found = terms.till.read(request.headers.getlist(HEADER), await request.body())
        if asked.model != terms.name:
            raise ModelUnknown(f"There is no model {asked.model[:80]!r} here.")
        if asked.max_tokens > terms.tokens:
            raise TokensAbove(f"An answer has {terms.tokens} tokens at most.")
        if isinstance(asked.prompt, str):
            prompt = terms.model.encode(asked.prompt)
        else:
            prompt = asked.prompt
            terms.model.check_tokens(prompt)
        if len(prompt) > terms.prompt:
            raise PromptTooLong(f"The prompt has {len(prompt)} tokens; {terms.prompt} are the most here.")
        if terms.till is None:
            answer = _Answer(terms, asked, prompt, asked.terms)
        else:
            charge = await terms.till.charge(found, len(prompt), asked.max_tokens, self._batch.check_room)
            drawn = asked.terms if asked.seed is not None else replace(asked.terms, seed=charge.seed)
            answer = _Answer(terms, asked, prompt, drawn, charge)
        answer.begin(self._batch)
        if asked.stream:
            return _Events(answer, request)
        return JSONResponse(await answer.whole(request))


class _Answer:
    """One answer as it comes."""

    def __init__(
        self,
        terms: GatewayTerms,
        asked: CompletionAsked,
        prompt: list[int],
        drawn: SamplingTerms,
        charge: Charge | None = None,
    ) -> None:
        self._terms, self._prompt, self._charge = terms, prompt, charge
        self._events: asyncio.Queue[int | AssayError | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def said(event: int | AssayError | None) -> None:
            # Who waits for the whole hears of its end alone: a wake for each token is what most of serving costs.
            if not asked.stream and isinstance(event, int):
                return
            with suppress(RuntimeError):  # the server ended: nobody listens
                loop.call_soon_threadsafe(self._events.put_nowait, event)

        self._wish = TextWish(
            tuple(prompt),
            drawn,
            asked.max_tokens,
            NO_END if asked.end is None else asked.end,
            time.monotonic() + terms.seconds,
            said,
        )
        self._created = int(time.time())
        self._ends_itself = False

    def begin(self, batch: TextBatch) -> None:
        """Let it wait for its turn; what was given before is said again. Raises GatewayBusy, GatewayEnds."""
        before = None if self._charge is None else self._charge.answer or self._charge.begun
        if before is not None:
            self._wish.answer.extend(before.tokens)
            for event in before.tokens:
                self._events.put_nowait(event)
            if before.is_whole:
                self._events.put_nowait(None)
                return
        try:
            batch.submit(self._wish)
        except AssayError:
            self.give_up()
            raise

    async def whole(self, request: Request) -> dict[str, Any]:
        """The answer's document. Raises what ended it."""
        watch = asyncio.create_task(self.watch(request))
        try:
            while isinstance(event := await self._events.get(), int):
                pass
            if event is not None:
                raise self._ended(event)
            ending = await self._ending()
        except asyncio.CancelledError:
            # The server ends. Nobody has read anything of this answer, and nobody who asks can bring it about.
            self._ends_itself = True
            raise
        finally:
            watch.cancel()
            self.give_up()
        text = self._terms.model.tokenizer.decode(self._wish.answer)
        return self._document(text, ending[0]) | {"usage": self._usage()} | ending[1]

    async def watch(self, request: Request) -> None:
        """Whoever hangs up leaves the row to the next, however fast tokens come."""
        await until_left(request)
        self.give_up()

    def give_up(self) -> None:
        """Nobody waits any longer; what was drawn until now is paid for."""
        wish = self._wish
        wish.is_given_up = True
        if self._charge is not None:
            drawn = () if self._ends_itself else tuple(wish.answer)
            self._charge.is_read = wish.is_read
            self._charge.drop(drawn, is_whole=drawn[-1:] == (wish.end,) or len(drawn) == wish.most)

    def _ended(self, error: AssayError) -> AssayError:
        """Where the gateway itself ends, nothing is paid for."""
        self._ends_itself = error.code == "GatewayEnds"
        return error

    async def _ending(self) -> tuple[SignedStatement, dict[str, Any]]:
        """The statement, and what was paid, which is on disk before anybody reads of it."""
        if self._charge is None:
            return await self._statement(), {}
        settled = self._charge.settle(self._wish.answer, is_whole=True)
        signed = await self._statement()
        return signed, {"payment": await asyncio.wrap_future(settled)}

    async def _statement(self) -> SignedStatement:
        """A short one is signed here, which takes less than to ask another thread for it."""
        if len(self._wish.prompt) + len(self._wish.answer) <= _SHORT:
            return self._signed()
        return await asyncio.to_thread(self._signed)

    async def events(self) -> AsyncIterator[str]:
        """The answer as server-sent events: pieces of text, the end with its statement, `[DONE]`."""
        text = StreamedText(self._terms.model.tokenizer)
        try:
            while isinstance(event := await self._events.get(), int):
                # A character of several tokens is held back until it is whole.
                if piece := text.add(event):
                    yield _event(self._document(piece, None))
            if event is not None:
                raise self._ended(event)
            signed, paid = await self._ending()
            yield _event(self._document(text.end(), signed) | {"usage": self._usage()} | paid)
            yield "data: [DONE]\n\n"
        except AssayError as error:
            yield _event(error_document(error.explain(), error.code, "server_error"))
        except Exception:
            # Its status has left long ago: a stream that ends without a word is a lost connection to its reader.
            log.exception("an answer failed")
            yield _event(defect_document())
        finally:
            self.give_up()

    def _signed(self) -> SignedStatement:
        wish, terms = self._wish, self._terms
        said = statement_of(terms.model, wish.prompt, wish.terms, wish.most, wish.answer, wish.end)
        return sign(replace(said, chain_id=terms.chain_id, run=terms.run), terms.account)

    def _document(self, text: str, signed: SignedStatement | None) -> dict[str, Any]:
        wish = self._wish
        reason = None
        if signed is not None:
            reason = "stop" if wish.answer and wish.answer[-1] == wish.end else "length"
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}
        made = {
            "id": f"cmpl-{id(wish):x}-{self._created}",
            "object": "text_completion",
            "created": self._created,
            "model": self._terms.name,
            "choices": [choice],
        }
        # As a string: the statement is its bytes, which no parser between here and a file may write anew.
        return made | ({} if signed is None else {"statement": signed.encode().decode()})

    def _usage(self) -> dict[str, int]:
        read, said = len(self._prompt), len(self._wish.answer)
        return {"prompt_tokens": read, "completion_tokens": said, "total_tokens": read + said}


class _Events(StreamingResponse):
    """An answer's events. Who hangs up before the first of them is read gives up as well."""

    def __init__(self, answer: _Answer, request: Request) -> None:
        super().__init__(answer.events(), media_type="text/event-stream")
        self._answer, self._request = answer, request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See StreamingResponse."""
        watch = asyncio.create_task(self._answer.watch(self._request))
        try:
            await super().__call__(scope, receive, send)
        finally:
            watch.cancel()
            self._answer.give_up()


def _event(document: dict[str, Any]) -> str:
    return f"data: {json.dumps(document)}\n\n"


async def _on_error(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, AssayError)
    if isinstance(error, GatewayBusy):
        again = {"Retry-After": str(error.details["retry_after"])}
        return JSONResponse(error_document(error.explain(), error.code, "overloaded"), 429, again)
    if isinstance(error, PaymentRequired):
        document = error_document(error.explain(), error.code, "payment_required", payment=error.details["payment"])
        return JSONResponse(document, 402)
    usual = 504 if isinstance(error, DeadlineError) else 503 if isinstance(error, UnavailableError) else 400
    status = STATUS.get(error.code, usual)
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse(error_document(error.explain(), error.code, kind), status)


async def on_bad_request(_request: Request, error: Exception) -> JSONResponse:
    """A body that is no request, in OpenAI's form."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"][1:])
    no_object = "The body is no JSON object: is it sent with `Content-Type: application/json`?"
    document = error_document(f"{where}: {first['msg']}" if where else no_object, "BadRequest")
    return JSONResponse(document, 400)


async def on_http_error(_request: Request, error: Exception) -> JSONResponse:
    """A path or a method that there is not, in OpenAI's form."""
    assert isinstance(error, HTTPException)
    code = {404: "NoSuchPath", 405: "NoSuchMethod"}.get(error.status_code, "BadRequest")
    return JSONResponse(error_document(str(error.detail), code), error.status_code, error.headers)


async def on_defect(_request: Request, _error: Exception) -> JSONResponse:
    """What nobody foresaw, in OpenAI's form: clients read every refusal as JSON."""
    return JSONResponse(defect_document(), 500)
