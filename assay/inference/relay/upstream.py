"""The gateway as its payer reaches it: its terms, and its streams. What comes from it is a stranger's word."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import requests

from assay.inference.gateway.till import HEADER, TillTerms
from assay.inference.model import MAX_TOKENS
from assay.protocol.errors import RejectedError, UnavailableError
from assay.protocol.payments.voucher import VoucherDomain
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.json_input import parse_json
from assay_ledger.timed_session import AnswerRefused, TimedAnswer, TimedSession

MAX_EVENT: Final = 1 << 22
"""Bytes of one event: a statement of the longest prompt and answer fits."""

MAX_ANSWER: Final = 1 << 28
MAX_ERROR: Final = 1 << 16
MAX_NAME: Final = 200
"""Characters of a model's name."""

POOL: Final = 64
"""Connections to the gateway that are kept."""


class GatewayOdd(RejectedError):
    """What the gateway says is not what a gateway says."""

    remedy = "Ask another gateway."


class GatewayAway(UnavailableError):
    """The gateway does not answer, or not to the end."""

    remedy = "Ask again later, or another gateway."


@dataclass(frozen=True, slots=True)
class GatewayModel:
    """What a gateway serves, for which price, as it says. tokens, prompt: the most of an answer, and of a prompt."""

    name: str
    signer: Address
    model: Digest
    tokens: int
    prompt: int
    till: TillTerms
    document: dict[str, Any]
    """As it came, for whoever asks for the list of models."""


@dataclass(frozen=True, slots=True)
class GatewayRefusal:
    """An answer that is none. status: of HTTP; body: OpenAI's form."""

    status: int
    body: dict[str, Any]
    retry_after: str | None

    @property
    def payment(self) -> tuple[Wei, Wei, Wei] | None:
        """Spent, highest and the next amount that a 402 names; None where it names none."""
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            if self.status == 402:
                said = self.body["error"]["payment"]
                spent, highest, amount = (_amount(said[name]) for name in ("spent", "highest", "amount"))
                return spent, highest, amount
        return None

    @property
    def code(self) -> str:
        """The error's code; empty where there is none."""
        with suppress(KeyError, TypeError, AttributeError):
            return str(self.body["error"]["code"])
        return ""


class Upstream:
    """One gateway at a URL; safe for threads. seconds: that an answer may take in all."""

    def __init__(self, url: str, seconds: float) -> None:
        self._url, self._session = url.rstrip("/"), TimedSession(seconds, MAX_ERROR, POOL)

    def model(self) -> GatewayModel:
        """What is served there. Raises GatewayAway, GatewayOdd (also where it takes no payment)."""
        try:
            response = self._session.get(self._url + "/v1/models", allow_redirects=False)
            document = _parsed(response.content)
            (own,) = document["data"]
            paid = own["payment"]
            domain = VoucherDomain(int(paid["chain_id"]), Address(_bytes(paid["contract"], 20)))
            till = TillTerms(
                domain, Address(_bytes(paid["gateway"], 20)), Address(_bytes(paid["token"], 20)), _amount(paid["price"])
            )
            most, prompt = int(own["tokens"]), int(own["prompt"])
            if not 0 < most <= MAX_TOKENS or not 0 < prompt <= MAX_TOKENS or paid["header"] != HEADER:
                raise ValueError
            signer, root, name = Address(_bytes(own["signer"], 20)), Digest(_bytes(own["parameters"], 32)), own["id"]
            # Attack: half of a character, which nobody can write out, or one that turns a line around.
            if not isinstance(name, str) or not name.isprintable() or len(name) > MAX_NAME:
                raise ValueError
            return GatewayModel(name, signer, root, most, prompt, till, document)
        except AnswerRefused:
            raise GatewayOdd(f"{self._url} says more than terms of payment.") from None
        except (requests.RequestException, OSError) as error:
            raise GatewayAway(f"{self._url} does not answer ({type(error).__name__}).") from None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise GatewayOdd(f"{self._url} says no terms of payment.") from None

    def ask(self, body: bytes, voucher: str) -> TimedAnswer | GatewayRefusal:
        """A stream whose head is there, so that its voucher was accepted; or why not. Raises GatewayAway."""
        headers = {"Content-Type": "application/json", HEADER: voucher}
        url = self._url + "/v1/completions"
        try:
            answer = self._session.open("POST", url, data=body, headers=headers, allow_redirects=False)
        except (requests.RequestException, OSError) as error:
            raise GatewayAway(f"The gateway does not answer ({type(error).__name__}).") from None
        if answer.status == 200:
            return answer
        with answer:
            try:
                said = _parsed(answer.whole(MAX_ERROR))
            except (requests.RequestException, OSError, ValueError):
                said = None
        again = answer.header("Retry-After")
        # What stands before a gateway may say a list, or a word.
        body_of = said if isinstance(said, dict) else {}
        return GatewayRefusal(answer.status, body_of, again if (again or "").isdigit() else None)

    def events(self, answer: TimedAnswer) -> Iterator[dict[str, Any]]:
        """The events of a stream, to its `[DONE]`. Raises GatewayAway where it ends before, GatewayOdd."""
        rest, total = b"", 0
        try:
            for piece in answer.pieces():
                total += len(piece)
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > MAX_EVENT or total > MAX_ANSWER:
                    raise GatewayAway("The gateway's answer has no end.")
                for line in lines:
                    if line.strip() == b"data: [DONE]":
                        return
                    if line.startswith(b"data: "):
                        yield _parsed(line[6:], MAX_EVENT)
        except (requests.RequestException, OSError) as error:
            raise GatewayAway(f"The gateway's answer broke off ({type(error).__name__}).") from None
        except ValueError:
            raise GatewayOdd("The gateway's answer is no event.") from None
        raise GatewayAway("The gateway's answer broke off.")

    def close(self) -> None:
        """Its connections end."""
        self._session.close()


def _parsed(data: bytes, most: int = MAX_ERROR) -> Any:
    """What whoever asked is told as it came. Raises ValueError."""
    document = parse_json(data, max_bytes=most)
    # Attack: half of a character, which no answer can be written with: it was paid for, and ends in nothing.
    if b"\\u" in data:
        json.dumps(document, ensure_ascii=False).encode()
    return document


def sent(asked: dict[str, Any]) -> bytes:
    """A request's bytes."""
    return json.dumps(asked).encode()


def _amount(text: Any) -> Wei:
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 78:
        raise ValueError("no amount")
    return Wei(int(text))


def _bytes(text: Any, size: int) -> bytes:
    data = bytes.fromhex(text.removeprefix("0x"))
    if len(data) != size:
        raise ValueError("another size")
    return data
