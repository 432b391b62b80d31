"""Web3's provider of a node: each request has its seconds, and what comes may be nonsense."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import cached_property
from typing import Final

import requests
from eth_abi.exceptions import DecodingError
from web3 import HTTPProvider
from web3.exceptions import Web3Exception
from web3.types import RPCEndpoint

from assay_ledger.timed_session import AnswerRefused, TimedSession

NONSENSE: Final = (
    Web3Exception,
    DecodingError,
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What comes of HTML, empty objects, strings for blocks, logs without topics: web3 or we ourselves stumble over it."""


def provider(url: str, seconds: float) -> NodeProvider:
    """Web3's provider over such a session. `Chain.read` tries again; web3 does not besides."""
    return NodeProvider(url, TimedSession(seconds))


RequestListener = Callable[[str, str, float], None]
"""Is told of each request: the method, what became of it ("ok", "refused", "unanswered") and its seconds."""


class NodeProvider(HTTPProvider):
    """A provider whose requests have their seconds, and whose listener is told of each."""

    def __init__(self, url: str, session: TimedSession) -> None:
        super().__init__(url, session=session, exception_retry_configuration=None)
        self._session = session
        self._on_request: RequestListener = lambda _method, _outcome, _seconds: None

    @cached_property
    def _prepared(self) -> requests.PreparedRequest:
        """What all requests have in common. Raises requests.RequestException where the URL is none."""
        return self._session.prepare_request(
            requests.Request("POST", str(self.endpoint_uri), **self.get_request_kwargs())
        )

    def tell_requests(self, listener: RequestListener) -> None:
        """From now on a listener is told of every request."""
        self._on_request = listener

    def _make_request(self, method: RPCEndpoint, request_data: bytes) -> bytes:
        began, outcome = time.monotonic(), "unanswered"
        try:
            body = self._post(request_data)
            outcome = "refused" if _is_error(body) else "ok"
            return body
        except (AnswerRefused, requests.HTTPError):
            outcome = "refused"
            raise
        finally:
            self._on_request(str(method), outcome, time.monotonic() - began)

    def _post(self, request_data: bytes) -> bytes:
        prepared = self._prepared.copy()
        prepared.prepare_body(request_data, None)
        response = self._session.ask(prepared)
        if not (response.status_code in _WITH_ERROR and _is_error(response.content)):
            response.raise_for_status()
        return response.content


_WITH_ERROR: Final = (400, 500)
"""Statuses with which some gateways send what a node answers: a revert, or a range that is too large."""


_MOST_ERROR_BYTES: Final = 1 << 16
"""A revert's data and a provider's explanation, and some."""


def _is_error(body: bytes) -> bool:
    # What is larger is a result; to parse every answer twice would cost more than the figure is worth.
    if len(body) > _MOST_ERROR_BYTES or b'"error"' not in body:
        return False
    try:
        document = json.loads(body)
    except ValueError:
        return False
    return isinstance(document, dict) and isinstance(document.get("error"), dict)
