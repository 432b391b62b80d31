"""Several nodes of one chain: the first that serves is asked, the next when it does not, and a liar no more.

What two nodes say is never mixed: each has to name the chain and the first block that the others name, is taken only
when it has reached what was seen, is left where its head stands still while others' go on, is set aside when its
searches are not whole, and is dropped when its block at a final height is another than most have. All get what is sent.
See docs/adr/0056-several-nodes.md.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import requests
from web3.exceptions import Web3RPCError
from web3.providers.base import BaseProvider
from web3.types import RPCEndpoint, RPCResponse

from assay.protocol.errors import UnavailableError
from assay_ledger.chain.answers import Failure, failure_of, is_revert, reason, retry_after
from assay_ledger.chain.endpoint import Endpoint, EndpointStanding
from assay_ledger.chain.endpoint_votes import (
    FINAL_BEHIND,
    believed_hash,
    block_hash,
    final_heights,
    is_left_behind,
    lacking,
    lags,
)
from assay_ledger.chain.node_urls import without_keys
from assay_ledger.chain.passing_on import PassingOn
from assay_ledger.chain.quota import Quota
from assay_ledger.chain.rpc import NONSENSE, NodeProvider, RequestListener, provider
from assay_ledger.chain.set_aside import SEARCH, OnProbation

PROBE_S: Final = 3.0
"""For one question of what decides whether a node is taken: a node that stalls must not stall who has another."""

COMPARED_S: Final = 60.0
"""Between two comparisons of a final block: one request to each node."""

SEEN_FOR_S: Final = 60.0
"""So long others must reach the head that a node named which answers no more: it may have lied."""

_SEND: Final = "eth_sendRawTransaction"
_FAILED: Final = (requests.RequestException, OSError, *NONSENSE)

_LOG = logging.getLogger("assay.rpc")


class AllEndpointsDropped(UnavailableError):
    """No node is left that agrees with the others about the chain."""

    remedy = "Ask `assay doctor` what each node says, name one that you run yourself first, and start again."


class EndpointPool(BaseProvider):
    """Web3's provider over several nodes, by their URLs; the earlier one is preferred, and believed in a tie.

    `seconds` is the longest that one request may take, `per_second` the most requests to one node (0: any number), or
    `quotas` those of another pool over the same nodes, which count together.
    Raises what the last node's failure raises, AllEndpointsDropped.
    """

    def __init__(
        self,
        urls: Sequence[str],
        seconds: float,
        *,
        per_second: float = 0.0,
        quotas: Sequence[Quota] = (),
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._sleep, self._clock = sleep, clock
        quick = min(PROBE_S, seconds)
        self.quotas = tuple(quotas) or tuple(Quota(per_second, clock) for _ in urls)
        both = zip(urls, self.quotas, strict=True)
        self._endpoints = [Endpoint(url, provider(url, seconds), provider(url, quick), quota) for url, quota in both]
        self._lock = threading.RLock()
        self._current: Endpoint | None = None
        self.turn = 0
        """Grows whenever another node is asked than before."""
        self._used = threading.local()
        self._chain: tuple[int, str] | None = None
        """Number and hash of the first block, as the first node said that was asked."""
        self._final: tuple[int, str] | None = None
        """Number and hash of a block that was final at the last comparison."""
        self._compared_at = float("-inf")
        self._seen, self._seen_at = 0, float("-inf")
        self._seen_by: Endpoint | None = None
        self._heads: dict[Endpoint, int] = {}
        """At the last comparison."""
        self._passing_on = PassingOn(lambda e, sent: self._ask(e, e.quick, RPCEndpoint(_SEND), sent), _FAILED)
        self._probation = OnProbation(lambda e, method, sent: self._ask(e, e.node, method, sent), self._on_searched)

    @property
    def count(self) -> int:
        """How many nodes there are, whatever has become of them."""
        return len(self._endpoints)

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
            is_admitted = False
            try:
                self._admit(endpoint)
                is_admitted = True
                answer = self._ask(endpoint, endpoint.node, method, params)
            except _FAILED as failed:
                # Attack: a node that says so of all that it is asked, so that the next one never is.
                if is_admitted and method == SEARCH and failure_of(failed) is Failure.TOO_MUCH:
                    raise  # less is asked for at once
                self._rest(endpoint, failed)
                error, answer = failed, None
                continue
            failed_as = self._said(method, answer)
            if failed_as is None:
                failed_as = self._goes_back(endpoint, method, params, answer)
            if failed_as is None:
                self._used.endpoint = endpoint
                if method == _SEND:
                    self._pass_on(params, endpoint)
                if method == SEARCH and not answer.get("error"):
                    endpoint.searches.note(params[0])
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

    def refuse(self, turn: int, why: str) -> bool:
        """Sets the node of a turn aside, whose searches are not whole; False where there is no other."""
        with self._lock:
            is_last = sum(not e.is_dropped for e in self._endpoints) == 1
            if turn == self.turn and self._current is not None and not is_last:
                self._set_aside(self._current, why)
            return not is_last

    def survey(self) -> list[EndpointStanding]:
        """What each node is good for now; asks all of them."""
        found = []
        for endpoint in self._endpoints:
            try:
                if not (endpoint.is_dropped or endpoint.is_waiting(self._clock())):
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
        """Those that do not rest as they were named, then the others by when they may be asked again.

        Who was set aside is asked before its time only when all others rest: a clock may run out meanwhile, and for
        whoever needs nothing old it serves.
        """
        with self._lock:
            now = self._clock()
            left = sorted((e for e in self._endpoints if not e.is_dropped), key=lambda e: e.order(now))  # stable
            may_serve = any(e.rests_until <= now for e in left if not e.is_waiting(now))
            return [e for e in left if not (may_serve and e.is_waiting(now))]

    def _rest(self, endpoint: Endpoint, error: BaseException) -> None:
        with self._lock:
            is_behind = failure_of(error) is Failure.LAGGING
            seconds = endpoint.rest(self._clock(), retry_after(error), is_behind=is_behind)
            if not endpoint.is_dropped:
                endpoint.why = without_keys(reason(error), endpoint.url)
            if self._current is endpoint:
                self._current = None
            # Bad luck: all nodes are away over a night, each is asked anew every second, and nothing else is read.
            is_said = is_behind or endpoint.is_told
            endpoint.is_told = endpoint.is_told or not is_behind
            _LOG.log(
                logging.DEBUG if is_said else logging.WARNING,
                "the node at %s does not serve (%s): it is left out for %.0f s",
                *(endpoint.place, endpoint.why, seconds),
            )

    def _set_aside(self, endpoint: Endpoint, why: str) -> None:
        seconds = endpoint.set_aside(self._clock(), why)
        if self._current is endpoint:
            self._current = None
        _LOG.error("the node at %s is set aside for %.0f s: %s", endpoint.place, seconds, why)

    def _on_searched(self, endpoint: Endpoint, differs: str) -> None:
        with self._lock:
            if endpoint.is_dropped:
                return
            if differs:
                self._set_aside(endpoint, differs)
            else:
                endpoint.is_aside = False
                _LOG.warning("the node at %s searches as the others do: it has its place back", endpoint.place)

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
                self.turn += 1
                level, again = (logging.WARNING, " again") if endpoint.is_told else (logging.INFO, "")
                _LOG.log(level, "the node at %s is asked%s", endpoint.place, again)
                endpoint.is_told = False
            if self._clock() - self._compared_at >= COMPARED_S:
                self._compare()
            if self._current is not endpoint:
                raise lags(endpoint.why)

    def _probe(self, endpoint: Endpoint) -> None:
        """Attacks: an endpoint of another chain, where our transactions mean something else; one that is behind, in
        which what was seen has not happened yet; one with a history of its own."""
        number = int(self._quick(endpoint, "eth_chainId"), 16)
        first = block_hash(self._quick(endpoint, "eth_getBlockByNumber", "0x0", False))
        with self._lock:
            if self._chain is None:
                self._chain = number, first
            if self._chain != (number, first):
                self._drop(endpoint, f"it is of chain {number} whose first block is {first}, not of {self._chain[0]}")
                raise OSError(endpoint.why)
        if self._final is not None:
            block = self._quick(endpoint, "eth_getBlockByNumber", hex(self._final[0]), False)
            if block is not None and block_hash(block) != self._final[1]:
                self._drop(endpoint, f"its block {self._final[0]}, which is final, is {block_hash(block)}")
                raise OSError(endpoint.why)
        head = self._quick(endpoint, "eth_getBlockByNumber", "latest", False)
        if (error := self._behind(endpoint, int(head["number"], 16))) is not None:
            raise error

    def _compare(self) -> None:
        """Asks all for their newest block and for the hashes of final ones. Attacks: a node that shows its user a
        history of its own, also one that calls no block final that it has changed, or has none to compare; a node that
        shows nothing new."""
        with self._lock:
            self._compared_at = self._clock()
            asked = [e for e in self._endpoints if not e.is_dropped and e.rests_until <= self._clock()]
            before, heads = self._heads, {e: n for e in asked if (n := self._number(e, "latest")) is not None}
            finals = {e: self._final_height(e, head) for e, head in heads.items()}
            self._heads = heads
            # Each height that most call final: who calls another one so does not choose what is compared.
            for number in final_heights(finals, [e for e in self._endpoints if not e.is_dropped]):
                self._compare_at(number, heads)
            current = self._current
            if current is not None and not current.is_aside and self._final is not None:
                now = self._clock()
                waited = [e for e in heads if e.is_aside and not (e.is_dropped or e.is_waiting(now))]
                self._probation.begin(waited, current, self._final[0])
            if current is not None and is_left_behind(current, before, heads):
                ahead = [other for other in heads if heads[other] > heads[current]]
                self._seen_by = min(ahead, key=lambda other: heads[other])
                self._seen, self._seen_at = heads[self._seen_by], self._clock()
                self._rest(current, lags(f"{current.place} shows nothing newer than {heads[current]}, others do"))

    def _compare_at(self, number: int, heads: dict[Endpoint, int]) -> None:
        said = dict[Endpoint, str | None]()
        for endpoint in [e for e in heads if not e.is_dropped]:
            try:
                block = self._quick(endpoint, "eth_getBlockByNumber", hex(number), False)
                said[endpoint] = None if block is None else block_hash(block)
            except _FAILED as error:
                _LOG.debug("%s has no block %d: %s", endpoint.place, number, reason(error))
        found = {endpoint: hash_ for endpoint, hash_ in said.items() if hash_ is not None}
        for endpoint in lacking(number, said, heads):
            self._rest(endpoint, OSError(f"it names block {heads[endpoint]} and has no block {number}"))
        if len(found) < 2:
            return
        believed = believed_hash(list(found.values()))
        for endpoint, hash_ in found.items():
            if hash_ != believed:
                self._drop(endpoint, f"its block {number}, which is final, is {hash_}, and others have {believed}")
        self._final = number, believed

    def _final_height(self, endpoint: Endpoint, head: int) -> int:
        """The height that a node calls final, or one that is where it calls none so."""
        final = self._number(endpoint, "finalized", is_needed=False)
        return max(0, head - FINAL_BEHIND) if final is None else final

    def _number(self, endpoint: Endpoint, name: str, *, is_needed: bool = True) -> int | None:
        """The number of a node's block by a name; None where it does not answer, which it rests for if `is_needed`."""
        try:
            return int(self._quick(endpoint, "eth_getBlockByNumber", name, False)["number"], 16)
        except _FAILED as error:
            if is_needed:
                self._rest(endpoint, error)
            else:
                _LOG.debug("%s knows no final block: %s", endpoint.place, reason(error))
            return None

    def _pass_on(self, params: Any, taken_by: Endpoint) -> None:
        """Sends a transaction to all other nodes too, and waits for none of them.

        Attack: a node that takes what it is sent and passes nothing on, until a clock convicts who sent it.
        """
        now = self._clock()
        others = (e for e in self._endpoints if e is not taken_by and not e.is_dropped and e.rests_until <= now)
        self._passing_on.to(others, params)

    def _quick(self, endpoint: Endpoint, method: str, *params: object) -> Any:
        answer = self._ask(endpoint, endpoint.quick, RPCEndpoint(method), list(params))
        if (error := self._said(method, answer)) is not None:
            raise error
        if answer.get("error"):
            raise Web3RPCError(str(answer["error"]), rpc_response=answer)
        return answer["result"]

    def _ask(self, endpoint: Endpoint, by: NodeProvider, method: RPCEndpoint, params: Any) -> RPCResponse:
        if wait := endpoint.quota.take():
            self._sleep(wait)
        answer = by.make_request(method, params)
        if not isinstance(answer, dict):
            raise TypeError("no answer of a node")
        return answer

    # --- what an answer is worth

    @staticmethod
    def _said(method: str, answer: RPCResponse) -> Exception | None:
        """The error of an answer that another node may answer better; None where it is an answer."""
        if not answer.get("error"):
            return None if "result" in answer else TypeError("neither result nor error")
        if is_revert(answer["error"]):
            return None  # what a contract says is its author's choice, and says nothing about the node
        error = Web3RPCError(str(answer["error"]), rpc_response=answer)
        failure = failure_of(error)
        if failure is Failure.REFUSED or (failure is Failure.TOO_MUCH and method == SEARCH):
            return None
        return error

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
                return lags(f"{endpoint.place} is at {number}, {self._seen} was seen")
            self._seen, self._seen_at, self._seen_by = number, now, endpoint
            return None
