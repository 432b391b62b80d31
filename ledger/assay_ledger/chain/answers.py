"""What a node's failure means, decided in one place: ask again, ask for less, or say it.

Public nodes stand behind load balancers and limits of requests; each provider words them differently. No failure of a
node is evidence about anybody, so all that is left over is an UnavailableError.
Source: docs/nodes.md.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Final

import requests
from eth_abi.exceptions import DecodingError, InsufficientDataBytes
from requests.exceptions import InvalidHeader, InvalidSchema, InvalidURL, MissingSchema
from tenacity import RetryCallState
from web3.exceptions import (
    BlockNotFound,
    ContractLogicError,
    MethodUnavailable,
    TimeExhausted,
    TransactionNotFound,
    Web3Exception,
    Web3RPCError,
)

from assay_ledger.chain.rpc import NONSENSE
from assay_ledger.timed_session import AnswerRefused

WAIT_MOST_S: Final = 5.0
"""The longest single wait, whatever a Retry-After says: the clock of a game runs meanwhile."""

NONSENSE_FOR_S: Final = 2.0
"""HTML for JSON is a server that restarts, or a URL that is none of a node: the one passes, the other is soon said."""

LAGGING_FOR_S: Final = 4.0
"""So long a node behind a load balancer may be behind the one that named the block; a block that is gone stays gone."""

_FIRST_WAIT_S: Final = 0.1
_BACKOFF_MOST_S: Final = 2.0
_DOUBLINGS: Final = 6
_AGAIN_STATUS: Final = (408, 425, 429)
"""Of HTTP's 4xx those that pass; the others (no such key, no such path) stay as they are."""


class Failure(Enum):
    """What a failed request calls for."""

    OVERLOADED = "no answer, or not now"
    """Asked again as long as reads are retried."""
    LAGGING = "the block is not there yet"
    NONSENSE = "no answer of a node"
    TOO_MUCH = "more than the node gives at once"
    """Asked for in parts where it has parts."""
    REFUSED = "an answer, however often it is asked"


_WORDS: Final = (
    (
        r"header not found|header for hash not found|missing trie node|unknown block|block not found|cannot be found"
        r"|block .*not (yet )?(available|found)|state .*not available|no state available|beyond current head"
        r"|after last (accepted )?block|future block",
        Failure.LAGGING,
    ),
    (
        r"block range|range (is )?too (large|wide|big)|more than \d+ (results|logs|blocks)|too many (results|logs)"
        r"|query returned more than|response size|result size|(exceed\w*|up to) .*\bblocks?\b.*range|max(imum)? range"
        r"|log response size|limited to .* blocks",
        Failure.TOO_MUCH,
    ),
    (
        r"(?<!gas )limit exceeded|rate.?limit|too many requests|(request|daily|usage) (count|limit)|throttl|capacity"
        r"|compute units|execution aborted|time(d)?.?out|try again|temporar|overload|\bbusy\b|unavailable"
        r"|internal (server )?error|bad gateway",
        Failure.OVERLOADED,
    ),
)
"""In the order in which they are looked for: a range may also be beyond the head, and a limit one of results."""

_WORDED: Final = tuple((re.compile(words), failure) for words, failure in _WORDS)
_CODES: Final = {-32005: Failure.OVERLOADED, 429: Failure.OVERLOADED, -32097: Failure.OVERLOADED}
"""EIP-1474's limit, HTTP's own as some gateways pass it on, and a gateway's rate limit."""


def failure_of(error: BaseException) -> Failure:
    """What the failure of one request calls for."""
    match error:
        case AnswerRefused():
            return Failure.TOO_MUCH
        case requests.HTTPError():
            status = 0 if error.response is None else error.response.status_code
            if status == 413:
                return Failure.TOO_MUCH
            return Failure.REFUSED if 400 <= status < 500 and status not in _AGAIN_STATUS else Failure.OVERLOADED
        case MissingSchema() | InvalidSchema() | InvalidURL() | InvalidHeader():
            return Failure.REFUSED
        case requests.RequestException() | OSError():
            return Failure.OVERLOADED
        case ContractLogicError() | MethodUnavailable() | TransactionNotFound() | TimeExhausted() | DecodingError():
            # What a contract answers does not change by asking; one that returns nothing is another contract.
            return Failure.REFUSED
        case BlockNotFound():
            return Failure.LAGGING
        case Web3Exception():
            return _failure_said(error)
        case _ if isinstance(error, NONSENSE):
            return Failure.NONSENSE
    return Failure.REFUSED


def _failure_said(error: Web3Exception) -> Failure:
    said = str(error).lower()
    named = next((failure for words, failure in _WORDED if words.search(said)), None)
    if named is None and isinstance(error, Web3RPCError):
        return _CODES.get(_code(error), Failure.REFUSED)
    return named or Failure.NONSENSE


def _code(error: Web3RPCError) -> int:
    told = error.rpc_response.get("error") if isinstance(error.rpc_response, dict) else None
    code = told.get("code") if isinstance(told, dict) else None
    return code if isinstance(code, int) else 0


def is_revert(told: object) -> bool:
    """Whether a node's error is what a contract answered: then its words are a stranger's."""
    if not isinstance(told, dict):
        return False
    message = told.get("message")
    return told.get("code") == 3 or (isinstance(message, str) and "reverted" in message[:200].lower())


def patience_with(failure: Failure, seconds: float) -> float:
    """How long a request that fails so is asked again, where reads are retried for so many seconds."""
    match failure:
        case Failure.OVERLOADED:
            return seconds
        case Failure.LAGGING:
            return min(seconds, LAGGING_FOR_S)
        case Failure.NONSENSE:
            return min(seconds, NONSENSE_FOR_S)
        case Failure.TOO_MUCH | Failure.REFUSED:
            return 0.0


def wait_before(tried: int, error: BaseException, spread: Callable[[], float] = random.random) -> float:
    """Seconds until a request that failed `tried` times is sent again: what the node asks for, else twice the last."""
    backoff = min(_FIRST_WAIT_S * 2 ** min(tried - 1, _DOUBLINGS), _BACKOFF_MOST_S)
    # Actors that were refused together must not come back together.
    return float(min(max(backoff * (0.5 + spread() / 2), retry_after(error)), WAIT_MOST_S))


def may_pass(state: RetryCallState) -> bool:
    """Whether a call failed by an error, and not by a process that ends."""
    return state.outcome is not None and state.outcome.failed and isinstance(raised_in(state), Exception)


def raised_in(state: RetryCallState) -> BaseException:
    """What a call that failed raised."""
    error = None if state.outcome is None else state.outcome.exception()
    assert error is not None
    return error


def pause(state: RetryCallState) -> float:
    """Seconds before a call is tried again."""
    return wait_before(state.attempt_number, raised_in(state))


def retry_after(error: BaseException) -> float:
    """Seconds that a response asks its client to stay away, by a number or a date (RFC 9110); 0 where it does not."""
    if not isinstance(error, requests.HTTPError) or error.response is None:
        return 0.0
    headers = error.response.headers
    said = str(headers.get("Retry-After", ""))
    if said.isdecimal() and said.isascii() and len(said) < 10:
        return float(said)
    until = _date(said)
    if until is None:
        return 0.0
    # By the server's own clock where it says what that shows; ours may be wrong.
    now = _date(str(headers.get("Date", ""))) or datetime.now(UTC)
    return max(0.0, (until - now).total_seconds())


def _date(said: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(said)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def remedy_of(error: Exception) -> str:
    """What to do about an answer that makes no sense. Where no contract is, a call is answered with no bytes."""
    if isinstance(error, InsufficientDataBytes):
        return (
            "So answers a chain without the run's contracts: check that the RPC URL still leads to the run's chain, "
            "and that this was not begun anew."
        )
    return "Try again, check the RPC URL and proxies, or name another node; nothing is lost."


def reason(error: BaseException) -> str:
    """In a few words, for a sentence: never the URL, which may hold a key."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP {error.response.status_code}"
    if isinstance(error, Web3RPCError):
        told = error.rpc_response.get("error") if isinstance(error.rpc_response, dict) else None
        # In one line: what follows another would look like something that we say.
        return " ".join(str(told.get("message") if isinstance(told, dict) else error)[:120].split())
    if isinstance(error, ValueError) and type(error).__name__ == "JSONDecodeError":  # json's, requests', simplejson's
        return "no JSON: a web page, perhaps, of a proxy or of a server that is no node"
    return type(error).__name__
