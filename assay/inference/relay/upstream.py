"""The gateway as its payer reaches it: its terms, and its streams. What comes from it is a stranger's word."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import requests
from urllib3.exceptions import HTTPError

from assay.inference.gateway.till import HEADER, TillTerms
from assay.inference.model import MAX_TOKENS
from assay.protocol.errors import RejectedError, UnavailableError
from assay.protocol.payments.voucher import VoucherDomain
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.json_input import JsonRefused, parse_json

MAX_EVENT: Final = 1 << 22
"""Bytes of one event: a statement of the longest prompt and answer fits."""

MAX_ANSWER: Final = 1 << 28
MAX_ERROR: Final = 1 << 16
PIECE: Final = 1 << 16
CONNECT_S: Final = 5.0
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
        self._url, self._seconds = url.rstrip("/"), seconds
        self._session = requests.Session()
        # Proxies named in the environment are for the world outside; a URL is taken as it is written.
        self._session.trust_env = False
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, requests.adapters.HTTPAdapter(pool_connections=1, pool_maxsize=POOL))

    def model(self) -> GatewayModel:
        """What is served there. Raises GatewayAway, GatewayOdd (also where it takes no payment)."""
        until = time.monotonic() + self._seconds
        try:
            with self._session.get(
                self._url + "/v1/models", timeout=(CONNECT_S, self._seconds), stream=True, allow_redirects=False
            ) as response:
                document = _document(response, until)
            (own,) = document["data"]
            paid = own["payment"]
            domain = VoucherDomain(int(paid["chain_id"]), Address(_bytes(paid["contract"], 20)))
            till = TillTerms(
                domain, Address(_bytes(paid["gateway"], 20)), Address(_bytes(paid["token"], 20)), _amount(paid["price"])
            )
            most, prompt = int(own["tokens"]), int(own["prompt"])
            if not 0 < most <= MAX_TOKENS or not 0 < prompt <= MAX_TOKENS or paid["header"] != HEADER:
                raise ValueError
            signer, root = Address(_bytes(own["signer"], 20)), Digest(_bytes(own["parameters"], 32))
            return GatewayModel(str(own["id"]), signer, root, most, prompt, till, document)
        except (requests.RequestException, OSError) as error:
            raise GatewayAway(f"{self._url} does not answer ({type(error).__name__}).") from None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise GatewayOdd(f"{self._url} says no terms of payment.") from None

    def ask(self, body: bytes, voucher: str) -> requests.Response | GatewayRefusal:
        """A stream whose head is there, so that its voucher was accepted; or why not. Raises GatewayAway."""
        until = time.monotonic() + self._seconds
        headers = {"Content-Type": "application/json", HEADER: voucher}
        try:
            response = self._session.post(
                self._url + "/v1/completions",
                data=body,
                headers=headers,
                timeout=(CONNECT_S, self._seconds),
                stream=True,
                allow_redirects=False,
            )
        except (requests.RequestException, OSError) as error:
            raise GatewayAway(f"The gateway does not answer ({type(error).__name__}).") from None
        if response.status_code == 200:
            return response
        with response:
            try:
                body_of = _document(response, until)
            except (requests.RequestException, OSError, ValueError):
                body_of = {}
        again = response.headers.get("Retry-After")
        return GatewayRefusal(response.status_code, body_of, again if (again or "").isdigit() else None)

    def events(self, response: requests.Response) -> Iterator[dict[str, Any]]:
        """The events of a stream, to its `[DONE]`. Raises GatewayAway where it ends before, GatewayOdd."""
        until, rest, total = time.monotonic() + self._seconds, b"", 0
        try:
            for piece in _pieces(response, until):
                total += len(piece)
                *lines, rest = (rest + piece).split(b"\n")
                if len(rest) > MAX_EVENT or total > MAX_ANSWER:
                    raise GatewayAway("The gateway's answer has no end.")
                for line in lines:
                    if line.strip() == b"data: [DONE]":
                        return
                    if line.startswith(b"data: "):
                        yield parse_json(line[6:], max_bytes=MAX_EVENT)
        except (requests.RequestException, OSError) as error:
            raise GatewayAway(f"The gateway's answer broke off ({type(error).__name__}).") from None
        except (JsonRefused, ValueError):
            raise GatewayOdd("The gateway's answer is no event.") from None
        raise GatewayAway("The gateway's answer broke off.")

    def close(self) -> None:
        """Its connections end."""
        self._session.close()


def _pieces(response: requests.Response, until: float) -> Iterator[bytes]:
    """The body as it comes. Raises OSError where it breaks off, and once it is late.

    Attack: a byte every few seconds, each of which is in time; whoever reads a whole buffer waits for ever.
    """
    try:
        while piece := response.raw.read1(PIECE, decode_content=True):
            yield piece
            if time.monotonic() > until:
                raise TimeoutError("no end")
    except HTTPError as error:
        raise OSError(str(error)) from None


def _document(response: requests.Response, until: float) -> Any:
    data = b""
    for piece in _pieces(response, until):
        data += piece
        if len(data) > MAX_ERROR:
            raise ValueError("too long")
    try:
        return parse_json(data, max_bytes=MAX_ERROR)
    except JsonRefused as error:
        raise ValueError(str(error)) from None


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
