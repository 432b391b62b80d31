"""Several nodes of one chain: the first that serves is asked, the next when it does not, and a liar no more.

A node is trusted with the chain's consensus, so what two of them say is never mixed: each has to name the chain and the
first block that the others name, is taken only when it has reached what was seen, and is dropped when its block at a
final height is another than most have.
Source: docs/nodes.md, docs/adr/0056-several-nodes.md.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import requests
from web3.exceptions import Web3RPCError
from web3.providers.base import BaseProvider
from web3.types import RPCEndpoint, RPCResponse

from assay.protocol.errors import UnavailableError
from assay_ledger.chain.answers import Failure, failure_of, reason, redacted, retry_after, without_keys
from assay_ledger.chain.rpc import NONSENSE, NodeProvider, RequestListener, provider

PROBE_S: Final = 3.0
"""For one question of what decides whether a node is taken: a node that stalls must not stall who has another."""

REST_S: Final = 1.0
REST_MOST_S: Final = 300.0
"""Twice as long after each failure: a node that is down costs a probe in five minutes."""

STEADY_S: Final = 60.0
"""After so long without a failure the next one counts as the first."""

COMPARED_S: Final = 60.0
"""Between two comparisons of a final block: one request to each node."""

SEEN_FOR_S: Final = 60.0
"""So long others must reach the head that a node named which answers no more: it may have lied."""

FINAL_BEHIND: Final = 64
"""Blocks, where nodes know no `finalized`: two epochs of Ethereum."""

_FAILED: Final = (requests.RequestException, OSError, *NONSENSE)

_LOG = logging.getLogger("assay.rpc")


class AllEndpointsDropped(UnavailableError):
    """No node is left that agrees with the others about the chain."""

    remedy = "Ask `assay doctor` what each node says, name one that you run yourself first, and start again."


class Quota:
    """Requests per second to one node, a second's worth at once. `clock` gives seconds that never run back."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._per_second, self._clock = per_second, clock
        self._left, self._at = max(per_second, 1.0), clock()

    def take(self) -> float:
        """Seconds to wait before the next request; it counts as sent."""
        if not self._per_second:
            return 0.0
        now = self._clock()
        self._left = min(self._left + (now - self._at) * self._per_second, max(self._per_second, 1.0)) - 1
        self._at = now
        return max(0.0, -self._left / self._per_second)


@dataclass(slots=True, eq=False)
class Endpoint:
    """One node: how it is asked, and how it has behaved."""

    url: str
    node: NodeProvider
    quick: NodeProvider
    quota: Quota
    failures: int = 0
    rests_until: float = float("-inf")
    why: str = ""
    is_dropped: bool = False

    @property
    def place(self) -> str:
        """Its URL as it may be shown."""
        return redacted(self.url)


@dataclass(frozen=True, slots=True)
class EndpointStanding:
    """What `survey` finds of a node: its place, whether it is used, and why or why not in a few words."""

    place: str
    is_used: bool
    words: str


class EndpointPool(BaseProvider):
    """Web3's provider over several nodes, by their URLs; the earlier one is preferred, and believed in a tie.

    `seconds` is the longest that one request may take, `per_second` the most requests to one node (0: any number).
    Raises what the last node's failure raises, AllEndpointsDropped.
    """

    def __init__(
        self,
        urls: Sequence[str],
        seconds: float,
        *,
        per_second: float = 0.0,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._sleep, self._clock = sleep, clock
        quick = min(PROBE_S, seconds)
        self._endpoints = [
            Endpoint(url, provider(url, seconds), provider(url, quick), Quota(per_second, clock)) for url in urls
        ]
        self._lock = threading.RLock()
        self._current: Endpoint | None = None
        self._used = threading.local()
        self._chain: tuple[int, str] | None = None
        """Number and hash of the first block, as the first node said that was asked."""
        self._final: tuple[int, str] | None = None
        """Number and hash of a block that was final at the last comparison."""
        self._compared_at = float("-inf")
        self._seen, self._seen_at = 0, float("-inf")
        self._seen_by: Endpoint | None = None

    def tell_requests(self, listener: RequestListener) -> None:
        """From now on a listener is told of every request to any of the nodes."""
        for endpoint in self._endpoints:
            endpoint.node.tell_requests(listener)
            endpoint.quick.tell_requests(listener)

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        """The answer of the first node that gives one which is worth an answer; else what the last one gave."""
        error: Exception | None = None
        answer: RPCResponse | None = None
        for endpoint in self._in_order():
            try:
                self._admit(endpoint)
                answer = self._ask(endpoint, endpoint.node, method, params)
            except _FAILED as failed:
                if failure_of(failed) is Failure.TOO_MUCH:
                    raise  # less is asked for at once
                self._rest(endpoint, failed)
                error, answer = failed, None
                continue
            failed_as = self._said(endpoint, answer)
            if failed_as is None:
                failed_as = self._goes_back(endpoint, method, params, answer)
            if failed_as is None:
                self._used.endpoint = endpoint
                return answer
            self._rest(endpoint, failed_as)
            error = failed_as
            if not answer.get("error"):
                answer = None
        if answer is not None:
            return answer
        if error is None:
            names = ", ".join(f"{e.place} ({e.why})" for e in self._endpoints)
            raise AllEndpointsDropped(f"No node is left that may be believed: {names}.")
        raise error

    def blame(self, error: BaseException) -> None:
        """What the node answered that this thread asked last made no sense, or it lacks a block: another is asked."""
        endpoint: Endpoint | None = getattr(self._used, "endpoint", None)
        if endpoint is not None and failure_of(error) in (Failure.NONSENSE, Failure.LAGGING):
            self._used.endpoint = None
            self._rest(endpoint, error)

    def survey(self) -> list[EndpointStanding]:
        """What each node is good for now; asks all of them."""
        found = []
        for endpoint in self._endpoints:
            try:
                if not endpoint.is_dropped:
                    self._probe(endpoint)
                    found.append(EndpointStanding(endpoint.place, True, "serves"))
                    continue
            except _FAILED as error:
                self._rest(endpoint, error)
            found.append(EndpointStanding(endpoint.place, False, endpoint.why))
        self._compare()
        both = zip(found, self._endpoints, strict=True)
        return [EndpointStanding(said.place, False, e.why) if e.is_dropped else said for said, e in both]

    # --- which

    def _in_order(self) -> list[Endpoint]:
        """Those that do not rest as they were named, then the others by when they may be asked again."""
        with self._lock:
            now = self._clock()
            left = [e for e in self._endpoints if not e.is_dropped]
            return sorted(left, key=lambda e: max(e.rests_until, now))  # the sort is stable

    def _rest(self, endpoint: Endpoint, error: BaseException) -> None:
        with self._lock:
            now = self._clock()
            is_behind = failure_of(error) is Failure.LAGGING
            if not is_behind:
                is_steady = now - endpoint.rests_until > STEADY_S
                endpoint.failures = 1 if is_steady else endpoint.failures + 1
            doubled = REST_S * 2 ** min(max(endpoint.failures, 1) - 1, 12)
            seconds = REST_S if is_behind else max(min(doubled, REST_MOST_S), min(retry_after(error), REST_MOST_S))
            endpoint.rests_until = now + seconds
            if not endpoint.is_dropped:
                endpoint.why = without_keys(reason(error), endpoint.url)
            if self._current is endpoint:
                self._current = None
            _LOG.log(
                logging.DEBUG if is_behind else logging.WARNING,
                "the node at %s does not serve (%s): it is left out for %.0f s",
                *(endpoint.place, endpoint.why, seconds),
            )

    def _drop(self, endpoint: Endpoint, why: str) -> None:
        endpoint.is_dropped, endpoint.why = True, why
        if self._current is endpoint:
            self._current = None
        if self._seen_by is endpoint:
            self._seen, self._seen_by = 0, None
        _LOG.error("the node at %s is asked no more: %s", endpoint.place, why)

    # --- what a node has to say before it is asked

    def _admit(self, endpoint: Endpoint) -> None:
        """Makes a node the one that is asked. Raises what `_failed` names where it cannot be."""
        with self._lock:
            if self._current is not endpoint:
                self._probe(endpoint)
                self._current = endpoint
                _LOG.info("the node at %s is asked", endpoint.place)
            if self._clock() - self._compared_at >= COMPARED_S:
                self._compare()
            if endpoint.is_dropped:
                raise OSError(endpoint.why)

    def _probe(self, endpoint: Endpoint) -> None:
        """Attacks: an endpoint of another chain, where our transactions mean something else; one that is behind, in
        which what was seen has not happened yet; one with a history of its own."""
        number = int(self._quick(endpoint, "eth_chainId"), 16)
        first = _hash(self._quick(endpoint, "eth_getBlockByNumber", "0x0", False))
        with self._lock:
            if self._chain is None:
                self._chain = number, first
            if self._chain != (number, first):
                self._drop(endpoint, f"it is of chain {number} whose first block is {first}, not of {self._chain[0]}")
                raise OSError(endpoint.why)
        if self._final is not None:
            block = self._quick(endpoint, "eth_getBlockByNumber", hex(self._final[0]), False)
            if block is not None and _hash(block) != self._final[1]:
                self._drop(endpoint, f"its block {self._final[0]}, which is final, is {_hash(block)}")
                raise OSError(endpoint.why)
        head = self._quick(endpoint, "eth_getBlockByNumber", "latest", False)
        if (error := self._behind(endpoint, int(head["number"], 16))) is not None:
            raise error

    def _compare(self) -> None:
        """Asks all for the hash of a final block. Attack: a node that shows its user a history of its own."""
        with self._lock:
            self._compared_at = self._clock()
            asked = [e for e in self._endpoints if not e.is_dropped and e.rests_until <= self._clock()]
            heights = [n for e in asked if (n := self._height(e)) is not None]
            if len(heights) < 2:
                return
            number, said = min(heights), dict[Endpoint, str]()
            for endpoint in asked:
                try:
                    said[endpoint] = _hash(self._quick(endpoint, "eth_getBlockByNumber", hex(number), False))
                except _FAILED as error:
                    _LOG.debug("%s has no block %d: %s", endpoint.place, number, reason(error))
            if not said:
                return
            # In a tie the one that was named first is believed: max takes the first of equals.
            votes = Counter(said.values())
            believed = max(said.values(), key=lambda found: votes[found])
            for endpoint, found in said.items():
                if found != believed:
                    self._drop(endpoint, f"its block {number}, which is final, is {found}, and others have {believed}")
            self._final = number, believed

    def _height(self, endpoint: Endpoint) -> int | None:
        """A final height by a node; None where it does not answer."""
        try:
            block = self._quick(endpoint, "eth_getBlockByNumber", "finalized", False)
            if block is not None:
                return int(block["number"], 16)
        except _FAILED as error:
            _LOG.debug("%s knows no final block: %s", endpoint.place, reason(error))
        try:
            head = self._quick(endpoint, "eth_getBlockByNumber", "latest", False)
            return max(0, int(head["number"], 16) - FINAL_BEHIND)
        except _FAILED as error:
            self._rest(endpoint, error)
            return None

    def _quick(self, endpoint: Endpoint, method: str, *params: object) -> Any:
        answer = self._ask(endpoint, endpoint.quick, RPCEndpoint(method), list(params))
        if (error := self._said(endpoint, answer)) is not None:
            raise error
        if answer.get("error"):
            raise Web3RPCError(str(answer["error"]), rpc_response=answer)
        return answer["result"]

    def _ask(self, endpoint: Endpoint, by: NodeProvider, method: RPCEndpoint, params: Any) -> RPCResponse:
        with self._lock:
            wait = endpoint.quota.take()
        if wait:
            self._sleep(wait)
        answer = by.make_request(method, params)
        if not isinstance(answer, dict):
            raise TypeError("no answer of a node")
        return answer

    # --- what an answer is worth

    def _said(self, endpoint: Endpoint, answer: RPCResponse) -> Exception | None:
        """The error of an answer that another node may answer better; None where it is an answer."""
        if not answer.get("error"):
            return None if "result" in answer else TypeError("neither result nor error")
        error = Web3RPCError(str(answer["error"]), rpc_response=answer)
        return error if failure_of(error) in (Failure.OVERLOADED, Failure.LAGGING, Failure.NONSENSE) else None

    def _goes_back(self, endpoint: Endpoint, method: str, params: Any, answer: RPCResponse) -> Exception | None:
        if method == "eth_blockNumber":
            found = answer.get("result")
        elif method == "eth_getBlockByNumber" and list(params)[:1] == ["latest"]:
            block = answer.get("result")
            found = block.get("number") if isinstance(block, dict) else None
        else:
            return None
        try:
            return self._behind(endpoint, int(str(found), 16))
        except ValueError:
            return None  # nonsense, as whoever reads it says

    def _behind(self, endpoint: Endpoint, number: int) -> Exception | None:
        """Notes a head; an error where another node has shown a later one. Its own may go back: the chain's own can."""
        with self._lock:
            now = self._clock()
            is_others = self._seen_by is not None and self._seen_by is not endpoint
            if is_others and number < self._seen and now - self._seen_at < SEEN_FOR_S:
                said = f"unknown block: {endpoint.place} is at {number}, {self._seen} was seen"
                return Web3RPCError(said, rpc_response={"error": {"code": -32000, "message": said}})
            self._seen, self._seen_at, self._seen_by = number, now, endpoint
            return None


def _hash(block: Any) -> str:
    """The hash of a block as a node gave it. Raises TypeError, KeyError or ValueError."""
    found = str(block["hash"]).lower()
    if len(bytes.fromhex(found.removeprefix("0x"))) != 32:
        raise ValueError(f"{found[:80]} is no hash")
    return found
