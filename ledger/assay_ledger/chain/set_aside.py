"""Whether a node whose searches were not whole gives what another gives, so that it may have its place back.

A node that has limits, or lost some files, or is made whole again, and a liar look alike while they leave events out.
So nothing here decides whom to believe: whatever is read of a run's past is compared with what its contracts count
before anybody acts (docs/adr/0052-kept-events.md). This keeps a node that has mended itself from being lost for ever,
and one that has not from being asked in vain.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from web3.exceptions import Web3RPCError
from web3.types import LogReceipt, RPCEndpoint, RPCResponse

from assay_ledger.chain.answers import Failure, failure_of, reason
from assay_ledger.chain.checked import checked_log, listed
from assay_ledger.chain.endpoint import Endpoint
from assay_ledger.chain.log_ranges import LogRanges, RangeRefused

SEARCH: Final = "eth_getLogs"

Asking = Callable[[Endpoint, RPCEndpoint, Any], RPCResponse]


class NotAnswered(Exception):
    """A node gives no logs now, for the reason that is its argument."""


def search(ask: Asking, endpoint: Endpoint, criteria: Mapping[str, Any], first: int, last: int) -> list[LogReceipt]:
    """What a node finds from block `first` to block `last`, in as many queries as it wants. Raises NotAnswered."""

    def of(low: int, high: int) -> list[LogReceipt]:
        asked = dict(criteria) | {"fromBlock": hex(low), "toBlock": hex(high)}
        answer = ask(endpoint, RPCEndpoint(SEARCH), [asked])
        if answer.get("error"):
            raise Web3RPCError(str(answer["error"]), rpc_response=answer)
        return [checked_log(found) for found in listed(answer["result"])]

    def of_so_many(low: int, high: int) -> list[LogReceipt]:
        try:
            return of(low, high)
        except Exception as error:
            if failure_of(error) is Failure.TOO_MUCH:
                raise RangeRefused(reason(error)) from error
            raise

    try:
        return LogRanges().read(of_so_many, first, last)
    except Exception as error:  # whatever a hostile answer leads to says the same: not now
        raise NotAnswered(reason(error)) from error


def events_of(logs: Sequence[LogReceipt]) -> list[tuple[object, ...]]:
    """What of logs is the same on every node that has them."""
    return [
        (log["blockHash"], log["logIndex"], log["address"].lower(), tuple(log["topics"]), log["data"]) for log in logs
    ]


class OnProbation:
    """Compares nodes that were set aside with one that was not, in a thread of its own: searches take long."""

    def __init__(self, ask: Asking, decide: Callable[[Endpoint, str], None]) -> None:
        """`decide` is told each node with why it is still not whole, or "" where it is."""
        self._ask, self._decide = ask, decide
        self.thread: threading.Thread | None = None

    def begin(self, waiting: Sequence[Endpoint], by: Endpoint, final: int) -> None:
        """Compares what they find up to a final block, unless that is under way."""
        if waiting and (self.thread is None or not self.thread.is_alive()):
            self.thread = threading.Thread(
                target=self._compare, args=(waiting, by, final), daemon=True, name="assay-set-aside"
            )
            self.thread.start()

    def _compare(self, waiting: Sequence[Endpoint], by: Endpoint, final: int) -> None:
        for endpoint in waiting:
            try:
                right = [(one, search(self._ask, by, *one)) for one in endpoint.searches.upto(final)]
            except NotAnswered:
                continue  # says nothing about the other
            try:
                differs = any(events_of(search(self._ask, endpoint, *one)) != events_of(logs) for one, logs in right)
            except NotAnswered as error:
                self._decide(endpoint, f"it does not search ({error})")
            else:
                self._decide(endpoint, "its searches still leave events out" if differs else "")
